"""A formula's exact value: a rational if possible, else enclosures by MPFR that shrink with the precision.

Every operation is done twice, rounded down and rounded up (gmpy2 contexts), so an enclosure is valid for any formula. A
value is exact if both ends agree: e^0 is 1 and tanh 0 is 0. Comparisons of rationals are decided exactly. If a
comparison of irrational values stays undecided up to the highest precision, the values are treated as equal.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import NamedTuple

import gmpy2
from gmpy2 import context as Context, mpfr, mpq

from ...model.dtypes import FORMATS
from ...model.errors import OracleError
from ..expressions import ONE, Expression
from ..floats.rounding import round_rational
from ..traversal import is_rational, names_of
from .rationals import Undefined, numbers, rational
from .transcendence import nearest

FIRST, LAST = 128, 1 << 14  # bits of the first and of the last attempt
UNTOLD = (
    f"{LAST} bits do not show what it rounds to. It may be exactly 0, or halfway between two numbers, which no "
    "precision shows: write the formula without steps that undo each other, as erf(x) + erfc(x) do"
)
PATIENCE = 256  # bits that are enough for nearly all values that are not exactly halfway


class Interval:
    """Two MPFR numbers around a real one. ``above``: the real number certainly differs from the lower end. ``below``:
    it certainly differs from the upper end."""

    __slots__ = ("above", "below", "high", "low")

    def __init__(self, low: mpfr, high: mpfr, above: bool = False, below: bool = False) -> None:
        self.low, self.high, self.above, self.below = low, high, above, below

    @property
    def is_point(self) -> bool:
        return bool(self.low == self.high)

    @property
    def has_sign(self) -> bool:
        """Return whether both ends are finite and of one sign."""
        one_sign = self.low > 0 or self.high < 0
        return bool(one_sign and gmpy2.is_finite(self.low) and gmpy2.is_finite(self.high))


class Ends(NamedTuple):
    """Two rationals around a real number; ``above``, ``below`` as of an :class:`Interval`."""

    low: mpq
    high: mpq
    above: bool = False
    below: bool = False


Operation = Callable[[list[Interval], Context, Context], Interval]  # the contexts round down and up


Intervals = Callable[[int], Mapping[str, Interval]]  # maps a precision to operands that are known as enclosures


def exact(root: Expression, operands: Mapping[str, float], more: Intervals | None = None) -> mpq | Iterator[Ends]:
    """Return the value, or enclosures that become smaller and smaller. ``more``: operands that are not float64 numbers.

    An operand that is infinite or NaN can only decide comparisons, or vanish (x / inf). Raises :class:`Undefined` if
    the formula has no value.
    """
    if is_rational(root) and more is None:
        return mpq(rational(root, numbers(operands)))
    first = enclose(root, operands, FIRST, more)
    return mpq(0) if first.is_point and first.low == 0 else _enclosures(root, operands, first, more)


def _enclosures(
    root: Expression, operands: Mapping[str, float], interval: Interval, more: Intervals | None
) -> Iterator[Ends]:
    precision = FIRST
    while True:
        low, high = rational_end(interval.low, upwards=False), rational_end(interval.high, upwards=True)
        if low < 0 < high and high - low <= 2 * _LEAST:
            yield Ends(mpq(0), high)  # beyond MPFR's exponents the sign is unknown; every format rounds this to zero
        else:
            yield Ends(low, high, interval.above, interval.below)
        if precision == LAST:
            break
        if precision == PATIENCE and more is None and (near := nearest(root, operands, holds)) is not None:
            value, side = near
            if side == 0:
                yield Ends(value, value)
                return
            yield Ends(value, high, above=True) if side > 0 else Ends(low, value, below=True)
        precision *= 2
        interval = enclose(root, operands, precision, more)
    # Example: 1 + e^-100000. No precision separates the value from an end, but the value is not the end.
    inwards = (high - low) / 2**64
    yield Ends(low + inwards, high - inwards)
    raise OracleError(f"{root} at {dict(operands)}: {UNTOLD}")


_FAR = 3000  # every format rounds numbers below 2^-3000 in the same way
_BITS = 1 << 18  # numbers up to e^181000 stay distinct, because a sum of them can be of either sign
_LEAST, BEYOND = mpq(1, 2**_FAR), mpq(2) ** _BITS


def rational_end(end: mpfr, *, upwards: bool) -> mpq:
    """Return an end as a rational. If its exponent is beyond all formats, move the end outwards, so far that two such
    ends of a sum do not cancel."""
    sign = 1 if end > 0 else -1
    outwards = upwards is (sign > 0)
    if gmpy2.is_infinite(end) or (end != 0 and gmpy2.get_exp(end) > _BITS):
        return sign * (BEYOND**2 if outwards else BEYOND)
    if end != 0 and gmpy2.get_exp(end) < -_FAR:
        return sign * _LEAST if outwards else mpq(0)
    return mpq(end)


# ---- enclosures ------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=16)
def _contexts(precision: int) -> tuple[Context, Context]:
    """Return the contexts that round down and up."""
    wide = {"emax": gmpy2.get_emax_max(), "emin": gmpy2.get_emin_min()}
    return (
        Context(precision=precision, round=gmpy2.RoundDown, **wide),
        Context(precision=precision, round=gmpy2.RoundUp, **wide),
    )


def enclose(root: Expression, operands: Mapping[str, float], precision: int, more: Intervals | None = None) -> Interval:
    """Return an enclosure of a graph's value at finite operands. Raises Undefined if there is no value."""
    down, up = _contexts(precision)
    known = {} if more is None else more(precision)

    @functools.cache
    def value(node: Expression) -> Interval:
        if node.op == "constant":
            return _constant(node, precision)
        if node.op == "symbol" and node.value in known:
            return known[str(node.value)]
        if node.op == "symbol":
            point = mpfr(operands[str(node.value)], max(precision, 64))
            return Interval(point, point)
        if node.op == "where":
            return value(node.args[1] if _holds(node.args[0]) else node.args[2])
        if node.is_condition:
            raise AssertionError("a condition has no enclosure")  # pragma: no cover
        if node.op == "*" and node.args[0] is node.args[1]:
            made = value(node.args[0])  # evaluated for a root too, which may have no value
            return value(node.args[0].args[0]) if node.args[0].op == "sqrt" else _square(made, down, up)
        if node.op == "exp" and (parts := _power(node)) is not None:
            base, exponent = map(value, parts)
            if base.is_point and exponent.is_point and base.low > 0:
                return _between(down.pow(base.low, exponent.low), up.pow(base.low, exponent.low))
        return OPERATIONS[node.op]([value(a) for a in node.args], down, up)

    def _holds(condition: Expression) -> bool:
        if condition.op in ("and", "or", "not"):
            one, *rest = condition.args
            if condition.op == "not":
                return not _holds(one)
            return _holds(one) and _holds(rest[0]) if condition.op == "and" else _holds(one) or _holds(rest[0])
        if is_rational(condition) and not any(name in known for name in names_of(condition)):
            return bool(rational(condition, numbers(operands)))
        return _compared(condition, operands, precision, [value(a) for a in condition.args], more)

    return value(root)


