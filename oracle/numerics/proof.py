"""Ziv's test: the stores of proved values.

``docs/proof-details.md`` derives the bounds. An evaluation supplies its value and an interval that contains the exact
one. If both ends round to the same number, the rounded value is proved. The others are settled exactly: as rationals if
the formula is rational, else by MPFR at growing precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import tee
from typing import TypeAlias

import numpy as np
from gmpy2 import mpq

from ..model.call import Array
from ..model.dtypes import FORMATS, FloatFormat, dtype_of
from .exact.enclosures import Ends
from .floats.blocks import convert, scratch
from .floats.codes import has_nan, highest, lowest
from .floats.rounding import quantize, round_rational

U = 2.0**-53  # float64's unit roundoff
ExactValue: TypeAlias = float | mpq | Iterator[Ends]  # a float: a zero, with its sign
Exact = Callable[[tuple[int, ...]], ExactValue]  # the exact value of an element, by its index
Refine = Callable[[tuple[Array, ...]], tuple[Array, Array, Array]]
Alike = Callable[[tuple[Array, ...]], tuple[Array, Array]]  # distinct elements, and each element's representative
MANY = 64  # with more elements, equal ones are searched: an exact value takes longer than the sort


def round_enclosures(enclosures: Iterator[Ends], fmt: FloatFormat) -> float:
    """Round a number known by enclosures that become narrower; both ends of the last one round to the same number. If
    the number is known to differ from a midpoint, the midpoint is rounded to the number's side."""
    for low, high, above, below in enclosures:
        rounded = round_rational(low, fmt, above)
        if rounded == round_rational(high, fmt, -below) and not (rounded == 0 and low < 0 < high):
            return -0.0 if rounded == 0 and low < 0 else rounded
    raise AssertionError("an enclosure iterator ended before it settled the rounding")  # pragma: no cover


def store(value: Array, low: Array, high: Array, target: Array) -> Array:
    """Round ``value`` into ``target`` and return the indices of the elements that the interval does not settle.

    value, low, high: float64 vectors, low and high in either order (an error term of unknown sign). target: float16,
    bfloat16 or float32. Non-finite values are stored unchanged: IEEE arithmetic decides them, not rounding. An exact
    zero keeps the sign of ``value``.
    """
    fmt = FORMATS[dtype_of(target.dtype).name]
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        one, other = quantize(np.concatenate((low, high)), fmt).reshape(2, -1)  # for few elements, each call costs time
        settled = (one == other) & (np.signbit(one) == np.signbit(other))
        plain = ~np.isfinite(value) | ((low == 0) & (high == 0))  # special values and exact zeros
        convert(np.where(plain, value, one).astype(np.float32), target)
    return np.flatnonzero(~(settled | plain))


# Cheaper tests store the blocks and leave the few undecided elements to ``store``. All arrays are contiguous; the
# returned indices are flat.


def store_close(value: Array, relative: float, target: Array) -> Array:
    """Round a block with a relative error below ``relative`` < 2^-40; return the elements too near a midpoint.

    float32: the 29 bits of float64 that the cast drops show the distance to a midpoint. Narrower types: both ends of
    the interval round to float32 within one ULP of ``value`` (see ``narrow``).
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if target.dtype != np.float32:
            single = scratch("single", value.shape, np.float32)
            np.copyto(single, value, casting="same_kind")
            return np.asarray(narrow(single, target).reshape(-1).nonzero()[0])
        np.copyto(target, value, casting="same_kind")
        magnitude = np.abs(target, out=scratch("magnitude", value.shape, np.float32))
        band = int(relative / U) + 2  # in units of float64's last place
        bits = scratch("bits", value.shape, np.uint32)
        np.copyto(bits, value.view(np.int64), casting="unsafe")  # the last 32 bits: half the bytes
        np.add(bits, np.uint32((band - (1 << 28)) % (1 << 32)), out=bits)
        np.bitwise_and(bits, np.uint32((1 << 29) - 1), out=bits)
        unproven = np.less_equal(bits, np.uint32(2 * band), out=scratch("unproven", value.shape, np.bool_))
        if not lowest(magnitude) > TINY:  # subnormals, and results rounded up from them, drop more bits
            unproven |= (magnitude <= TINY) & (value != 0)
        return np.asarray(unproven.reshape(-1).nonzero()[0])


def store_between(low: Array, high: Array, target: Array) -> Array:
    """Round a block given by the ends of its intervals. Return unequal ends, zeros, and what ``narrow`` returns."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        other = scratch("other", low.shape, np.float32)
        single = target if target.dtype == np.float32 else scratch("single", low.shape, np.float32)
        np.copyto(single, low, casting="same_kind")
        np.copyto(other, high, casting="same_kind")
        apart = np.not_equal(single, other, out=scratch("apart", low.shape, np.bool_))
        apart |= np.equal(single, 0, out=scratch("zero", low.shape, np.bool_))
        if single is not target:
            apart |= narrow(single, target)
        return np.asarray(apart.reshape(-1).nonzero()[0])


TINY = np.float32(2.0**-126)
WIDE = FORMATS["float64"]
NARROW = mpq(1, 1 << 50)  # relative width at which an enclosure is a float64 number
LEAST = mpq(1, 1 << 1080)  # absolute width at which the value is 0 or one of the smallest


