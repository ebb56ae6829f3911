"""All wrong kernels and all right kernels of an operator: the published ones, then the generated ones.

Published entries of this package's operators are in ``oracle/defects/published/`` (``ROWS``). Those of an external
operator come from its declaration: ``published`` is a function that yields :class:`Defect`, :class:`Right` and, for
generated mutants that no right verdict may flag, :class:`Argument`. Arguments for this package's operators are in
``oracle/defects/published/equivalent.py``. Without published entries there are only the generated ones.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from ..model.call import Array, Call
from ..model.dtypes import dtype_of
from ..model.errors import OracleError
from ..numerics.bounds.exact_steps import Facts
from ..numerics.expressions import IRRATIONAL, ONE, Expression, is_finite
from ..numerics.orders.formula import Formula
from ..numerics.traversal import walk
from ..operators import operator, references, validate, writes
from ..operators.definition.operator import Operator
from ..operators.definition.parameters import REDUCTIONS
from .base import elementwise
from .base.device import Argument, Defect, Device, Right, nothing, own_output
from .base.elementwise import Kernel
from .base.queries import accepts, call_of, is_written, kinds, mixes, narrows, ranks, rounds_to_another, usual_shape
from .base.right import generated as right_of
from .condition_pairs import pairs
from .one_change import api, formula, layouts, numbers, numerics, refusals
from .one_change.numbers import signs
from .sizes import cores, corners, lost_parts

# ---- mutants with the same answers as right kernels, bit for bit -----------------------------------------------------
#
# They are found by comparing a mutant with right kernels on values that would distinguish them. A comparison may turn
# at a point at which both branches agree. An infinity may be as far away as the largest number. A factor of zero may
# affect only zeros. If a formula has a separate way for nonfinite values, kernels take either way. No verdict can
# distinguish such a mutant from a right kernel. Only elementwise mutants of few kinds are compared, in every float type
# and under every flag, word and sign of the numbers. The operands are every pair of special values, ends of the types,
# the formula's points with their neighbours, and ordinary numbers.

WHY = (
    "a right kernel answers each element the same, bit for bit, for every two of the special values, the ends of the"
    " types, the points of the formula with their neighbours, and ordinary numbers, in every type and under every"
    " attribute"
)
ROUNDED_BEFORE_STORE = (
    "every result but the gradient itself, which is a number of the output's type, goes through an irrational function"
    " or a constant without end, which right kernels round: one next to a tie of 16 bits may be stored to either side"
)
NOTHING_ROUNDED = (
    "the result is an operand or 0, numbers of every type on its way to the output's, so that neither the host nor a"
    " store rounds"
)
NOTHING_COMPUTED = "the result is an operand or 0, chosen by its sign: in 16 bits it is the same"
NAN_IS_FREE = (
    "a result is NaN only where nothing is specified, for every two of the special values, the ends of the types, the"
    " points of the formula with their neighbours, and ordinary numbers, in every type and under every attribute"
)
SAME_TYPE = "in every call that is accepted the type that the host rounds to is the output's"
NEVER_BELOW = "no result of its formula is below 0"
_SWAPPED = re.compile(r"formula/[^/]+/\((.+) - (.+)\) -> \(\2 - \1\)$")
_ASKED = re.compile(r"operand/\S+ (nan as zero|inf as largest|flushed)$|mask/")
_OF_INFINITIES = re.compile(r"spec/.* inf (to (largest|nan|zero)|loses its sign)$")
_OF_NAN = re.compile(r"spec/.* nan to (zero|inf)$|operand/\S+ nan as zero$")
_OF_MEANS = re.compile(r"\bn\b|\bmean\b")  # the count of elements; a call without a reduction does not read it
_ENDS = (0.0, 1e-45, 2.0**-127, 2.0**-126, 2.0**-24, 2.0**-15, 2.0**-14, 65504.0, 3.3895314e38, np.inf)
_ORDINARY = (0.25, 0.5, 0.625, 1.0, 1.5, 2.0, 3.0, 6.0, 20.0, 88.0, 104.0)
_MOST = 20000  # elements of a call


def why_unnoticeable(op: Operator, defect: Defect, published: tuple[Kernel, ...] = ()) -> str:
    """Return why no verdict may notice a mutant, because right kernels (including ``published`` ones) give the same
    answers. Return "" if the mutant differs from them, or is not of a kind that is compared."""
    device = defect.device
    if device.output not in ("", op.output):
        return ""
    if not elementwise.fits(op) or op.written:
        return ""
    if defect.id.startswith("host/"):
        return _unseen_of_host(op, defect.id.rpartition("/")[2])
    if re.match(r"num/.*(half away|truncate|upwards)$", defect.id) and _is_the_gradient(op) and not narrows(op):
        return NOTHING_ROUNDED
    if re.match(r"num/\S+/(b?float16) in \1$", defect.id) and _is_the_gradient(op) and _is_chosen_by_sign(op):
        return NOTHING_COMPUTED
    if _OF_NAN.match(defect.id) and _is_free_somewhere(op):
        free = ((c, right, _free_in(op, c, defect.socs)) for c, right in _probe_calls(op, published))
        return "" if any(_differs(device, *each) for each in free) else NAN_IS_FREE
    if re.match(r"num/.* ?half away$", defect.id):
        return ROUNDED_BEFORE_STORE if _meets_no_tie(op) else ""
    if defect.id.endswith("inf loses its sign") and all(Facts().sign(r) > 0 for _, r, _ in elementwise.roots(op)):
        return NEVER_BELOW
    of_the_formula = defect.id.startswith("formula/") and _has_nonfinite_branch(op) and not _OF_MEANS.search(defect.id)
    asked = (_ASKED, _SWAPPED, *((_OF_INFINITIES,) if _is_of_one_operand(op) else ()))
    if not (any(e.match(defect.id) for e in asked) or _only_at_a_tie(defect.id) or of_the_formula):
        return ""
    return "" if any(_differs(device, call, right) for call, right in _probe_calls(op, published)) else WHY


def _meets_no_tie(op: Operator) -> bool:
    """Return whether every result is rounded before the store, or is the gradient itself in an output of its type."""
    result = (branch for _, root, _ in elementwise.roots(op) for branch in _branches(root))
    return all(_rounded(b) or (_is_exact_product(b) and not mixes(op, op.output)) for b in result)


def _unseen_of_host(op: Operator, what: str) -> str:
    """Return why no verdict may notice a host that rounds to another type before the output's type, or ""."""
    if what not in ("no rounding", f"{op.output}'s type"):
        return ""
    if _is_the_gradient(op):
        return NOTHING_ROUNDED
    return SAME_TYPE if what != "no rounding" and not rounds_to_another(op) else ""