def holds(condition: Expression, operands: Mapping[str, float], more: Intervals | None = None) -> bool:
    """Return whether a comparison of numbers is true at finite operands; the precision rises until it is decided."""
    if is_rational(condition) and more is None:
        return bool(rational(condition, numbers(operands)))
    return _compared(condition, operands, FIRST, [enclose(a, operands, FIRST, more) for a in condition.args], more)


def reduced(kind: str, each: list[Interval], precision: int) -> Interval:
    """Return an enclosure of the sum, or of the largest (``most``) or smallest (``least``), of enclosed numbers."""
    down, up = _contexts(precision)
    if kind == "sum":
        total = Interval(mpfr(0), mpfr(0))
        for one in each:
            total = _add([total, one], down, up)
        return total
    choose = max if kind == "most" else min
    return Interval(choose(one.low for one in each), choose(one.high for one in each))


def _power(node: Expression) -> tuple[Expression, Expression] | None:
    """Return base and exponent of e^(b log a), which is exact if a^b is representable; None for other graphs."""
    (argument,) = node.args
    if argument.op == "log":
        return argument.args[0], ONE
    if argument.op == "*":
        for one, other in (argument.args, argument.args[::-1]):
            if one.op == "log":
                return one.args[0], other
    return None


def _compared(
    condition: Expression,
    operands: Mapping[str, float],
    precision: int,
    ends: list[Interval],
    more: Intervals | None = None,
) -> bool:
    """Decide a comparison of irrational values; the precision rises until it is decided."""
    one, other = ends
    apart = one.high < other.low or other.high < one.low
    if not apart and precision < LAST and not (one.is_point and other.is_point):
        closer = [enclose(a, operands, 2 * precision, more) for a in condition.args]
        return _compared(condition, operands, 2 * precision, closer, more)
    less, equal = one.high < other.low, not apart
    return bool({"<": less, "<=": less or equal, "==": equal, "!=": not equal}[condition.op])


