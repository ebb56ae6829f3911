"""The second check of irrational formulas: in pairs of float64 numbers, 86 bits and more, for whole arrays.

An element that Ziv's test leaves in doubt is close to a midpoint of the output's type. The reason is often an operand
so small that its effect is lost next to 1. Pairs show this effect, and with it the side of the midpoint. MPFR settles
the remaining elements. The errors follow from the graph by the rules of :mod:`.bounds.losses`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from ..model.call import Array
from ..model.dtypes import FORMATS, FloatFormat, dtype_of
from .bounds.building import Loss
from .bounds.losses import losses
from .exact.enclosures import constant_interval
from .exact.rationals import two_product, two_sum
from .expressions import Expression
from .floats.rounding import Arithmetic, quantize
from .traversal import walk

Pair = tuple[Any, Any]
# Relative errors: + and * below 2^-102, a root below 2^-101, a quotient below 2^-99; e^x below 2^-90 (reduction 2^-96,
# doublings 2^-94); e^x - 1 below 2^-88 (four times that of e^x, beyond the reduction's first step); tanh below 2^-86
# (twice that, and a quotient); log below 2^-96 (its series: a quotient and its square, a product; twice that next to k
# ln 2); erf of up to 1 below 2^-98 (its series: e units of terms with a sum of at least 0.74, two products); erfc,
# which is at least 0.15 there, below 2^-95.
ARITHMETIC = Arithmetic(
    2.0**-102,
    106,
    0.0,
    {"/": 8, "sqrt": 2, "exp": 2.0**12, "expm1": 2.0**14, "tanh": 2.0**16, "log": 64, "log1p": 64, "erf": 16,
     "erfc": 128},
)  # fmt: skip
UNDERFLOW = 2.0**-600  # the possible loss of a term of a sum with parts below float64's normal numbers
NEAR = 2.0**-30  # relative, less than half a unit of every format: a number so close to a format's number rounds to it
_ERROR_FUNCTIONS = frozenset(("erf", "erfc"))  # for arguments of up to 1, else NaN
_SERIES = frozenset(("erf", "erfc", "log", "log1p", "expm1", "tanh"))
_HALVINGS, _TERMS = 9, 9  # e^r from r / 512: the remainder of nine terms is below 2^-112


@lru_cache(maxsize=256)
def supports(root: Expression, *, everywhere: bool = False) -> bool:
    """Return whether a graph consists of arithmetic, choices, elementary functions and erf. ``everywhere``: erf is
    excluded, because it has a value for small arguments only."""
    known = {"symbol", *_OPERATIONS} - (_ERROR_FUNCTIONS if everywhere else frozenset())
    return all(node.is_constant or node.op in known for node in walk(root))


@lru_cache(maxsize=256)
def is_cheap(root: Expression) -> bool:
    """Return whether a graph consists of arithmetic, choices, roots and e^x."""
    return supports(root) and not any(node.op in _SERIES for node in walk(root))


def refined(root: Expression, operands: Mapping[str, Any], dtype: Any, slack: Any) -> tuple[Array, Array, Array]:
    """Return value and interval of some elements: a single number next to the midpoint if the pairs show its side, else
    the value with the error ``slack``."""
    high, low = map(np.asarray, evaluate(root, operands))
    return round_near_midpoint(high, low, lost(root, operands, high), FORMATS[dtype_of(dtype).name], slack)


def round_near_midpoint(
    high: Array, low: Array, error: Array, fmt: FloatFormat, slack: Any
) -> tuple[Array, Array, Array]:
    """Return value and interval of numbers given as pairs. If the side of the midpoint is known, this is a single
    number next to the midpoint. If only a format's own number is near, it is that number. Else the error is
    ``slack``."""
    middle = quantize(high, fmt.with_ties)
    beyond = (high - middle) + low  # both are multiples of the same small unit: the difference is exact
    apart = np.abs(beyond) > error + np.abs(beyond) * 2.0**-50
    value = np.where(apart, np.nextafter(middle, np.copysign(np.inf, beyond)), high)
    near = ~apart & (np.abs(beyond) + error < np.abs(middle) * NEAR) & (quantize(middle, fmt) == middle)
    slack = np.where(apart | near, 0.0, slack)
    around = np.where(near, middle, value)
    return value, around - slack, around + slack


@lru_cache(maxsize=256)
def _loss(root: Expression) -> Loss:
    return losses([root], ARITHMETIC)[0]


def lost(root: Expression, operands: Mapping[str, Any], value: Array) -> Array:
    """Return an error bound of a graph's value in pairs, for exact operands."""
    loss = _loss(root)
    return error_of(loss.relative, loss.running(abs(root)), operands, value)


