"""Exact values of rational formulas: as fractions, and in float64 without error."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from gmpy2 import is_square, isqrt, mpfr, mpq

from ...model.call import Array
from ...model.dtypes import FORMATS, dtype_of
from ..expressions import Expression
from ..floats.rounding import quantize
from ..traversal import is_irrational_step, walk

Number: TypeAlias = mpq | mpfr  # mpfr: infinite or NaN


class Undefined(ArithmeticError):
    """The formula has no real value: a division by zero, a logarithm of a negative number."""


class Irrational(ArithmeticError):
    """The formula takes an irrational root."""


def _root(a: mpq) -> mpq:
    if a < 0:
        raise Undefined(f"the root of {a}")
    if not (is_square(a.numerator) and is_square(a.denominator)):
        raise Irrational(f"the root of {a}")
    return mpq(isqrt(a.numerator), isqrt(a.denominator))


def numbers(operands: Mapping[str, float]) -> dict[str, Number]:
    """Return operands as rationals; infinite operands and NaN become mpfr numbers, which compare in the same way."""
    return {name: mpq(value) if math.isfinite(value) else mpfr(value) for name, value in operands.items()}


#: Operations on exact numbers and truth values, except the division.
OPERATIONS: dict[str, Callable[..., Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "neg": operator.neg, "abs": abs, "sqrt": _root,
    "sign": lambda a: mpq((a > 0) - (a < 0)), "min": min, "max": max, "<": operator.lt, "<=": operator.le,
    "==": operator.eq, "!=": operator.ne, "and": operator.and_, "or": operator.or_, "not": operator.not_,
}  # fmt: skip


def rational(root: Expression, operands: Mapping[str, Number]) -> Any:
    """Return the exact value of a rational graph: a Number, or the truth of a condition. Raises Undefined for a
    division by zero, and Irrational for an irrational root."""

    @functools.cache
    def value(node: Expression) -> Any:
        """Evaluate only the chosen branch: the other one may divide by zero."""
        if node.op == "constant":
            assert isinstance(node.value, Fraction)
            return mpq(node.value.numerator, node.value.denominator)
        if node.op == "symbol":
            return operands[str(node.value)]
        if node.op == "where":
            return value(node.args[1] if value(node.args[0]) else node.args[2])
        args = [value(a) for a in node.args]
        if node.op == "/":
            if not args[1]:
                raise Undefined(f"{node} divides by zero")
            return args[0] / args[1]
        return OPERATIONS[node.op](*args)

    return value(root)


# Rational formulas in float64 without error: a numerator, a denominator, and a mark for each inexact operation.
#
# The second step of a proof (after Ziv's test, before rationals). Products and differences of 16-bit operands are exact
# in float64. So a tie is distinguished from a near tie for a whole array in one pass.

_SPLIT = 134217729.0  # 2^27 + 1 (Veltkamp)
TINY = 2.0**-900  # the error of Dekker's product does not underflow above this size


def two_sum(a: Any, b: Any) -> tuple[Array, Array]:
    """The float64 sum and its exact rounding error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def two_product(a: Any, b: Any) -> tuple[Array, Array]:
    """The float64 product and its exact rounding error (Dekker); operands well inside float64's range."""
    p = a * b
    big = _SPLIT * a
    a_high = big - (big - a)
    big = _SPLIT * b
    b_high = big - (big - b)
    a_low, b_low = a - a_high, b - b_high
    return p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low


def exact_product(a: Any, b: Any) -> tuple[Array, Array]:
    """Return the float64 product, and a mask of the elements where it may not be exact: the product was rounded, or its
    error may have underflowed."""
    if _is_one(a) or _is_one(b):
        return (b if _is_one(a) else a), np.asarray(False)
    p, lost = two_product(a, b)
    return p, (lost != 0) | ((np.abs(p) < TINY) & (a != 0) & (b != 0))


def _is_one(number: Any) -> bool:
    """Return whether a number (not an array) is 1, as most denominators are."""
    return isinstance(number, float) and number == 1.0


class Fraction64:
    """Arrays num / den, with den positive or zero. ``inexact`` marks elements with a rounded operation."""

    __array_ufunc__ = None

    def __init__(self, num: Any, den: Any = 1.0, inexact: Any = False) -> None:
        self.num, self.den, self.inexact = num, den, inexact

    def __mul__(self, other: Fraction64) -> Fraction64:
        num, lost = exact_product(self.num, other.num)
        den, lost_too = exact_product(self.den, other.den)
        return Fraction64(num, den, self.inexact | other.inexact | lost | lost_too)

    def __truediv__(self, other: Fraction64) -> Fraction64:
        num, lost = exact_product(self.num, other.den)
        den, lost_too = exact_product(self.den, other.num)
        sign = np.copysign(1.0, den)
        return Fraction64(num * sign, den * sign, self.inexact | other.inexact | lost | lost_too)

    def __add__(self, other: Fraction64) -> Fraction64:
        one, lost = exact_product(self.num, other.den)
        two, lost_too = exact_product(other.num, self.den)
        num, lost_sum = two_sum(one, two)
        den, lost_den = exact_product(self.den, other.den)
        lost = lost | lost_too | (lost_sum != 0) | lost_den
        return Fraction64(num, den, self.inexact | other.inexact | lost)

    def __sub__(self, other: Fraction64) -> Fraction64:
        return self + (-other)

    def __neg__(self) -> Fraction64:
        return Fraction64(-self.num, self.den, self.inexact)

    def __abs__(self) -> Fraction64:
        return Fraction64(np.abs(self.num), self.den, self.inexact)

    def less(self, other: Fraction64, *, or_equal: bool = False) -> Fraction64:
        """Compare two fractions: ``num`` is a condition, inexact if an operand is inexact."""
        one, lost = exact_product(self.num, other.den)
        two, lost_too = exact_product(other.num, self.den)
        holds = one <= two if or_equal else one < two
        return Fraction64(holds, 1.0, self.inexact | other.inexact | lost | lost_too)

    def equal(self, other: Fraction64) -> Fraction64:
        """Compare two fractions, as :meth:`less` does."""
        difference = self - other
        return Fraction64(difference.num == 0, 1.0, difference.inexact)

    def negated(self) -> Fraction64:
        """Return a condition with the other truth value."""
        return Fraction64(~np.asarray(self.num), 1.0, self.inexact)

    def choose(self, condition: Fraction64, other: Fraction64) -> Fraction64:
        """Return this fraction where the condition is true, else the other."""
        holds = condition.num
        inexact = condition.inexact | np.where(holds, self.inexact, other.inexact)
        den = 1.0 if _is_one(self.den) and _is_one(other.den) else np.where(holds, self.den, other.den)
        return Fraction64(np.where(holds, self.num, other.num), den, inexact)


