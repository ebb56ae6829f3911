"""What stands for NumPy's reductions answers as they do: of every layout, with NaN, an empty mask too."""

from __future__ import annotations

import numpy as np

from oracle.numerics.extremes import every, highest, lowest, some


def test_extremes_are_those_of_numpy_and_nan_where_there_is_one():
    for dtype in (np.float16, np.float32, np.float64, np.int32):
        values = np.asarray([[3, -1, 2], [7, 0, -9]], dtype)
        for layout in (values, values.T, values[:, ::2], values[0, 0]):
            assert (highest(layout), lowest(layout)) == (layout.max(), layout.min())
    values = np.asarray([np.inf, np.nan, -np.inf])
    assert np.isnan(highest(values))
    assert np.isnan(lowest(values))


def test_masks_are_asked_as_numpy_does():
    for mask in ([], [True], [False], [True, False], [True, True], [[False, False], [False, True]]):
        mask = np.asarray(mask, bool)
        assert (some(mask), every(mask)) == (mask.any(), mask.all())
