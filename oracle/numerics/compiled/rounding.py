"""Results of compiled loops: float64 and float32 numbers rounded to codes, with a proof.

A quick test, which a loop over vectors makes, settles nearly every element; a close one, on single elements, most of
the rest. What neither settles is left to the NumPy road. docs/proof-details.md derives both.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ...model.dtypes import FORMATS
from .operands import CONVERTS_HALF, f32, f64, i32, i64, njit, u32, widened

OUT = {4: np.uint32, 2: np.uint16}
SPLITTER = 2.0**27 + 1
LARGEST_HALF = int(np.float32(65504.0).view(np.int32))  # float16's largest number


@intrinsic
def narrowed(context, single):
    """A float32 number rounded to float16's bits, by the processor's own conversion."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(builder.fptrunc(arguments[0], ir.HalfType()), ir.IntType(16))

    return types.int16(types.float32), generate


@njit(error_model="numpy")
def two_sum(a, b):
    """a + b as its rounded value and the rest."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@njit(error_model="numpy")
def sum_is_exact(a, b):
    return two_sum(a, b)[1] == 0.0


@njit(error_model="numpy")
def product_is_exact(a, b):
    """Whether a * b is not rounded (Dekker's product; False too where its parts may overflow or underflow)."""
    p = a * b
    x, y = a * SPLITTER, b * SPLITTER
    a_high, b_high = x - (x - a), y - (y - b)
    a_low, b_low = a - a_high, b - b_high
    rest = ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low
    return (rest == 0.0) & ((abs(p) > 2.0**-900) | (a == 0.0) | (b == 0.0))


@njit(error_model="numpy")
def quotient_is_exact(a, b):
    q = a / b
    return product_is_exact(q, b) & (q * b == a)


EXACTLY = {f.__name__: f for f in (sum_is_exact, product_is_exact, quotient_is_exact)}


@functools.cache
def encoder(dtype: str) -> Any:
    """Return encode(value, slack) -> (code of the rounded value, whether [value - slack, value + slack] leaves doubt):
    the close test.

    Adding 2^(e + 52 - mant), e the exponent but at least emin, rounds to the format and leaves the significand in the
    last bits. In doubt: a midpoint within ``slack`` (twice counted, for below a power of two midpoints lie twice as
    close), overflow, and whatever is not finite.
    """
    fmt = FORMATS[dtype]
    places = 52 - fmt.mant
    least, magic_step, half_step = i64((1023 + fmt.emin) << 52), i64(places << 52), i64((fmt.mant + 1) << 52)
    largest = i64((1023 + 1 - fmt.emin) << 52)  # the exponent of the largest finite number
    infinity = i64((3 - 2 * fmt.emin) << fmt.mant)  # the code after its own
    sign = i64(1 << (31 if dtype == "float32" else 15))

    @njit(error_model="numpy")
    def encode(value, slack):
        bits = f64(value).view(i64)
        size = abs(value)
        exponent = max(bits & i64(0x7FF << 52), least)
        magic_bits = i64(exponent + magic_step)
        magic = magic_bits.view(f64)
        shifted = size + magic
        rest = abs(size - (shifted - magic))
        half = i64(exponent - half_step).view(f64)
        code = ((exponent - least) >> places) + (f64(shifted).view(i64) - magic_bits)
        doubt = (not (rest + (slack + slack) < half)) | (code >= infinity) | (exponent > largest)  # NaN is not less
        return code | ((bits >> i64(63)) & sign), doubt | ((size <= slack) & (slack > 0.0))

    return encode


@functools.cache
def quick(dtype: str) -> Any:
    """Return encode(value, low, high, held), whose code is right for all numbers between two ends of the same sign and
    proved where it leaves no doubt: the quick test. ``held``: whether the value is exact, whatever the ends; then a tie
    is one.

    Both ends are rounded to float32, which leaves doubt unless they agree; then float32 to the type.
    """
    narrow = narrower(dtype)

    @njit(error_model="numpy")
    def encode(value, low, high, held):
        low, high = f32(value if held else low), f32(value if held else high)
        code, halfway, beyond = narrow(low)
        halfway &= not (held & (f64(low) == value))
        return code, halfway | beyond | (f32(high - low) != f32(0.0))  # inf - inf is NaN

    return encode


@functools.cache
def quick_single(dtype: str) -> Any:
    """Return encode(low, high) for two float32 numbers with the value strictly between them, or all three 0: its code
    is proved where both round to it."""
    return _encode_bfloat16 if dtype == "bfloat16" else _encode_by(narrower(dtype))


@njit(error_model="numpy")
def _encode_bfloat16(low, high):
    """Ends that are midpoints go away from zero, as what lies beyond the nearer one does."""
    one, other = u32(f32(low).view(u32) + u32(0x8000)), u32(f32(high).view(u32) + u32(0x8000))
    return u32(one >> u32(16)), u32(one ^ other) > u32(0xFFFF)


def _encode_by(narrow: Any) -> Any:
    @njit(error_model="numpy")
    def encode(low, high):
        (code, _, beyond), (other, _, far) = narrow(low), narrow(high)
        return code, beyond | far | (other != code)

    return encode


@njit(error_model="numpy")
def quick_near(low, high):
    """The same of numbers in float64, of a float32 result."""
    code = f32(low).view(u32)
    return code, code != f32(high).view(u32)


def narrower(dtype: str) -> Any:
    """Return narrow(single) -> (code, whether it is halfway, whether it is beyond the largest number or NaN) of a
    number that float32 rounds to this one; ties go to even.

    To float32 there is nothing to do. A midpoint of a narrower type is a float32 number itself: only if it is this one
    is there a doubt, and where this one is not finite there.
    """
    half = _narrow_float16 if CONVERTS_HALF else _narrow_float16_by_bits
    return {"float32": _same, "bfloat16": _narrow_bfloat16, "float16": half}[dtype]


@njit(error_model="numpy")
def _same(single):
    return f32(single).view(u32), False, False


@njit(error_model="numpy")
def _narrow_bfloat16(single):
    bits = f32(single).view(i32)
    size = i32(bits & i32(0x7FFFFFFF))
    odd = i32(i32(size >> i32(16)) & i32(1))
    code = i32(i32(size + i32(0x7FFF) + odd) >> i32(16))
    halfway = i32(size & i32(0xFFFF)) == i32(0x8000)
    return u32(code | i32(i32(bits >> i32(16)) & i32(0x8000))), halfway, size > i32(0x7F7F0000)


@njit(error_model="numpy")
def _narrow_float16(single):
    code = narrowed(single)
    size = i32(f32(single).view(i32) & i32(0x7FFFFFFF))
    halfway = i32(size & i32(0x1FFF)) == i32(0x1000)
    halfway |= abs(f32(single - widened(code))) == f32(2.0**-25)  # among subnormals
    return code, halfway, size > i32(LARGEST_HALF)


@njit(error_model="numpy")
def _narrow_float16_by_bits(single):
    bits = f32(single).view(i32)
    size = i32(bits & i32(0x7FFFFFFF))
    exponent = max(i32(size & i32(0xFF << 23)), i32(113 << 23))  # subnormals have the smallest normal's
    magic = i32(exponent + i32(13 << 23))  # to which added, a number is rounded to float16
    shifted = f32(size.view(f32) + magic.view(f32))
    rest = abs(f32(size.view(f32) - f32(shifted - magic.view(f32))))
    half = i32(exponent - i32(11 << 23)).view(f32)
    code = i32(i32(i32(exponent - i32(113 << 23)) >> i32(13)) + i32(shifted.view(i32) - magic))
    return np.int16(code | i32(i32(bits >> i32(16)) & i32(0x8000))), rest == half, size > i32(LARGEST_HALF)
