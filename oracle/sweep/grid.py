"""Bounds of a formula on a grid: every pair of a row's and a column's value, by fast float64 intervals.

Float64 interval arithmetic runs on whole arrays, and every operation is widened by more than its largest error. A node
of one operand is computed once for all codes: functions by MPFR, and if the intervals become wide, MPFR encloses the
whole node. If the method cannot decide (a branch, or a divisor around zero), the bounds are infinite, and the exact
value must decide.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import gmpy2
import numpy as np

from ..model.call import Array
from ..numerics.exact.enclosures import enclose
from ..numerics.exact.rationals import Undefined
from ..numerics.expressions import ONE, ZERO, Expression, where
from ..numerics.floats.functions import erf, erfc
from ..numerics.traversal import names_of

ROUNDING = 2.0**-52  # more than the error of one float64 operation
FUNCTION = 2.0**-46  # much more than the errors of NumPy's functions
TINY = 5e-324
FIRST, LAST = 80, 1280  # bits of MPFR
NARROW = 2.0**-50  # relative width at which MPFR stops
WIDE = 2.0**-30  # relative width of float64 intervals at which MPFR takes over
NOTHING = 2.0**-400  # even multiplied by any gradient and attribute, it is zero in every 16-bit format


class Bounds(NamedTuple):
    """The bounds of values; low and high are the same array if the values are exact."""

    low: Array
    high: Array

    @property
    def is_exact(self) -> bool:
        return self.low is self.high


class Truth(NamedTuple):
    """Masks of a condition: where it must be true, and where it may be true."""

    must: Array
    may: Array


class Grid:
    """A formula of two operands over all pairs of codes. ``row``: "" for a formula of one operand. ``numbers``: the
    values of the other operands."""

    def __init__(self, root: Expression, row: str, column: str, values: Array, numbers: Mapping[str, float]) -> None:
        self.root, self.row, self.column, self.values, self.numbers = root, row, column, values, dict(numbers)
        self._tables: dict[Expression, Bounds] = {}
        self._codes = _Codes(self)

    def names(self, node: Expression) -> set[str]:
        """Return the operands, out of the two, on which a node depends."""
        return {self.row, self.column}.intersection(names_of(node))

    def bounds(self, codes: Array) -> tuple[Array, Array]:
        """Return low and high of the rows of some codes, (rows, codes); NaN if an operand is not finite."""
        with np.errstate(all="ignore"):
            low, high = _Rows(self, codes).value(self.root)
        shape = (len(codes), self.values.size)
        unknown = np.broadcast_to(np.isnan(low) | np.isnan(high), shape)
        special = ~np.isfinite(self.values[codes][:, None]) | ~np.isfinite(self.values)
        ends = ((low, -np.inf), (high, np.inf))
        low, high = (np.where(special, np.nan, np.where(unknown, infinity, end)) for end, infinity in ends)
        return low, high

    def table(self, node: Expression) -> Bounds:
        """Return the bounds of a node of at most one operand, for every code."""
        if node not in self._tables:
            self._tables[node] = self._table(node)
        return self._tables[node]

    def _table(self, node: Expression) -> Bounds:
        names = self.names(node)
        if node.op == "symbol" and names:
            return Bounds(self.values, self.values)
        if not names:
            ends = narrow(node, self.numbers)
            return Bounds(np.full(1, ends[0]), np.full(1, ends[1]))
        (name,) = names
        with np.errstate(all="ignore"):
            low, high = (np.array(np.broadcast_to(end, self.values.shape)) for end in self._codes.value(node))
            good = (low == high) | (high - low <= WIDE * np.minimum(np.abs(low), np.abs(high)))
            good |= (low > -NOTHING) & (high < NOTHING)
        for code in np.flatnonzero(~good & np.isfinite(self.values)):
            low[code], high[code] = narrow(node, {**self.numbers, name: float(self.values[code])})
        return Bounds(low, high)


def narrow(node: Expression, given: Mapping[str, float]) -> tuple[float, float]:
    """Enclose a value between float64 numbers by directed MPFR arithmetic; NaN if it has no value."""
    precision = FIRST
    try:
        result = enclose(node, given, precision)
        while result.high - result.low > NARROW * abs(result.low) and precision < LAST:
            if max(-result.low, result.high) < NOTHING:
                break
            precision *= 2
            result = enclose(node, given, precision)
    except Undefined:
        return math.nan, math.nan
    return _below(result.low), _above(result.high)


def _below(end: Any) -> float:
    """Return the largest float64 that is not above an MPFR number."""
    near = float(end)
    return math.nextafter(near, -math.inf) if near > end else near


def _above(end: Any) -> float:
    near = float(end)
    return math.nextafter(near, math.inf) if near < end else near


class _Intervals(ABC):
    """Interval arithmetic on arrays, node by node."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self._values: dict[Expression, Bounds] = {}

    @abstractmethod
    def known(self, node: Expression) -> Bounds | None:
        """Return the bounds of a node that needs no arithmetic, else None."""

    @abstractmethod
    def function(self, name: str, a: Bounds) -> Bounds:
        """Return the bounds of a monotone function; ``a`` has its ends in the order of the function's values."""

    def value(self, node: Expression) -> Bounds:
        if node not in self._values:
            self._values[node] = self.known(node) or self._value(node)
        return self._values[node]

    def _value(self, node: Expression) -> Bounds:
        if node.op == "where":
            return _chosen(self.truth(node.args[0]), self.value(node.args[1]), self.value(node.args[2]))
        if node.op == "*" and node.args[0] is node.args[1]:
            return _square(self.value(node.args[0]))
        if node.op in _FUNCTIONS:
            a = self.value(node.args[0])
            return self.function(node.op, Bounds(a.high, a.low) if node.op == "erfc" else a)  # only erfc falls
        return _OPERATIONS[node.op](*map(self.value, node.args))

    def truth(self, node: Expression) -> Truth:
        if node.op == "not":
            given = self.truth(node.args[0])
            return Truth(~given.may, ~given.must)
        if node.op in ("and", "or"):
            combine = np.logical_and if node.op == "and" else np.logical_or
            one, other = (self.truth(arg) for arg in node.args)
            return Truth(combine(one.must, other.must), combine(one.may, other.may))
        return _COMPARISONS[node.op](*map(self.value, node.args))


