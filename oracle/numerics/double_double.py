"""The second look at formulas with e^x: evaluated in pairs of float64 numbers, 100 bits and more, for whole arrays.

An element that Ziv's test leaves in doubt lies next to a midpoint of the output's type, often because an operand is so
small that its effect is lost beside 1. In pairs the effect is seen, and with it the side of the midpoint. What even
that does not settle is left to MPFR. The errors follow from the graph by the rules of :mod:`.bounds.losses`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
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
from .programs import program
from .traversal import walk

Pair = tuple[Any, Any]
# + and * lose less than 2^-102, a quotient less than 2^-99, e^x less than 2^-90 (reduction 2^-96, doublings 2^-94), erf
# of up to 1 less than 2^-98 (its series: e units of terms whose sum is at least 0.74, two products), erfc, which is at
# least 0.15 there, less than 2^-95.
ARITHMETIC = Arithmetic(2.0**-102, 106, 0.0, {"/": 8, "exp": 2.0**12, "erf": 16, "erfc": 128})
NEAR = 2.0**-30  # relative, and less than half a unit of every format: what is so near a format's number rounds to it
_ERROR_FUNCTIONS = frozenset(("erf", "erfc"))  # of arguments of up to 1, else NaN
_HALVINGS, _TERMS = 9, 9  # e^r from r / 512: the remainder of nine terms is below 2^-112


@lru_cache(maxsize=256)
def supports(root: Expression, *, everywhere: bool = False) -> bool:
    """Whether a graph is made of arithmetic, choices, e^x and, unless it is to have a value ``everywhere``, erf."""
    known = {"symbol", *_OPERATIONS} - (_ERROR_FUNCTIONS if everywhere else frozenset())
    return all(node.is_constant or node.op in known for node in walk(root))


def refined(root: Expression, operands: Mapping[str, Any], dtype: Any, slack: Any) -> tuple[Array, Array, Array]:
    """Return value and interval of some elements: a single number beside the midpoint where the pairs tell its side,
    else the value with the error ``slack``."""
    fmt = FORMATS[dtype_of(dtype).name]
    high, low = evaluate(root, operands)
    high, low = np.asarray(high), np.asarray(low)
    error = _error(root, operands, high)
    return beside(high, low, error, fmt, slack)


def beside(high: Array, low: Array, error: Array, fmt: FloatFormat, slack: Any) -> tuple[Array, Array, Array]:
    """Return value and interval of numbers known as pairs: a single number beside the midpoint where its side is told,
    the format's own number where nothing else is near, else the value with the error ``slack``."""
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


def _error(root: Expression, operands: Mapping[str, Any], value: Array) -> Array:
    lost = _loss(root)
    (running,) = program(lost.running(abs(root)))(operands, value.shape)
    return np.asarray((np.abs(value) * lost.relative + running) * 1.01)


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
    """The sum of two numbers, the first not smaller than the second (Dekker)."""
    total = a + b
    return total, b - (total - a)


def add(a: Pair, b: Pair) -> Pair:
    """a + b, accurate also where the leading parts cancel."""
    high, lost = two_sum(a[0], b[0])
    low, less = two_sum(a[1], b[1])
    high, lost = _short(high, lost + low)
    return _short(high, lost + less)


def multiply(a: Pair, b: Pair) -> Pair:
    """a * b."""
    high, low = two_product(a[0], b[0])
    return _short(high, low + (a[0] * b[1] + a[1] * b[0]))


def divide(a: Pair, b: Pair) -> Pair:
    """a / b by three quotients."""
    first = a[0] / b[0]
    rest = add(a, negate(multiply(b, (first, 0.0))))
    second = rest[0] / b[0]
    rest = add(rest, negate(multiply(b, (second, 0.0))))
    high, low = _short(first, second)
    return add((high, low), (rest[0] / b[0], 0.0))


def negate(a: Pair) -> Pair:
    """-a."""
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


def exponential(a: Pair) -> Pair:
    """e^a: a = k ln 2 + r, e^(r / 512) - 1 by its series, doubled nine times. Beyond +-1500, where the result is
    infinite or 0, k ln 2 would soon have no digit of a."""
    inside = np.abs(a[0]) < 1500
    a = np.where(inside, a[0], np.clip(a[0], -1500, 1500)), np.where(inside, a[1], 0.0)
    k = np.rint(a[0] / _LN2[0])
    r = a
    for part in _LN2:
        r = add(r, negate(two_product(k, part)))
    scale = 2.0**-_HALVINGS
    m = r[0] * scale, r[1] * scale
    total = _FACTORIALS[-1]
    for coefficient in reversed(_FACTORIALS[:-1]):
        total = add(multiply(total, m), coefficient)
    total = multiply(total, m)
    for _ in range(_HALVINGS):  # (1 + s)^2 - 1
        total = add((2 * total[0], 2 * total[1]), multiply(total, total))
    high, low = add(total, (1.0, 0.0))
    power = np.clip(k, -2000, 2000).astype(np.int64)
    return np.ldexp(high, power), np.ldexp(low, power)


_ERF_SERIES = [_exactly(Fraction((-1) ** n, math.factorial(n) * (2 * n + 1))) for n in range(30)]  # in a^2
_ERF_FACTOR = (float.fromhex("0x1.20dd750429b6dp+0"), float.fromhex("0x1.1ae3a914fed80p-56"))  # 2 / sqrt(pi)


def error_function(a: Pair) -> Pair:
    """erf a for |a| up to 1, by its series: what is left out is below 2^-112; NaN beyond."""
    inside = np.abs(a[0]) <= 1
    a = np.where(inside, a[0], np.nan), np.where(inside, a[1], np.nan)
    square = multiply(a, a)
    total = _ERF_SERIES[-1]
    for coefficient in reversed(_ERF_SERIES[:-1]):
        total = add(multiply(total, square), coefficient)
    return multiply(multiply(total, a), _ERF_FACTOR)


def _less(a: Pair, b: Pair) -> Pair:
    return (a[0] < b[0]) | ((a[0] == b[0]) & (a[1] < b[1])), 0.0


def _at_most(a: Pair, b: Pair) -> Pair:
    return (a[0] < b[0]) | ((a[0] == b[0]) & (a[1] <= b[1])), 0.0


def _where(condition: Pair, a: Pair, b: Pair) -> Pair:
    return np.where(condition[0], a[0], b[0]), np.where(condition[0], a[1], b[1])


_OPERATIONS: dict[str, Any] = {
    "+": add,
    "-": lambda a, b: add(a, negate(b)),
    "*": multiply,
    "/": divide,
    "neg": negate,
    "abs": lambda a: _where(_less(a, (0.0, 0.0)), negate(a), a),
    "exp": exponential,
    "erf": error_function,
    "erfc": lambda a: add((1.0, 0.0), negate(error_function(a))),
    "min": lambda a, b: _where(_less(a, b), a, b),
    "max": lambda a, b: _where(_less(a, b), b, a),
    "where": _where,
    "<": _less,
    "<=": _at_most,
    "and": lambda a, b: (a[0] & b[0], 0.0),
    "or": lambda a, b: (a[0] | b[0], 0.0),
    "not": lambda a: (~np.asarray(a[0]), 0.0),
}