def _is_the_gradient(op: Operator) -> bool:
    """Return whether every result is an operand (mostly the gradient) of either sign, or 0, and no mean divides it."""
    if op.attribute("reduction") is not None:
        return False
    result = [branch for _, root, _ in elementwise.roots(op) for branch in _branches(root, ("where", "min", "max"))]
    numbers = {n.value for branch in result for n in branch if n.op == "constant"}
    read = {n.value for branch in result for n in branch if n.op == "symbol"}
    return (
        all(_is_exact_product(b) for b in result)
        and numbers <= {0, 1, -1}
        and read.isdisjoint(p.symbol for p in op.attributes)
    )


def _is_chosen_by_sign(op: Operator) -> bool:
    """Return whether the formula compares only with 0, and no attribute is a number."""
    constants = {n.value for _, root, _ in elementwise.roots(op) for n in walk(root) if n.op == "constant"}
    return constants <= {0, 1, -1} and all(p.role != "number" for p in op.attributes)


def _is_of_one_operand(op: Operator) -> bool:
    """Return whether one operand alone determines a result: no other operand, and no number among the attributes."""
    return len(op.operands) == 1 and all(p.role != "number" for p in op.attributes)


def _is_free_somewhere(op: Operator) -> bool:
    """Return whether a formula leaves some results unspecified on every SoC, and these are not summed."""
    return isinstance(op.computes, Formula) and "" in op.computes.unspecified and op.reduction is None


