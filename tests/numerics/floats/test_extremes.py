"""The replacements of NumPy's reductions return the same: for every layout, with NaN, and for an empty mask."""

from __future__ import annotations

import numpy as np

from oracle.numerics.floats.codes import LONG, all_true, any_true, highest, highest_of_rows, lowest


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
            assert np.array_equal(highest_of_rows(layout), layout.max(axis=-1, keepdims=True), equal_nan=True)
    assert highest_of_rows(values[..., :0]).tolist() == [[[-np.inf]] * 5] * 3
    assert highest_of_rows(values[:0]).shape == (0, 5, 1)


def test_masks_are_asked_as_numpy_does():
    for mask in ([], [True], [False], [True, False], [True, True], [[False, False], [False, True]]):
        mask = np.asarray(mask, bool)
        assert (any_true(mask), all_true(mask)) == (mask.any(), mask.all())
