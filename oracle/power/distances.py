"""The distances that decide what a formula's value is: of an operand from 0, and of two terms from one another.

A right answer at 0.3 says nothing of 2^-30, nor one at ``self`` and ``target`` far apart of two that nearly cancel. So
every operand has a distance from 0, and so has every place of a formula where two terms are added, subtracted, compared
or clamped: their difference over the larger of them. The places are read from the operator's own graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from ..defects.base import elementwise, rows, samples
from ..model.call import Array
from ..model.dtypes import DTYPES, FORMATS
from ..numerics.evaluate.programs import simulate
from ..numerics.formula.expressions import CHOOSING, COMPARISONS, Expression, maximum, symbol, text, trace
from ..numerics.formula.traversal import names_of, substitute, walk
from ..numerics.orders.kernel_orders import COUNT, PART
from ..operators.definition.operator import Operator
from ..operators.definition.parameters import ONE_VALUE

Binade = tuple[str, int]  # a sign, and the exponent k of 2^k
MEETING = ("+", "-", *COMPARISONS, *CHOOSING)  # operations in which two terms meet
LONG = 70  # characters of a formula that a table shows
_TELLING = (-3.0, -0.75, 0.25, 1.0, 1.5, 20.0)  # what the other operands are while one is searched
_KEPT = -20  # binades of a float32 sum that a right kernel's roundings leave
_STEPS = 16  # fractions per binade that the search begins with


@dataclass(frozen=True)
class Distance:
    """``measure``: its value, as a graph; ``of``: the operands it depends on, by symbol; ``place``: the node of the
    formula where two terms meet, None for an operand itself."""

    name: str
    measure: Expression
    of: tuple[str, ...]
    place: Expression | None = None


def graphs(op: Operator) -> tuple[Expression, ...]:
    """Return the graphs of an operator's formulas, for every value of its flags; () where none is declared."""
    if elementwise.fits(op):
        return tuple(dict.fromkeys(root for _, root, _ in elementwise.roots(op)))
    formulas = getattr(op.computes, "formulas", ())
    if rows.fits(op):
        return (rows.declared(op).formula,)
    if samples.fits(op):
        formulas = (samples.declared(op).formula,)
    return tuple(map(trace, formulas))


@lru_cache
def distances(op: Operator) -> tuple[Distance, ...]:
    """Return the distances of an operator's declaration: the operands', then the terms'."""
    roots = graphs(op)
    names = _names(op, roots)
    own = [Distance(f"{name} from 0", symbol(s), (s,)) for s, name in names.items() if s != rows.TOTAL]
    single = {p.symbol for p in op.inputs(ONE_VALUE)}
    found = [d for d in own if d.of[0] not in single]
    told = {symbol(s): symbol(name) for s, name in names.items()}
    for node in dict.fromkeys(walk(*roots)):
        of = tuple(name for name in names_of(node) if name in names)
        if node.op in MEETING and of and _is_telling(node):
            words = text(substitute(node, told))
            found.append(Distance(_short(words), _apart(node), of, node))
    return tuple(found)


def _names(op: Operator, roots: Sequence[Expression]) -> dict[str, str]:
    """What a table calls the floating-point operands of the formulas, by symbol."""
    inputs = {symbol: p.name for p in op.operands for symbol in p.symbols}
    numbers = {p.symbol for p in op.parameters if p.kind == "attr"} | {COUNT, PART}
    if op.scalars is not None:
        numbers |= set(_numbers(op))
    return {
        s: inputs.get(s, s if s == rows.TOTAL else f"{op.main}'s {s}") for s in names_of(*roots) if s not in numbers
    }


def _is_telling(node: Expression) -> bool:
    """Whether two terms meet that are neither the same, nor 0, which is every operand's own distance."""
    one, two = node.args
    return one is not two and not any(a.op == "constant" and a.value == 0 for a in node.args)


def _apart(node: Expression) -> Expression:
    one, two = node.args
    return (one + two if node.op == "+" else one - two) / maximum(abs(one), abs(two))


def _short(words: str) -> str:
    return words if len(words) <= LONG else f"{words[: LONG - 3]}..."


def _numbers(op: Operator) -> dict[str, float]:
    """The attributes' usual values as a formula gets them, by symbol."""
    plain = op.usual((2, 2, 2, 2))
    found = {p.symbol: float(p.plain) for p in op.parameters if p.kind == "attr" and p.symbol and p.role == "number"}
    found |= {p.symbol: float(bool(p.plain)) for p in op.parameters if p.role == "flag" and p.symbol}
    return found | (dict(op.scalars(plain)) if op.scalars is not None else {})


# ---- which binades there are -----------------------------------------------------------------------------------------


def binades_of(values: Any) -> set[Binade]:
    """Return the signs and exponents of some values; those of zeros, infinities and NaN are none."""
    flat = np.asarray(values, np.float64).reshape(-1)
    flat = flat[np.isfinite(flat) & (flat != 0)]
    codes = np.unique(2 * np.frexp(flat)[1].astype(np.int64) + (flat < 0))
    return {("-" if code & 1 else "+", int(code >> 1) - 1) for code in codes}


