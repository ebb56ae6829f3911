"""Bounds of one operand as tables, and a check whether operands can bring a step near the end of float32's range.

The check is interval arithmetic on the smallest and largest values of the operands. It takes a few microseconds per
graph. A block that passes needs no check of its elements. The answer is cached by the operands' binades, because most
blocks of a run are alike.

A range can be too wide for an answer. An example is e^x * (1 + e^-x), with both factors at their largest. Then the
range of the operand with the most uses is divided into parts, and all parts are evaluated together.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from ...model.call import Array
from ..exact.enclosures import constant_value
from ..expressions import ROUNDINGS, ZERO, Expression
from ..floats import functions
from ..floats.codes import highest, lowest
from ..traversal import names_of, substitute, walk

# A bound of one operand as a table: its largest value over each sixteenth of a binade.
#
# The running bound of an activation's gradient, ``gradient * f(x)``, is the gradient's size times a smooth function of
# x with dozens of operations. Here that function is bounded once on all cells of float32's numbers with the same sign,
# exponent and first four fraction bits. Interval arithmetic evaluates all cells together. An element then costs a
# look-up. A cell is six percent wide, and the bound grows by about as much. From 4 to 256 a cell has seven fraction
# bits: e^x changes by a factor of 55 from 64 to 68, and by 1.65 from 64 to 64.5.

NEGLIGIBLE = 2.0**-300
AWAY = 2.0**-1000
SHIFT = 16  # the lower bits of float32, inside a cell
WIDE = 8  # cells of most binades that share one bound
Cells = tuple[Array, Array]  # lower and upper ends
_SLACK = 1 + 2.0**-40  # NumPy's own rounding in the interval arithmetic


def is_linear(node: Expression, name: str) -> bool:
    """Return whether a graph is a symbol times a graph without it. Then its errors are proportional to the symbol."""
    if node.op == "symbol":
        return node.value == name
    parts = [a for a in node.args if name in names_of(a)]
    if node.op in ("*", "/"):
        return len(parts) == 1 and (node.op == "*" or parts[0] is node.args[0]) and is_linear(parts[0], name)
    if node.op == "neg":
        return is_linear(node.args[0], name)
    if node.op in ("+", "-"):
        return all(is_linear(a, name) for a in node.args)
    if node.op == "where":
        return name not in names_of(node.args[0]) and all(is_linear(a, name) for a in node.args[1:])
    return False


def cell_of(values: Array) -> Array:
    """Return the cell of each float32 value."""
    return np.asarray(np.ascontiguousarray(values, np.float32).view(np.uint32) >> np.uint32(SHIFT))


@lru_cache(maxsize=64)
def table(bound: Expression) -> Array:
    """Return, per cell, an upper bound of a bound with a single operand; infinity if no bound is known. A table
    has half a MiB."""
    names = names_of(bound)
    starts, counts = _cells()
    first = (starts << np.uint32(SHIFT)).view(np.float32)
    last = (((starts + counts) << np.uint32(SHIFT)) - np.uint32(1)).view(np.float32)
    with np.errstate(all="ignore"):
        ends = first.astype(np.float64), last.astype(np.float64)
        every = dict.fromkeys(names, (np.minimum(*ends), np.maximum(*ends)))
        _, high = evaluated(bound, given=every)[bound]
    result = np.array(np.broadcast_to(high, starts.shape)) * _SLACK
    result[~np.isfinite(ends[0]) | ~np.isfinite(ends[1])] = 0.0  # bounds do not apply to infinities and NaN
    result[np.isnan(result)] = np.inf
    return np.repeat(result, counts)


def _cells() -> tuple[Array, Array]:
    """Return the first cells of the groups that share one bound, and how many cells each group has."""
    codes = np.arange(1 << (32 - SHIFT), dtype=np.uint32)
    size = np.abs((codes << np.uint32(SHIFT)).view(np.float32))
    starts = codes[(codes % WIDE == 0) | ((size >= 4) & (size < 256))]
    return starts, np.diff(starts, append=np.uint32(codes.size))


@lru_cache(maxsize=1024)
def is_negligible(bound: Expression, count: str) -> bool:
    """Return whether a bound is far below half of every format's smallest number, for all float32 operands and every
    value of the symbol ``count``."""
    bound = substitute(bound, {n: ZERO for n in walk(bound) if n.op == "-" and n.args[0] is n.args[1]})  # is it finite?
    _, high = _everywhere(bound, count)
    return bool(np.all(high <= NEGLIGIBLE))


@lru_cache(maxsize=1024)
def is_away_from_zero(node: Expression, count: str) -> bool:
    """Return whether a graph is further from 0 than any underflow, for all operands as in :func:`is_negligible`."""
    low, high = _everywhere(node, count)
    return bool(np.all(low > AWAY) or np.all(high < -AWAY))


def _everywhere(root: Expression, count: str) -> Cells:
    every = dict.fromkeys(names_of(root), (np.array([-(2.0**128)]), np.array([2.0**128])))
    every[count] = np.array([1.0]), np.array([2.0**63])
    with np.errstate(all="ignore"):
        return evaluated(root, given=every)[root]


def evaluated(*roots: Expression, given: Mapping[str, Cells]) -> dict[Expression, Cells]:
    """Return the ends of every step of some graphs on every cell; for a condition, its truth values."""
    result: dict[Expression, Cells] = {}
    for node in walk(*roots):
        args = [result[a] for a in node.args]
        if node.is_constant:
            value = (np.bool_ if node.is_condition else np.float64)(constant_value(node))
            result[node] = np.asarray(value), np.asarray(value)
        elif node.op == "symbol":
            result[node] = given[str(node.value)]
        else:
            result[node] = _OPERATIONS[node.op](*args)
    return result


def _corners(operation: Callable[..., Array]) -> Callable[[Cells, Cells], Cells]:
    def apply(a: Cells, b: Cells) -> Cells:
        results = [operation(x, y) for x in a for y in b]
        # 0 * infinity: the infinity means that no bound is known
        results = [np.where(np.isnan(r), np.inf, r) for r in results]
        return np.minimum.reduce(results), np.maximum.reduce(results)

    return apply


def _divide(a: Cells, b: Cells) -> Cells:
    """Divide. A zero end of a divisor has the sign of the divisor's other end; a divisor that is only 0 is positive."""
    ends = b[0] + 0.0, np.where((b[1] == 0) & (b[0] < 0), -0.0, b[1])
    low, high = _corners(np.divide)(a, ends)
    through_zero = (b[0] < 0) & (b[1] > 0)
    return np.where(through_zero, -np.inf, low), np.where(through_zero, np.inf, high)


