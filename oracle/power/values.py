"""Coverage of binades: for each distance of an operator, the binades in which some case's verdict depends on it.

A case visits a binade by an element with a finite, specified golden at which a wrong answer is visible. Visible means
that the strict bound is below the result, or for a result near 0, far below the gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, product
from typing import Any

import numpy as np

from ..catalogue.data.case import Case, call_for_golden, make_inputs
from ..catalogue.data.generators import GENERATORS
from ..catalogue.data.generators.streams import Stream
from ..catalogue.measure import Dimension
from ..defects.base import elementwise, rows, samples
from ..defects.base.queries import kinds
from ..model.aclnn import DEFAULT_SOC
from ..model.call import Array, Call, TensorSpec
from ..model.classes import grouped
from ..model.dtypes import DTYPES, FORMATS
from ..numerics.expressions import CHOOSING, COMPARISONS, Expression, maximum, symbol, text, trace
from ..numerics.floats.codes import code
from ..numerics.orders.formula import COUNT, PART
from ..numerics.programs import simulate
from ..numerics.traversal import names_of, substitute, walk
from ..operators import OPERATORS, reference
from ..operators.definition.operands import formula_operands
from ..operators.definition.operator import Operator
from ..operators.definition.roles import ONE_VALUE

# The distances that determine a formula's value: of an operand from 0, and of two terms from one another.
#
# A right answer at 0.3 gives no evidence for 2^-30. A right answer for ``self`` far from ``target`` gives none for two
# that nearly cancel. So every operand has a distance from 0. Every place of a formula at which two terms are added,
# subtracted, compared or clamped has one too: their difference over the larger of them. The places come from the
# operator's own graph.

Binade = tuple[str, int]  # a sign, and the exponent k of 2^k
MEETING = ("+", "-", *COMPARISONS, *CHOOSING)  # operations in which two terms meet
LONG = 70  # characters of a formula that a table shows
_TELLING = (-3.0, -0.75, 0.25, 1.0, 1.5, 20.0)  # values of the other operands while one is searched
_KEPT = -20  # least binade of a rounded float32 difference that is required
_STEPS = 16  # fractions per binade that the search begins with


@dataclass(frozen=True)
class Distance:
    """A distance. ``measure``: its value, as a graph; ``of``: symbols of the operands it depends on; ``place``: the
    node of the formula at which two terms meet, None for an operand itself."""

    name: str
    measure: Expression
    of: tuple[str, ...]
    place: Expression | None = None


def graphs(op: Operator) -> tuple[Expression, ...]:
    """Return the graphs of an operator's formulas, for every value of its flags; () for most formulas that reduce."""
    if elementwise.fits(op):
        return tuple(dict.fromkeys(root for _, root, _ in elementwise.roots(op)))
    if rows.fits(op):
        return (rows.declared(op).formula,)
    return (trace(samples.declared(op).formula),) if samples.fits(op) else ()


@lru_cache
def distances(op: Operator) -> tuple[Distance, ...]:
    """Return an operator's distances: first those of the operands, then those of the terms."""
    roots = graphs(op)
    names = _names(op, roots)
    own = [Distance(f"{name} from 0", symbol(s), (s,)) for s, name in names.items() if s != rows.ROW_TOTAL]
    single = {p.symbol for p in op.inputs(ONE_VALUE)}
    result = [d for d in own if d.of[0] not in single]
    symbols = {symbol(s): symbol(name) for s, name in names.items()}
    for node in dict.fromkeys(walk(*roots)):
        of = tuple(name for name in names_of(node) if name in names)
        if node.op not in MEETING or not of:
            continue
        one, two = node.args
        if one is two or any(a.op == "constant" and a.value == 0 for a in node.args):
            continue  # from 0: that is an operand's own distance
        words = text(substitute(node, symbols))
        apart = (one + two if node.op == "+" else one - two) / maximum(abs(one), abs(two))
        result.append(Distance(words if len(words) <= LONG else f"{words[: LONG - 3]}...", apart, of, node))
    return tuple(result)


