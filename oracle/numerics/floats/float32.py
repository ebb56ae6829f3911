"""float32's unit roundoff, smallest and largest number; half a last place of a format, and ties."""

from __future__ import annotations

import numpy as np

from ...model.call import Array
from ...model.dtypes import FORMATS, FloatFormat
from .extremes import some

UNIT = 2.0**-24  # float32's unit roundoff: what one operation of a right kernel may lose
LARGEST = FORMATS["float32"].max


def lowest_bit(values: Array) -> Array:
    """Return the value of the lowest set bit of float64 numbers; inf for 0, which is a multiple of everything."""
    mantissa, exponent = np.frexp(values)
    digits = np.ldexp(mantissa, 53).astype(np.int64)
    return np.where(digits == 0, np.inf, np.ldexp((digits & -digits).astype(np.float64), exponent - 53))


def half_ulp(magnitude: Array, fmt: FloatFormat) -> Array:
    """Half the spacing of a format at non-negative float64 magnitudes; subnormals have the smallest normal's."""
    bits = np.asarray(np.ascontiguousarray(magnitude).view(np.int64) & np.int64(0x7FF << 52))
    np.maximum(bits, np.int64((1023 + fmt.emin) << 52), out=bits)
    bits -= np.int64((fmt.mant + 1) << 52)
    return np.asarray(bits.view(np.float64))


def is_halfway(value: Array, fmt: FloatFormat) -> Array:
    """Whether float64 values lie exactly halfway between two numbers of a narrower format."""
    dropped = 52 - fmt.mant
    bits = np.ascontiguousarray(value).view(np.int64)
    found = (bits & np.int64((1 << dropped) - 1)) == np.int64(1 << (dropped - 1))
    subnormal = (np.abs(value) < fmt.tiny) & (value != 0)
    if some(subnormal):  # subnormals are multiples of the quantum
        small = np.flatnonzero(subnormal)
        steps = value.reshape(-1)[small] / (fmt.quantum / 2)
        found.reshape(-1)[small] = np.abs(steps) % 2 == 1
    return np.asarray(found)


def classes_differ(forms: list[Array]) -> Array:
    """Whether the results of several float32 forms differ in being NaN, +inf, -inf or finite."""
    kinds = [np.where(np.isnan(f), 2, np.where(np.isinf(f), np.sign(f), 0)) for f in forms]
    differ = np.zeros(np.shape(kinds[0]), bool)
    for kind in kinds[1:]:
        differ |= kind != kinds[0]
    return differ
