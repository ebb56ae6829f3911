"""Wrappers for the functions of a page from outside, which report its faults.

A run calls these functions. A request for an unknown name, an exception, or an invalid return value becomes one message
that names the operator, the field and the line.
"""

from __future__ import annotations

import functools
import itertools
import math
import traceback
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import replace
from numbers import Real
from pathlib import Path
from types import GeneratorType
from typing import Any

import numpy as np

from ...model.aclnn import DEFAULT_SOC, Platform, platform
from ...model.call import Array, TensorSpec
from ...model.dtypes import DTYPES, dtype_of
from ...model.errors import OracleError
from ...numerics.exact.rationals import Undefined
from ...numerics.expressions import LENGTH, place_of, symbols_of, trace
from ...numerics.orders.formula import COUNT, Formula, is_elementwise
from ...numerics.orders.reducing import Graph, reduces, reducing
from ...numerics.programs import program
from .checks import NOT_NULL, Args, Check, Checks, PageArguments
from .operands import formula_operands
from .operator import Operator, Result
from .parameters import Parameter
from .roles import BROADCAST, MAIN, MUTUAL, SAME, Shape

Function = Callable[..., Any]
SHAPES: tuple[Shape, ...] = ((4, 5), (5,), (2, 4, 6), (2, 5, 3, 4), (2, 4, 3, 4, 2), ())  # of the main operand, usually
_WHOLE = (int, np.integer)
_SPREAD = (MAIN, SAME, BROADCAST, MUTUAL)  # the roles of inputs whose every element meets a value of the formula
CLOSE = 2.0**-9  # relative and absolute; the approximations of kernels differ less
_MOST_SHOWN = 200  # characters of a failing call
POINTERS = ("aclScalar", "char*", "aclIntArray", "aclBoolArray")  # the C types of attributes that can be null


_REDUCE: Mapping[str, Callable[..., Any]] = {"sum": np.sum, "most": np.max, "least": np.min}


class Failed(OracleError):
    """A page's function raised an exception of its own."""


def _is_shape(answer: Any) -> bool:
    return isinstance(answer, tuple) and all(isinstance(n, _WHOLE) and int(n) >= 0 for n in answer)


def _is_count(answer: Any) -> bool:
    return isinstance(answer, _WHOLE) and not isinstance(answer, bool) and int(answer) > 0


def _are_numbers(answer: Any) -> bool:
    return isinstance(answer, Mapping) and all(isinstance(k, str) and isinstance(v, Real) for k, v in answer.items())


# The valid return values of a function, by its field: in words, and as a test.
ANSWERS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "mean": ("a whole number above 0", _is_count),
    "scalars": ("numbers by symbol, as {'c': 2.0}", _are_numbers),
    "undefined": ("None, or the reason as a text", lambda answer: answer is None or isinstance(answer, str)),
    "shape": ("a tuple of lengths", _is_shape),
    "terms": ("a tuple of lengths", _is_shape),
    "kept": ("a tuple of lengths", _is_shape),
    "kernel_type": ("the name of a dtype, as 'float32'", lambda answer: isinstance(answer, str) and answer in DTYPES),
}
CHECKING = ("checks", "demands")


def guarded(op: Operator) -> Operator:
    """Return an operator whose page functions report their faults."""
    further = {name: replace(each, **_guarded(op, each, f"further[{name!r}].")) for name, each in op.further.items()}
    return replace(op, further=further, **_guarded(op, op))


def _guarded(op: Operator, owner: Operator | Result, place: str = "") -> dict[str, Any]:
    written = {field: getattr(owner, field, None) for field in (*ANSWERS, *CHECKING)}
    return {
        field: (_checking if field in CHECKING else _answering)(op, f"{place}{field}", function)
        for field, function in written.items()
        if function is not None
    }