@lru_cache
def needed(op: Operator, distance: Distance, dtype: str) -> tuple[Binade, ...]:
    """Return the binades of a distance that numbers of a dtype can have, in order of sign and size.

    Of an operand all but the subnormal ones of float32 and bfloat16, which a device may read as 0; of two terms those
    down to the dtype's last place, or, where terms cancel that float32 had to round, down to what it keeps of them.
    """
    row = FORMATS[dtype]
    if distance.place is None:
        lowest = row.emin - row.mant if row.emin > -100 else row.emin
        return tuple((sign, k) for sign in "+-" for k in range(lowest, int(np.frexp(row.max)[1])))
    lowest = max(-row.mant - 1, _KEPT if _is_rounded(distance.place) else -row.mant - 1)
    found = {(sign, k) for sign, k in _reachable(op, distance, dtype) if lowest <= k <= 0}
    return tuple(sorted(found)) if min((k for _, k in found), default=0) < -1 else ()  # else they never come near


def _is_rounded(place: Expression) -> bool:
    """Whether terms are added or subtracted that are no operands, numbers, or their negatives."""
    exact = ("neg", "abs", "symbol")
    inner = [node for term in place.args for node in walk(term)]
    return place.op in "+-" and any(node.op not in exact and not node.is_constant for node in inner)


def _reachable(op: Operator, distance: Distance, dtype: str) -> set[Binade]:
    """Return the binades of a distance that a search finds: from every binade of each operand to where the terms are
    equal, and by every power of two of steps away from there."""
    found: set[Binade] = set()
    grid = _grid(dtype)
    for free in distance.of:
        others = [name for name in distance.of if name != free]
        for values in product(_TELLING, repeat=len(others)):
            given = {**_numbers(op), **dict(zip(others, map(np.float64, values), strict=True))}

            def measure(places: Array, given: Mapping[str, Any] = given, free: str = free) -> Array:
                return evaluate(distance.measure, {**given, free: _values(places, dtype)})

            found |= binades_of(measure(grid))
            roots = _equal(measure, grid)
            steps = np.concatenate([[0], 2 ** np.arange(8 * DTYPES[dtype].numpy.itemsize - 2)])
            around = (roots[:, None, None] + steps[:, None] * np.array([-1, 1])).reshape(-1)
            found |= binades_of(measure(around[(around >= grid[0]) & (around <= grid[-1])]))
    return found


def evaluate(graph: Expression, given: Mapping[str, Any]) -> Array:
    """Return a graph's values in float64."""
    with np.errstate(all="ignore"):
        return simulate(graph, given, np.float64)


def _grid(dtype: str) -> Array:
    """Places of numbers of a dtype, in order: some fractions of every binade of both signs."""
    row = FORMATS[dtype]
    top = np.asarray(row.max, DTYPES[dtype].numpy).reshape(1)
    last = int(top.view(f"u{top.itemsize}")[0])
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

Part = tuple[Expression, Any, dict[str, Any]]  # a graph, where in the output its values are, its operands by symbol


def parts(op: Operator, a: Mapping[str, Any]) -> Iterator[Part]:
    """Yield the graphs of a call with their operands in float64, and which elements of the output they make."""
    if elementwise.fits(op):
        given = op.formula_operands(a)
        root = elementwise.Formula(op).root(
            frozenset((p.symbol, given[p.symbol]) for p in elementwise.switches(op)), mean=False
        )
        yield root, ..., {**dict.fromkeys(names_of(root), 1.0), **_wide(given)}
    elif rows.fits(op):
        given = _wide({p.symbol: np.atleast_1d(a[p.name]) for p in op.operands})
        terms = evaluate(rows.declared(op).terms, given)
        with np.errstate(all="ignore"):
            total = terms.sum(axis=rows.axis_of(op, a), keepdims=True)
        yield rows.declared(op).formula, ..., {**given, rows.TOTAL: np.broadcast_to(total, terms.shape)}
    elif samples.fits(op):
        shape = a[op.main].shape
        given = {p.symbol: _along(op, p.name, a, shape) for p in op.operands if a.get(p.name) is not None}
        root = trace(samples.declared(op).formula)
        yield root, ..., {**dict.fromkeys(names_of(root), 1.0), **_wide(given)}


def _wide(given: Mapping[str, Any]) -> dict[str, Any]:
    return {s: v.astype(np.float64) if isinstance(v, np.ndarray) else v for s, v in given.items()}


def _along(op: Operator, name: str, a: Mapping[str, Any], shape: tuple[int, ...]) -> Array:
    """An operand in the shape of the main one, along whose axes its own run."""
    own = a[name]
    attributes = {p.name: a[p.name] for p in op.parameters if p.kind == "attr"}
    lengths = [1] * len(shape)
    if own.size > 1:
        axes = op.axes_of(name, shape, own.shape, attributes)
        own_lengths = own.shape if len(axes) == own.ndim else (own.size,)  # more axes than the role has: all in one
        for axis, length in zip(axes, own_lengths, strict=True):
            lengths[axis or 0] = length
    return np.broadcast_to(own.reshape(lengths), shape)