class _Codes(_Intervals):
    """Interval arithmetic on the nodes of one operand, for every code."""

    def known(self, node: Expression) -> Bounds | None:
        names = self.grid.names(node)
        return self.grid.table(node) if node.op == "symbol" or not names else None

    def function(self, name: str, a: Bounds) -> Bounds:
        """Return the bounds by MPFR, rounded outwards."""
        low = np.array([_end(name, float(x), upwards=False) for x in a.low])
        return Bounds(low, np.array([_end(name, float(x), upwards=True) for x in a.high]))


@functools.lru_cache(maxsize=2)
def _context(upwards: bool) -> Any:
    wide = {"emax": gmpy2.get_emax_max(), "emin": gmpy2.get_emin_min()}
    return gmpy2.context(precision=64, round=gmpy2.RoundUp if upwards else gmpy2.RoundDown, **wide)


def _end(name: str, x: float, *, upwards: bool) -> float:
    end = getattr(_context(upwards), name)(x)
    return _above(end) if upwards else _below(end)


class _Rows(_Intervals):
    """Interval arithmetic on the nodes of both operands, for some rows."""

    def __init__(self, grid: Grid, codes: Array) -> None:
        super().__init__(grid)
        self.codes = codes

    def known(self, node: Expression) -> Bounds | None:
        names = self.grid.names(node)
        if len(names) > 1:
            return None
        table = self.grid.table(node)
        if self.grid.row not in names:
            return table
        low = table.low[self.codes][:, None]
        return Bounds(low, low if table.is_exact else table.high[self.codes][:, None])

    def truth(self, node: Expression) -> Truth:
        if len(self.grid.names(node)) > 1:
            return super().truth(node)
        indicator = self.value(where(node, ONE, ZERO))
        return Truth(indicator.low == 1, indicator.high != 0)

    def function(self, name: str, a: Bounds) -> Bounds:
        """Return the bounds by NumPy, with a wide margin."""
        return _widened(_FUNCTIONS[name](a.low), _FUNCTIONS[name](a.high), FUNCTION)


