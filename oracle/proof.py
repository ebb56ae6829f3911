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
from .rounding import quantize
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
    float16, bfloat16 or float32, contiguous. Non-finite values are stored as they are: their rule is IEEE arithmetic,
    not rounding. An exact zero keeps the sign of ``value``.
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        one, other = low.astype(np.float32), high.astype(np.float32)
        if target.dtype == np.float32:
            np.copyto(target, one)
            doubtful = np.asarray(one != other)
        elif target.dtype == np.float16:
            doubtful = _store_half(one, other, low, high, target)
        else:
            doubtful = _store_bfloat(one, other, target)
        zero = np.asarray(target == 0)
        if not doubtful.any() and not zero.any():
            return None
        odd = np.flatnonzero(doubtful | zero)
        v, a, b = (t.reshape(-1)[odd] for t in (value, low, high))
        plain = ~np.isfinite(v) | ((a == 0) & (b == 0))  # special values and exact zeros
        target.reshape(-1)[odd[plain]] = v[plain].astype(np.float32)
        crossing = (np.minimum(a, b) < 0) & (np.maximum(a, b) > 0)  # both ends may underflow to zeros of two signs
        left = odd[~plain & (doubtful.reshape(-1)[odd] | crossing)]
        if left.size and target.dtype != np.float32:
            left = _store_direct(left, low, high, target)
        if not left.size:
            return None
        doubtful = np.zeros(target.shape, bool)
        doubtful.reshape(-1)[left] = True
        return doubtful


def store_close(value: Array, relative: float, target: Array) -> Array | None:
    """``store`` for a 16-bit target and an error of ``relative`` < 2^-40: the ends are looked at only near midpoints.

    Both ends round to float32 within one ULP of ``value``. So if its float32 bits are not within one of a midpoint of
    the narrow type, no midpoint lies between the ends or at one of them, and rounding in two steps is rounding once.
    """
    half = target.dtype == np.float16
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        single = value.astype(np.float32)
        bits = single.view(np.uint32)
        spare = np.uint32(13 if half else 16)
        near = bits - ((np.uint32(1) << (spare - np.uint32(1))) - np.uint32(1))
        near &= (np.uint32(1) << spare) - np.uint32(1)
        odd = near <= np.uint32(2)
        if half:
            small = _narrow_half(single, bits, target)
            odd.reshape(-1)[small] = True
        else:
            odd |= single != single
            np.right_shift(bits + np.uint32(0x8000), np.uint32(16), out=bits)
            np.copyto(target.view(np.uint16), bits, casting="same_kind")
        where = np.flatnonzero(odd)
        if not where.size:
            return None
        few = value.reshape(-1)[where]
        settled = np.empty(where.size, target.dtype)
        left = store(few, few * (1 - relative), few * (1 + relative), settled)
        target.reshape(-1)[where] = settled
        if left is None:
            return None
        doubtful = np.zeros(target.shape, bool)
        doubtful.reshape(-1)[where[left]] = True
        return doubtful


def _narrow_half(single: Array, bits: Array, target: Array) -> Array:
    """Round float32 to float16 away from midpoints; return the indices of subnormals, which it leaves to others."""
    magnitude = bits & np.uint32(0x7FFFFFFF)
    small = np.flatnonzero(magnitude < np.uint32(113 << 23))
    large = np.flatnonzero(magnitude >= np.uint32(143 << 23))  # 65536 and above, infinities; NaN
    magnitude += np.uint32(0x1000)
    magnitude >>= np.uint32(13)
    magnitude -= np.uint32(112 << 10)
    if large.size:
        magnitude.reshape(-1)[large] = np.where(np.isnan(single.reshape(-1)[large]), 0x7E00, 0x7C00)
    bits >>= np.uint32(16)
    bits &= np.uint32(0x8000)
    bits |= magnitude
    np.copyto(target.view(np.uint16), bits, casting="same_kind")
    return small


def _store_direct(odd: Array, low: Array, high: Array, target: Array) -> Array:
    """Round the ends of a few elements straight to a 16-bit type; return the indices on which they disagree."""
    fmt = FORMATS[dtype_of(target.dtype).name]
    a, b = quantize(low.reshape(-1)[odd], fmt), quantize(high.reshape(-1)[odd], fmt)
    agree = (a == b) & (np.signbit(a) == np.signbit(b))
    target.reshape(-1)[odd[agree]] = a[agree].astype(np.float32)
    return np.asarray(odd[~agree])


# The 16-bit types are reached through float32: harmless unless a midpoint of the narrow type lies between the float32
# ends or at one of them. Rounding the end nearer zero with ties down and the other with ties up, in integers, shows it.


def _store_bfloat(one: Array, other: Array, target: Array) -> Array:
    near, far = _ordered(one, other)
    near += np.uint32(0x7FFF)
    far += np.uint32(0x8000)
    near ^= far
    far >>= np.uint32(16)
    np.copyto(target.view(np.uint16), far, casting="same_kind")
    return np.asarray((near >= np.uint32(0x10000)) | (one != one))


def _store_half(one: Array, other: Array, low: Array, high: Array, target: Array) -> Array:
    near, far = _ordered(one, other)
    near += np.uint32(0xFFF)
    far += np.uint32(0x1000)
    near ^= far
    doubtful = np.asarray(near >= np.uint32(0x2000))
    sign = np.asarray((far >> np.uint32(16)) & np.uint32(0x8000))
    far &= np.uint32(0x7FFFFFFF)
    small = np.flatnonzero(far < np.uint32(113 << 23))
    large = np.flatnonzero(far >= np.uint32(143 << 23))
    far >>= np.uint32(13)
    far -= np.uint32(112 << 10)
    if small.size:  # subnormals: the grid is the multiples of 2^-24
        a, b = (t.reshape(-1)[small] * 2.0**24 for t in (low, high))
        near_zero, beyond = np.minimum(np.abs(a), np.abs(b)), np.maximum(np.abs(a), np.abs(b))
        rounded = np.floor(beyond + 0.5)
        far.reshape(-1)[small] = rounded
        doubtful.reshape(-1)[small] = (np.ceil(near_zero - 0.5) != rounded) | (np.signbit(a) != np.signbit(b))
    if large.size:  # 65536 and above, infinities; NaN
        far.reshape(-1)[large] = np.where(np.isnan(one.reshape(-1)[large]), 0x7E00, 0x7C00)
    far |= sign
    np.copyto(target.view(np.uint16), far, casting="same_kind")
    return doubtful


def _ordered(one: Array, other: Array) -> tuple[Array, Array]:
    """Return the float32 bits of the end nearer zero and of the other; ends of two signs differ in the top bit."""
    bits, other_bits = one.view(np.uint32), other.view(np.uint32)
    return np.minimum(bits, other_bits), np.maximum(bits, other_bits)


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