def _answering(op: Operator, field: str, function: Function) -> Function:
    words, fits = ANSWERS[field.rpartition(".")[2]]

    @functools.wraps(function)
    def answering(a: Args, *platform: Platform) -> Any:
        asked = PageArguments(op.name, a, field, op.by_name)
        try:
            answer = function(asked, *platform)
        except OracleError:
            raise
        except Exception as error:
            raise _failed(asked, function, error) from error
        if not fits(answer):
            raise OracleError(f"{op.name}: its {field}, {place_of(function)}, gave {answer!r}; it must give {words}")
        return answer

    return answering


def _checking(op: Operator, field: str, function: Function) -> Callable[[Args, Platform], Checks]:
    @functools.wraps(function)
    def checking(a: Args, platform: Platform) -> Checks:
        asked = PageArguments(op.name, a, field, op.by_name)
        try:
            made = function(asked, platform)
            if isinstance(made, (Check, str, Mapping)) or not isinstance(made, Iterable):
                text = f"{op.name}: its {field}, {place_of(function)}, gave {made!r}; it must be a generator"
                raise OracleError(f"{text}: write yield before every check")
            returned = yield from _only_checks(op, field, function, made)
            if returned is not None:
                text = f"{op.name}: its {field}, {place_of(function)}, returned {returned!r} and ended"
                raise OracleError(f"{text}: write yield instead of return")
        except OracleError:
            raise
        except Exception as error:
            raise _failed(asked, function, error) from error

    return checking


def _only_checks(op: Operator, field: str, function: Function, made: Iterable[Any]) -> Generator[Check, None, object]:
    """Yield the checks that a function yields; return the value that it returns at its end."""
    iterator = iter(made)
    while True:
        try:
            each = next(iterator)
        except StopIteration as end:
            return end.value
        if not isinstance(each, Check):
            where = place_of(function)
            if isinstance(made, GeneratorType) and made.gi_frame is not None:
                where = f"{Path(made.gi_code.co_filename).name}:{made.gi_frame.f_lineno}"
            text = f"{op.name}: its {field} yielded {each!r} at {where}, which is no check; yield a check of"
            several = "or check(name, problem), or yield from several"
            raise OracleError(f"{text} oracle.page, {several}")
        yield each


def _failed(asked: PageArguments, function: Function, error: Exception) -> Failed:
    """Return an error that names the failing line of the page and the arguments that were null pointers."""
    text = f"{asked.operator}: its {asked.field} failed at {line_of(function, error)}: {type(error).__name__}: {error}"
    absent = [name for name, value in asked.items() if value is None]
    if absent and "NoneType" in str(error):
        text += f"; None, a null pointer, in this call: {', '.join(absent)}"
        text += "; yield not_null(...) before, or ask `if a[...] is not None`"
        return Failed(text)
    given = ", ".join(_described(name, value) for name, value in asked.items())
    text += f"; the call: {given if len(given) <= _MOST_SHOWN else given[:_MOST_SHOWN] + ' ...'}"
    if asked.field.rpartition(".")[2] == "shape":
        text += "; a shape is also asked of calls that the checks refuse"
    return Failed(text)


def _described(name: str, value: Any) -> str:
    return f"{name} {list(value.shape)}" if hasattr(value, "shape") else f"{name}={value!r}"


def line_of(function: Function, error: Exception) -> str:
    """Return the last line in the traceback that lies in the function's file."""
    steps = traceback.extract_tb(error.__traceback__)
    file = getattr(getattr(function, "__code__", None), "co_filename", None)
    step = next((step for step in reversed(steps) if step.filename == file), steps[-1])
    return f"{Path(step.filename).name}:{step.lineno} ({step.line})"


# ---- called once, when the page is registered ----


def try_out(op: Operator) -> None:
    """Call the functions of a guarded operator for a usual call, with and without its optional inputs. Raises
    OracleError for an unknown name, an invalid return value, and a function that fails on every shape that the checks
    accept, or at a null pointer of an attribute. Raises it also for checks that refuse every call of a reduction,
    that accept a null pointer for an input that is not optional, or of which two have one name."""
    optional = {p.name for p in op.inputs() if p.optional}
    for absent in (set(), optional) if optional else (set(),):
        failures: list[Failed] = []
        if not any(_works(op, shape, absent, failures) for shape in SHAPES) and failures:
            raise failures[0]
    for p in op.attributes:
        if p.c in POINTERS:
            _try_null(op, p)
    if op.reduction is not None:
        _try_reductions(op, op.reduction)
    for p in op.inputs():
        if not p.optional:
            _require_refused(op, p)