def _names(op: Operator, roots: Sequence[Expression]) -> dict[str, str]:
    """Return the names that a table shows for the formulas' floating-point operands, by symbol."""
    inputs = {symbol: p.name for p in op.operands for symbol in p.symbols}
    numbers = {p.symbol for p in op.attributes} | {COUNT, PART}
    if op.scalars is not None:
        numbers |= set(_numbers(op))
    return {
        s: inputs.get(s, s if s == rows.ROW_TOTAL else f"{op.main}'s {s}") for s in names_of(*roots) if s not in numbers
    }


def _numbers(op: Operator) -> dict[str, float]:
    """Return the attributes' usual values as in a formula, by symbol."""
    shape = (2, 2, 2, 2)
    plain = {**op.usual(shape), op.main: np.zeros(shape, np.float32)}
    result = {p.symbol: float(p.plain) for p in op.attributes if p.symbol and p.role == "number"}
    result |= {p.symbol: float(bool(p.plain)) for p in op.parameters if p.role == "flag" and p.symbol}
    return result | (dict(op.scalars(plain)) if op.scalars is not None else {})


# ---- the possible binades --------------------------------------------------------------------------------------------


def binades_of(values: Any) -> set[Binade]:
    """Return the signs and exponents of some values, except zeros, infinities and NaN."""
    flat = np.asarray(values, np.float64).reshape(-1)
    flat = flat[np.isfinite(flat) & (flat != 0)]
    codes = np.unique(2 * np.frexp(flat)[1].astype(np.int64) + (flat < 0))
    return {("-" if code & 1 else "+", int(code >> 1) - 1) for code in codes}


@lru_cache
def needed(op: Operator, distance: Distance, dtype: str) -> tuple[Binade, ...]:
    """Return the required binades of a distance for numbers of a dtype, in order of sign and size.

    For an operand: all binades except the subnormal ones of float32 and bfloat16, which a device may read as 0. For two
    terms: down to the dtype's last place; or, if float32 had to round terms that cancel, down to the digits it keeps.
    """
    row = FORMATS[dtype]
    if distance.place is None:
        lowest = row.emin - row.mant if row.emin > -100 else row.emin
        return tuple((sign, k) for sign in "+-" for k in range(lowest, int(np.frexp(row.max)[1])))
    lowest = max(-row.mant - 1, _KEPT if _is_rounded(distance.place) else -row.mant - 1)
    result = {(sign, k) for sign, k in _reachable(op, distance, dtype) if lowest <= k <= 0}
    return tuple(sorted(result)) if min((k for _, k in result), default=0) < -1 else ()  # else they never come near


def _is_rounded(place: Expression) -> bool:
    """Return whether added or subtracted terms are more than operands, numbers or their negatives, and so rounded."""
    exact = ("neg", "abs", "symbol")
    inner = [node for term in place.args for node in walk(term)]
    return place.op in "+-" and any(node.op not in exact and not node.is_constant for node in inner)


def _reachable(op: Operator, distance: Distance, dtype: str) -> set[Binade]:
    """Return the binades of a distance that a search finds. It searches from every binade of each operand to the points
    at which the terms are equal, and at steps of every power of two from these points."""
    result: set[Binade] = set()
    grid = _grid(dtype)
    for free in distance.of:
        others = [name for name in distance.of if name != free]
        for values in product(_TELLING, repeat=len(others)):
            given = {**_numbers(op), **dict(zip(others, map(np.float64, values), strict=True))}

            def measure(places: Array, given: Mapping[str, Any] = given, free: str = free) -> Array:
                return evaluate(distance.measure, {**given, free: _values(places, dtype)})

            result |= binades_of(measure(grid))
            roots = _equal(measure, grid)
            steps = np.concatenate([[0], 2 ** np.arange(8 * DTYPES[dtype].numpy.itemsize - 2)])
            around = (roots[:, None, None] + steps[:, None] * np.array([-1, 1])).reshape(-1)
            result |= binades_of(measure(around[(around >= grid[0]) & (around <= grid[-1])]))
    return result


