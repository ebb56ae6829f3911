"""Ziv's test: store a result only when every value its error bound allows rounds to the same number.

``docs/proof.md`` derives the bounds. An evaluation hands over the computed value and an interval that contains the
exact one; where the two ends round alike the rounded value is proved. The others are settled exactly: as rationals
where the formula is rational, by MPFR at growing precision where it is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gmpy2
import numpy as np
from gmpy2 import mpq

from .dtypes import FORMATS, FloatFormat, dtype_of
from .rounding import half_bits
from .signature import Array

U = 2.0**-53  # float64's unit roundoff
Exact = Callable[[tuple[int, ...]], Any]  # a float (exact zero), an mpq, or an iterator of enclosures
Refine = Callable[[Array], tuple[Array, Array, Array]]


def round_rational(exact: Any, fmt: FloatFormat) -> float:
    """Round an exact rational to a format, ties to even; overflow gives an infinity. Zero comes back as +0."""
    if exact == 0:
        return 0.0
    sign, magnitude = (-1.0, -exact) if exact < 0 else (1.0, exact)
    exponent = gmpy2.bit_length(magnitude.numerator) - gmpy2.bit_length(magnitude.denominator)
    if magnitude < mpq(2) ** exponent:
        exponent -= 1  # now 2^exponent <= magnitude < 2^(exponent + 1)
    unit = max(exponent, fmt.emin) - fmt.mant
    scaled = magnitude / mpq(2) ** unit
    whole, rest = gmpy2.f_divmod(scaled.numerator, scaled.denominator)
    twice = 2 * rest
    if twice > scaled.denominator or (twice == scaled.denominator and whole % 2):
        whole += 1
    if whole.bit_length() + unit > 1024 or whole * mpq(2) ** unit > mpq(fmt.max):
        return sign * np.inf
    return sign * float(whole) * 2.0**unit if unit > -1000 else sign * float(mpq(whole) * mpq(2) ** unit)


def round_enclosures(enclosures: Iterator[tuple[Any, Any]], fmt: FloatFormat) -> float:
    """Round a number known by ever narrower rational enclosures; both ends of the last one round alike."""
    for low, high in enclosures:
        rounded = round_rational(low, fmt)
        if rounded == round_rational(high, fmt):
            return -0.0 if rounded == 0 and high <= 0 else rounded
    raise AssertionError("an enclosure iterator ended before it settled the rounding")  # pragma: no cover


def store(value: Array, low: Array, high: Array, target: Array) -> Array | None:
    """Round ``value`` into ``target`` and return a mask of the elements the interval does not settle, or None.

    value, low, high: float64 of one shape, low and high in either order (an error term of unknown sign). target:
    float16, bfloat16 or float32. Non-finite values are stored as they are: their rule is IEEE arithmetic, not rounding.
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        one, other = low.astype(np.float32), high.astype(np.float32)
        if target.dtype != np.float32:  # -0 and +0 must not look like different numbers below
            one += np.float32(0)
            other += np.float32(0)
        if target.dtype == np.float32:
            np.copyto(target, value, casting="same_kind")
            doubtful = np.asarray(one != other)
        elif target.dtype == np.float16:
            first, second = half_bits(one), half_bits(other)
            np.copyto(target, half_bits(value.astype(np.float32)).view(np.float16))
            doubtful = np.asarray(first != second)
            doubtful |= _half_midpoint(one)
            doubtful |= _half_midpoint(other)
        else:
            np.copyto(target, value.astype(np.float32).astype(target.dtype))
            bits, other_bits = one.view(np.uint32), other.view(np.uint32)
            # A midpoint inside or at an end of [low, high]: round one end with ties down, the other with ties up.
            smaller, larger = np.minimum(bits, other_bits), np.maximum(bits, other_bits)
            smaller += np.uint32(0x7FFF)
            larger += np.uint32(0x8000)
            smaller ^= larger
            doubtful = np.asarray(smaller >= np.uint32(0x10000))
        zero = np.asarray(target == 0)
        if zero.any():  # both ends underflow, but to zeros of different signs
            doubtful |= zero & (np.minimum(low, high) < 0) & (np.maximum(low, high) > 0)
        if not doubtful.any():
            return None
        doubtful &= np.isfinite(value)
        return doubtful if doubtful.any() else None


def _half_midpoint(single: Array) -> Array:
    """Whether float32 values lie halfway between two float16 neighbours."""
    magnitude = single.view(np.uint32) & np.uint32(0x7FFFFFFF)
    tie = np.asarray((magnitude & np.uint32(0x1FFF)) == np.uint32(0x1000))
    small = magnitude < np.uint32(113 << 23)
    if small.any():
        scaled = np.abs(single) * np.float32(2.0**25)
        tie = np.where(small, (np.floor(scaled) == scaled) & (np.fmod(scaled, np.float32(2)) == 1), tie)
    return tie


def settle(doubtful: Array | None, target: Array, exact: Exact, refine: Refine | None = None) -> None:
    """Store the correctly rounded value of every doubtful element.

    ``refine(mask)`` re-evaluates them with a tighter interval (value, low, high). ``exact(index)`` gives the exact
    value as a rational, a float for an exact (signed) zero, or an iterator of rational enclosures that shrink forever.
    """
    if doubtful is None:
        return
    if refine is not None:
        value, low, high = refine(doubtful)
        settled = np.empty(value.shape, target.dtype)
        left = store(value, low, high, settled)
        target[doubtful] = settled
        doubtful = _still(doubtful, left)
    fmt = FORMATS[dtype_of(target.dtype).name]
    for index in zip(*np.nonzero(doubtful), strict=True):
        answer = exact(tuple(int(i) for i in index))
        if isinstance(answer, float):
            rounded = answer
        elif isinstance(answer, Iterator):
            rounded = round_enclosures(answer, fmt)
        else:
            rounded = round_rational(answer, fmt)
            if rounded == 0 and answer < 0:
                rounded = -0.0
        target[index] = rounded


def _still(doubtful: Array, left: Array | None) -> Array:
    mask = np.zeros(doubtful.shape, bool)
    if left is not None:
        mask[doubtful] = left
    return mask