def _free_in(op: Operator, call: Call, socs: tuple[str, ...]) -> Array:
    """Return the results of a call that are unspecified on each of some SoCs."""
    free = np.ones((), bool)
    for soc in socs:
        result = references(replace(call, soc=soc))[op.output].unspecified
        free = np.zeros((), bool) if result is None else free & result
    return free


def _branches(node: Expression, choosing: tuple[str, ...] = ("where",)) -> list[frozenset[Expression]]:
    """Return, for each outcome of a graph's conditions, the nodes that produce the result. ``choosing``: the functions
    that return one of their arguments."""
    if node.op in choosing:
        args = node.args[1:] if node.op == "where" else node.args
        return [branch for arg in args for branch in _branches(arg, choosing)]
    if node.op == "sign":
        return [frozenset({ONE})]
    chosen = product(*(_branches(arg, choosing) for arg in node.args))
    return list(dict.fromkeys(frozenset({node}).union(*each) for each in chosen))


def _rounded(branch: frozenset[Expression]) -> bool:
    """Return whether a branch has an irrational function, or a constant that is not a finite binary fraction."""
    constants = (node.value for node in branch if node.op == "constant")
    endless = any(not isinstance(value, Fraction) or value.denominator.bit_count() != 1 for value in constants)
    return endless or any(node.op in IRRATIONAL and not node.is_constant for node in branch)


def _is_exact_product(branch: frozenset[Expression]) -> bool:
    return {n.op for n in branch} <= {"*", "neg", "symbol", "constant"} and sum(n.op == "symbol" for n in branch) <= 1


def _only_at_a_tie(name: str) -> bool:
    """Return whether a mutant of a formula replaces <= by <, or < by <=."""
    old, arrow, new = name.rpartition("/")[2].partition(" -> ")
    return bool(arrow) and name.startswith("formula/") and old.replace("<=", "<") == new.replace("<=", "<")


@cache
def _has_nonfinite_branch(op: Operator) -> bool:
    """Return whether a formula tests a value for finiteness and has a separate way for nonfinite values."""
    sizes = (node for node in walk(elementwise.value_of(op)) if node.op == "<=" and node.args[0].op == "abs")
    return any(node is is_finite(node.args[0].args[0].args[0]) for node in sizes if node.args[0].args[0].args)


def _differs(device: Device, call: Call, right: tuple[Array, ...], free: Any = False) -> bool:
    """Return whether the device's answer for some element differs from all right kernels' answers. Zeros of both signs
    are equal, and so are all NaNs. For ``free`` results every answer is right."""
    own = device.result(call, call.outputs[own_output(device, call)])
    known = [(own == each) | ((own != own) & (each != each)) for each in right]
    return not (np.logical_or.reduce(known) | free).all()


@cache
def _probe_calls(op: Operator, published: tuple[Kernel, ...]) -> tuple[tuple[Call, tuple[Array, ...]], ...]:
    """Return calls with the answers of right kernels: the plain one, the formula's other orders, published ones."""
    result = []
    forms = dict.fromkeys((elementwise.own_order(op), *elementwise.orders(op).values()))
    kernels = (*(elementwise.computing(op, elementwise.Formula(op, form)) for form in forms), *published)
    right = [Device("right", kernel) for kernel in kernels]
    for kind, attrs in product(kinds(op), _attributes(op)):
        call = call_of(op, (1,), dtype=kind, attrs=attrs)
        arrays = _operands(op, kind)
        size = next(iter(arrays.values())).size
        outputs = {name: np.zeros(size, dtype_of(kind).numpy) for name in op.outputs}
        inputs = {name: arrays.get(name, np.zeros(size, dtype_of(kind).numpy)) for name in call.inputs}
        asked = Call(op.name, call.soc, inputs, call.attrs, outputs)
        result.append((asked, tuple(device.result(asked, outputs[op.output]) for device in right)))
    return tuple(result)


