"""Floats as the integers that their bits are: NaN, infinities and order are seen without arithmetic, whatever the type.

Without their sign the codes of a type are in the order of its numbers; beyond that of infinity lie only NaN. NumPy
compares 16-bit floats element by element, their codes as fast as any integers.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ..model.call import Array
from .extremes import highest

_SIGNED, _UNSIGNED = ({n: np.dtype(f"{kind}{n}") for n in (1, 2, 4, 8)} for kind in "iu")
_LARGEST = {n: kind.type(np.iinfo(kind).max) for n, kind in _SIGNED.items()}  # all bits but the sign's


def codes(values: Array) -> Array:
    """Return the bits of a contiguous float array as signed integers."""
    return values.view(_SIGNED[values.itemsize])


def sizes(values: Array) -> Array:
    """Return the bits of a contiguous float array without the signs."""
    return np.asarray(codes(values) & _LARGEST[values.itemsize])


@functools.cache
def code(dtype: np.dtype[Any], value: float) -> int:
    """Return the code of a value: of infinity the largest that is no NaN."""
    return int(codes(np.array([value], dtype))[0])


def beyond(values: Array, limit: int) -> bool:
    """Whether a contiguous float array holds a code beyond a limit, of either sign."""
    sign = 1 << (8 * values.itemsize - 1)
    return bool(highest(codes(values)) > limit or highest(words(values)) > limit + sign)


def has_nan(values: Array) -> bool:
    """Whether a contiguous float array holds a NaN."""
    if values.itemsize > 2 and values.size:
        worst = highest(values)
        return bool(worst != worst)
    return bool(values.size) and beyond(values, code(values.dtype, np.inf))


def is_finite(values: Array) -> bool:
    """Whether a contiguous float array holds neither NaN nor infinities."""
    return not (values.size and beyond(values, code(values.dtype, np.inf) - 1))


def words(values: Array) -> Array:
    """Return the bits of a contiguous array as unsigned integers."""
    return values.view(_UNSIGNED[values.itemsize])
