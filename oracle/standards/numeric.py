"""Arithmetic the standards share: ULPs, special values, and evaluation in blocks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ..model.dtypes import FloatFormat
from ..model.errors import OracleError
from .base import Array, Sample

BLOCK = 1 << 15  # elements: the scratch of a block stays in the L2 cache
Row = TypeVar("Row")


def overflow_is_nan(form: FloatFormat) -> bool:
    """Whether the format has no infinity, so that an overflow gives NaN."""
    return form.name == "float8_e4m3fn"


def ulp(value: float, form: FloatFormat) -> float:
    """Return the spacing of the value's binade; zero and subnormals have the subnormals' spacing.

    The largest finite value has the width of its own binade (float16 65504: 32).
    """
    exponent = math.frexp(value)[1] - 1 if value else form.emin
    return math.ldexp(1.0, max(exponent, form.emin) - form.mant)


def nearest(value: float, form: FloatFormat) -> float:
    """Round a finite number to the format, ties to even; beyond the largest finite value it is that value."""
    quantum = ulp(value, form)  # a power of two: only round() rounds
    return max(-form.max, min(form.max, round(value / quantum) * quantum))


def ulps(values: Array, form: FloatFormat) -> Array:
    """Return ``ulp`` of every finite element."""
    exponent = np.maximum(np.frexp(values)[1] - 1, form.emin)
    return np.asarray(np.ldexp(1.0, np.where(values == 0, form.emin, exponent) - form.mant))


def pick(table: dict[str, Row], sample: Sample, standard: str) -> Row:
    """Return the dtype's row. float64 uses the float32 row: every tool's default for other floats (TTK, msprobe)."""
    name = sample.dtype.name
    if name == "float64":
        name = "float32"
    if name not in table:
        raise OracleError(f"standard {standard!r} has no numbers for dtype {name!r}, only for {', '.join(table)}")
    return table[name]


@dataclass(frozen=True)
class Block:
    """A run of elements from flat position ``start`` on, as float64. Not to be written: they may be the caller's.

    Without a third party ``third`` is ``actual``.
    """

    start: int
    golden: Array
    actual: Array
    third: Array


def stored_blocks(sample: Sample) -> Iterator[tuple[int, Array, Array]]:
    """Yield (start, golden, actual) in the same runs, each in the dtype it is stored in."""
    golden, actual = flat(sample.golden), flat(sample.actual)
    for start in range(0, sample.size, BLOCK):
        part = slice(start, start + BLOCK)
        yield start, np.asarray(golden[part]), np.asarray(actual[part])


def blocks(sample: Sample) -> Iterator[Block]:
    """Yield the sample in runs of at most BLOCK elements, in C order."""
    third = None if sample.third is None else flat(sample.third)
    for start, golden, actual in stored_blocks(sample):
        ours = as_float64(actual)
        theirs = ours if third is None else as_float64(np.asarray(third[start : start + BLOCK]))
        yield Block(start, as_float64(golden), ours, theirs)


def as_float64(values: Array) -> Array:
    """Return the values as float64: themselves, or an exact copy."""
    return values if values.dtype == np.float64 else values.astype(np.float64)


def flat(array: Array) -> Any:
    """Return something whose slices are runs of the array in C order, without a copy of the whole."""
    return array.reshape(-1) if array.flags.c_contiguous else array.flat


FINITE, INF, NEG_INF, NAN = 0, 1, 2, 3


def states(values: Array, overflow: float = math.inf, overflow_nan: bool = False) -> Array:
    """Return each element's state as uint8: FINITE, INF, NEG_INF or NAN.

    With ``overflow`` (``FloatFormat.overflow``) an element counts as what it is once narrowed; a format without
    infinity has NaN for infinities too (``overflow_nan``).
    """
    state = np.zeros(values.shape, np.uint8)
    state[values >= overflow] = NAN if overflow_nan else INF
    state[values <= -overflow] = NAN if overflow_nan else NEG_INF
    state[np.isnan(values)] = NAN
    return state


def golden_states(values: Array, form: FloatFormat, inf_narrow: bool) -> Array:
    """Return the golden's states, after rounding to the output's format if ``inf_narrow``."""
    return states(values, form.overflow, overflow_is_nan(form)) if inf_narrow else states(values)
