"""Floats as integers: NaN and infinities are found in every type, with either sign, also in an empty array."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from oracle.numerics.floats.codes import code, codes, has_nan, is_finite, magnitude_codes

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