def _works(op: Operator, shape: Shape, absent: set[str], failures: list[Failed]) -> bool:
    """Return whether a call is accepted and every function works; failures are appended to ``failures``."""
    target = platform(DEFAULT_SOC)
    try:
        described = op.usual_call(shape, absent=absent)
        if _refusal(op, described, target):
            return False
        _require_own_names(op, described, target)
        _ask(op, _arrays(op, described), described, target)
    except Failed as failed:
        failures.append(failed)
        return False
    return True


def _require_own_names(op: Operator, described: Mapping[str, Any], target: Platform) -> None:
    """Raise OracleError for two checks of one name: the score leaves out the checks of one name at a time."""
    names = [each.name for each in op.checks(described, target)]
    for name in (name for name, count in Counter(names).items() if count > 1 and name != NOT_NULL):
        places = " and ".join(str(k) for k, each in enumerate(names, 1) if each == name)
        text = f"{op.name}: checks {places} that it yields have the name {name!r}; give your own another one"
        raise OracleError(f"{text}, as check(f'shape of {{name}}', ...) in a loop")


def _try_null(op: Operator, pointer: Parameter) -> None:
    """Raise OracleError if the checks fail on a null pointer: the catalogue would have no case with it."""
    for shape in filter(None, SHAPES):
        _refusal(op, op.usual_call(shape, attributes={pointer.name: None}), platform(DEFAULT_SOC))


def _require_refused(op: Operator, tensor: Parameter) -> None:
    """Raise OracleError if the checks accept, or fail on, a null pointer for an input that is not optional."""
    for shape in SHAPES:
        described = op.usual_call(shape)
        if _refusal(op, described, platform(DEFAULT_SOC)):
            continue
        if not _refusal(op, {**described, tensor.name: None}, platform(DEFAULT_SOC)):
            raise OracleError(
                f"{op.name}: its checks take a call whose {tensor.name} is a null pointer: let them yield "
                f"not_null(a, {tensor.name!r}) first, or declare it with optional=True"
            )


def _try_reductions(op: Operator, reduction: Parameter) -> None:
    """Raise OracleError if the checks refuse every call with one reduction and accept another. Cases are planned only
    for accepted calls; such a page would have cases of one element only, which look the same in every reduction."""
    targets = [platform(soc) for soc in op.documented]
    refused = {value: first_refusal(op, {reduction.name: value}, targets) for value in reduction.choices}
    taken = [value for value, (reason, _) in refused.items() if not reason]
    for value, (reason, shapes) in refused.items():
        if taken and reason:
            raise OracleError(
                f"{op.name}: its checks refuse every call that was tried with {reduction.name} {value!r}, and take "
                f"{taken[0]!r}: {reason}. Cases have outputs of the shapes that the page's `shape` gives, here {shapes}"
            )


def try_formulas(op: Operator) -> None:
    """Raise OracleError for an elementwise formula that gives no number at usual points, and for one with reductions
    whose values do not fit its output. Raise it also for an order without ``departs`` that differs from the formula at
    more than a tenth of the points, by more than an approximation."""
    calls = (op.usual_call(shape) for shape in SHAPES)
    taken = [_arrays(op, call) for call in calls if not _refusal(op, call, platform(DEFAULT_SOC))]
    if not taken:
        return
    given, draw = dict(taken[0]), np.random.default_rng(0)
    for name, tensor in given.items():
        if isinstance(tensor, np.ndarray) and tensor.dtype == np.float32:
            given[name] = np.asarray(draw.uniform(-1, 1, tensor.shape), np.float32)
    for each in op.each:
        if isinstance(each.computes, Formula) and is_elementwise(each.computes):
            for a in taken:
                _refuse_lost_terms(each, a)
            _try_formula(op, each.computes, {COUNT: 1.0, **formula_operands(each, given)}, each.terms_shape(given))
        elif reduces(each.computes) and each.terms_shape(given):
            _try_rows(op, each, given)


