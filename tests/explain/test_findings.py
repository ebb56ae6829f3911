"""The words for the places of bad elements, and ULP distances: right across zero, their histogram, quick counts."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st
from misbehaving import Makes, log_sigmoid

from oracle.case.one_case import run_case
from oracle.explain.findings import histogram, magnitude, pattern, spread, ulp_distance
from oracle.operators import Reference
from oracle.settings.settings import Settings


def mask(shape, *index):
    bad = np.zeros(shape, bool)
    for where in index:
        bad[where] = True
    return bad


IGNORED = np.isin(np.arange(10), (2, 3, 7))
TABLE = [
    (np.ones((3, 4), bool), "all"),
    (np.ones((), bool), "the only element"),
    (mask((3, 4), (1, 2)), "one element, [1, 2]"),
    (mask(100, slice(64, None)), "tail from element 64 of 100"),
    (mask((4, 100), (slice(None), slice(96, None))), "tail of every row from 96 of 100 along axis 1"),
    (mask((50, 6), (slice(32, None),)), "tail from element 192 of 300"),
    (mask((2, 50, 6), (slice(None), slice(32, None))), "tail of every row from 32 of 50 along axis 1"),
    (mask((9, 5), 3), "one row: 3 of 9"),
    (mask((4, 9, 5), (slice(None), slice(2, 5))), "one contiguous block of indices of axis 1: 2 to 4 of 9"),
    (mask((9, 5), (slice(None), 2)), "one index of axis 1: 2 of 5"),
    (mask((12, 5), slice(1, None, 3)), "every 3rd row from 1"),
    (mask((12, 5), slice(0, None, 4)), "every 4th row from 0"),
    (mask((12, 5), slice(2, 6)), "one contiguous block of rows: 2 to 5 of 12"),
    (mask(256, slice(5, None, 16)), "one lane: element 5 of every 16"),
    (mask(4096, slice(63, None, 64)), "one lane: element 63 of every 64"),
    (mask(60, slice(1, None, 7)), "every 7th element from 1"),
    (mask(60, slice(10, 20)), "one contiguous block of elements: 10 to 19 of 60"),
    (mask((9, 5), 1, 2, 6), "whole rows: 3 of 9"),
    (mask((4, 5), (0, 1), (1, 3), (3, 1)), "scattered: 3 of 20"),
]


@pytest.mark.parametrize(("bad", "message"), TABLE, ids=[message for _, message in TABLE])
def test_pattern(bad, message):
    assert pattern(bad) == message


def test_ignored_rows_are_named_before_anything_else():
    bad = mask((10, 4), (2, 1), (7, 3))
    assert pattern(bad, IGNORED) == "ignored rows (2 of 3)"
    bad[5, 0] = True
    assert "ignored" not in pattern(bad, IGNORED)


@pytest.mark.parametrize("bad", [b for b, _ in TABLE])
def test_a_pattern_never_names_an_element_that_is_right(bad):
    """Adding one far-away bad element to a regular pattern must change the words."""
    free = np.argwhere(~bad)
    if bad.ndim and len(free) > 1:
        more = bad.copy()
        more[tuple(free[len(free) // 2])] = True
        assert pattern(more) != pattern(bad)


# ULP distances --------------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize(
    ("wrong", "limit"),
    [
        (lambda x: x > 1.5, "self is at least 1.5"),
        (lambda x: (x > 1.5) & (np.arange(x.size) % 3 > 0), "self is at least 1.5"),
        (lambda x: x < -1.25, "self is at most -1.25"),
        (lambda x: abs(x) < 0.1, "the magnitude of self is at most 0.1"),
        (lambda x: abs(x) > 2, "the magnitude of self is at least 2"),
        (lambda x, right: abs(right) > 0.75, "the magnitude of gradInput is at least 0.75"),
        (lambda x: np.random.default_rng(5).random(x.shape) < 0.1, ""),
        (lambda x: x > np.sort(x)[-6], ""),  # too few to show a limit
    ],
)
def test_scattered_errors_are_described_by_the_numbers_of_an_operand(wrong, limit):
    """Each wrong element has another error: no rule about the values explains them."""

    def spoil(call, result, held):
        x = call.inputs["self"].astype(np.float64)
        noise = np.random.default_rng(3).uniform(0.01, 0.02, x.shape)
        given = (x.reshape(-1), result.reshape(-1))[: wrong.__code__.co_argcount]
        return result * np.where(wrong(*given).reshape(x.shape), 1 + noise, 1)

    pattern = run_case(log_sigmoid(shape=(40, 50)), Makes(spoil), Settings()).detail.pattern
    assert pattern.startswith("scattered: ")
    (said, _, number), (subject, _, wanted) = (text.rpartition(" ") for text in (pattern, limit))
    if limit:
        assert said.endswith(f", where {subject}")
        assert float(number) == pytest.approx(float(wanted), rel=0.03)  # some elements next to it are right
    else:
        assert ", where " not in pattern
