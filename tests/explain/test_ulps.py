"""ULP distances right across zero, their histogram, and the quick counts of a whole output."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st

from oracle.explain.findings import histogram, magnitude, spread, ulp_distance
from oracle.operators import Reference

TYPES = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
ALIEN = np.iinfo(np.uint64).max


def distance(a, b, dtype):
    return int(ulp_distance(np.asarray([a], dtype), np.asarray([b], dtype))[0])


@pytest.mark.parametrize("dtype", TYPES)
class TestDistance:
    def test_of_neighbours_is_one_on_both_sides_of_zero(self, dtype):
        tiny = np.zeros(1, f"u{np.dtype(dtype).itemsize}") + 1
        tiny = tiny.view(dtype)[0]
        assert distance(0.0, tiny, dtype) == 1
        assert distance(-0.0, tiny, dtype) == 1
        assert distance(-tiny, tiny, dtype) == 2

    def test_of_signed_zeros_is_zero(self, dtype):
        assert distance(0.0, -0.0, dtype) == 0

    def test_of_infinity_from_the_largest_is_one(self, dtype):
        largest = float(ml_dtypes.finfo(dtype).max)
        assert distance(largest, math.inf, dtype) == 1
        assert distance(-largest, -math.inf, dtype) == 1

    def test_of_nan_is_zero_from_nan_and_endless_from_numbers(self, dtype):
        assert distance(math.nan, -math.nan, dtype) == 0
        assert distance(math.nan, 0.0, dtype) == distance(math.inf, math.nan, dtype) == ALIEN

    def test_of_the_extremes_does_not_overflow(self, dtype):
        assert distance(-math.inf, math.inf, dtype) == 2 * distance(0.0, math.inf, dtype)


@given(st.integers(-2000, 2000), st.integers(-2000, 2000))
def test_distance_counts_the_numbers_between(i, j):
    def nth(n):
        return np.asarray([n if n >= 0 else -n | 0x80000000], np.uint32).view(np.float32)

    assert int(ulp_distance(nth(i), nth(j))[0]) == abs(i - j)


def test_the_histogram_counts_everything_once():
    distances = np.asarray([0, 0, 1, 2, 3, 4, 5, 16, 17, 65536, 65537, 2**40, ALIEN], np.uint64)
    assert histogram(distances) == {
        "0": 2, "1": 1, "2": 1, "3-4": 2, "5-16": 2, "17-64": 1, "4097-65536": 1, ">65536": 2, "nan": 1,
    }  # fmt: skip


@pytest.mark.parametrize("dtype", TYPES)
def test_the_spread_of_an_output_is_the_histogram_of_its_distances(dtype):
    word, rng = f"u{np.dtype(dtype).itemsize}", np.random.default_rng(1)
    for steps, share in ((1, 0), (3, 0), (200, 0), (3, 0.3)):
        golden = rng.integers(0, np.iinfo(word).max, 40_000, word, endpoint=True)  # of every class, NaN too
        if steps == 1:
            golden &= np.asarray(1.0, dtype).view(word)  # numbers only
        actual = golden + rng.integers(-steps, steps + 1, golden.size).astype(word)
        golden, actual, unspecified = golden.view(dtype), actual.view(dtype), rng.random(golden.size) < share
        reference = Reference(golden, golden, golden, unspecified if share else None)
        with np.errstate(invalid="ignore"):
            wanted = histogram(ulp_distance(actual[~unspecified], golden[~unspecified]))
            result = spread(actual, reference)
        assert result == {name: n for name, n in wanted.items() if n}


@pytest.mark.parametrize("dtype", TYPES)
def test_the_magnitude_of_an_output_is_its_largest_finite_one(dtype):
    assert magnitude(np.asarray([1, -3, math.nan, -math.inf, 2], dtype)) == 3
    assert magnitude(np.asarray([[-1.5, 0.25]], dtype)) == 1.5
    assert magnitude(np.asarray([math.nan, -math.nan, math.inf], dtype)) == magnitude(np.empty(0, dtype)) == 0