def error_of(relative: float, running: Expression, operands: Mapping[str, Any], value: Array) -> Array:
    """Return an error bound of a value in pairs. ``running`` is evaluated in pairs too: there log(1 + 1e-30) is not
    0."""
    high, _ = evaluate(running, operands)
    return np.asarray((np.abs(value) * relative + high) * 1.01)


def evaluate(root: Expression, operands: Mapping[str, Any]) -> Pair:
    """Return a graph's value as an unevaluated sum of two. ``operands``: float64 vectors or numbers, or such pairs."""
    result: dict[int, Pair] = {}
    with np.errstate(all="ignore"):
        for node in walk(root):
            args = [result[id(a)] for a in node.args]
            if node.is_constant:
                result[id(node)] = _constant(node)
            elif node.op == "symbol":
                given = operands[str(node.value)]
                result[id(node)] = given if isinstance(given, tuple) else (np.asarray(given, np.float64), 0.0)
            else:
                result[id(node)] = _OPERATIONS[node.op](*args)
    return result[id(root)]


@lru_cache(maxsize=1024)
def _constant(node: Expression) -> Pair:
    low, _ = constant_interval(node)
    return _exactly(Fraction(int(low.numerator), int(low.denominator)))


def _short(a: Any, b: Any) -> Pair:
    """Return the sum of two numbers; the first is not smaller than the second (Dekker)."""
    total = a + b
    return total, b - (total - a)


def add(a: Pair, b: Pair) -> Pair:
    """Return a + b, accurate also if the leading parts cancel."""
    return added(a, b)[0]


def added(a: Pair, b: Pair) -> tuple[Pair, Pair]:
    """Return a + b, and the two numbers that were rounded: the sum is off by a unit of them in the last place."""
    high, lost = two_sum(a[0], b[0])
    low, less = two_sum(a[1], b[1])
    first = lost + low
    high, lost = _short(high, first)
    last = lost + less
    return _short(high, last), (first, last)


def multiply(a: Pair, b: Pair) -> Pair:
    high, low = two_product(a[0], b[0])
    return _short(high, low + (a[0] * b[1] + a[1] * b[0]))


def divide(a: Pair, b: Pair) -> Pair:
    """Return a / b by three quotients."""
    first = a[0] / b[0]
    rest = add(a, negate(multiply(b, (first, 0.0))))
    second = rest[0] / b[0]
    rest = add(rest, negate(multiply(b, (second, 0.0))))
    high, low = _short(first, second)
    return add((high, low), (rest[0] / b[0], 0.0))


def negate(a: Pair) -> Pair:
    return -a[0], -a[1]


_LN2 = (
    float.fromhex("0x1.62e42fefa39efp-1"),
    float.fromhex("0x1.abc9e3b39803fp-56"),
    float.fromhex("0x1.7b57a079a1934p-111"),
)


def _exactly(value: Fraction) -> Pair:
    high = float(value)
    return high, float(value - Fraction(high))


_FACTORIALS = [_exactly(Fraction(1, math.factorial(n))) for n in range(1, _TERMS + 1)]


def _series(coefficients: Sequence[Pair], a: Pair) -> Pair:
    """Return the sum of coefficients times powers of a; the first coefficient belongs to the power 0."""
    total = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        total = add(multiply(total, a), coefficient)
    return total


def square_root(a: Pair) -> Pair:
    """Return the square root of a, by a step of Newton's method; NaN for negative numbers and NaN, 0 for 0."""
    first = np.sqrt(a[0])
    rest = add(a, negate(two_product(first, first)))
    high, low = _short(first, rest[0] / (2 * first))
    return np.where(first == 0, 0.0, high), np.where(first == 0, 0.0, low)


def _halvings_of(a: Pair) -> tuple[Any, Pair]:
    """Return k and e^r - 1 with a = k ln 2 + r: by the series of r / 512, doubled nine times. Beyond +-1500 e^a is
    infinite or 0, and a is clipped: k ln 2 would soon have no digit of a."""
    inside = np.abs(a[0]) < 1500
    a = np.where(inside, a[0], np.clip(a[0], -1500, 1500)), np.where(inside, a[1], 0.0)
    k = np.rint(a[0] / _LN2[0])
    r = a
    for part in _LN2:
        r = add(r, negate(two_product(k, part)))
    scale = 2.0**-_HALVINGS
    m = r[0] * scale, r[1] * scale
    total = multiply(_series(_FACTORIALS, m), m)
    for _ in range(_HALVINGS):  # (1 + s)^2 - 1
        total = add((2 * total[0], 2 * total[1]), multiply(total, total))
    return k, total


def _scaled(k: Any, less: Pair) -> Pair:
    """2^k (1 + less)."""
    high, low = add(less, (1.0, 0.0))
    power = np.clip(k, -2000, 2000).astype(np.int64)
    return np.ldexp(high, power), np.ldexp(low, power)


