"""Rounding: the accuracy of each evaluation, correctly rounded stores, and half an ULP.

NumPy's float64 -> float32 is correctly rounded. ml_dtypes' float64 -> bfloat16 is not before version 0.7 (it goes
through float32). NumPy's float64 -> float16 is correct but not vectorised. Both are replaced here; ``widen`` converts
back, exactly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from gmpy2 import mpq

from ...model.call import Array
from ...model.dtypes import DTYPES, FORMATS, DType, FloatFormat, dtype_of
from .codes import any_true, has_nan, highest, lowest

# The accuracy of evaluations: float64 here, float32 on a device, and the types that some kernels do not widen.


@dataclass(frozen=True, eq=False)
class Arithmetic:
    """The accuracy of an evaluation.

    ``unit``: the relative error of + - * (half an ULP of the type). ``digits``: its significant bits. ``quantum``: its
    smallest number, the possible loss of an underflow (0: operands are far from underflow). ``accuracy``: of functions
    and of ``/``, in units; every other function is exact. ``flushing``: operations that return 0 for results below
    ``tiny``. ``normal``: a multiple of more than 2^normal does not underflow.
    """

    unit: float
    digits: int
    quantum: float
    accuracy: Mapping[str, float]
    tiny: float = 0.0
    flushing: frozenset[str] = frozenset()
    normal: float = math.inf


FLOAT64 = Arithmetic(
    2.0**-53,
    53,
    0.0,
    # Maximum errors of our functions, NumPy's, the C library's and the compiled engine's own exp (tests/numerics).
    {"/": 1, "exp": 4, "log": 8, "log1p": 8, "expm1": 8, "tanh": 8, "erf": 8, "erfc": 16, "sqrt": 1},
)
# The same near the end of the range: a subnormal result may be off by a few of float64's smallest numbers. From 2^-900
# on a result has all its digits, with a margin.
UNDERFLOWING = replace(FLOAT64, quantum=2.0**-1070, normal=-900)

# A right kernel in float32: the functions of any public kernel stay within 4 ULP, a quotient within one.
_DEVICE = {"/": 2, "exp": 8, "log": 8, "log1p": 8, "expm1": 8, "tanh": 8, "erf": 8, "erfc": 8, "sqrt": 2}
FLOAT32 = Arithmetic(2.0**-24, 24, 2.0**-149, _DEVICE)
HOST_FLOAT32 = Arithmetic(2.0**-24, 24, 0.0, {"/": 1, "sqrt": 1})  # the host's own float32, far from underflow


@lru_cache(maxsize=16)
def float32(flushing: frozenset[str]) -> Arithmetic:
    """Return float32 on a device with some operations that return 0 for subnormal results. Its division then also reads
    subnormal operands as 0."""
    return replace(FLOAT32, tiny=2.0**-126, flushing=flushing) if flushing else FLOAT32


_ROUNDED = dict.fromkeys(_DEVICE, 1.01)  # computed in float32 and rounded
# Kernels that do not widen, and chains of operators that each round.
NARROW = {
    "float16": Arithmetic(2.0**-11, 11, 2.0**-24, _DEVICE),
    "bfloat16": Arithmetic(2.0**-8, 8, 2.0**-133, _ROUNDED),
}


# Correctly rounded stores: float64 to every binary format in one rounding, ties to even.

BLOCK = 1 << 15  # elements per pass: the scratch arrays of one pass stay in the cache
_EXPONENT = np.int64(0x7FF << 52)


def quantize(values: Array, fmt: FloatFormat) -> Array:
    """Round float64 values to the grid of a format; the result is float64 and exact.

    One rounding, ties to even, sign of zero kept. Beyond the largest finite value the result is inf (nan for
    float8_e4m3fn, which has no infinity). 1.5 * 2^(e + 52 - mant) is added to a value of exponent e. Then float64's own
    rounding is at the last bit of the format. This includes subnormals, because e is at least emin.
    """
    values = np.asarray(values, np.float64)
    if fmt.mant == 52:
        return np.array(values)
    if fmt is FORMATS["float32"]:
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return np.asarray(values.astype(np.float32).astype(np.float64))
    bits = np.asarray(values.view(np.int64) & _EXPONENT)
    np.maximum(bits, np.int64((1023 + fmt.emin) << 52), out=bits)
    np.minimum(bits, np.int64((1023 + 200) << 52), out=bits)  # keeps the magic number finite; these overflow anyway
    bits += np.int64(((52 - fmt.mant) << 52) + (1 << 51))  # only bits of the exponent were set: no carry
    magic = bits.view(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        rounded: Array = np.asarray(values + magic)
        rounded -= magic
    np.copysign(rounded, values, out=rounded)
    if rounded.size and not (highest(rounded) <= fmt.max and lowest(rounded) >= -fmt.max):  # or there is a NaN
        over = np.abs(rounded) > fmt.max
        infinity = np.nan if fmt.name == "float8_e4m3fn" else np.inf
        rounded[over] = np.copysign(infinity, rounded[over])
    return rounded


def round_to(values: Array, dtype: Any) -> Array:
    """Round float64 values once, correctly, to a floating-point dtype (name or NumPy dtype); same shape.

    NaN stays NaN (payload unspecified), overflow gives an infinity, the sign of zero is kept.
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return rounded_once(np.asarray(values, np.float64), dtype_of(dtype))


