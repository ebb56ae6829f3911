"""The checks of a page from outside when its operator is registered.

First come the kinds of its fields, then names in them that do not exist. A rule yields problems. Each problem is a
sentence with the field, the value and the requirement; one error reports all of them.
"""

from __future__ import annotations

import ast
import inspect
import re
import reprlib
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...model.aclnn import CANN, PLATFORMS
from ...model.dtypes import DTYPES, FORMATS
from ...model.errors import OracleError, suggestion
from ...numerics.expressions import LENGTH, PLACE, REDUCING, Function, place_of, symbols_of, trace
from ...numerics.orders.formula import COUNT, PART, Form, Formula, is_public
from ...numerics.orders.given import Given
from ...numerics.orders.reducing import reduces, reducing
from ...numerics.traversal import names_of, walk
from .operator import Operator, Result
from .page_functions import guarded, line_of, try_formulas, try_out
from .parameters import Aten, Forward, KernelName, MindSpore, Parameter
from .roles import MAIN, ROWS, Role

Rule = Callable[[str, Any], Iterator[str]]  # called with a field's name and its value
_POINTERS = ("workspaceSize", "executor")
_MADE_OF = "; a formula is made of arithmetic, comparisons, abs, and the functions of oracle.page"
_ALONG = ("axis", "lengths", "groups", "reduction")  # the attributes that say axes
_WORDS = {"Check": "yield", "Checks": "yield from"}  # before the call of a function that returns it
_REALS = ("aclScalar", "float", "double")
_MEANT_FOR_A_SOC = re.compile(r"\d|tbe|ascend", re.IGNORECASE)  # how the names of SoCs' kernels begin, right or wrong


def accepted(op: Operator) -> Operator:
    """Return a page's operator with functions that report their faults. OracleError for a page that cannot work."""
    _refuse(op, _record("", op))
    asked = guarded(op)
    _refuse(op, _problems(asked))
    try_out(asked)
    try_formulas(asked)
    return asked


def _refuse(op: Operator, problems: Iterable[str]) -> None:
    if text := "; ".join(dict.fromkeys(problems)):
        raise OracleError(f"operator {op.name} of {op.origin}: {text}")


# ---- kinds ----


def _shown(value: Any) -> str:
    return f"the function {place_of(value)}" if inspect.isfunction(value) else reprlib.repr(value)


def _last(field: str) -> str:
    return field.rpartition(".")[2]


def _a(words: str, *types: type) -> Rule:
    def rule(field: str, value: Any) -> Iterator[str]:
        if not isinstance(value, types):
            yield f"{field} is {_shown(value)}; it must be {words}"
        elif type(value) in _FIELDS:
            yield from _record(f"{field}.", value)

    return rule


def _function(*arguments: str) -> Rule:
    given = ", ".join(arguments)

    def rule(field: str, value: Any) -> Iterator[str]:
        if not callable(value):
            yield f"{field} is {_shown(value)}; it must be a function, called as {_last(field)}({given})"
            return
        try:
            taken = inspect.signature(value)
        except ValueError:  # written in C, without a signature
            return
        try:
            taken.bind(*arguments)
        except TypeError:
            yield f"{field}, {place_of(value)}, takes {taken}; it is called as {_last(field)}({given})"

    return rule


def _checks(field: str, value: Any) -> Iterator[str]:
    """The function of a page's checks. A check that it calls without yield would be lost."""
    yield from _function("a", "platform")(field, value)
    try:
        lines, first = inspect.getsourcelines(value)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):  # not from a file
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name):
            name = node.value.func.id
            called = getattr(value, "__globals__", {}).get(name)
            if word := _WORDS.get(getattr(called, "__annotations__", {}).get("return", "")):
                place = f"{Path(value.__code__.co_filename).name}:{first + node.lineno - 1}"
                yield f"{field} calls {name} at {place} and loses its answer; write {word} before it"


def _formula(field: str, value: Any) -> Iterator[str]:
    if not callable(value):
        yield f"{field} is {_shown(value)}; it must be a function of symbols"


def _form(field: str, value: Any) -> Iterator[str]:
    yield from _record(f"{field}.", value) if isinstance(value, Form) else _formula(field, value)


