"""Inspection of float arrays without arithmetic: the largest element, and the bits read as integers.

Without the sign, the codes of a type are in the order of its numbers; codes above the code of infinity are NaN. NumPy
compares 16-bit floats one by one, but compares their codes as fast as any integers.
"""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes
import numpy as np

from ...model.call import Array

# The largest and the smallest element, and tests of a mask, without a reduction's start-up cost.
#
# Most tensors of a catalogue are small. For them ``max``, ``min``, ``any`` and ``all`` cost several times as much as
# the arithmetic before them.

SHORT_ROW = 64  # elements
LONG = 1 << 14  # elements: for more, the reduction takes half the time of the search for the position


def highest(values: Array) -> Any:
    """Return the largest element of a non-empty array; NaN if there is one."""
    if values.size < LONG:
        return values.item(values.argmax())
    with np.errstate(invalid="ignore"):
        return values.max().item()


def lowest(values: Array) -> Any:
    """Return the smallest element of a non-empty array; NaN if there is one."""
    if values.size < LONG:
        return values.item(values.argmin())
    with np.errstate(invalid="ignore"):
        return values.min().item()


def reduce_rows(step: np.ufunc, rows: Array, **initial: Any) -> Array:
    """Reduce each row along the last axis, which is kept. NumPy restarts at every row, which costs as much as 50
    elements: short rows are transposed first."""
    length = rows.shape[-1]
    if not 0 < length <= SHORT_ROW:
        return np.asarray(step.reduce(rows, axis=-1, keepdims=True, **initial))
    turned = np.ascontiguousarray(rows.reshape(-1, length).T)
    return np.asarray(step.reduce(turned, axis=0, **initial)).reshape(*rows.shape[:-1], 1)


def any_true(mask: Array) -> bool:
    return bool(np.count_nonzero(mask))


def all_true(mask: Array) -> bool:
    return int(np.count_nonzero(mask)) == mask.size


# Floats read as integers: this shows NaN, infinities and order without arithmetic, for any type.

_SIGNED, _UNSIGNED = ({n: np.dtype(f"{kind}{n}") for n in (1, 2, 4, 8)} for kind in "iu")
_LARGEST = {n: kind.type(np.iinfo(kind).max) for n, kind in _SIGNED.items()}  # all bits except the sign


def codes(values: Array) -> Array:
    """Return the bits of a contiguous float array as signed integers."""
    return values.view(_SIGNED[values.itemsize])


def magnitude_codes(values: Array) -> Array:
    """Return the bits of a contiguous float array without the signs."""
    return np.asarray(codes(values) & _LARGEST[values.itemsize])


@functools.cache
def code(dtype: np.dtype[Any], value: float) -> int:
    """Return the code of a value. The code of infinity is the largest that is no NaN."""
    return int(codes(np.array([value], dtype))[0])


def beyond(values: Array, limit: int) -> bool:
    """Return whether a contiguous float array contains a code beyond a limit, of either sign."""
    sign = 1 << (8 * values.itemsize - 1)
    return bool(highest(codes(values)) > limit or highest(words(values)) > limit + sign)


def has_nan(values: Array) -> bool:
    """Return whether a contiguous float array contains a NaN."""
    if values.itemsize > 2 and values.size:
        worst = highest(values)
        return bool(worst != worst)
    return bool(values.size) and beyond(values, code(values.dtype, np.inf))


def is_finite(values: Array) -> bool:
    """Return whether a contiguous array contains neither NaN nor infinities; True for integers."""
    return values.dtype.kind in "iub" or not (values.size and beyond(values, code(values.dtype, np.inf) - 1))


def words(values: Array) -> Array:
    """Return the bits of a contiguous array as unsigned integers."""
    return values.view(_UNSIGNED[values.itemsize])


# Preparation of large 16-bit float arrays for a cast. NumPy casts float16 one by one. ml_dtypes does the same with
# non-contiguous bfloat16.

MANY = 1 << 13  # elements: for fewer, the preparation costs more than the cast
_HALF, _BFLOAT = np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)
_IN_PLACE = np.int32(0x8FFFE000 - (1 << 32))  # the place of float16's bits in float32: the sign and 15 others


def castable(values: Array) -> Array:
    """Return an array of the same numbers, in the same order in memory. Its cast to float32 or float64 is vectorised.
    For callers inside :func:`.environment.ieee_arithmetic`."""
    if values.size < MANY or values.dtype not in (_HALF, _BFLOAT):
        return values
    if not values.flags.c_contiguous:
        values = values.view(np.uint16).copy(order="K").view(values.dtype)
    if values.dtype == _HALF and values.flags.c_contiguous and is_finite(values):
        wide = values.view(np.int16).astype(np.int32)  # contains three copies of the sign; the mask removes them
        wide <<= np.int32(13)
        wide &= _IN_PLACE
        single: Array = wide.view(np.float32)
        single *= np.float32(2.0**112)  # from float16's bias to float32's; exact, also for subnormal numbers
        return single
    return values