def _attributes(op: Operator) -> Iterator[dict[str, Any]]:
    """Yield every combination of flags, words, reductions and signs of numbers; then infinite and usual numbers."""
    values: dict[str, tuple[Any, ...]] = {}
    infinite: dict[str, tuple[Any, ...]] = {}
    for p in op.attributes:
        if p.role == "number":
            values[p.name] = (*signs(p).values(), 1.5, *_constants(op))
            infinite[p.name] = (float(p.plain or 0), np.inf, -np.inf)
        elif p.role in ("flag", "choice"):
            values[p.name] = p.choices or (False, True)
        elif p.role == "reduction":
            values[p.name] = (REDUCTIONS.index("none"),)  # a sum of special values is NaN for any addition
    for each in (values, {**values, **infinite}) if infinite else (values,):
        for chosen in product(*each.values()):
            yield dict(zip(each, chosen, strict=True))


def _constants(op: Operator) -> tuple[float, ...]:
    """Return the numeric constants of a formula that has exactly one number attribute, which may meet them."""
    if not elementwise.fits(op):
        return ()
    numbers = [p for p in op.attributes if p.role == "number"]
    result = [node.value for node in walk(elementwise.value_of(op)) if node.is_constant]
    return tuple(float(v) for v in result if isinstance(v, Fraction)) if len(numbers) == 1 else ()


def _operands(op: Operator, kind: str) -> dict[str, Array]:
    """Return every pair of values of two operands; for more operands, random combinations of their values."""
    dtype = dtype_of(kind).numpy
    columns = [_values(op, p.symbol, dtype) for p in op.operands]
    rng = np.random.default_rng(0)
    count = min(_MOST, 4 * max(a.size * b.size for a in columns for b in columns))
    result = {
        p.name: column[rng.integers(0, column.size, count)] for p, column in zip(op.operands, columns, strict=True)
    }
    if len(columns) == 2:
        one, two = (g.reshape(-1) for g in np.meshgrid(*columns, indexing="ij"))
        return {p.name: grid for p, grid in zip(op.operands, (one, two), strict=True)}
    return result


def _values(op: Operator, symbol: str, dtype: Any) -> Array:
    points = np.array(op.points.get(symbol, ()), dtype)
    ends = np.array([v for e in (*_ENDS, *_ORDINARY) for v in (e, -e)], np.float64)
    with np.errstate(all="ignore"):
        near = [np.nextafter(points.astype(np.float32), np.float32(way)).astype(dtype) for way in (-np.inf, np.inf)]
        return np.concatenate([points, *near, ends.astype(dtype), np.array([np.nan], dtype)])


# ---- the registry ----------------------------------------------------------------------------------------------------

Entry = Defect | Right | Argument
GENERATORS: tuple[Callable[[Operator], Iterator[Defect]], ...] = (
    formula.mutants, numbers.of_numbers, numbers.of_indices, pairs.of_combinations, pairs.mutants, numerics.mutants,
    layouts.mutants, lost_parts.mutants, cores.of_tiles, cores.of_cores, corners.mutants, formula.of_masks,
    api.misbehaviour, api.missing, refusals.mutants,
)  # fmt: skip


@cache
def defects(op: str) -> tuple[Defect, ...]:
    """Return the wrong kernels of an operator: first the published ones, then the generated ones."""
    result = operator(op)
    entries = _published(result)
    arguments = {entry.id: entry for entry in entries if isinstance(entry, Argument)}
    right = tuple(entry.kernel for entry in entries if isinstance(entry, Right))
    generated = [d for generate in GENERATORS for d in generate(result)]
    generated += [d for each in result.each[1:] for d in _of_further(each, {d.id for d in generated})]
    for some in [each for each in arguments if each.startswith("pair/")]:  # a pattern
        argument = arguments.pop(some)
        arguments |= {d.id: argument for d in generated if fnmatchcase(d.id, some)}
    wrong = [entry for entry in entries if isinstance(entry, Defect)]
    everything = [*wrong, *api.rows(result), *(_argued(result, d, arguments.get(d.id), right) for d in generated)]
    ids = [d.id for d in everything]
    twice = sorted({i for i in ids if ids.count(i) > 1}) if len(set(ids)) < len(ids) else []
    lost = sorted(arguments.keys() - set(ids))
    for problem, names in (("ids used twice", twice), ("arguments of equivalence for no mutant", lost)):
        if names:
            raise OracleError(f"wrong kernels of {op}: {problem}: {', '.join(names)}")
    return tuple(everything)