def narrow(single: Array, target: Array, band: int = 1) -> Array:
    """Round float32 to a 16-bit type, contiguous; return where the value itself may round to another number.

    The value is within ``band`` ULP of ``single`` (1: the rounding to float32). So only a midpoint as near matters.
    """
    bits, code = single.view(np.uint32), target.view(np.uint16)
    half = target.dtype == np.float16
    spare = 13 if half else 16  # dropped bits
    work = scratch("work", single.shape, np.uint32)
    np.subtract(bits, np.uint32((1 << (spare - 1)) - band), out=work)
    np.bitwise_and(work, np.uint32((1 << spare) - 1), out=work)
    unproven: Array = np.less_equal(work, np.uint32(2 * band), out=scratch("unproven", single.shape, np.bool_))
    if half:
        _narrow_half(single, code, unproven, work, band)
    else:
        np.add(bits, np.uint32(0x8000), out=work)
        np.right_shift(work, np.uint32(16), out=work)
        np.copyto(code, work, casting="same_kind")
        if has_nan(single):
            unproven |= np.isnan(single)
    return unproven


def _narrow_half(single: Array, code: Array, unproven: Array, work: Array, band: int) -> None:
    bits = single.view(np.uint32)
    magnitude = np.bitwise_and(bits, np.uint32(0x7FFFFFFF), out=work)
    smallest, largest = lowest(magnitude), highest(magnitude)
    small = np.flatnonzero(magnitude < np.uint32(113 << 23)) if smallest < 113 << 23 else None
    if largest >= 143 << 23:  # 65536 and above, infinities, NaN
        unproven |= magnitude >= np.uint32(143 << 23)
    np.subtract(magnitude, np.uint32((112 << 23) - 0x1000), out=magnitude)
    np.right_shift(magnitude, np.uint32(13), out=magnitude)
    if small is not None:  # subnormals are multiples of 2^-24; an ULP of float32 is below 2^-13 of that
        scaled = np.abs(single.reshape(-1)[small]) * np.float32(2.0**24)
        whole = np.rint(scaled)
        magnitude.reshape(-1)[small] = whole
        unproven.reshape(-1)[small] = np.abs(scaled - whole) > np.float32(0.5 - band * 2.0**-12)
    sign = np.right_shift(bits, np.uint32(16), out=scratch("sign", single.shape, np.uint32))
    np.bitwise_and(sign, np.uint32(0x8000), out=sign)
    np.bitwise_or(sign, magnitude, out=sign)
    np.copyto(code, sign, casting="same_kind")


def settle(
    where: Array,
    ends: tuple[Array, Array, Array],
    target: Array,
    exact: Exact,
    refine: Refine | None = None,
    least: float = 1,
    alike: Alike | None = None,
    *,
    valued: bool = True,
) -> tuple[Array, Array]:
    """Store the correctly rounded value of some elements of a contiguous ``target``, given by flat indices. Return the
    indices of the elements that only exact arithmetic settled, and their values in float64 (``valued``).

    ends: their value and interval, as for ``store``. ``refine(indices)`` re-evaluates the remaining elements, if at
    least ``least``, with a tighter interval; indices are a tuple of arrays, one per axis. ``exact(index)`` gives the
    exact value as a rational, a float for an exact (signed) zero, or an iterator of rational enclosures that shrink
    forever. ``alike(indices)`` groups elements with the same operands; their value is computed once.
    """
    where = where[_store_at(where, ends, target)]
    if where.size >= least and refine is not None:
        where = where[_store_at(where, refine(np.unravel_index(where, target.shape)), target)]
    fmt = FORMATS[dtype_of(target.dtype).name]
    if alike is None or where.size <= MANY:
        return where, settle_exactly(where, target, exact, fmt, valued=valued)
    first, like = alike(np.unravel_index(where, target.shape))
    values = settle_exactly(where[first], target, exact, fmt, valued=valued)
    target.reshape(-1)[where] = target.reshape(-1)[where[first]][like]
    return where, values[like]


def settle_exactly(where: Array, target: Array, exact: Exact, fmt: FloatFormat, *, valued: bool = True) -> Array:
    """Store the exact values of some elements, rounded, one at a time; return them in float64. Without ``valued`` they
    are only rounded: a float64 value of -e^-500 takes ten times as long as its rounding to -0."""
    values = np.empty(where.size)
    for k, index in enumerate(zip(*np.unravel_index(where, target.shape), strict=True)):
        answer = exact(tuple(int(i) for i in index))
        if isinstance(answer, float):
            rounded = values[k] = answer
        elif isinstance(answer, Iterator):
            answer, again = tee(answer)
            rounded = values[k] = round_enclosures(answer, fmt)
            # e^10000 has no narrow enclosure; e^-10000 has one, relative to float64's least.
            if valued and math.isfinite(rounded):
                near = next(low for low, high, *_ in again if high - low <= max(abs(low) * NARROW, LEAST))
                values[k] = round_rational(near, WIDE)
        else:
            values[k], rounded = round_rational(answer, WIDE), round_rational(answer, fmt)
            if rounded == 0 and answer < 0:
                rounded = -0.0
        target[index] = rounded
    return values


def _store_at(where: Array, ends: tuple[Array, Array, Array], target: Array) -> Array:
    settled = np.empty(where.size, target.dtype)
    left = store(*ends, settled)
    target.reshape(-1)[where] = settled
    return left