def _optional(rule: Rule) -> Rule:
    return lambda field, value: iter(()) if value is None else rule(field, value)


def _tuple(words: str, each: Rule) -> Rule:
    def rule(field: str, value: Any) -> Iterator[str]:
        if not isinstance(value, tuple):
            hint = f", as ({value!r},)" if isinstance(value, (str, float, int)) else ""
            yield f"{field} is {_shown(value)}; it must be a tuple of {words}{hint}"
            return
        for k, one in enumerate(value):
            yield from each(f"{field}[{k}]", one)

    return rule


def _mapping(words: str, each: Rule) -> Rule:
    def rule(field: str, value: Any) -> Iterator[str]:
        if not isinstance(value, Mapping):
            yield f"{field} is {_shown(value)}; it must be a mapping of {words}"
            return
        for name, one in value.items():
            yield from _TEXT(f"a name in {field}", name)
            yield from each(f"{field}[{name!r}]", one)

    return rule


def _computes(field: str, value: Any) -> Iterator[str]:
    if isinstance(value, Formula):
        yield from _record(f"{field}.", value)
    elif inspect.isfunction(value):
        yield f"{field} is {_shown(value)}; write Formula({value.__name__})"
    elif isinstance(value, Given):
        yield from _function("a")(f"{field}.function", value.function)
    else:
        yield f"{field} is {_shown(value)}; it must be a Formula, or Given(function)"


def _dtype(field: str, value: Any) -> Iterator[str]:
    if not isinstance(value, str) or value not in ("", *DTYPES):
        yield f"{field} is {_shown(value)}, which is no dtype{suggestion(value, DTYPES)}"


def _float(field: str, value: Any) -> Iterator[str]:
    if not isinstance(value, str) or value not in ("", *FORMATS):
        yield f"{field} is {_shown(value)}, which is no float dtype{suggestion(value, FORMATS)}"


def _zero_or_one(field: str, value: Any) -> Iterator[str]:
    if value not in (0, 1):
        yield f"{field} is {_shown(value)}; an absent operand counts as 0 or as 1"


def _kernel_attribute(field: str, value: Any) -> Iterator[str]:
    if not (isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str)):
        yield f"{field} is {_shown(value)}; it must be the aclnn attribute behind it and a value, as ('alpha', 1.0)"


_TEXT, _BOOL = _a("a text", str), _a("True or False", bool)
_NAMES = _tuple("names", _TEXT)

_DTYPES = _tuple("dtypes", _TEXT)
_OF_CALL = _optional(_function("a"))
_SUMMED: Mapping[str, Rule] = {"computes": _computes, "terms": _OF_CALL, "kept": _OF_CALL}
_FIELDS: Mapping[type, Mapping[str, Rule]] = {
    Operator: {
        **_SUMMED,
        "name": _TEXT,
        "parameters": _tuple("parameters", _a("a parameter, as tensor(...) gives one", Parameter)),
        "documented": _tuple("SoCs", _TEXT),
        "checks": _checks,
        "empty": _optional(_NAMES),
        "kernel_type": _optional(_function("a", "platform")),
        "points": _mapping("values by symbol", _tuple("numbers", _a("a number", int, float))),
        "mean": _OF_CALL,
        "indices": _optional(_function("platform")),
        "scalars": _OF_CALL,
        "like": _TEXT,
        "added": _float,
        "undefined": _OF_CALL,
        "filled": _OF_CALL,
        "filling": _optional(_function("platform")),
        "shape": _OF_CALL,
        "further": _mapping("Results by the names of the outputs after the first", _a("a Result", Result)),
        "changed": _tuple("versions of CANN", _TEXT),
        "demands": _optional(_function("a", "platform")),
        "source": _TEXT,
        "forwards": _tuple("Forwards", _a("a Forward", Forward)),
        "kernel": _optional(_a("a KernelName", KernelName)),
        "aten": _optional(_a("an Aten", Aten)),
        "mindspore": _optional(_a("a MindSpore", MindSpore)),
        "published": _optional(_function()),
    },
    Parameter: {
        "name": _TEXT, "symbol": _TEXT, "optional": _BOOL, "read": _BOOL, "words": _NAMES, "dtype": _dtype,
        "parts": _NAMES, "absent": _zero_or_one,
    },
    Formula: {
        "formula": _formula,
        "orders": _optional(_mapping("orders by the name of a SoC's kernel", _form)),
        "over": _TEXT,
        "gradient": _TEXT,
        "unspecified": _mapping("conditions by the name of a SoC's kernel", _formula),
        "specials": _optional(_formula),
        "integers": _optional(_formula),
    },
    Form: {"formula": _formula, "native": _DTYPES, "departs": _BOOL, "answers": _optional(_formula)},
    Result: {**_SUMMED, "dtype": _dtype, "shape": _function("a"), "filled": _OF_CALL, "skipped": _OF_CALL,
             "filling": _optional(_function("platform"))},
    Forward: {
        "name": _TEXT,
        "results": _mapping("the forward's outputs by operand", _TEXT),
        "attributes": _optional(_function("attributes")),
        "inputs": _mapping("the forward's inputs by operand", _TEXT),
    },
    KernelName: {
        "name": _TEXT,
        "inputs": _NAMES,
        "attributes": _mapping("an aclnn attribute and a value by the kernel's attribute", _kernel_attribute),
    },
    Aten: {
        "call": _optional(_function("aten", "t")),
        "expanded": _NAMES,
        "index_types": _DTYPES,
        "npu": _optional(_function("aten", "t")),
        "mixed": _BOOL,
        "departs": _BOOL,
    },
    MindSpore: {
        "primitive": _optional(_function("primitives", "t")),
        "composed": _optional(_function("mindspore", "t")),
        "index_types": _DTYPES,
    },
}  # fmt: skip