def evaluate(graph: Expression, given: Mapping[str, Any]) -> Array:
    """Return a graph's values in float64."""
    with np.errstate(all="ignore"):
        return simulate(graph, given, np.float64)


def _grid(dtype: str) -> Array:
    """Return places of a dtype's numbers in order: some fractions of every binade of both signs."""
    row = FORMATS[dtype]
    last = code(DTYPES[dtype].numpy, row.max)
    places = np.arange(1, last + 1, max(1, 2**row.mant // _STEPS), dtype=np.int64)
    places = np.append(places, last)
    return np.concatenate([-1 - places[::-1], places])


def _values(places: Array, dtype: str) -> Array:
    """Return numbers by their place in the order of their dtype: +0 is 0, -0 is -1."""
    kind = DTYPES[dtype].numpy
    top = 1 << (8 * kind.itemsize - 1)
    bits = np.where(places >= 0, places, top - 1 - places)
    with np.errstate(invalid="ignore"):
        return np.asarray(bits.astype(f"u{kind.itemsize}").view(kind).astype(np.float64))


def _equal(measure: Callable[[Array], Array], grid: Array) -> Array:
    """Return the places next to which a measure changes its sign."""
    values = measure(grid)
    change = np.flatnonzero((values[:-1] < 0) & (values[1:] > 0) | (values[:-1] > 0) & (values[1:] < 0))
    low, high = grid[change].copy(), grid[change + 1].copy()
    before = np.sign(values[change])
    while len(low) and (high - low > 1).any():
        middle = (low + high) // 2
        same = np.sign(measure(middle)) == before
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return np.concatenate([low, high, grid[values == 0]])


# ---- the operands of a call ------------------------------------------------------------------------------------------

Part = tuple[Expression, Any, dict[str, Any]]  # a graph, the index of its values in the output, its operands by symbol


def parts(op: Operator, a: Mapping[str, Any]) -> Iterator[Part]:
    """Yield the graphs of a call with their operands in float64, and the elements of the output that they make."""
    if elementwise.fits(op):
        given = formula_operands(op, a)
        root = elementwise.Formula(op).root(
            frozenset((p.symbol, given[p.symbol]) for p in elementwise.switches(op)), mean=False
        )
        yield root, ..., {**dict.fromkeys(names_of(root), 1.0), **_wide(given)}
    elif rows.fits(op):
        given = _wide({p.symbol: np.atleast_1d(a[p.name]) for p in op.operands})
        terms = evaluate(rows.declared(op).terms, given)
        with np.errstate(all="ignore"):
            total = terms.sum(axis=rows.axis_of(op, a), keepdims=True)
        yield rows.declared(op).formula, ..., {**given, rows.ROW_TOTAL: np.broadcast_to(total, terms.shape)}
    elif samples.fits(op):
        shape = a[op.main].shape
        given = {p.symbol: _along(op, p.name, a, shape) for p in op.operands if a.get(p.name) is not None}
        root = trace(samples.declared(op).formula)
        yield root, ..., {**dict.fromkeys(names_of(root), 1.0), **_wide(given)}


def _wide(given: Mapping[str, Any]) -> dict[str, Any]:
    return {s: v.astype(np.float64) if isinstance(v, np.ndarray) else v for s, v in given.items()}


def _along(op: Operator, name: str, a: Mapping[str, Any], shape: tuple[int, ...]) -> Array:
    """Return an operand in the shape of the main one, broadcast along the axes that it does not have."""
    own = a[name]
    attributes = {p.name: a[p.name] for p in op.attributes}
    lengths = [1] * len(shape)
    if own.size > 1:
        axes = op.axes_of(name, shape, own.shape, attributes)
        own_lengths = own.shape if len(axes) == own.ndim else (own.size,)  # more axes than the role has: all in one
        for axis, length in zip(axes, own_lengths, strict=True):
            lengths[axis or 0] *= length  # of axes that map to one, at most one is longer than 1
    return np.broadcast_to(own.reshape(lengths), shape)


# ---- the lines of the table ------------------------------------------------------------------------------------------

NOT_COUNTED = (
    "formulas that sum or reduce, unless all they need of a row is one total or one class index",
    "tensors of one value, which would take a case per binade",
    "binades of an elementwise operand at which no gradient leaves a finite result that all right kernels agree on",
    "subnormal numbers of float32 and bfloat16, which a device may read as 0",
)


@dataclass
class Binades(Dimension):
    """A line of the table. Points are (dtype, sign, exponent); holes are shown as runs of binades."""

    @property
    def holes(self) -> list[str]:
        missing = sorted(set(self.needed) - self.seen)
        result = []
        for _, run in groupby(enumerate(missing), lambda pair: (pair[1][:2], pair[1][2] - pair[0])):
            points = [point for _, point in run]
            (dtype, sign, low), (_, _, high) = points[0], points[-1]
            result.append(f"{dtype} {sign}2^{low}" + (f" to {sign}2^{high}" if high > low else ""))
        return result


def values(cases: Iterable[Case], *, limit: int) -> list[Dimension]:
    """Return a line per operator and distance: the binades that cases of at most ``limit`` elements visit."""

    def counts(case: Case) -> bool:
        sizes = [math.prod(plan.shape) for plan in case.plans.values()]
        fits = bool(sizes) and min(sizes) > 0 and max(sizes) <= limit
        return fits and case.computes(DEFAULT_SOC) and case.is_on(DEFAULT_SOC)

    by_op = grouped(filter(counts, cases), lambda case: case.op)
    return [line for name, op in OPERATORS.items() if name in by_op for line in _of(op, by_op[name])]


def _of(op: Operator, cases: Sequence[Case]) -> list[Binades]:
    lines = {
        distance: Binades(
            op.name,
            distance.name,
            tuple((dtype, *binade) for dtype in kinds(op) for binade in needed(op, distance, dtype)),
        )
        for distance in distances(op)
    }
    lines = {distance: line for distance, line in lines.items() if line.needed}
    for case in cases:
        if _same_values(op, case):
            _visit(op, case, lines)
    for distance, line in lines.items():
        if distance.place is None:
            _leave_out(op, distance.of[0], line)
    return list(lines.values())


def _leave_out(op: Operator, operand: str, line: Binades) -> None:
    """Remove from a line the holes that no case can close."""
    for dtype in kinds(op):
        missing = [(sign, k) for kind, sign, k in set(line.needed) - line.seen if kind == dtype]
        never = {(dtype, *binade) for binade in set(missing) - reachable_binades(op, operand, dtype, missing)}
        line.needed = tuple(point for point in line.needed if point not in never)


def _same_values(op: Operator, case: Case) -> bool:
    """Return whether all operands and outputs have the dtype under which the case is counted."""
    plans = [case.inputs.get(p.name) for p in op.operands]
    return case.dtype in kinds(op) and all(p is None or p.dtype == case.dtype for p in (*plans, *case.outputs.values()))


def _visit(op: Operator, case: Case, lines: dict[Distance, Binades]) -> None:
    """Add the binades of a case. Its golden is made only if its inputs contain a missing binade."""
    call = call_for_golden(case, DEFAULT_SOC, make_inputs(case, seed=0)[0])
    answer: tuple[Array, Array] | None = None
    for root, place, given in parts(op, {**call.inputs, **case.attrs}):
        known = set(walk(root))
        for distance, line in lines.items():
            if (symbol(distance.of[0]) if distance.place is None else distance.place) not in known:
                continue
            measured = evaluate(distance.measure, given)
            missing = set(line.needed) - line.seen
            if not _points(case, measured) & missing:
                continue
            if answer is None:
                answer = judged(call)
            tells = visible_errors(op, answer[0][place], answer[1][place], given)
            line.seen |= _points(case, np.broadcast_to(measured, tells.shape)[tells]) & missing


def _points(case: Case, measured: Any) -> set[tuple[str, str, int]]:
    return {(case.dtype, *binade) for binade in binades_of(measured)}


# The elements of a call at which a verdict can depend on an operand, and whether some gradient gives such an element.
# At the ends of a dtype right kernels disagree (one order overflows on the way, another does not), or the result is
# infinite for any gradient. No case can close such a hole, so it is not required.

_FAR = 2.0**-10  # of the gradient: a bound below it distinguishes a result near 0 from a lost one
_COUNT = 254  # elements per probe: at least one of each binade
_OTHERS = (0.0, 0.5, 1.0, -0.75)  # values of the other operands


def judged(call: Call) -> tuple[Array, Array]:
    """Return the value and the bound of every element of a call's output; NaN if unspecified or not finite."""
    result = reference(call)
    shape = result.golden.shape
    value, bound = np.broadcast_to(result.value, shape), np.broadcast_to(result.bound, shape)
    wrong = ~np.isfinite(result.golden.astype(np.float64))
    if result.unspecified is not None:
        wrong |= np.broadcast_to(result.unspecified, shape)
    return value, np.where(wrong, np.nan, bound)


def visible_errors(op: Operator, value: Array, bound: Array, given: Mapping[str, Any]) -> Array:
    """Return a mask of the elements at which a wrong value is noticed. It has the shape of the formula's values: the
    output's, or a larger one before a sum. ``given``: the formula's operands by symbol."""
    gradient = op.by_name[op.gradient].symbol if op.gradient is not None and op.class_index is None else ""
    shapes = (v.shape for v in given.values() if isinstance(v, np.ndarray))
    shape = np.broadcast_shapes(value.shape, *shapes)
    result = bound < np.abs(value)
    if gradient in given:
        result = result | (bound < _FAR * np.abs(given[gradient]))
    return np.broadcast_to(result, shape)


def reachable_binades(op: Operator, operand: str, dtype: str, binades: Sequence[Binade]) -> set[Binade]:
    """Return the binades of an elementwise operator's operand (its symbol) at which a verdict can depend on it, for
    some gradient (or, if the operand is the gradient, for some main operand). Return all binades, without a trial, for
    other operators and if an operand has a shape of its own."""
    names = {symbol: p.name for p in op.operands for symbol in p.symbols}
    if not elementwise.fits(op) or operand not in names or op.gradient is None or not binades:
        return set(binades)
    shape = (len(binades), _COUNT)
    if any(op.shape_of(p.name, shape, op.usual(shape)) != shape for p in op.operands):
        return set(binades)
    second = op.main if op.gradient == names[operand] else op.gradient
    left = list(binades)
    for other in _OTHERS:
        if left:
            tells = _informs(op, names[operand], second, dtype, left, other)
            left = [binade for binade, noticed in zip(left, tells, strict=True) if not noticed]
    return set(binades) - set(left)


def _informs(op: Operator, swept: str, second: str, dtype: str, binades: Sequence[Binade], other: float) -> list[bool]:
    """Return, for each binade of an operand, whether with any size of another one an element shows a wrong value."""
    shape = (len(binades), _COUNT)
    sizes = GENERATORS["binades"].make(Stream(0, op.slug, second), shape, dtype, falling=True)
    own = {
        second: sizes.reshape(shape),
        swept: np.array([(-1.2 if sign == "-" else 1.2) * 2.0**k for sign, k in binades])[:, None],
    }
    inputs = {
        p.name: np.broadcast_to(own.get(p.name, 1.0 if p.optional else other), shape).astype(DTYPES[dtype].numpy)
        for p in op.inputs()
    }
    attrs = op.usual(shape)
    value, bound = judged(Call(op.name, DEFAULT_SOC, inputs, attrs, {op.output: TensorSpec(shape, dtype)}))
    ((_, _, given),) = parts(op, {**inputs, **attrs})
    noticed: list[bool] = np.any(visible_errors(op, value, bound, given), axis=-1).tolist()
    return noticed
