"""A bound of one operand as a table: its largest value over each sixteenth of a binade.

The running bound of an activation's gradient, ``gradient * f(x)``, is the gradient's size times a smooth function of x
that takes dozens of operations to evaluate. Here that function is bounded once on all 8192 cells of float32's numbers
with the same sign, exponent and first four fraction bits, by interval arithmetic on all cells at a time; an element
then costs a look-up. A cell is six percent wide, and the bound grows by about as much.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

import numpy as np

from ...model.call import Array
from ..exact.enclosures import constant_value
from ..floats import functions
from ..floats.error_function import erf, erfc
from ..formula.expressions import ZERO, Expression
from ..formula.traversal import names_of, substitute, walk

NEGLIGIBLE = 2.0**-300
AWAY = 2.0**-1000
SHIFT = 19  # bits of float32 below a cell's
Cells = tuple[Array, Array]  # lower and upper ends
_SLACK = 1 + 2.0**-40  # NumPy's own rounding in the interval arithmetic


def is_linear(node: Expression, name: str) -> bool:
    """Whether a graph is a symbol times a graph without it, so that its errors are in proportion to the symbol."""
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
    """Return the cell of each value that float32 holds."""
    return np.asarray(np.ascontiguousarray(values, np.float32).view(np.uint32) >> np.uint32(SHIFT))


@lru_cache(maxsize=256)
def table(bound: Expression) -> Array:
    """Return, per cell, a number that a bound of a single operand does not exceed; infinity where none is known."""
    names = names_of(bound)
    codes = np.arange(1 << (32 - SHIFT), dtype=np.uint32)
    first = (codes << np.uint32(SHIFT)).view(np.float32)
    last = (((codes + np.uint32(1)) << np.uint32(SHIFT)) - np.uint32(1)).view(np.float32)
    with np.errstate(all="ignore"):
        ends = first.astype(np.float64), last.astype(np.float64)
        every = dict.fromkeys(names, (np.minimum(*ends), np.maximum(*ends)))
        _, high = evaluated(bound, given=every)[bound]
    found = np.array(np.broadcast_to(high, codes.shape)) * _SLACK
    found[~np.isfinite(ends[0]) | ~np.isfinite(ends[1])] = 0.0  # infinities and NaN are not a matter of bounds
    found[np.isnan(found)] = np.inf
    return found


@lru_cache(maxsize=1024)
def is_negligible(bound: Expression, count: str) -> bool:
    """Whether a bound is far below half the smallest number of every format, whatever its operands are: numbers of
    float32, and a ``count``."""
    bound = substitute(bound, {n: ZERO for n in walk(bound) if n.op == "-" and n.args[0] is n.args[1]})  # is it finite?
    _, high = _everywhere(bound, count)
    return bool(np.all(high <= NEGLIGIBLE))


@lru_cache(maxsize=1024)
def is_away_from_zero(node: Expression, count: str) -> bool:
    """Whether a graph is further from 0 than any underflow, whatever its operands are; as :func:`is_negligible`."""
    low, high = _everywhere(node, count)
    return bool(np.all(low > AWAY) or np.all(high < -AWAY))


def _everywhere(root: Expression, count: str) -> Cells:
    every = dict.fromkeys(names_of(root), (np.array([-(2.0**128)]), np.array([2.0**128])))
    every[count] = np.array([1.0]), np.array([2.0**63])
    with np.errstate(all="ignore"):
        return evaluated(root, given=every)[root]


def evaluated(*roots: Expression, given: Mapping[str, Cells]) -> dict[Expression, Cells]:
    """Return the ends, on every cell, of every step of some graphs, a condition's as truth values."""
    found: dict[Expression, Cells] = {}
    for node in walk(*roots):
        args = [found[a] for a in node.args]
        if node.is_constant:
            value = (np.bool_ if node.is_condition else np.float64)(constant_value(node))
            found[node] = np.asarray(value), np.asarray(value)
        elif node.op == "symbol":
            found[node] = given[str(node.value)]
        else:
            found[node] = _OPERATIONS[node.op](*args)
    return found


def _corners(operation: Callable[..., Array]) -> Callable[[Cells, Cells], Cells]:
    def apply(a: Cells, b: Cells) -> Cells:
        results = [operation(x, y) for x in a for y in b]
        # 0 * infinity: the infinity stands for a bound that is not known
        results = [np.where(np.isnan(r), np.inf, r) for r in results]
        return np.minimum.reduce(results), np.maximum.reduce(results)

    return apply


def _divide(a: Cells, b: Cells) -> Cells:
    """Zero as an end of a divisor is approached from inside; one that is nothing else counts as positive."""
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


def _less(or_equal: bool) -> Callable[[Cells, Cells], Cells]:
    """A condition as its smallest and its largest truth value."""

    def apply(a: Cells, b: Cells) -> Cells:
        compare = np.less_equal if or_equal else np.less
        return compare(a[1], b[0]), compare(a[0], b[1])

    return apply


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
    "<": _less(False),
    "<=": _less(True),
    "==": _equal,
    "!=": lambda a, b: _not(_equal(a, b)),
    "and": lambda a, b: (a[0] & b[0], a[1] & b[1]),
    "or": lambda a, b: (a[0] | b[0], a[1] | b[1]),
    "not": _not,
    "where": _where,
    **{name: _rising(getattr(functions, name)) for name in ("exp", "log", "log1p", "expm1", "tanh")},
    "sqrt": _rising(np.sqrt),
    "sign": _rising(np.sign),
    "erf": _rising(erf),
    "erfc": lambda a: (np.asarray(erfc(a[1])), np.asarray(erfc(a[0]))),
}
