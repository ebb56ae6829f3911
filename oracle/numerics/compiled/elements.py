"""Elements of compiled loops: operands widened, results rounded with a proof, and e^x."""

from __future__ import annotations

import functools
import platform
from collections.abc import Callable, Mapping
from typing import Any

import llvmlite.binding
import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from ...model.call import Array
from ...model.dtypes import FORMATS, dtype_of
from ..bounds.windows import ARGUMENT
from ..floats.rounding import HOST_FLOAT32
from ..proof import U

# Operands of compiled loops: bits widened to float64 or float32, chunks, windows, and selected elements.
#
# A function of an operand is compiled for arrays of codes and for numbers. A number has the same value everywhere.

njit = numba.njit
u16, i32, i64, u32, u64, f32, f64 = np.uint16, np.int32, np.int64, np.uint32, np.uint64, np.float32, np.float64


def in_loops(choose: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of compiled code; ``choose`` gets the types of its operands and returns the function."""

    @functools.wraps(choose)
    def function(*_: object) -> Any:
        raise NotImplementedError("compiled code only")

    overload(function)(choose)
    return function


# Reinterpreted operands: bfloat16 and float16 have no arithmetic here.
CODES = {"float32": np.uint32, "bfloat16": np.uint16, "float16": np.int16}


def codes_of(array: Array) -> Array:
    """Return a contiguous vector of an operand's bits."""
    return np.ascontiguousarray(array).reshape(-1).view(CODES[dtype_of(array.dtype).name])


def operand_codes(operands: Mapping[str, Any], names: tuple[str, ...]) -> tuple[Any, ...]:
    """Return the arguments of a loop: the bits of arrays, and numbers."""
    return tuple(codes_of(operands[n]) if isinstance(operands[n], np.ndarray) else float(operands[n]) for n in names)


@in_loops
def load_single(operand, i):
    """Return element i of an operand as float32, which represents it; a number is returned unchanged."""
    if not isinstance(operand, types.Array):
        return lambda operand, i: f32(operand)
    half = _load_float16 if CONVERTS_HALF else _load_float16_by_bits
    return {types.uint32: _load_float32, types.uint16: _load_bfloat16, types.int16: half}[operand.dtype]


@in_loops
def load(operand, i):
    """Return element i of an operand as float64; a number is returned unchanged."""
    if isinstance(operand, types.Array):
        return lambda operand, i: f64(load_single(operand, i))
    return lambda operand, i: operand


def _load_float32(operand, i):
    return u32(operand[i]).view(f32)


def _load_bfloat16(operand, i):
    return u32(u32(operand[i]) << u32(16)).view(f32)


def _load_float16(operand, i):
    return widened(operand[i])


def _load_float16_by_bits(operand, i):
    code = i32(operand[i])
    magnitude = i32(code & i32(0x7FFF))
    shifted = i32(magnitude << i32(13))
    normal = i32(shifted + i32(112 << 23)).view(f32)
    subnormal = f32(i32(shifted + i32(113 << 23)).view(f32) - f32(2.0**-14))
    value = subnormal if magnitude < i32(1 << 10) else normal
    value = f32(np.nan) if magnitude >= i32(31 << 10) else value  # not finite: left to the NumPy path
    return f32(-value if code < i32(0) else value)


@intrinsic
def widened(context, code):
    """Convert float16's bits to float32, by the processor's own conversion."""

    def generate(context, builder, signature, arguments):
        return builder.fpext(builder.bitcast(arguments[0], ir.HalfType()), ir.FloatType())

    return types.float32(types.int16), generate


def converts_half() -> bool:
    """Return whether the target processor converts float16; otherwise LLVM calls a library that may be missing."""
    if numba.config.CPU_NAME or numba.config.CPU_FEATURES:
        return "+f16c" in (numba.config.CPU_FEATURES or "")
    return platform.machine() in ("aarch64", "arm64") or bool(llvmlite.binding.get_host_cpu_features().get("f16c"))


CONVERTS_HALF = converts_half()


# ---- chunks and windows ----------------------------------------------------------------------------------------------

_WORDS = {16: (u16, u16(0x7FFF)), 32: (u32, u32(0x7FFFFFFF))}  # codes as numbers, and the mask that removes the sign


@in_loops
def part(operand, start, stop):
    """Return elements start to stop of an operand; a number is returned unchanged."""
    if isinstance(operand, types.Array):
        return lambda operand, start, stop: operand[start:stop]
    return lambda operand, start, stop: operand


@in_loops
def is_beyond(operand, i, window):
    """Return whether the code of element i is neither 0 nor of a magnitude in a window of codes; False for a number."""
    if not isinstance(operand, types.Array):
        return lambda operand, i, window: False
    word, sign = _WORDS[operand.dtype.bitwidth]

    def beyond(operand, i, window):
        size = word(word(operand[i]) & sign)
        return (size != word(0)) & (word(size - word(window[0])) > word(window[1] - window[0]))

    if word is u32:  # its windows begin at 0
        return lambda operand, i, window: word(word(operand[i]) & sign) > word(window[1])
    return beyond


# ---- doubtful elements, collected ------------------------------------------------------------------------------------


@njit(error_model="numpy")
def listed(doubt, words, size, start, places, count):
    """Append the places of the doubtful elements of a chunk, counted from ``start``, to ``places``; return the new
    number of entries. ``words``: the doubts, eight at a time; 16 words are checked together."""
    for first in range(0, words.size, 16):
        some = u64(0)
        for word in range(16):
            some |= words[first + word]
        if some == u64(0):
            continue
        for word in range(first, first + 16):
            if words[word] != u64(0):
                for i in range(8 * word, min(8 * word + 8, size)):
                    places[count] = start + i
                    count += doubt[i]
    return count


@in_loops
def room(operand, size):
    """Return an array for ``size`` elements of an operand; a number needs none."""
    if isinstance(operand, types.Array):
        return lambda operand, size: np.zeros(size, operand.dtype)
    return lambda operand, size: operand


@in_loops
def picked(operand, places, room):
    """Return the elements of an operand at some places, stored in ``room``."""
    if isinstance(operand, types.Array):
        return _picked_codes
    return lambda operand, places, room: operand


def _picked_codes(operand, places, room):
    for k in range(places.size):
        room[k] = operand[places[k]]
    return room[: places.size]


# Results of compiled loops: float64 and float32 numbers rounded to codes, with a proof.
#
# A quick test in vector loops settles nearly every element. A close test on single elements settles most of the rest.
# The NumPy path handles the others. docs/proof-details.md derives both.

OUT = {4: np.uint32, 2: np.uint16}
SPLITTER = 2.0**27 + 1
LARGEST_HALF = int(np.float32(65504.0).view(np.int32))  # float16's largest number


@intrinsic
def narrowed(context, single):
    """Round a float32 number to float16's bits, by the processor's own conversion."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(builder.fptrunc(arguments[0], ir.HalfType()), ir.IntType(16))

    return types.int16(types.float32), generate


@njit(error_model="numpy")
def two_sum(a, b):
    """Return a + b as its rounded value and the rest."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@njit(error_model="numpy")
def sum_is_exact(a, b):
    return two_sum(a, b)[1] == 0.0


@njit(error_model="numpy")
def product_is_exact(a, b):
    """Return whether a * b is exact (Dekker's product; False also if its parts may overflow or underflow)."""
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


@functools.cache
def encoder(dtype: str) -> Any:
    """Return encode(value, slack) -> (code of the rounded value, whether [value - slack, value + slack] leaves doubt):
    the close test.

    Adding 2^(e + 52 - mant), with e the exponent but at least emin, rounds to the format and leaves the significand in
    the last bits. In doubt: a midpoint within twice ``slack`` (below a power of two, midpoints lie twice as close),
    overflow, and values that are not finite.
    """
    fmt = FORMATS[dtype]
    places = 52 - fmt.mant
    least, magic_step, half_step = i64((1023 + fmt.emin) << 52), i64(places << 52), i64((fmt.mant + 1) << 52)
    largest = i64((1023 + 1 - fmt.emin) << 52)  # the exponent of the largest finite number
    infinity = i64((3 - 2 * fmt.emin) << fmt.mant)  # the code after the largest number's
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
        doubt = (not (rest + (slack + slack) < half)) | (code >= infinity) | (exponent > largest)  # true for NaN
        return code | ((bits >> i64(63)) & sign), doubt | ((size <= slack) & (slack > 0.0))

    return encode


@functools.cache
def quick(dtype: str) -> Any:
    """Return encode(value, low, high, held): the quick test. Its code is right for all numbers between two ends of the
    same sign, and proved if no doubt is left. ``held``: whether the value is exact, for any ends; then a tie is exact.

    Both ends are rounded to float32. There is a doubt unless they agree. Then float32 is rounded to the type.
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
    """Return encode(low, high) for two float32 numbers with the value strictly between them, or all three 0. Its code
    is proved if both round to it."""
    return _encode_bfloat16 if dtype == "bfloat16" else _encode_by(narrower(dtype))


@njit(error_model="numpy")
def _encode_bfloat16(low, high):
    """Round both ends. A midpoint goes away from zero, as all numbers beyond the end nearer to zero do."""
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
    """Round two float64 numbers in the same way, for a float32 result."""
    code = f32(low).view(u32)
    return code, code != f32(high).view(u32)


def narrower(dtype: str) -> Any:
    """Return narrow(single) -> (code, whether it is halfway, whether it is beyond the largest number or NaN), for a
    number that float32 rounds to ``single``; ties go to even.

    Rounding to float32 needs no further step. A midpoint of a narrower type is a float32 number itself. So there is a
    doubt only if ``single`` is a midpoint, or is not finite in that type.
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
    magic = i32(exponent + i32(13 << 23))  # adding it rounds a number to float16
    shifted = f32(size.view(f32) + magic.view(f32))
    rest = abs(f32(size.view(f32) - f32(shifted - magic.view(f32))))
    half = i32(exponent - i32(11 << 23)).view(f32)
    code = i32(i32(i32(exponent - i32(113 << 23)) >> i32(13)) + i32(shifted.view(i32) - magic))
    return np.int16(code | i32(i32(bits >> i32(16)) & i32(0x8000))), rest == half, size > i32(LARGEST_HALF)


# e^x of compiled loops: in float64, and in float32 for results of 16 bits. docs/proof-details.md derives them.

LN2_HIGH, LN2_LOW = float.fromhex("0x1.62e42feep-1"), float.fromhex("0x1.a39ef35793c76p-33")
LOG2_E, ROUNDING = 1.4426950408889634, 1.5 * 2.0**52
# e^r within 149u for |r| < 0.34658: the polynomial 1 + r + ... of degree 9 with the smallest relative error
C9, C8, C7, C6, C5, C4, C3, C2 = map(
    float.fromhex,
    (
        "0x1.710170a1ce511p-19", "0x1.a16e35993a5b8p-16", "0x1.a01b7399e90b4p-13", "0x1.6c163be6e9bd7p-10",
        "0x1.1111108e24bf2p-7", "0x1.5555557deff01p-5", "0x1.5555555589f37p-3", "0x1.fffffffff13eep-2",
    ),
)  # fmt: skip
EXP_RELATIVE = 160 * U  # the polynomial 149u, its evaluation below 10u; docs/proof-details.md
EXP_LIMIT = ARGUMENT  # the NumPy path handles larger arguments

# The same in float32, by degree 6; its error is 0.06 of float32's u.
SINGLE_U = HOST_FLOAT32.unit
S_HIGH, S_LOW, S_ROUNDING = f32(float.fromhex("0x1.62e4p-1")), f32(float.fromhex("0x1.7f7d1cp-20")), f32(1.5 * 2.0**23)
S_LOG2_E = f32(LOG2_E)
S6, S5, S4, S3, S2 = (
    f32(float.fromhex(text))
    for text in ("0x1.6a5258p-10", "0x1.12396ep-7", "0x1.5558aap-5", "0x1.555492p-3", "0x1.fffffcp-2")
)
S1 = f32(1.0)
EXP_SINGLE = 4 * SINGLE_U  # docs/proof-details.md


@njit(fastmath={"contract"}, error_model="numpy")
def exp_near(x):
    """e^x within EXP_RELATIVE for |x| <= EXP_LIMIT."""
    shifted = x * LOG2_E + ROUNDING
    n = shifted - ROUNDING
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    square = r * r  # even and odd powers in parallel: half the steps wait for each other
    even = C8 * square + C6
    odd = C9 * square + C7
    even = even * square + C4
    odd = odd * square + C5
    even = even * square + C2
    odd = odd * square + C3
    even = even * square + 1.0
    odd = odd * square + 1.0
    p = odd * r + even
    return p * i64((f64(shifted).view(i64) + i64(1023)) << i64(52)).view(f64)


@njit(fastmath={"contract"}, error_model="numpy")
def exp(x):
    """Return e^x as :func:`exp_near` does; NaN for |x| > EXP_LIMIT and for NaN."""
    return exp_near(x if abs(x) <= EXP_LIMIT else np.nan)


@njit(fastmath={"contract"}, error_model="numpy")
def exp_single(x):
    """e^x of a float32 number within EXP_SINGLE, for |x| up to the limit of a window."""
    shifted = x * S_LOG2_E + S_ROUNDING
    n = shifted - S_ROUNDING
    r = (x - n * S_HIGH) - n * S_LOW
    p = S6 * r + S5
    p = p * r + S4
    p = p * r + S3
    p = p * r + S2
    p = p * r + S1
    p = p * r + S1
    return p * i32((f32(shifted).view(i32) + i32(127)) << i32(23)).view(f32)