def _argued(op: Operator, defect: Defect, argument: Argument | None, right: tuple[Kernel, ...]) -> Defect:
    """Return a mutant with the argument why no verdict may notice it, or limited to the SoCs on which one must."""
    left = tuple(soc for soc in defect.socs if argument is not None and soc not in argument.socs)
    if argument is not None and left:
        return replace(defect, socs=left, equivalent="")
    why = defect.equivalent or _of_its_shape(op, defect) or why_unnoticeable(op, defect, right)
    return replace(defect, equivalent=argument.why if argument else why)


_OF_COLUMNS = re.compile(r"tile/\S+/columns (exact|beyond|lane|edge)|layout/\S+/(\w+) last stride of \2$")
_OF_STRIDES = re.compile(r"layout/\S+/(\w+) (.*strides?|axis order) of \1$")


def _of_its_shape(op: Operator, defect: Defect) -> str:
    """Return why no call can show a mutant of a further output, because that output has too few elements; else ""."""
    output = defect.device.output
    if not output or op.of(output).shape is None:
        return ""
    if _OF_STRIDES.match(defect.id):
        calls = (call_of(op, usual_shape(op), attrs=attrs) for attrs in _attributes(op))
        if all(math.prod(call.outputs[output].shape) == 1 for call in calls):
            return f"{output} has one element"
    narrow = _OF_COLUMNS.match(defect.id) and _is_narrow(op, output)
    return f"the last axis of {output} has one element" if narrow else ""


@cache
def _is_narrow(op: Operator, output: str) -> bool:
    """Return whether the last axis of an output has length 1 (also for a main operand of rank 3, and along any axis)
    and is required."""
    axis, deep = op.attribute("axis"), (2, 4, 5)
    along = [{}] if axis is None else [{axis.name: k} for k in range(len(deep))]
    shapes = [call_of(op, deep, attrs=attrs).outputs[output].shape for attrs in along] if 3 in ranks(op) else [()]
    usual = call_of(op, usual_shape(op)).outputs[output].shape
    return all(shape[2:] == (1,) for shape in shapes) and not accepts(op, shapes={output: usual[:-1]})


def _of_further(op: Operator, known: set[str]) -> Iterator[Defect]:
    """Yield the mutants of a further output. A mutant that affects the call as a whole is skipped if it is already
    ``known``. An output that the host never writes has no mutants of its values."""
    own = (generate for generate in GENERATORS if generate is not api.missing)  # checks are of the call, and take long
    for defect in (d for generate in own for d in generate(op)):
        device = defect.device
        if device.check is validate and device.launch is writes and device.after is nothing:
            text = f"{op.output}: {defect.what}"
            if is_written(op):
                yield replace(
                    defect, id=f"{defect.id} of {op.output}", what=text, device=replace(device, output=op.output)
                )
        elif defect.id not in known:
            yield defect


@cache
def sampled(op: str, seed: int) -> tuple[Defect, ...]:
    """Return kernels that are not in the registry: wrong if three conditions hold together, drawn by a seed."""
    return pairs.sampled(operator(op), seed)


@cache
def right_kernels(op: str) -> tuple[Right, ...]:
    """Return the right kernels of an operator, the plain one first."""
    result = operator(op)
    generated = (kernel for each in result.each for kernel in right_of(each))
    return (*generated, *(entry for entry in _published(result) if isinstance(entry, Right)))


@cache
def _published(op: Operator) -> tuple[Entry, ...]:
    """Return the published entries of an operator: defects, right kernels, arguments."""
    if op.published is not None:
        return tuple(op.published())
    if not op.is_built_in:
        return ()
    from .published import activations, equivalent, losses, reductions  # each imports its pages

    kinds_of = (activations, losses, reductions)
    return (*(entry for kind in kinds_of for entry in kind.ROWS.get(op.slug, tuple)()), *equivalent.arguments(op))