def _record(place: str, value: Any) -> Iterator[str]:
    """Yield the fields of a wrong kind in a page's operator, or in a part of it."""
    for field, rule in _FIELDS[type(value)].items():
        yield from rule(f"{place}{field}", getattr(value, field))


# ---- the content of fields of the right kinds ----


def _problems(op: Operator) -> Iterator[str]:
    yield from _parameter_problems(op)
    yield from _name_problems(op)
    for each in op.each if op.outputs else ():
        yield from _form_problems(each)
    yield from _symbol_problems(op)


def _parameter_problems(op: Operator) -> Iterator[str]:
    names = [p.name for p in op.parameters]
    yield from (f"two parameters are called {n}" for n in sorted(set(names)) if names.count(n) > 1)
    yield from (f"{n!r} is no name of a C parameter" for n in names if not (n.isascii() and n.isidentifier()))
    symbols = [symbol for p in op.parameters for symbol in p.symbols]
    for symbol in sorted({each for each in symbols if symbols.count(each) > 1}):
        named = " and ".join(p.name for p in op.parameters if symbol in p.symbols)
        yield f"{named} have the symbol {symbol}; a formula could not tell them apart, give each its own"
    yield from (f"{n} is the name of an out-parameter of every first phase" for n in names if n in _POINTERS)
    if not re.fullmatch(r"aclnn[A-Z]\w*", op.name, re.ASCII):
        yield "the name must begin with aclnn and a capital, as in aclnnMyOpBackward, and be a name of C"
    if not op.outputs:
        yield "it has no output"
    for p in op.inputs():
        if not isinstance(p.role, Role):
            yield f"the role of {p.name} is {p.role!r}; it must be a role of oracle.page, as MAIN"
    for name in op.outputs[1:]:
        if not isinstance(op.by_name[name].role, Role):
            text = f"its output {name} has no role, which says its shape"
            yield f'{text}; give one, as output("{name}", ROWS), or a Role(...) of yours'
    main = [p.name for p in op.inputs(MAIN)]
    if not main:
        yield "no input has the role MAIN"
    if len(main) > 1:
        yield f"{' and '.join(main)} have the role MAIN; one input has it, and another of its shape has SAME"
    for p in op.inputs():
        if p.role == MAIN and p.optional:
            yield f"{p.name} has the role MAIN, which gives the call its shape; it cannot be optional"
        if p.parts and op.attribute("axis") is None:
            yield f"{p.name} has parts {', '.join(p.parts)} along an axis, and no parameter is axis(...)"
    for p in op.attributes:
        if p.role == "number" and p.c not in _REALS:
            yield f"c of {p.name} is {p.c!r}; a number has the C type {', '.join(_REALS)}"
        if p.role == "number" and (isinstance(p.plain, bool) or not isinstance(p.plain, (int, float))):
            yield f"plain of {p.name} is {p.plain!r}; it must be a number, as plain=1.0"
        elif p.role == "number" and not np.isfinite(p.plain):
            yield f"plain of {p.name} is {p.plain!r}; it must be a finite number, for it is the value of most cases"
    if op.mean is not None and op.reduction is None:
        yield "it has a mean and no attribute reduction(...), so that nothing is ever divided by it"


