"""What a sweep visits: rows of pairs as calls of an operator, and what encloses their results.

Any elementwise operator can be swept whose result one tensor or two decide: those its formula reads, an optional one
left out; of three the gradient is 1. One tensor is a sweep of one row. Attributes have their usual values unless the
sweep is told otherwise. The bounds and the exact values come from the operator's formula by MPFR and rationals; they
owe nothing to the float64 evaluation.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import gmpy2
import numpy as np
from gmpy2 import mpq

from ..model.aclnn import platform
from ..model.call import Array, Call
from ..model.dtypes import DTYPES, FORMATS, dtype_of
from ..model.errors import OracleError, unknown
from ..numerics.exact import enclosures
from ..numerics.exact.enclosures import enclose
from ..numerics.exact.rationals import Undefined
from ..numerics.expressions import ONE, ZERO, Expression, where
from ..numerics.floats.functions import erf, erfc
from ..numerics.floats.rounding import round_rational
from ..numerics.orders.formula import is_elementwise
from ..numerics.orders.kernel_orders import graphs_of
from ..numerics.proof import round_enclosures
from ..numerics.traversal import names_of
from ..operators import OPERATORS
from ..operators.definition.operands import formula_operands
from ..operators.definition.operator import Operator
from ..operators.definition.parameters import MEAN, Parameter, attribute_text

# Bounds of a formula on a grid: every pair of a row's and a column's value, as fast as float64 intervals allow.
#
# Float64 interval arithmetic on whole arrays, every operation widened by more than it can lose. What depends on one
# operand alone is made once for all its codes: functions by MPFR, and wherever the intervals become wide MPFR encloses
# the whole. Where the rest says nothing (a branch it cannot decide, a divisor around zero) the bounds are infinite, and
# the exact value has to tell.

ROUNDING = 2.0**-52  # more than one operation of float64 loses
FUNCTION = 2.0**-46  # far more than NumPy's functions lose
TINY = 5e-324
FIRST, LAST = 80, 1280  # bits of MPFR
NARROW = 2.0**-50  # relative width at which MPFR stops
WIDE = 2.0**-30  # relative width of float64 intervals at which MPFR takes over
NOTHING = 2.0**-400  # times any gradient and attribute still zero in every format of 16 bits


class Bounds(NamedTuple):
    """Where values lie; one array twice where they are exact."""

    low: Array
    high: Array

    @property
    def is_exact(self) -> bool:
        return self.low is self.high


class Truth(NamedTuple):
    """Where a condition must hold, and where it may."""

    must: Array
    may: Array


class Grid:
    """A formula of two operands over all pairs of codes. ``row``: "" for a formula of one operand. ``numbers``: the
    other operands."""

    def __init__(self, root: Expression, row: str, column: str, values: Array, numbers: Mapping[str, float]) -> None:
        self.root, self.row, self.column, self.values, self.numbers = root, row, column, values, dict(numbers)
        self._tables: dict[Expression, Bounds] = {}
        self._codes = _Codes(self)

    def names(self, node: Expression) -> set[str]:
        """Return which of the two operands a node depends on."""
        return {self.row, self.column}.intersection(names_of(node))

    def bounds(self, codes: Array) -> tuple[Array, Array]:
        """Return low and high of the rows of some codes, (rows, codes); NaN where an operand is not finite."""
        with np.errstate(all="ignore"):
            low, high = _Rows(self, codes).value(self.root)
        shape = (len(codes), self.values.size)
        unknown = np.broadcast_to(np.isnan(low) | np.isnan(high), shape)
        special = ~np.isfinite(self.values[codes][:, None]) | ~np.isfinite(self.values)
        ends = []
        for end, infinity in ((low, -np.inf), (high, np.inf)):
            whole = np.where(unknown, infinity, end)
            whole[special] = np.nan
            ends.append(whole)
        return ends[0], ends[1]

    def table(self, node: Expression) -> Bounds:
        """Return a node of at most one operand for every code of it."""
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
    """Enclose a value between float64 numbers by directed MPFR arithmetic; NaN where it has none."""
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
    """The largest float64 that is not above an MPFR number."""
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
        """Return what needs no arithmetic."""

    @abstractmethod
    def function(self, name: str, a: Bounds) -> Bounds:
        """Return a monotone function of intervals, whose ends are in the order of its values."""

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
            return self.function(node.op, Bounds(a.high, a.low) if node.op == "erfc" else a)  # which alone falls
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
    """What depends on one operand, for every code of it."""

    def known(self, node: Expression) -> Bounds | None:
        names = self.grid.names(node)
        return self.grid.table(node) if node.op == "symbol" or not names else None

    def function(self, name: str, a: Bounds) -> Bounds:
        """By MPFR, rounded outwards."""
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
    """What depends on both operands, over some rows."""

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
        """By NumPy, with a wide margin."""
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
    """An operation that is monotone in each operand: its values lie between those at the ends."""
    ends = [operation(x, y) for x in _ends(a) for y in _ends(b)]
    return _widened(functools.reduce(np.minimum, ends), functools.reduce(np.maximum, ends))


def _ends(a: Bounds) -> tuple[Array, ...]:
    return (a.low,) if a.is_exact else (a.low, a.high)


def _product(a: Bounds, b: Bounds) -> Bounds:
    return _hull(np.multiply, a, b)


def _quotient(a: Bounds, b: Bounds) -> Bounds:
    result = _hull(np.divide, a, b)
    around = (b.low <= 0) & (b.high >= 0)
    return (
        Bounds(np.where(around, np.nan, result.low), np.where(around, np.nan, result.high)) if around.any() else result
    )


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
    """An exact function that rises in every operand."""
    return lambda *args: Bounds(function(*(a.low for a in args)), function(*(a.high for a in args)))


def _chosen(condition: Truth, then: Bounds, otherwise: Bounds) -> Bounds:
    """Either branch where the condition decides, both where it may go either way."""
    open_ = condition.may & ~condition.must
    low = np.where(condition.must, then.low, otherwise.low)
    high = np.where(condition.must, then.high, otherwise.high)
    if open_.any():
        low = np.where(open_, np.minimum(then.low, otherwise.low), low)  # NaN where either is unknown
        high = np.where(open_, np.maximum(then.high, otherwise.high), high)
    return Bounds(low, high)


_OPERATIONS: dict[str, Callable[..., Bounds]] = {
    "+": _sum,
    "-": _difference,
    "*": _product,
    "/": _quotient,
    "neg": _negative,
    "abs": _absolute,
    "min": _each(np.minimum),
    "max": _each(np.maximum),
    "sign": _each(np.sign),
}
_FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
    "log1p": np.log1p,
    "expm1": np.expm1,
    "tanh": np.tanh,
    "erf": erf,
    "erfc": erfc,
}


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


# What a sweep visits: how 2^16 rows of 2^16 pairs, or one row of 2^16 values, become calls of an operator, and what
# encloses their results.

CODES = 1 << 16
DTYPE_NAMES = ("float16", "bfloat16")


class Pairs:
    """The pairs of one operator and dtype. ``attributes``: values that differ from the usual ones, by name."""

    def __init__(self, op: Operator, dtype: str, soc: str, attributes: Mapping[str, Any]) -> None:
        if dtype not in DTYPE_NAMES:
            raise OracleError(f"sweep: dtype {dtype!r} is not one of 16 bits: {' or '.join(DTYPE_NAMES)}")
        self.operator, self.op, self.output, self.soc = op, op.name, op.output, soc
        self.dtype = DTYPES[dtype]
        self.varying = varying(op)
        self.first, self.second = self.varying[0] if len(self.varying) == 2 else None, self.varying[-1]
        self.rows = 1 if self.first is None else CODES
        self.attributes = {p.name: attributes.get(p.name, p.plain) for p in op.parameters if p.kind == "attr"}
        reduction = op.reduction
        if reduction is not None and self.attributes[reduction.name] == MEAN:
            raise OracleError(
                f"sweep: {reduction.name}=mean divides by the number of a call's elements, and a sweep makes many "
                "calls: leave it out"
            )
        self.every = np.arange(CODES, dtype=np.uint16).view(self.dtype.numpy)
        with np.errstate(invalid="ignore"):  # signalling NaN among the codes
            self.wide = self.every.astype(np.float64)

    def call(self, rows: Array) -> Call:
        """Return the call over some codes of the first operand and all of the second, its output zeroed."""
        shape = (len(rows), CODES)
        inputs = {p.name: self._input(p, rows, shape) for p in self.operator.inputs()}
        out = np.zeros(shape, self.dtype.numpy)
        return Call(self.op, self.soc, inputs, dict(self.attributes), {self.output: out}, case_id=f"sweep-{rows[0]}")

    def _input(self, parameter: Parameter, rows: Array, shape: tuple[int, int]) -> Array | None:
        role: Any = parameter.role
        if parameter is self.first:
            return np.repeat(self.every[rows][:, None], CODES, axis=1)
        if parameter is self.second:
            return np.repeat(self.every[None, :], len(rows), axis=0)
        if parameter.optional:
            return None
        if parameter.holds("nothing"):
            return np.zeros(0, self.dtype.numpy)
        return np.ones(() if role.freedom == "broadcast" else shape, self.dtype.numpy)

    def values(self, row: int, column: int) -> dict[str, float]:
        """Return the operands of an element by symbol, that of the row first."""
        codes = (row, column)[-len(self.varying) :]
        return {p.symbol: float(self.wide[code]) for p, code in zip(self.varying, codes, strict=True)}

    @cached_property
    def _grid(self) -> Grid:
        scheme = self.operator.computes
        assert is_elementwise(scheme)
        call = self.call(np.zeros(1, np.int64))
        given = formula_operands(self.operator, {**call.inputs, **call.attrs})
        numbers = {name: value for name, value in given.items() if not isinstance(value, np.ndarray)}
        if wrong := [name for name, value in numbers.items() if not np.isfinite(value)]:
            raise OracleError(f"sweep: {self.op}: {', '.join(wrong)} is not finite, and the formula has no exact value")
        graph = graphs_of(scheme, {**numbers, **{p.symbol: self.wide for p in self.varying}}).value
        return Grid(graph, self.first.symbol if self.first else "", self.second.symbol, self.wide, numbers)

    @cached_property
    def _host(self) -> str:
        """What the host rounds to before the output's dtype."""
        call = self.call(np.zeros(1, np.int64))
        return self.operator.host_type({**call.inputs, **call.attrs}, platform(self.soc))

    def enclose(self, rows: Array) -> tuple[Array, Array]:
        """Return float64 bounds of what is rounded last, (rows, 2^16), low <= high; NaN where an operand is special."""
        low, high = self._grid.bounds(rows)
        if self._host == self.dtype.name:
            return low, high
        more = 2.0 ** -FORMATS[self._host].mant
        return low - np.abs(low) * more, high + np.abs(high) * more

    def expected(self, row: int, column: int) -> float | None:
        """Return the correctly rounded result, by exact arithmetic; None where the formula has no value."""
        try:
            exact = enclosures.exact(self._grid.root, {**self._grid.numbers, **self.values(row, column)})
        except Undefined:
            return None
        host = FORMATS[self._host]
        rounded = round_enclosures(exact, host) if isinstance(exact, Iterator) else round_rational(exact, host)
        if self._host == self.dtype.name or not np.isfinite(rounded):
            return rounded
        return round_rational(mpq(rounded), self.dtype.format)


