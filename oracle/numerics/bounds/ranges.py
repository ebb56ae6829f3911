"""Whether a block's operands can bring any step of some graphs near the end of float32's range.

Interval arithmetic on the operands' smallest and largest values, a few microseconds per graph: a block that passes
needs no look at its elements. The answer is kept by the operands' binades, for most blocks of a run are alike.

Where a range is too wide to say something (e^x times what e^-x vanishes beside, each at its largest), the operand that
enters most steps is looked at in parts, all of them at a time.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from ..exact.enclosures import constant_value
from ..floats.extremes import highest, lowest
from ..formula.expressions import ROUNDINGS, Expression
from ..formula.traversal import walk
from .tables_of_bounds import Cells, evaluated

Range = tuple[float, float]
SAFE = 2.0**120  # of float32's 2^128
NARROWEST = 2.0**15  # of float16's 2^16
PARTS = 256  # of an operand's range
_FUNCTIONS = {"exp": math.exp, "expm1": math.expm1, "tanh": math.tanh, "erf": math.erf, "sqrt": math.sqrt}


Ranges = tuple[tuple[str, Range], ...]


def ranges_of(operands: Mapping[str, Any]) -> Ranges | None:
    """Return a range of few digits around each operand's values; None where some are infinite, NaN or huge."""
    found = []
    for name, value in operands.items():
        low, high = (lowest(value), highest(value)) if isinstance(value, np.ndarray) else (value, value)
        if not -SAFE < low <= high < SAFE:  # NaN and infinities among them
            return None
        found.append((name, (-_outwards(-float(low)), _outwards(float(high)))))
    return tuple(found)


def stays_inside(roots: tuple[Expression, ...], ranges: Ranges | None, *, by_parts: bool = False) -> bool:
    """Whether no step of the graphs leaves [-2^120, 2^120] or divides by zero for operands in some ranges.
    ``by_parts``: of an operand's range where the whole does not tell, for some milliseconds more."""
    return ranges is not None and (_inside(roots, ranges) or (by_parts and _inside_by_parts(roots, ranges)))


def largest(root: Expression, ranges: Ranges, enough: float = math.inf) -> float:
    """Return a number that a bound (a graph that is never negative) does not exceed; infinity if none is known. Where
    it is more than ``enough``, parts of an operand's range may tell a smaller one, for some milliseconds more."""
    found = _largest(root, ranges)
    return found if found <= enough else min(found, _largest_by_parts(root, ranges))


@lru_cache(maxsize=1 << 14)
def _largest(root: Expression, ranges: Ranges) -> float:
    try:
        return max(0.0, _walked((root,), dict(ranges))[id(root)][1]) * (1 + 2.0**-20)
    except (OverflowError, ZeroDivisionError, ValueError):
        return math.inf


@lru_cache(maxsize=1 << 10)
def _largest_by_parts(root: Expression, ranges: Ranges) -> float:
    found = _by_parts((root,), ranges)
    return math.inf if found is None else max(0.0, float(np.max(found[root][1]))) * (1 + 2.0**-20)


@lru_cache(maxsize=1 << 10)
def _inside_by_parts(roots: tuple[Expression, ...], ranges: Ranges) -> bool:
    found = _by_parts(roots, ranges)
    return found is not None and all(np.min(low) > -SAFE and np.max(high) < SAFE for low, high in found.values())


def _by_parts(roots: tuple[Expression, ...], ranges: Ranges) -> dict[Expression, Cells] | None:
    """The ends of every step that is no condition on every part; None where a step may not be finite on one."""
    nodes = walk(*roots)
    uses = Counter(a.value for node in nodes for a in node.args if a.op == "symbol")
    given: dict[str, Cells] = {name: (np.asarray(low), np.asarray(high)) for name, (low, high) in ranges}
    name = max((name for name, (low, high) in ranges if low < high), key=lambda name: uses[name], default=None)
    if name is None:
        return None
    ends = np.linspace(*dict(ranges)[name], PARTS + 1)
    given[name] = ends[:-1], ends[1:]
    with np.errstate(all="ignore"):
        found = {node: ends for node, ends in evaluated(*roots, given=given).items() if not node.is_condition}
    return found if all(np.isfinite(end).all() for ends in found.values() for end in ends) else None


def _outwards(value: float) -> float:
    """A number of few digits that is not below a value: up to 8 a power of two or 0, so that many cases share one;
    beyond, where e^x of twice as much overflows, of three digits."""
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
    found: dict[int, Range] = {}
    for node in walk(*roots):
        if not node.is_condition:
            found[id(node)] = _range(node, [found[id(a)] for a in node.args if not a.is_condition], given)
    return found


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
    if op in ("log", "log1p"):
        function = math.log if op == "log" else math.log1p
        return function(low), function(high)
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