def _name_problems(op: Operator) -> Iterator[str]:
    """Yield names that are no input, attribute, output, SoC, version or dtype."""
    inputs, attributes = op.names("input"), op.names("attr")
    yield from _unknown("documented", op.documented, PLATFORMS, "SoC")
    yield from _unknown("changed", op.changed, CANN, "version of CANN")
    yield from _unknown("empty", op.empty or (), inputs, "input")
    yield from _unknown("like", (op.like,) if op.like else (), inputs, "input")
    yield from _unknown("further", op.further, op.outputs[1:], "output after the first")
    yield from (f"its output {name} has no Result in further" for name in op.outputs[1:] if name not in op.further)
    for forward in op.forwards:
        yield from _unknown("forwards", (*forward.results, *forward.inputs), inputs, "input")
    if op.kernel is not None:
        yield from _unknown("kernel.inputs", op.kernel.inputs, inputs, "input")
        behind = [name for name, _plain in op.kernel.attributes.values()]
        yield from _unknown("kernel.attributes", behind, attributes, "attribute")
    for field, mapped in (("aten", op.aten), ("mindspore", op.mindspore)):
        if mapped is not None:
            yield from _unknown(f"{field}.expanded", getattr(mapped, "expanded", ()), inputs, "input")
            yield from _unknown(f"{field}.index_types", mapped.index_types, DTYPES, "dtype")


def _unknown(field: str, names: Iterable[str], known: Collection[str], what: str) -> Iterator[str]:
    for name in names:
        if name not in known:
            hint = f"{suggestion(name, known)}; there are: {', '.join(known) or 'none'}"
            yield f"{field} names {name}, which is no {what}{hint}"


def _form_problems(op: Operator) -> Iterator[str]:
    """Yield the names of orders and conditions that look like a kernel's name but belong to no kernel."""
    if not isinstance(op.computes, Formula):
        return
    if any(_used(f, condition=k.startswith("unspecified"))[1] for k, f in op.computes.formulas.items()):
        return  # it has no graph, which _symbol_problems reports
    over = op.computes.over.removeprefix("all but ")
    if over not in ("", "all"):
        yield from _unknown("over", (over,), op.by_name, "parameter, and not all")
        if (named := op.by_name.get(over)) is not None and named.kind != "input" and named.role not in _ALONG:
            yield f"over names {over}, which says no axes; it names an input, or one of {', '.join(_ALONG)}"
    if not op.computes.over:
        graph = trace(op.computes.formula)
        if PLACE in names_of(graph):
            yield "its formula asks for place() and over names no axis, as Formula(formula, over='dim') does"
        if any(node.op in REDUCING for node in walk(graph)):
            yield "its formula sums along an axis and over names none, as Formula(formula, over='dim') does"
    if op.shape is None and reduces(op.computes) and _is_per_row(op):
        text = f"its formula gives one value for each row, and {op.output} has the shape of {op.main}"
        yield f"{text}; write shape=, a function of the call's arguments that gives the output's"
    known = tuple(dict.fromkeys(name for p in PLATFORMS.values() for name in _families(p.kernel)))
    places = [(f"orders[{name!r}]", name) for name in op.computes.orders or {} if _MEANT_FOR_A_SOC.match(name)]
    for whole in op.computes.unspecified:
        name, apart, dtype = whole.rpartition(" ")
        places += [(f"unspecified[{whole!r}]", name if apart else whole)] if whole else []
        if apart and dtype not in DTYPES:
            yield f"unspecified[{whole!r}]: {dtype!r} is no dtype{suggestion(dtype, DTYPES)}"
    for place, name in places:
        kernel, _, version = name.partition("@")
        if not is_public(kernel):
            hint = f"{suggestion(kernel, known)}; there are: {', '.join(known)}"
            yield f"{place}: no SoC's kernel has the name {kernel!r}{hint}"
        if version and version not in CANN:
            yield f"{place}: {version!r} is no version of CANN; there are: {', '.join(CANN)}"


