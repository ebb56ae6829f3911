"""ULP distances right across zero, their histogram, the worst elements, the error map."""

from __future__ import annotations

import json
import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracle.operators import Reference
from oracle.record.codec import to_json
from oracle.record.writer import dumps_object
from oracle.runner.failure import elements, error_map, histogram, ulp_distance

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


def detail_of(value, actual, bound=0.1, bad=None):
    value = np.asarray(value, np.float64)
    golden = value.astype(np.float32)
    ref = Reference(golden, value, np.full(value.shape, bound))
    return elements("out", "a rule", ref, np.asarray(actual, np.float32), bad)


def test_the_worst_five_come_first_and_specials_before_all():
    value = np.zeros(20)
    actual = np.arange(20.0)
    actual[3] = np.nan
    found = detail_of(value, actual)
    assert [row.index for row in found.worst] == [(3,), (19,), (18,), (17,), (16,)]
    assert found.worst[0].ulp is None
    assert json.loads(dumps_object(to_json(found)))["worst"][0]["actual"] == "nan"


def test_the_worst_of_very_many_are_found():
    value = np.zeros(100_000)
    actual = np.full(100_000, 0.2)
    actual[[70_000, 5, 99_999]] = 3.0, 2.0, 1.0
    found = detail_of(value, actual, bad=actual > 0.1)
    assert [row.index[0] for row in found.worst][:3] == [70_000, 5, 99_999]
    assert len(found.worst) == 5
    assert (found.bad, found.pattern) == (100_000, "all")


def test_index_and_bits_are_those_of_the_element():
    actual = np.zeros((2, 3, 4), np.float32)
    actual[1, 2, 3] = -1.5
    (row,) = detail_of(np.zeros((2, 3, 4)), actual).worst
    assert (row.index, row.expected_hex, row.actual_hex) == ((1, 2, 3), "0x00000000", "0xbfc00000")


@pytest.mark.parametrize("size", [1, 63, 64, 65, 1000])
def test_the_error_map_shows_every_element(size):
    for place in {0, size // 2, size - 1}:
        score = np.zeros(size)
        score[place] = 7.0
        shown = error_map(score)
        assert len(shown) == min(size, 64)
        assert max(shown) == 7.0
        assert shown.index(7.0) == place * len(shown) // size or size > 64