def _rising(function: Callable[[Array], Array]) -> Callable[[Cells], Cells]:
    return lambda a: (np.asarray(function(a[0])), np.asarray(function(a[1])))


def _absolute(a: Cells) -> Cells:
    low, high = np.abs(a[0]), np.abs(a[1])
    inside = (a[0] <= 0) & (a[1] >= 0)
    return np.where(inside, 0.0, np.minimum(low, high)), np.maximum(low, high)


def _where(condition: Cells, a: Cells, b: Cells) -> Cells:
    always, never = condition[0], ~np.asarray(condition[1])
    low = np.where(always, a[0], np.where(never, b[0], np.minimum(a[0], b[0])))
    high = np.where(always, a[1], np.where(never, b[1], np.maximum(a[1], b[1])))
    return low, high


def _equal(a: Cells, b: Cells) -> Cells:
    return (a[0] == a[1]) & (b[0] == b[1]) & (a[0] == b[0]), (a[0] <= b[1]) & (b[0] <= a[1])


def _not(a: Cells) -> Cells:
    return ~np.asarray(a[1]), ~np.asarray(a[0])


_OPERATIONS: dict[str, Callable[..., Cells]] = {
    "+": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "-": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "*": _corners(np.multiply),
    "/": _divide,
    "neg": lambda a: (-a[1], -a[0]),
    "abs": _absolute,
    "min": lambda a, b: (np.minimum(a[0], b[0]), np.minimum(a[1], b[1])),
    "max": lambda a, b: (np.maximum(a[0], b[0]), np.maximum(a[1], b[1])),
    # A condition as its smallest and its largest truth value.
    "<": lambda a, b: (a[1] < b[0], a[0] < b[1]),
    "<=": lambda a, b: (a[1] <= b[0], a[0] <= b[1]),
    "==": _equal,
    "!=": lambda a, b: _not(_equal(a, b)),
    "and": lambda a, b: (a[0] & b[0], a[1] & b[1]),
    "or": lambda a, b: (a[0] | b[0], a[1] | b[1]),
    "not": _not,
    "where": _where,
    **{name: _rising(getattr(functions, name)) for name in ("exp", "log", "log1p", "expm1", "tanh", "erf")},
    "sqrt": _rising(np.sqrt),
    "sign": _rising(np.sign),
    "erfc": lambda a: (np.asarray(functions.erfc(a[1])), np.asarray(functions.erfc(a[0]))),
}


# A check whether a block's operands can bring any step of some graphs near the end of float32's range.

Range = tuple[float, float]
SAFE = 2.0**120  # of float32's 2^128
NARROWEST = 2.0**15  # of float16's 2^16
PARTS = 256  # parts of an operand's range
_FUNCTIONS = {name: getattr(math, name) for name in ("exp", "log", "log1p", "expm1", "tanh", "erf", "sqrt")}


Ranges = tuple[tuple[str, Range], ...]


def ranges_of(operands: Mapping[str, Any]) -> Ranges | None:
    """Return a range of few digits around each operand's values; None if some are infinite, NaN or huge."""
    result = []
    for name, value in operands.items():
        if (found := range_of(value)) is None:
            return None
        result.append((name, found))
    return tuple(result)


def range_of(value: Any) -> Range | None:
    """Return a range of few digits around an operand's values; None if some are infinite, NaN or huge."""
    low, high = (lowest(value), highest(value)) if isinstance(value, np.ndarray) else (value, value)
    if not -SAFE < low <= high < SAFE:  # also excludes NaN and infinities
        return None
    return -_outwards(-float(low)), _outwards(float(high))


