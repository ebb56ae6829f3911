"""Float arrays inspected as integers: NaN, infinities, extremes in every layout, and the preparation of a cast."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from oracle.numerics.floats.codes import (
    LONG,
    MANY,
    all_true,
    any_true,
    castable,
    code,
    codes,
    has_nan,
    highest,
    is_finite,
    lowest,
    magnitude_codes,
    reduce_rows,
)

TYPES = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]


@pytest.mark.parametrize("dtype", TYPES)
def test_nan_and_infinities_are_seen_of_either_sign(dtype):
    plain = np.asarray([0.0, -0.0, 1.5, -2.5], dtype)
    largest = ml_dtypes.finfo(dtype).max
    for value, finite, nan in ((largest, True, False), (math.inf, False, False), (math.nan, False, True)):
        for signed in (value, -value):
            array = np.append(plain, np.asarray(signed, dtype))
            assert (is_finite(array), has_nan(array)) == (finite, nan), signed
    for array in (plain, plain[:0]):
        assert is_finite(array)
        assert not has_nan(array)


@pytest.mark.parametrize("dtype", TYPES)
def test_codes_count_the_numbers_of_a_type_from_zero(dtype):
    tiny = ml_dtypes.finfo(dtype).smallest_subnormal
    assert codes(np.asarray([0.0, tiny], dtype)).tolist() == [0, 1]
    assert magnitude_codes(np.asarray([-0.0, -tiny], dtype)).tolist() == [0, 1]
    assert code(np.dtype(dtype), math.inf) == code(np.dtype(dtype), float(ml_dtypes.finfo(dtype).max)) + 1


# Extremes and masks: the same as NumPy's reductions.


def test_extremes_are_those_of_numpy_and_nan_where_there_is_one():
    for dtype in (np.float16, np.float32, np.float64, np.int32):
        values = np.asarray([[3, -1, 2], [7, 0, -9]], dtype)
        for layout in (values, values.T, values[:, ::2], values[0, 0]):
            assert (highest(layout), lowest(layout)) == (layout.max(), layout.min())
    for size in (3, LONG - 1, LONG):
        values = np.random.default_rng(0).normal(size=size)
        assert (highest(values), lowest(values)) == (values.max(), values.min())
        values[:3] = np.inf, np.nan, -np.inf
        with np.errstate(all="raise"):
            assert np.isnan(highest(values))
            assert np.isnan(lowest(values))


def test_extremes_of_rows_are_those_of_numpy_for_rows_of_every_length():
    values = np.random.default_rng(0).normal(size=(3, 5, 200))
    values[1, 2, 0] = np.nan
    for length in (1, 2, 63, 64, 65, 200):
        rows = values[..., :length]
        for layout in (rows, rows[::2], np.moveaxis(rows, 0, 1), rows[0, 0]):
            largest = reduce_rows(np.maximum, layout, initial=-np.inf)
            assert np.array_equal(largest, layout.max(axis=-1, keepdims=True), equal_nan=True)
    assert reduce_rows(np.maximum, values[..., :0], initial=-np.inf).tolist() == [[[-np.inf]] * 5] * 3
    assert reduce_rows(np.maximum, values[:0], initial=-np.inf).shape == (0, 5, 1)


def test_masks_are_asked_as_numpy_does():
    for mask in ([], [True], [False], [True, False], [True, True], [[False, False], [False, True]]):
        mask = np.asarray(mask, bool)
        assert (any_true(mask), all_true(mask)) == (mask.any(), mask.all())


# The preparation of 16-bit floats for a cast changes neither a number nor its place in memory.

KINDS = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "contiguous": lambda a: a,
    "every second": lambda a: a[::2],
    "backwards": lambda a: a[::-1],
    "transposed": lambda a: a[:60_000].reshape(300, 200).T,
    "permuted": lambda a: a[:60_000].reshape(10, 30, 200).transpose(2, 0, 1),
    "broadcast": lambda a: np.broadcast_to(a[:200], (100, 200)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_casts_give_the_same_bits_in_the_same_order(kind: np.dtype[Any], special: bool, layout: str) -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(kind)
    if not special:
        every = every[np.isfinite(every.astype(np.float32))]
    given = LAYOUTS[layout](every)
    before = given.copy()
    assert given.size >= MANY
    for wide in (np.float32, np.float64):
        with np.errstate(invalid="ignore"):
            expected, result = given.astype(wide), castable(given).astype(wide)
        assert result.strides == expected.strides
        assert result.tobytes(order="A") == expected.tobytes(order="A")
    assert given.tobytes() == before.tobytes()


def test_few_elements_and_other_types_stay() -> None:
    for given in (np.ones(MANY - 1, np.float16), np.ones(MANY, np.float32), np.ones(MANY, np.int16)):
        assert castable(given) is given