def _is_per_row(op: Operator) -> bool:
    """Return whether every value that a formula reads after its sums is constant along a row."""
    assert isinstance(op.computes, Formula)
    graph = reducing(op.computes).value
    same = {LENGTH, COUNT, *(stage.name for stage in graph.stages)}
    same |= {p.symbol for p in op.parameters if p.kind == "attr" or p.role is ROWS}
    return same.issuperset(names_of(graph.outer))


def _families(kernel: str) -> Iterator[str]:
    """Yield a kernel's name and the names of its families: ``tbe_a2_a3``, ``tbe_a2``, ``tbe``."""
    while kernel:
        yield kernel
        kernel = kernel.rpartition("_")[0]


def _symbol_problems(op: Operator) -> Iterator[str]:
    """Yield names in formulas, points and scalars that are no operand, and operands that no formula uses."""
    plain = op.usual((2, 2, 2, 2))
    inputs = [p for p in op.inputs() if isinstance(p.role, Role)]
    usual = {p.name: np.ones(op.shape_of(p.name, (2, 2, 2, 2), plain), np.float32) for p in inputs}
    try:
        made = set(op.scalars({**usual, **plain})) if op.scalars else set()
    except OracleError as error:
        yield str(error)
        return
    known = {symbol for p in op.parameters for symbol in p.symbols} | {COUNT} | made
    known |= {PART} if any(p.parts for p in op.inputs()) else set()
    text = f"the symbols of its parameters are {', '.join(sorted(known - {COUNT}))}, and {COUNT} is a mean's divisor"
    each = op.each if op.outputs else (op,)
    schemes = [one.computes for one in each if isinstance(one.computes, Formula)]
    taken: set[str] = set()
    used: set[str] = set()
    for place, formula in (pair for scheme in schemes for pair in scheme.formulas.items()):
        names, problem = _used(formula, condition=place.startswith("unspecified"))
        used.update(names)
        taken.update(symbols_of(formula))
        for name in symbols_of(formula):
            if name not in known:
                yield f"its {place} reads {name}, the symbol of no parameter; {text}"
        if problem:
            yield f"its {place}: {problem}"
    pointed = known | {p.symbol for p in op.inputs()}
    yield from (f"points names {name}, the symbol of no parameter; {text}" for name in op.points if name not in pointed)
    for name in sorted(taken & known - used):
        yield f"its formula takes {name} and never uses it"
    if len(schemes) == len(each):
        yield from (f"scalars makes {name}, which no formula reads" for name in sorted(made - taken))
        for p in op.inputs() if op.scalars else op.parameters:  # scalars can be made from an attribute
            if p.symbol and not p.enters(taken):
                yield f"no formula reads {p.symbol}, the symbol of {p.name}; without a symbol, or read=False, none need"


def _used(formula: Function, *, condition: bool) -> tuple[tuple[str, ...], str]:
    """Return the operands that a formula's value depends on; all of them, and the problem, if it cannot be traced. A
    condition instead of a number is a problem too, and a number instead of a ``condition``."""
    try:
        graph = trace(formula)
        if graph.is_condition and not condition:
            return names_of(graph), f"{graph} is a condition and no number: write where({graph}, 1, 0)"
        if condition and not (graph.is_condition or graph.is_constant):
            return names_of(graph), f"{graph} is a number and no condition, as x > 3 or equal(x, 3) are"
        return names_of(graph), ""
    except OracleError as error:
        return symbols_of(formula), str(error)
    except Exception as error:
        advice = "; write x * x, or sqrt(x)" if "**" in str(error) else _MADE_OF if "'Expression'" in str(error) else ""
        where = f"{place_of(formula)}: fails on symbols at {line_of(formula, error)}"
        return symbols_of(formula), f"{where}: {type(error).__name__}: {error}{advice}"