# ---- operations ------------------------------------------------------------------------------------------------------


def _widened(low: Array, high: Array, lost: float = ROUNDING) -> Bounds:
    return Bounds(low - (np.abs(low) * lost + TINY), high + (np.abs(high) * lost + TINY))


def _sum(a: Bounds, b: Bounds) -> Bounds:
    low = a.low + b.low
    return _widened(low, low if a.is_exact and b.is_exact else a.high + b.high)


def _difference(a: Bounds, b: Bounds) -> Bounds:
    low = a.low - b.high
    return _widened(low, low if a.is_exact and b.is_exact else a.high - b.low)


def _hull(operation: Callable[[Array, Array], Array], a: Bounds, b: Bounds) -> Bounds:
    """Return the bounds of an operation that is monotone in each operand: the extremes of its values at the ends."""
    ends = [operation(x, y) for x in _ends(a) for y in _ends(b)]
    return _widened(functools.reduce(np.minimum, ends), functools.reduce(np.maximum, ends))


def _ends(a: Bounds) -> tuple[Array, ...]:
    return (a.low,) if a.is_exact else (a.low, a.high)


def _quotient(a: Bounds, b: Bounds) -> Bounds:
    result = _hull(np.divide, a, b)
    around = (b.low <= 0) & (b.high >= 0)
    if not around.any():
        return result
    return Bounds(np.where(around, np.nan, result.low), np.where(around, np.nan, result.high))


def _square(a: Bounds) -> Bounds:
    one, other = a.low * a.low, a.high * a.high
    low = np.where((a.low <= 0) & (a.high >= 0), 0.0, np.minimum(one, other))
    return _widened(low, np.maximum(one, other))


def _absolute(a: Bounds) -> Bounds:
    if a.is_exact:
        low = np.abs(a.low)
        return Bounds(low, low)
    return Bounds(np.maximum(np.maximum(a.low, -a.high), 0.0), np.maximum(-a.low, a.high))


def _negative(a: Bounds) -> Bounds:
    low = -a.high
    return Bounds(low, low if a.is_exact else -a.low)


def _each(function: Callable[..., Array]) -> Callable[..., Bounds]:
    """Return the bounds of an exact function that rises in every operand."""
    return lambda *args: Bounds(function(*(a.low for a in args)), function(*(a.high for a in args)))


def _chosen(condition: Truth, then: Bounds, otherwise: Bounds) -> Bounds:
    """Return the bounds of the branch that the condition selects, or of both if it does not decide."""
    open_ = condition.may & ~condition.must
    low = np.where(condition.must, then.low, otherwise.low)
    high = np.where(condition.must, then.high, otherwise.high)
    if open_.any():
        low = np.where(open_, np.minimum(then.low, otherwise.low), low)  # NaN if either is unknown
        high = np.where(open_, np.maximum(then.high, otherwise.high), high)
    return Bounds(low, high)


_OPERATIONS: dict[str, Callable[..., Bounds]] = {
    "+": _sum, "-": _difference, "*": functools.partial(_hull, np.multiply), "/": _quotient, "neg": _negative,
    "abs": _absolute, "min": _each(np.minimum), "max": _each(np.maximum), "sign": _each(np.sign),
}  # fmt: skip
_FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    **{name: getattr(np, name) for name in ("sqrt", "exp", "log", "log1p", "expm1", "tanh")}, "erf": erf, "erfc": erfc,
}  # fmt: skip


def _equal(a: Bounds, b: Bounds) -> Truth:
    point = (a.low == a.high) & (b.low == b.high)
    return Truth(point & (a.low == b.low), ~((a.high < b.low) | (b.high < a.low)))


def _different(a: Bounds, b: Bounds) -> Truth:
    same = _equal(a, b)
    return Truth(~same.may, ~same.must)


_COMPARISONS: dict[str, Callable[[Bounds, Bounds], Truth]] = {
    "<": lambda a, b: Truth(a.high < b.low, ~(a.low >= b.high)),
    "<=": lambda a, b: Truth(a.high <= b.low, ~(a.low > b.high)),
    "==": _equal,
    "!=": _different,
}
