"""MERE and MARE at their strict limits, with special values, small values and the other epsilon."""

import math

import numpy as np
import pytest
from judged_numbers import judged

INF, NAN = math.inf, math.nan
LIMITS = {
    "float16": 2**-10, "bfloat16": 2**-7, "float32": 2**-13, "float64": 2**-13, "hifloat32": 2**-11,
    "float8_e4m3fn": 2**-3, "float8_e5m2": 2**-2,
}  # fmt: skip
pytestmark = pytest.mark.parametrize("standard", ["mere-mare", "ttk-stat"])


@pytest.mark.parametrize(("dtype", "limit"), LIMITS.items(), ids=LIMITS)
def test_both_limits_are_strict(standard, dtype, limit):
    for epsilon, passed in ((0, False), (1e-7, True)):  # re = T exactly, and just below it
        assert judged(standard, [1.0], [1 + limit], dtype, epsilon=epsilon).passed is passed
    golden, actual = np.ones(16), np.ones(16)
    for factor, passed in ((8, True), (10, False), (16, False)):
        actual[0] = 1 - factor * limit if factor * limit < 1 else 1 + factor * limit
        verdict = judged(standard, golden, actual, dtype, epsilon=0)
        assert verdict.metrics["mare"] == factor * limit
        assert verdict.passed is passed


@pytest.mark.parametrize(
    ("golden", "actual", "passed"),
    [
        ([NAN, 1], [NAN, 1], True),
        ([INF, -INF], [INF, -INF], True),
        ([INF, 1], [-INF, 1], False),
        ([1, 1], [NAN, 1], False),
        ([NAN, 1], [1, 1], False),
        ([INF, 2], [3.4028235e38, 2], False),
        ([1e39, 2], [INF, 2], True),
        ([], [], True),
        ([NAN], [NAN], True),
        ([0.0], [0.0], True),
        ([0.0], [1e-10], False),
        ([0.0], [1e-12], True),
        ([2.0**-140], [0.0], True),  # flushed far below epsilon
    ],
)
def test_special_empty_and_small(standard, golden, actual, passed):
    assert judged(standard, golden, actual).passed is passed


def test_agreeing_specials_leave_the_mean(standard):
    verdict = judged(standard, [NAN, INF, 1.0], [NAN, INF, 1.0 + 2**-14], epsilon=0)
    assert verdict.metrics["mere"] == 2**-14
    assert verdict.metrics["special_mismatch"] == 0


def test_equal_elements_may_be_left_out_of_the_mean(standard):
    golden, actual = [1.0] * 4, [1.0, 1.0, 1.0, 1 + 2**-12]
    assert judged(standard, golden, actual).passed
    assert not judged(standard, golden, actual, skip_equal=True).passed