def stays_inside(roots: tuple[Expression, ...], ranges: Ranges | None, *, by_parts: bool = False) -> bool:
    """Return whether every step of the graphs stays in [-2^120, 2^120] without division by zero, for operands in some
    ranges. ``by_parts``: also try parts of an operand's range, for some milliseconds more."""
    return ranges is not None and (_inside(roots, ranges) or (by_parts and _inside_by_parts(roots, ranges)))


def largest(root: Expression, ranges: Ranges, enough: float = math.inf) -> float:
    """Return an upper bound of a bound (a graph that is never negative); infinity if none is known. If it is more than
    ``enough``, parts of an operand's range may give a smaller one, for some milliseconds more."""
    result = _largest(root, ranges)
    return result if result <= enough else min(result, _largest_by_parts(root, ranges))


@lru_cache(maxsize=1 << 14)
def _largest(root: Expression, ranges: Ranges) -> float:
    try:
        return max(0.0, _walked((root,), dict(ranges))[id(root)][1]) * (1 + 2.0**-20)
    except (OverflowError, ZeroDivisionError, ValueError):
        return math.inf


@lru_cache(maxsize=1 << 10)
def _largest_by_parts(root: Expression, ranges: Ranges) -> float:
    result = _by_parts((root,), ranges)
    return math.inf if result is None else max(0.0, float(np.max(result[root][1]))) * (1 + 2.0**-20)


@lru_cache(maxsize=1 << 10)
def _inside_by_parts(roots: tuple[Expression, ...], ranges: Ranges) -> bool:
    result = _by_parts(roots, ranges)
    return result is not None and all(np.min(low) > -SAFE and np.max(high) < SAFE for low, high in result.values())


def _by_parts(roots: tuple[Expression, ...], ranges: Ranges) -> dict[Expression, Cells] | None:
    """Return the ends of every step that is no condition on every part; None if a step may not be finite on a part."""
    nodes = walk(*roots)
    uses = Counter(a.value for node in nodes for a in node.args if a.op == "symbol")
    given: dict[str, Cells] = {name: (np.asarray(low), np.asarray(high)) for name, (low, high) in ranges}
    name = max((name for name, (low, high) in ranges if low < high), key=lambda name: uses[name], default=None)
    if name is None:
        return None
    ends = np.linspace(*dict(ranges)[name], PARTS + 1)
    given[name] = ends[:-1], ends[1:]
    with np.errstate(all="ignore"):
        result = {node: ends for node, ends in evaluated(*roots, given=given).items() if not node.is_condition}
    return result if all(np.isfinite(end).all() for ends in result.values() for end in ends) else None


def _outwards(value: float) -> float:
    """Return a number of few digits that is not below a value. Up to 8 it is a power of two or 0, so that many cases
    share one. Beyond, where e^x of twice as much overflows, it has three digits."""
    mantissa, exponent = math.frexp(value)
    steps = 2 if exponent < 4 else 8
    return math.ldexp(math.ceil(mantissa * steps) / steps, exponent)


@lru_cache(maxsize=1 << 14)
def _inside(roots: tuple[Expression, ...], ranges: Ranges) -> bool:
    try:
        return all(-SAFE < low <= high < SAFE for low, high in _walked(roots, dict(ranges)).values())
    except (OverflowError, ZeroDivisionError, ValueError):
        return False


def _walked(roots: tuple[Expression, ...], given: Mapping[str, Range]) -> dict[int, Range]:
    result: dict[int, Range] = {}
    for node in walk(*roots):
        if not node.is_condition:
            result[id(node)] = _range(node, [result[id(a)] for a in node.args if not a.is_condition], given)
    return result


def _range(node: Expression, args: list[Range], given: Mapping[str, Range]) -> Range:
    op = node.op
    if node.is_constant:
        value = constant_value(node)
        return value, value
    if op == "symbol":
        return given[str(node.value)]
    if op == "where":
        return min(a[0] for a in args), max(a[1] for a in args)
    if op in ("+", "-"):
        (a, b), (c, d) = args
        return (a + c, b + d) if op == "+" else (a - d, b - c)
    if op in ("*", "/"):
        return _product(op, *args)
    if op in ("min", "max"):
        choose = min if op == "min" else max
        return choose(args[0][0], args[1][0]), choose(args[0][1], args[1][1])
    low, high = args[0]
    if op in ROUNDINGS:
        if not -NARROWEST < low <= high < NARROWEST:
            raise OverflowError
        return _outwards(low), _outwards(high)
    if op == "neg":
        return -high, -low
    if op == "abs":
        return max(low, -high, 0.0), max(high, -low)
    if op == "sign":
        return -1.0, 1.0
    if op == "erfc":
        return math.erfc(high), math.erfc(low)
    return _FUNCTIONS[op](low), _FUNCTIONS[op](high)


def _product(op: str, one: Range, other: Range) -> Range:
    if op == "/":
        if other[0] <= 0.0 <= other[1]:
            raise ZeroDivisionError
        other = 1.0 / other[1], 1.0 / other[0]
    corners = [x * y for x in one for y in other]
    return min(corners), max(corners)
