"""Large arrays of 16-bit floats made ready for a cast: NumPy casts float16 one by one, and ml_dtypes' bfloat16 so where
its elements do not lie side by side.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

from ..model.call import Array
from .codes import is_finite

MANY = 1 << 13  # elements: with fewer the steps cost more than the cast
_HALF, _BFLOAT = np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)
_IN_PLACE = np.int32(0x8FFFE000 - (1 << 32))  # where float16's bits lie in float32: the sign, and 15 others


def castable(values: Array) -> Array:
    """Return an array of the same numbers, in the same order in memory, whose cast to float32 or float64 is vectorised;
    for callers inside :func:`.environment.ieee_arithmetic`."""
    if values.size < MANY or values.dtype not in (_HALF, _BFLOAT):
        return values
    if not values.flags.c_contiguous:
        values = values.view(np.uint16).copy(order="K").view(values.dtype)
    if values.dtype == _HALF and values.flags.c_contiguous and is_finite(values):
        wide = values.view(np.int16).astype(np.int32)  # with three copies of the sign, which are masked away
        wide <<= np.int32(13)
        wide &= _IN_PLACE
        single: Array = wide.view(np.float32)
        single *= np.float32(2.0**112)  # from float16's bias to float32's; exact, of its subnormal numbers too
        return single
    return values