def rounded_once(values: Array, row: DType) -> Array:
    """Round like :func:`round_to`, for callers inside :func:`.environment.ieee_arithmetic`, where NumPy is silent."""
    if row.name == "float32":
        return np.asarray(values.astype(np.float32))
    if row.name == "float64":
        return np.array(values)
    rounded = np.empty(values.shape, row.numpy)
    given, target = values.reshape(-1), rounded.reshape(-1)
    for start in range(0, given.size, BLOCK):
        part = slice(start, start + BLOCK)
        target[part] = _narrowed(given[part], row.name)
    return rounded


def _narrowed(values: Array, dtype: str) -> Array:
    """Round float64 values to a type of 16 bits or fewer.

    float16 and bfloat16 go through float32. The second rounding can be wrong if the first one gave a midpoint. So
    midpoints, and float16's subnormal numbers (fewer digits), are first rounded to the grid of the format.
    """
    fmt, row = FORMATS[dtype], DTYPES[dtype]
    if dtype not in _DROPPED:
        return np.asarray(quantize(values, fmt).astype(row.numpy))
    single = values.astype(np.float32)
    bits = single.view(np.uint32)
    dropped = np.uint32(1 << _DROPPED[dtype])
    doubtful = (bits & (dropped - np.uint32(1))) == dropped >> np.uint32(1)
    if dtype == "float16":
        bits = bits & np.uint32(0x7FFFFFFF)
        if lowest(bits) < _TINY_HALF:
            doubtful |= bits < _TINY_HALF
    if any_true(doubtful):
        where = np.flatnonzero(doubtful)
        single[where] = quantize(values[where], fmt)
    if dtype == "float16":
        return half_bits(single, ties=False).view(np.float16)
    return np.asarray(single.astype(row.numpy))


_DROPPED = {"float16": 13, "bfloat16": 16}  # float32's additional digits
_TINY_HALF = np.uint32((127 - 14) << 23)  # the bits of float16's smallest normal number


def half_bits(single: Array, *, ties: bool = True) -> Array:
    """Round float32 values to float16, ties to even, and return the uint16 bits (vectorised; NumPy's cast is not).
    ``ties``: whether a value can lie halfway between two of float16's normal numbers."""
    shape, single = np.shape(single), np.ascontiguousarray(single, np.float32).reshape(-1)
    magnitude = single.view(np.uint32) & np.uint32(0x7FFFFFFF)
    # Normals: add half of the discarded 13 bits (less one when the kept part is even), re-bias, shift.
    if ties:
        rounded = magnitude >> np.uint32(13)
        rounded &= np.uint32(1)
        rounded += magnitude
        rounded += _REBIASED - np.uint32(1)
    else:
        rounded = magnitude + _REBIASED
    rounded >>= np.uint32(13)
    half: Array = rounded.astype(np.uint16)
    # Subnormals: 0.5 + a rounds a to a multiple of 2^-24, float16's quantum. Indices, because masks are slow.
    if magnitude.size and lowest(magnitude) < _TINY_HALF:
        small = np.flatnonzero(magnitude < _TINY_HALF)
        shifted = np.abs(single[small]) + np.float32(0.5)
        half[small] = shifted.view(np.uint32) - np.uint32(0x3F000000)
    if magnitude.size and highest(magnitude) >= 143 << 23:  # 65536 and above, infinities, NaN
        large = np.flatnonzero(magnitude >= np.uint32(143 << 23))
        nan = magnitude[large] > np.uint32(0x7F800000)
        half[large] = np.where(nan, np.uint16(0x7E00), np.uint16(0x7C00))
    half |= np.signbit(single) * np.uint16(0x8000)
    return half.reshape(shape)