def reduced(kind: str, terms: Fraction64, shape: tuple[int, ...]) -> Fraction64:
    """Return the ``sum``, the ``most`` or the ``least`` along the last axis of an array of this shape; the axis is
    kept. A result is inexact if a term is inexact, if denominators differ, or if a partial sum is rounded."""
    num, den, inexact = (np.broadcast_to(part, shape) for part in (terms.num, terms.den, terms.inexact))
    first = den[..., :1]
    lost = (inexact | (den != first)).any(axis=-1, keepdims=True)
    if kind != "sum":
        num = (np.maximum if kind == "most" else np.minimum).reduce(num, axis=-1, keepdims=True)
    while num.shape[-1] > 1:
        half = num.shape[-1] // 2
        total, error = two_sum(num[..., :half], num[..., half : 2 * half])
        lost = lost | (error != 0).any(axis=-1, keepdims=True)
        num = np.concatenate([total, num[..., 2 * half :]], axis=-1)
    return Fraction64(num, first, lost)


def evaluate(root: Expression, operands: Mapping[str, Any]) -> Fraction64:
    """Return a graph's value at float64 vectors, numbers or fractions; it is inexact if it depends on a function."""
    result: dict[int, Fraction64] = {}
    for node in walk(root):
        if is_irrational_step(node):
            made = Fraction64(np.float64(0.0), 1.0, True)
        elif node.op == "symbol":
            given = operands[str(node.value)]
            made = given if isinstance(given, Fraction64) else Fraction64(np.asarray(given, np.float64))
        elif node.op == "constant":
            made = _constant(node.value)
        else:
            made = _OF_FRACTIONS[node.op](*(result[id(a)] for a in node.args))
        result[id(node)] = made
    return result[id(root)]


_OF_FRACTIONS: dict[str, Callable[..., Fraction64]] = {
    "+": Fraction64.__add__, "-": Fraction64.__sub__, "*": Fraction64.__mul__, "/": Fraction64.__truediv__,
    "neg": Fraction64.__neg__, "abs": Fraction64.__abs__,
    "sign": lambda a: Fraction64(np.sign(a.num), 1.0, a.inexact),
    "<": Fraction64.less,
    "<=": lambda a, b: a.less(b, or_equal=True),
    "==": Fraction64.equal,
    "!=": lambda a, b: a.equal(b).negated(),
    "and": lambda a, b: Fraction64(a.num & b.num, 1.0, a.inexact | b.inexact),
    "or": lambda a, b: Fraction64(a.num | b.num, 1.0, a.inexact | b.inexact),
    "not": Fraction64.negated,
    "where": lambda condition, a, b: a.choose(condition, b),
    "min": lambda a, b: a.choose(a.less(b, or_equal=True), b),
    "max": lambda a, b: b.choose(a.less(b, or_equal=True), a),
}  # fmt: skip


def _constant(value: Fraction | str | None) -> Fraction64:
    assert isinstance(value, Fraction)  # a rational graph has no other constant
    top, bottom = float(value.numerator), float(value.denominator)
    exact = (top, bottom) == (value.numerator, value.denominator)
    return Fraction64(np.float64(top), np.float64(bottom), not exact)


def refined(value: Array, exact: Fraction64, dtype: Any, slack: Any) -> tuple[Array, Array, Array]:
    """Return value and interval. Each exact tie of a dtype becomes certain. So does each zero that float64 also gave;
    its sign is then right. The other elements keep their error ``slack``."""
    fmt = FORMATS[dtype_of(dtype).name]
    middle = quantize(value, fmt.with_ties)
    scaled, lost = exact_product(middle, exact.den)
    # Far from float64's ends Dekker's products are exact; elsewhere the result makes no claim.
    safe = (np.abs(exact.num) < 2.0**900) & ((exact.num != 0) | ((value == 0) & (exact.den != 0)))
    tie = (exact.num == scaled) & ~lost & ~np.asarray(exact.inexact) & safe
    slack = np.where(tie, 0.0, slack)
    value = np.where(tie, middle, value)
    return value, value - slack, value + slack


def preferred(
    ends: tuple[Array, Array, Array], others: tuple[Array, Array, Array], where: Any = True
) -> tuple[Array, Array, Array]:
    """Return value and interval: the certain ones where ``where`` allows them, else the others."""
    certain = (ends[1] == ends[2]) & where
    value, least, most = (np.where(certain, *each) for each in zip(ends, others, strict=True))
    return value, least, most