def exponential(a: Pair) -> Pair:
    return _scaled(*_halvings_of(a))


def exponential_less_one(a: Pair) -> Pair:
    k, less = _halvings_of(a)
    return _where((k == 0, 0.0), less, add(_scaled(k, less), (-1.0, 0.0)))


def hyperbolic_tangent(a: Pair) -> Pair:
    """Return tanh a as -m / (2 + m), with m = e^(-2 |a|) - 1."""
    negative = _less(a, (0.0, 0.0))
    size = _where(negative, negate(a), a)
    m = exponential_less_one((-2 * size[0], -2 * size[1]))
    result = divide(negate(m), add(m, (2.0, 0.0)))
    return _where(negative, negate(result), result)


_LOG_SERIES = [_exactly(Fraction(2, 2 * n + 1)) for n in range(21)]  # in z^2; z is at most 0.1716: below 2^-107
_MIDDLE = math.sqrt(0.5)


def _of_quotient(z: Pair) -> Pair:
    """log((1 + z) / (1 - z)) for |z| up to 0.1716."""
    return multiply(_series(_LOG_SERIES, multiply(z, z)), z)


def logarithm(a: Pair) -> Pair:
    """Return log a: a = 2^k m, with m around 1; NaN for numbers that are not positive and finite."""
    high = np.where(np.isfinite(a[0]) & (a[0] > 0), a[0], np.nan)
    m, k = np.frexp(high)
    k = k - (m < _MIDDLE)
    some = np.ldexp(high, -k), np.ldexp(a[1], -k)
    total = _of_quotient(divide(add(some, (-1.0, 0.0)), add(some, (1.0, 0.0))))
    for part in reversed(_LN2):
        total = add(total, two_product(k.astype(np.float64), part))
    return total


def logarithm_near_one(a: Pair) -> Pair:
    """log(1 + a)."""
    near = (a[0] > _MIDDLE - 1) & (a[0] < 2 * _MIDDLE - 1)
    short = _where((near, 0.0), a, (0.0, 0.0))
    little = _of_quotient(divide(short, add(short, (2.0, 0.0))))
    return _where((near, 0.0), little, logarithm(add(a, (1.0, 0.0))))


_ERF_SERIES = [_exactly(Fraction((-1) ** n, math.factorial(n) * (2 * n + 1))) for n in range(30)]  # in a^2
_ERF_FACTOR = (float.fromhex("0x1.20dd750429b6dp+0"), float.fromhex("0x1.1ae3a914fed80p-56"))  # 2 / sqrt(pi)


def error_function(a: Pair) -> Pair:
    """Return erf a for |a| up to 1, by its series (the omitted terms are below 2^-112); NaN beyond."""
    inside = np.abs(a[0]) <= 1
    a = np.where(inside, a[0], np.nan), np.where(inside, a[1], np.nan)
    return multiply(multiply(_series(_ERF_SERIES, multiply(a, a)), a), _ERF_FACTOR)


def _less(a: Pair, b: Pair) -> Pair:
    return (a[0] < b[0]) | ((a[0] == b[0]) & (a[1] < b[1])), 0.0


def _at_most(a: Pair, b: Pair) -> Pair:
    return (a[0] < b[0]) | ((a[0] == b[0]) & (a[1] <= b[1])), 0.0


def _equal(a: Pair, b: Pair) -> Pair:
    return np.asarray((a[0] == b[0]) & (a[1] == b[1])), 0.0


def _where(condition: Pair, a: Pair, b: Pair) -> Pair:
    return np.where(condition[0], a[0], b[0]), np.where(condition[0], a[1], b[1])


_OPERATIONS: dict[str, Any] = {
    "+": add,
    "-": lambda a, b: add(a, negate(b)),
    "*": multiply,
    "/": divide,
    "neg": negate,
    "abs": lambda a: _where(_less(a, (0.0, 0.0)), negate(a), a),
    "sqrt": square_root,
    "exp": exponential,
    "expm1": exponential_less_one,
    "tanh": hyperbolic_tangent,
    "log": logarithm,
    "log1p": logarithm_near_one,
    "erf": error_function,
    "erfc": lambda a: add((1.0, 0.0), negate(error_function(a))),
    "min": lambda a, b: _where(_less(a, b), a, b),
    "max": lambda a, b: _where(_less(a, b), b, a),
    "where": _where,
    "<": _less,
    "<=": _at_most,
    "==": _equal,
    "!=": lambda a, b: (~_equal(a, b)[0], 0.0),
    "and": lambda a, b: (a[0] & b[0], 0.0),
    "or": lambda a, b: (a[0] | b[0], 0.0),
    "not": lambda a: (~np.asarray(a[0]), 0.0),
}