def varying(op: Operator) -> list[Parameter]:
    """Return the operands that a sweep varies: one, or two, of which the main one is the columns'. OracleError."""
    scheme = op.computes
    if not is_elementwise(scheme):
        raise OracleError(f"{op.name} is not elementwise: one element of its result takes more than two numbers")
    shape = (2, 4)
    others = [p.name for p in op.operands if not p.optional and op.shape_of(p.name, shape, op.usual(shape)) != shape]
    if others:
        raise OracleError(f"{op.name}: the shape of {others[0]} is not the main operand's, and a sweep has one shape")
    result = [p for p in op.operands if p.symbol in scheme.symbols and not p.optional]
    if len(result) > 2:
        result = [p for p in result if p.symbol != scheme.gradient]
    if not 0 < len(result) < 3:
        names = ", ".join(p.name for p in result) or "parts of one"
        raise OracleError(f"{op.name}: {len(result)} operands decide an element ({names}), and a sweep has one or two")
    return sorted(result, key=lambda p: p.name == op.main)


def sweepable() -> tuple[str, ...]:
    """Return the operators that can be swept."""
    return tuple(name for name, op in OPERATORS.items() if _can_be_swept(op))


def _can_be_swept(op: Operator) -> bool:
    try:
        varying(op)
    except OracleError:
        return False
    return True


def pairs(op: str, dtype: str, soc: str, attributes: Mapping[str, str] | None = None) -> Pairs:
    """Return the pairs of an operator. ``attributes``: as written on a command line. OracleError names what can be."""
    if op not in OPERATORS:
        raise unknown("operator to sweep", op, sweepable())
    try:
        varying(OPERATORS[op])
    except OracleError as error:
        raise OracleError(f"sweep: {error}; it can be one of: {', '.join(sweepable())}") from None
    known = OPERATORS[op].names("attr")
    for name in attributes or {}:
        if name not in known:
            raise OracleError(f"sweep: {op} has no attribute {name!r}; it has: {', '.join(known) or 'none'}")
    given = {name: attribute_text(OPERATORS[op].by_name[name], text) for name, text in (attributes or {}).items()}
    return _pairs(op, dtype_of(dtype).name, soc, tuple(given.items()))


@lru_cache(maxsize=4)
def _pairs(op: str, dtype: str, soc: str, attributes: tuple[tuple[str, Any], ...]) -> Pairs:
    return Pairs(OPERATORS[op], dtype, soc, dict(attributes))