def _refuse_lost_terms(op: Operator, given: Mapping[str, Any]) -> None:
    """Raise OracleError if the formula reads an input of more elements than it has values, or if its values cannot be
    summed to the output. The golden would be that of the first elements, or no golden."""
    assert isinstance(op.computes, Formula)
    read = [p for p in op.inputs() if p.role in _SPREAD and not p.parts and p.enters(op.computes.symbols)]
    read.sort(key=lambda p: p.role is not MAIN)
    reductions = [{}] if op.reduction is None else [{op.reduction.name: value} for value in op.reduction.choices]
    for reduction in reductions:
        a = {**given, **reduction}
        terms, shape, kept = op.terms_shape(a), op.output_shape(a), op.kept_shape(a)
        text = "".join(f"with {name} {value!r} " for name, value in reduction.items())
        text = f"{op.name}: {text}its output {op.output} has the shape {shape} and"
        for p in read:
            if a[p.name] is not None and math.prod(terms) < math.prod(a[p.name].shape):
                rule = f'say that values are summed: terms=lambda a: tuple(a["{p.name}"].shape)'
                raise OracleError(f"{text} {p.name}, which its formula reads, {a[p.name].shape}; {rule}")
        fits = len(kept) == len(terms) and all(n in (1, whole) for n, whole in zip(kept, terms, strict=True))
        if not fits or math.prod(kept) != math.prod(shape):
            rule = "kept says this shape in the axes of the values, 1 where they are summed"
            raise OracleError(f"{text} its formula {terms} values, which cannot be summed to {kept}; {rule}")


def _try_formula(op: Operator, scheme: Formula, operands: Mapping[str, Any], shape: Shape) -> None:
    def values(place: str, function: Function) -> Any:
        try:
            with np.errstate(all="ignore"):
                return np.broadcast_to(program(trace(function))(operands, shape)[0], shape)
        except Undefined as error:  # of constants
            raise OracleError(f"{op.name}: its {place} has no value anywhere: {error}") from None

    def point(function: Function, at: tuple[Any, ...]) -> str:
        names = symbols_of(function)
        return ", ".join(f"{name}={float(np.broadcast_to(operands[name], shape)[at]):.4g}" for name in names)

    wanted = values("formula", scheme.formula)
    if not np.isfinite(wanted).any():
        at = (0,) * len(shape)
        raise OracleError(
            f"{op.name}: its formula gives no number at usual points: {wanted[at]} at {point(scheme.formula, at)}"
        )
    for name, form in scheme.forms.items():
        if form.departs:
            continue
        place, own = f"orders[{name!r}]", form.formula
        _refuse_other_values(op, place, wanted, values(place, own), functools.partial(point, own))


def _refuse_other_values(
    op: Operator, place: str, wanted: Array, found: Array, point: Callable[[tuple[Any, ...]], str]
) -> None:
    """Raise OracleError for an order whose values are others than the formula's."""
    size = np.maximum(np.abs(wanted), np.abs(found))
    off = np.isfinite(size) & (np.abs(found - wanted) > size * CLOSE + CLOSE)
    if np.count_nonzero(off) * 10 > off.size:
        at = tuple(np.argwhere(off)[0].tolist())
        raise OracleError(
            f"{op.name}: {place} computes {found[at]:.4g} where the formula computes {wanted[at]:.4g}, at {point(at)}. "
            "An order is the same formula in other steps. If the kernel does compute this, write Form(order, "
            "departs=True)"
        )


