"""Stores that round or saturate otherwise than a device's: steps of wrong kernels."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np

from ...model.call import Array
from ...model.dtypes import FORMATS
from ...model.platforms import Platform
from ...numerics.floats.rounding import quantize
from .device import Store, store
from .pieces import F

NARROW = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}


def cut(array: Array, bits: int) -> Array:
    """Return float32 numbers with some fraction bits alone, as matrix units keep of an operand."""
    keep = np.uint32(0xFFFFFFFF << (23 - bits) & 0xFFFFFFFF)
    return np.asarray((np.ascontiguousarray(array).view(np.uint32) & keep).view(F).reshape(array.shape))


def half_away(values: Array, dtype: str, target: Platform) -> Array:
    """A store to 16 bits that rounds ties away from zero."""
    right = store(values, dtype, target)
    if dtype not in NARROW or values.dtype == right.dtype:
        return right
    step = right.view(np.uint16) + np.uint16(1)  # the next number away from zero
    back, away = right.astype(np.float64), step.view(right.dtype).astype(np.float64)
    wide = values.astype(np.float64)
    tie = np.isfinite(wide) & np.isfinite(away) & (np.abs(wide) > np.abs(back)) & (wide - back == away - wide)
    return np.where(tie, step, right.view(np.uint16)).view(right.dtype)


def truncated(values: Array, dtype: str, target: Platform) -> Array:
    """A store to 16 bits that cuts the digits off."""
    right = store(values, dtype, target)
    if dtype not in NARROW or values.dtype == right.dtype:
        return right
    over = np.abs(right.astype(np.float64)) > np.abs(values.astype(np.float64))
    over &= np.isfinite(values)
    down = right.view(np.uint16) - over.astype(np.uint16)
    return down.view(right.dtype)


def upwards(values: Array, dtype: str, target: Platform) -> Array:
    """A 16-bit store that rounds towards +inf."""
    down = truncated(values, dtype, target)
    if dtype not in NARROW or values.dtype == down.dtype:
        return down
    up = np.isfinite(down.astype(F)) & (values.astype(np.float64) > down.astype(np.float64)) & (values > 0)
    return (down.view(np.uint16) + up.astype(np.uint16)).view(down.dtype)


def saturated(values: Array, dtype: str, target: Platform) -> Array:
    """A store to float16 that saturates, and turns NaN into 0, on a product that must not."""
    if dtype == "float16":
        largest = FORMATS[dtype].max
        values = np.clip(np.nan_to_num(values, nan=0.0, posinf=np.inf, neginf=-np.inf), -largest, largest)
    return store(values, dtype, target)


def minus_zero_lost(values: Array, dtype: str, target: Platform) -> Array:
    """A store of +0 for -0."""
    right = store(values, dtype, target)
    return np.where(right == 0, np.zeros((), right.dtype), right)


def off(error: float) -> Store:
    """A float32 store that is off by a relative error."""

    def stored(values: Array, dtype: str, target: Platform) -> Array:
        return store(values * F(1 + error) if dtype == "float32" else values, dtype, target)

    return stored


def through(other: str) -> Store:
    """A store that rounds to another format on its way."""

    def stored(values: Array, dtype: str, target: Platform) -> Array:
        if dtype == other or values.dtype.itemsize < 4:
            return store(values, dtype, target)
        return store(quantize(values.astype(np.float64), FORMATS[other]).astype(F), dtype, target)

    return stored


def of(kind: str, other: Store) -> Store:
    """Another store for one dtype only."""
    return lambda values, dtype, target: (other if dtype == kind else store)(values, dtype, target)


def flushed(kind: str) -> Store:
    """A store of one dtype that flushes its subnormal numbers."""

    def stored(values: Array, dtype: str, target: Platform) -> Array:
        right = store(values, dtype, target)
        if dtype != kind:
            return right
        tiny = np.abs(right.astype(np.float64)) < FORMATS[kind].tiny
        return np.where(tiny, np.zeros((), right.dtype), right)

    return stored


def replacing(change: Callable[[Array, float], Array], kind: str) -> Store:
    """A store of one dtype that changes special values; ``change`` also gets the largest finite value."""

    def stored(values: Array, dtype: str, target: Platform) -> Array:
        right = store(values, dtype, target)
        if dtype != kind:
            return right
        return np.asarray(change(right.astype(np.float64), FORMATS[kind].max)).astype(right.dtype)

    return stored
