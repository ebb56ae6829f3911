"""Operands of compiled loops: bits widened to float64 or float32, chunks, windows, and what is picked of them.

A function of an operand is compiled for arrays of codes, and for numbers, which stand for themselves everywhere.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from typing import Any

import llvmlite.binding
import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from ...model.call import Array
from ...model.dtypes import dtype_of

njit = numba.njit
u16, i32, i64, u32, u64, f32, f64 = np.uint16, np.int32, np.int64, np.uint32, np.uint64, np.float32, np.float64

# Reinterpreted operands: bfloat16 and float16 have no arithmetic here.
CODES = {"float32": np.uint32, "bfloat16": np.uint16, "float16": np.int16}


def codes_of(array: Array) -> Array:
    """A contiguous vector of an operand's bits."""
    return np.ascontiguousarray(array).reshape(-1).view(CODES[dtype_of(array.dtype).name])


def operand_codes(operands: Mapping[str, Any], names: tuple[str, ...]) -> tuple[Any, ...]:
    """What a loop is given: the bits of arrays, and numbers."""
    return tuple(codes_of(operands[n]) if isinstance(operands[n], np.ndarray) else float(operands[n]) for n in names)


def load_single(operand, i):
    """Element i of an operand as float32, which holds it; a number stands for itself."""
    raise NotImplementedError("compiled code only")


@overload(load_single)
def _load_single(operand, i):
    if not isinstance(operand, types.Array):
        return lambda operand, i: f32(operand)
    half = _load_float16 if CONVERTS_HALF else _load_float16_by_bits
    return {types.uint32: _load_float32, types.uint16: _load_bfloat16, types.int16: half}[operand.dtype]


def load(operand, i):
    """Element i of an operand as float64; a number stands for itself."""
    raise NotImplementedError("compiled code only")


@overload(load)
def _load(operand, i):
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
    value = f32(np.nan) if magnitude >= i32(31 << 10) else value  # not finite: left to the other road
    return f32(-value if code < i32(0) else value)


@intrinsic
def widened(context, code):
    """float16's bits as float32, by the processor's own conversion."""

    def generate(context, builder, signature, arguments):
        return builder.fpext(builder.bitcast(arguments[0], ir.HalfType()), ir.FloatType())

    return types.float32(types.int16), generate


def converts_half() -> bool:
    """Whether the processor that is compiled for converts float16; LLVM else calls a library that may not be there."""
    if numba.config.CPU_NAME or numba.config.CPU_FEATURES:
        return "+f16c" in (numba.config.CPU_FEATURES or "")
    return platform.machine() in ("aarch64", "arm64") or bool(llvmlite.binding.get_host_cpu_features().get("f16c"))


CONVERTS_HALF = converts_half()


# ---- chunks and windows ----------------------------------------------------------------------------------------------

_WORDS = {16: (u16, u16(0x7FFF)), 32: (u32, u32(0x7FFFFFFF))}  # codes as numbers, and what takes the sign from them


def part(operand, start, stop):
    """Elements start to stop of an operand; a number stands for itself."""
    raise NotImplementedError("compiled code only")


@overload(part)
def _part(operand, start, stop):
    if isinstance(operand, types.Array):
        return lambda operand, start, stop: operand[start:stop]
    return lambda operand, start, stop: operand


def is_beyond(operand, i, window):
    """Whether the code of element i is neither that of 0 nor of a magnitude in a window of codes; no number's is."""
    raise NotImplementedError("compiled code only")


@overload(is_beyond)
def _is_beyond(operand, i, window):
    if not isinstance(operand, types.Array):
        return lambda operand, i, window: False
    word, sign = _WORDS[operand.dtype.bitwidth]

    def beyond(operand, i, window):
        size = word(word(operand[i]) & sign)
        return (size != word(0)) & (word(size - word(window[0])) > word(window[1] - window[0]))

    if word is u32:  # whose windows begin at 0
        return lambda operand, i, window: word(word(operand[i]) & sign) > word(window[1])
    return beyond


# ---- what is in doubt, put together ----------------------------------------------------------------------------------


@njit(error_model="numpy")
def listed(doubt, words, size, start, places, found):
    """List the places of the first elements that are in doubt, counted from ``start``, behind those that are found;
    return how many there are then. ``words``: the doubts, eight at a time, of which a row of 16 is looked at as one."""
    for first in range(0, words.size, 16):
        some = u64(0)
        for word in range(16):
            some |= words[first + word]
        if some == u64(0):
            continue
        for word in range(first, first + 16):
            if words[word] != u64(0):
                for i in range(8 * word, min(8 * word + 8, size)):
                    places[found] = start + i
                    found += doubt[i]
    return found


def room(operand, size):
    """Return room for so many elements of an operand; a number needs none."""
    raise NotImplementedError("compiled code only")


@overload(room)
def _room(operand, size):
    if isinstance(operand, types.Array):
        return lambda operand, size: np.zeros(size, operand.dtype)
    return lambda operand, size: operand


def picked(operand, places, room):
    """Return the elements of an operand at some places, in the room for them."""
    raise NotImplementedError("compiled code only")


@overload(picked)
def _picked(operand, places, room):
    if isinstance(operand, types.Array):
        return _picked_codes
    return lambda operand, places, room: operand


def _picked_codes(operand, places, room):
    for k in range(places.size):
        room[k] = operand[places[k]]
    return room[: places.size]