def _try_rows(op: Operator, each: Operator, given: Mapping[str, Any]) -> None:
    """Raise OracleError for a formula with reductions whose values do not fit its output: too many rows, or values that
    differ along a row for an output with one value per row. Raise it also for an order that differs from the formula.
    """
    assert reduces(each.computes)
    scheme, shape, axes = reducing(each.computes), each.terms_shape(given), each.reduced_axes(given)
    if any(graph.sums_rows for graph in (scheme.value, *scheme.forms.values())):
        return
    operands = {**dict.fromkeys(each.computes.symbols, 1.0), **formula_operands(each, given)}
    operands |= {COUNT: 1.0, LENGTH: float(math.prod(shape[k] for k in axes))}

    def place(at: tuple[Any, ...]) -> str:
        return f"place {list(at)}"

    def values(graph: Graph) -> Array:
        known = dict(operands)
        for stage in graph.stages:
            terms = np.broadcast_to(program(stage.terms)(known, shape)[0], shape)
            known[stage.name] = np.broadcast_to(_REDUCE[stage.kind](terms, axis=axes, keepdims=True), shape)
        return np.broadcast_to(program(graph.outer)(known, shape)[0], shape)

    with np.errstate(all="ignore"):
        wanted = values(scheme.value)
        if each.gives_rows(given):
            _refuse_lost_values(op, each, wanted, axes, each.output_shape(given))
        for name, graph in scheme.forms.items():
            if not each.computes.written[name].departs:
                _refuse_other_values(op, f"orders[{name!r}]", wanted, values(graph), place)


def _refuse_lost_values(op: Operator, each: Operator, values: Array, axes: tuple[int, ...], shape: Shape) -> None:
    """Raise OracleError if an output with one value per row cannot hold a formula's values."""
    assert isinstance(each.computes, Formula)
    kept = tuple(1 if k in axes else n for k, n in enumerate(values.shape))
    over = f"over={each.computes.over!r}"
    if math.prod(kept) != math.prod(shape):
        rows = tuple(n for k, n in enumerate(values.shape) if k not in axes)
        raise OracleError(
            f"{op.name}: its output {each.output} has the shape {shape}, and the rows of {over} the shape {rows}: for "
            f"an output with one value per row, over names all axes that the output does not have"
        )
    first = values[tuple(slice(1) if k in axes else slice(None) for k in range(values.ndim))]
    if not np.array_equal(np.broadcast_to(first, values.shape), values, equal_nan=True):
        raise OracleError(
            f"{op.name}: its output {each.output} has the shape {shape}, one value per row of {over}, and its formula "
            f"gives another value for each element of a row; write sum_over(...) around these values"
        )


def first_refusal(
    op: Operator, given: Mapping[str, Any], targets: Iterable[Platform], shapes: Iterable[Shape] = SHAPES[:-1]
) -> tuple[str, str]:
    """Return why the checks refuse the first of all calls tried, and the shapes of its outputs; "" if they accept any
    call. ``given``: attributes that are not the usual ones."""
    first = ("", "")
    for target, shape in itertools.product(targets, shapes):
        described = op.usual_call(shape, attributes=given)
        reason = _refusal(op, described, target)
        if not reason:
            return "", ""
        first = first if first[0] else (reason, ", ".join(f"{n} {described[n].shape}" for n in op.outputs))
    return first


def _arrays(op: Operator, described: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call without its outputs, with arrays of ones for descriptions."""
    return {name: np.ones(value.shape, dtype_of(value.dtype).numpy) if isinstance(value, TensorSpec) else value
            for name, value in described.items() if name not in op.outputs}  # fmt: skip


def _refusal(op: Operator, described: Mapping[str, Any], target: Platform) -> str:
    """Return why the checks refuse a call; "" if they accept it."""
    status = next((check.status for check in op.checks(described, target) if check.status is not None), None)
    return "" if status is None else status.reason or status.name


def _ask(op: Operator, arrays: Mapping[str, Any], described: Mapping[str, Any], target: Platform) -> None:
    if op.demands is not None:
        list(op.demands(described, target))
    if op.undefined is not None:
        op.undefined(described)
    for each in op.each:
        for function in (each.mean, each.scalars, each.terms, each.kept):
            if function is not None:
                function(arrays)
        if each.kernel_type is not None:
            each.kernel_type({**arrays, **{name: described[name] for name in op.outputs}}, target)
