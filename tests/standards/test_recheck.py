"""The recheck over seeds: the least number, the limit of the confidence interval, repeatability."""

import math

import numpy as np
import pytest

from oracle import OracleError, recheck


@pytest.mark.parametrize(
    ("ratios", "passed", "interval"),
    [
        ([1.0] * 200, True, (1, 1)),  # 1.0 is not above 1.0
        ([math.nextafter(1.0, 2)] * 200, False, (math.nextafter(1.0, 2),) * 2),
        ([1.2] * 1000, False, (1.2, 1.2)),
        ([0.9] * 600 + [1.5] * 400, True, (0.9, 0.9)),
        ([0.9] * 400 + [1.5] * 600, False, (1.5, 1.5)),
        ([math.inf] * 300, False, (math.inf, math.inf)),
        ([math.nan] * 300, False, (math.inf, math.inf)),
        ([0.5] * 199 + [math.inf], True, (0.5, 0.5)),
    ],
)
def test_fails_when_the_lower_end_is_above_one(ratios, passed, interval):
    verdict = recheck(np.random.default_rng(1).permutation(ratios))
    assert verdict.passed is passed
    assert (verdict.metrics["ci_lower"], verdict.metrics["ci_upper"]) == interval
    assert bool(verdict.reason) is not passed


@pytest.mark.parametrize("n", [0, 1, 199])
def test_fewer_than_200_seeds_fail(n):
    verdict = recheck([0.1] * n)
    assert not verdict.passed
    assert "200" in verdict.reason
    assert "ci_lower" not in verdict.metrics


def test_interval_is_that_of_numpy_for_its_own_resamples():
    values = np.random.default_rng(0).lognormal(0, 0.5, 300)
    verdict = recheck(values, resamples=100, seed=7)
    draws = np.sort(values)[np.random.default_rng(7).integers(0, 300, (100, 300))]
    low, high = np.percentile(np.median(draws, axis=1), [2.5, 97.5])
    assert verdict.metrics["ci_lower"] == pytest.approx(low, rel=1e-15)
    assert verdict.metrics["ci_upper"] == pytest.approx(high, rel=1e-15)
    assert verdict.metrics["median"] == np.median(values)


def test_order_of_the_seeds_does_not_matter():
    values = np.random.default_rng(3).lognormal(0, 0.5, 250)
    assert recheck(values) == recheck(values[::-1])


@pytest.mark.parametrize("ratios", ["abc", [[1.0, 2.0]], [1.0, -0.5], 3.0, [object()]])
def test_nonsense_is_told(ratios):
    with pytest.raises(OracleError, match="recheck"):
        recheck(ratios)
    with pytest.raises(OracleError, match="resamples=0"):
        recheck([1.0] * 200, resamples=0)