@functools.lru_cache(maxsize=4096)
def _constant(node: Expression, precision: int) -> Interval:
    down, up = _contexts(precision)
    if node.value == "pi":
        with gmpy2.context(down):
            low = gmpy2.const_pi()
        with gmpy2.context(up):
            high = gmpy2.const_pi()
        return _between(low, high)
    assert isinstance(node.value, Fraction)
    value = mpq(node.value.numerator, node.value.denominator)
    return _between(_round(value, down), _round(value, up))


def _between(low: mpfr, high: mpfr, above: bool = False, below: bool = False) -> Interval:
    """Return an interval of two results. The value differs from an end if the end was rounded, or if ``above`` or
    ``below`` says so."""
    return Interval(low, high, above or low.rc != 0, below or high.rc != 0)


def _round(value: mpq, context: Context) -> mpfr:
    with gmpy2.context(context):
        return mpfr(value)


def _corners(operation: str) -> Operation:
    """Return the hull of an operation on all four corners, or on the right two if both operands have a sign."""

    def apply(args: list[Interval], down: Context, up: Context) -> Interval:
        a, b = args
        if a.has_sign and b.has_sign:
            (near, one), (far, other) = _turned(a, b.low < 0)
            (first, two), (last, three) = _turned(b, (a.low < 0) is (operation == "mul"))
            low, high = getattr(down, operation)(near, first), getattr(up, operation)(far, last)
            return _between(low, high, one or two, other or three)
        pairs = [(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
        lows = [_known(getattr(down, operation)(x, y), operation, "-inf") for x, y in pairs]
        highs = [_known(getattr(up, operation)(x, y), operation, "inf") for x, y in pairs]
        return Interval(min(lows), max(highs))

    return apply


def _turned(a: Interval, turned: bool) -> tuple[tuple[mpfr, bool], tuple[mpfr, bool]]:
    """Return both ends, each with a flag that the value differs from it. ``turned``: the upper end comes first."""
    low, high = (a.low, a.above), (a.high, a.below)
    return (high, low) if turned else (low, high)


def _known(result: mpfr, operation: str, end: str) -> mpfr:
    """Replace NaN. An infinite end represents a finite number beyond MPFR's range: times 0 it is 0, divided by another
    it is unknown (write 1 / (1 + e^-x), not e^x / (1 + e^x))."""
    if gmpy2.is_nan(result):
        return mpfr(0) if operation == "mul" else mpfr(end)
    return result


def _divide(args: list[Interval], down: Context, up: Context) -> Interval:
    a, b = args
    if b.low <= 0 <= b.high:
        if b.is_point or (a.is_point and a.low == 0):
            raise Undefined("division by zero")
        return Interval(mpfr("-inf"), mpfr("inf"))
    return _corners("div")(args, down, up)


def _square(a: Interval, down: Context, up: Context) -> Interval:
    if a.low >= 0:
        return _between(down.mul(a.low, a.low), up.mul(a.high, a.high), a.above, a.below)
    if a.high <= 0:
        return _between(down.mul(a.high, a.high), up.mul(a.low, a.low), a.below, a.above)
    largest = max(up.minus(a.low), a.high)
    return Interval(mpfr(0), up.mul(largest, largest))


_ENDS = {"log": 0, "log1p": -1}  # of domains: there a logarithm has no value


def _rising(function: str) -> Operation:
    """Return the operation of an increasing function."""

    def apply(args: list[Interval], down: Context, up: Context) -> Interval:
        (a,) = args
        if a.is_point and a.low == _ENDS.get(function):
            raise Undefined(f"{function} of {_ENDS[function]}")
        low, high = getattr(down, function)(a.low), getattr(up, function)(a.high)
        if gmpy2.is_nan(low) or gmpy2.is_nan(high):
            raise Undefined(f"{function} of [{a.low}, {a.high}]")
        return _between(low, high, a.above, a.below)

    return apply


def _negative(a: Interval, down: Context, up: Context) -> Interval:
    """Negate without loss: Python's own minus would round to the precision of the current context."""
    return _between(down.minus(a.high), up.minus(a.low), a.below, a.above)


def _absolute(args: list[Interval], down: Context, up: Context) -> Interval:
    (a,) = args
    if a.low >= 0:
        return a
    negative = _negative(a, down, up)
    return negative if a.high <= 0 else Interval(mpfr(0), max(negative.high, a.high))


def _sign(args: list[Interval], down: Context, up: Context) -> Interval:
    (a,) = args
    return Interval(mpfr((a.low > 0) - (a.low < 0)), mpfr((a.high > 0) - (a.high < 0)))


def _add(args: list[Interval], down: Context, up: Context) -> Interval:
    a, b = args
    return _between(down.add(a.low, b.low), up.add(a.high, b.high), a.above or b.above, a.below or b.below)


def _subtract(args: list[Interval], down: Context, up: Context) -> Interval:
    a, b = args
    return _between(down.sub(a.low, b.high), up.sub(a.high, b.low), a.above or b.below, a.below or b.above)


OPERATIONS: dict[str, Operation] = {
    "+": _add,
    "-": _subtract,
    "*": _corners("mul"),
    "/": _divide,
    "neg": lambda args, down, up: _negative(args[0], down, up),
    "abs": _absolute,
    "sign": _sign,
    "min": lambda args, down, up: Interval(min(a.low for a in args), min(a.high for a in args)),
    "max": lambda args, down, up: Interval(max(a.low for a in args), max(a.high for a in args)),
    **{name: _rising(name) for name in ("sqrt", "exp", "expm1", "tanh", "erf", "log", "log1p")},
    "erfc": lambda args, down, up: _between(
        down.erfc(args[0].high), up.erfc(args[0].low), args[0].below, args[0].above
    ),
}


# ---- constants -------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=4096)
def constant_interval(node: Expression) -> tuple[mpq, mpq]:
    """Return an enclosure of a constant graph, 400 bits wide."""
    if is_rational(node):
        value = rational(node, {})
        return value, value
    result = enclose(node, {}, 400)
    return mpq(result.low), mpq(result.high)


def constant_value(node: Expression) -> float:
    """Return the float64 nearest to a constant graph."""
    return round_constant(node, "float64")


def round_constant(node: Expression, dtype: str) -> float:
    """Return the number of a type nearest to a constant graph."""
    low, high = constant_interval(node)
    if dtype == "float64" or dtype not in FORMATS:  # an integer type: its graphs contain only integers
        return float(low)
    rounded = round_rational(low, FORMATS[dtype])
    assert rounded == round_rational(high, FORMATS[dtype])
    return rounded
