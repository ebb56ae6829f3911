"""Rational formulas in float64 without error: a numerator, a denominator, and where an operation was not exact.

The second step of a proof (after Ziv's test, before rationals): 16-bit operands give products and differences that
float64 holds exactly, so that a tie can be told from a near tie for a whole array at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..model.call import Array
from ..model.dtypes import FORMATS, FloatFormat, dtype_of
from .rounding import quantize

_SPLIT = 134217729.0  # 2^27 + 1 (Veltkamp)


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


class Fraction64:
    """Arrays num / den; ``inexact`` marks elements on which some operation rounded."""

    __array_ufunc__ = None

    def __init__(self, num: Any, den: Any = 1.0, inexact: Any = False) -> None:
        self.num, self.den, self.inexact = num, den, inexact

    def __mul__(self, other: Any) -> Fraction64:
        other = _fraction(other)
        num, lost = two_product(self.num, other.num)
        den, lost_too = two_product(self.den, other.den)
        return Fraction64(num, den, self.inexact | other.inexact | (lost != 0) | (lost_too != 0))

    def __truediv__(self, other: Any) -> Fraction64:
        other = _fraction(other)
        return self * Fraction64(other.den, other.num, other.inexact)

    def __sub__(self, other: Any) -> Fraction64:
        """A difference of plain numbers (denominator 1), all that the formulas need."""
        other = _fraction(other)
        num, lost = two_sum(self.num, -other.num)
        return Fraction64(num, 1.0, self.inexact | other.inexact | (lost != 0))

    def __rsub__(self, other: Any) -> Fraction64:
        return _fraction(other) - self

    def __neg__(self) -> Fraction64:
        return Fraction64(-self.num, self.den, self.inexact)

    def at_least(self, low: float) -> Fraction64:
        """max(self, low) for a plain number."""
        return Fraction64(np.maximum(self.num, low), 1.0, self.inexact)


def _fraction(value: Any) -> Fraction64:
    return value if isinstance(value, Fraction64) else Fraction64(np.float64(value))


def refined(value: Array, exact: Fraction64, dtype: Any, relative: float) -> tuple[Array, Array, Array]:
    """Return value and interval with every exact tie of a dtype made certain; the others keep their relative bound."""
    fmt = FORMATS[dtype_of(dtype).name]
    middle = quantize(value, FloatFormat("", fmt.mant + 1, fmt.emin, np.inf))
    scaled, lost = two_product(middle, exact.den)
    # Far from float64's ends Dekker's products are exact; elsewhere nothing is claimed.
    safe = (np.abs(exact.num) < 2.0**900) & (np.abs(scaled) > 2.0**-900)
    tie = (exact.num == scaled) & (lost == 0) & ~np.asarray(exact.inexact) & safe
    slack = np.where(tie, 0.0, relative)
    value = np.where(tie, middle, value)
    return value, value * (1 - slack), value * (1 + slack)