_REBIASED = np.uint32((1 << 32) - (112 << 23) + 0x1000)  # float32's bias to float16's, and half of the dropped bits


def unify_nans(values: Array) -> None:
    """Give every NaN of a contiguous array the bits of ``np.nan``: quiet, positive, without payload.

    The sign of a NaN from arithmetic is set on x86 and clear on ARM. The treatment of an operand's payload differs
    between SIMD levels. Neither contains information about the result.
    """
    if has_nan(values):
        values[np.isnan(values)] = np.nan


def widen(values: Array) -> Array:
    """Return float64 values of a floating-point array of any dtype (exact)."""
    with np.errstate(invalid="ignore"):
        return np.asarray(values.astype(np.float64))


def round_rational(exact: mpq, fmt: FloatFormat, beyond: int = 0) -> float:
    """Round an exact rational to a format, ties to even; overflow gives an infinity. Zero comes back as +0. ``beyond``:
    1 (-1) if the true number is larger (smaller) than the rational by less than any other number: then it is no tie."""
    if exact == 0:
        return 0.0
    sign = -1.0 if exact < 0 else 1.0
    top, bottom = abs(exact.numerator), exact.denominator
    exponent = top.bit_length() - bottom.bit_length()
    if top << max(-exponent, 0) < bottom << max(exponent, 0):
        exponent -= 1  # now 2^exponent <= magnitude < 2^(exponent + 1)
    unit = max(exponent, fmt.emin) - fmt.mant
    divisor = bottom << max(unit, 0)
    whole, rest = divmod(top << max(-unit, 0), divisor)
    if 2 * rest == divisor:
        whole += beyond * sign > 0 if beyond else whole % 2
    elif 2 * rest > divisor:
        whole += 1
    if whole.bit_length() + unit > 1024:
        return sign * np.inf
    rounded = math.ldexp(whole, unit)
    return sign * (np.inf if rounded > fmt.max else rounded)


# float32's unit roundoff, smallest and largest number; half an ULP of a format, and ties.

UNIT = 2.0**-24  # float32's unit roundoff: the largest error of one operation of a right kernel
LARGEST = FORMATS["float32"].max
NEAR = 2.0**-10  # this close to a format's end, some right kernels overflow and others do not
SURE = LARGEST * (1 - NEAR)  # below it no right kernel overflows


def lowest_bit(values: Array) -> Array:
    """Return the value of the lowest set bit of float64 numbers; inf for 0, which is a multiple of everything."""
    mantissa, exponent = np.frexp(values)
    digits = np.ldexp(mantissa, 53).astype(np.int64)
    return np.where(digits == 0, np.inf, np.ldexp((digits & -digits).astype(np.float64), exponent - 53))


def half_ulp(magnitude: Array, fmt: FloatFormat) -> Array:
    """Return half the spacing of a format at non-negative float64 magnitudes; subnormals have the smallest normal's."""
    bits = np.asarray(np.ascontiguousarray(magnitude).view(np.int64) & np.int64(0x7FF << 52))
    np.maximum(bits, np.int64((1023 + fmt.emin) << 52), out=bits)
    bits -= np.int64((fmt.mant + 1) << 52)
    return np.asarray(bits.view(np.float64))


def is_halfway(value: Array, fmt: FloatFormat) -> Array:
    """Return whether float64 values lie exactly halfway between two numbers of a narrower format."""
    dropped = 52 - fmt.mant
    bits = np.ascontiguousarray(value).view(np.int64)
    result = (bits & np.int64((1 << dropped) - 1)) == np.int64(1 << (dropped - 1))
    subnormal = (np.abs(value) < fmt.tiny) & (value != 0)
    if any_true(subnormal):  # subnormals are multiples of the quantum
        small = np.flatnonzero(subnormal)
        steps = value.reshape(-1)[small] / (fmt.quantum / 2)
        result.reshape(-1)[small] = np.abs(steps) % 2 == 1
    return np.asarray(result)


def classes_differ(forms: list[Array]) -> Array:
    """Return whether the results of several float32 forms differ in being NaN, +inf, -inf or finite."""
    kinds = [np.where(np.isnan(f), 2, np.where(np.isinf(f), np.sign(f), 0)) for f in forms]
    differ = np.zeros(np.shape(kinds[0]), bool)
    for kind in kinds[1:]:
        differ |= kind != kinds[0]
    return differ
