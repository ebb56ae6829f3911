"""The stages of a row in pairs of float64 numbers: sums are within their stated errors."""

from __future__ import annotations

import numpy as np
import pytest
from gmpy2 import mpq

import oracle
from oracle.numerics.golden.stages import pair_sum


@pytest.mark.parametrize("length", [1, 2, 3, 64, 1000])
@pytest.mark.parametrize("spread", [0, 40, 200])
def test_a_sum_is_within_its_error(length, spread):
    rng = np.random.default_rng(length)
    high = rng.uniform(-1, 1, (4, length)) * 2.0 ** rng.integers(-spread, spread + 1, (4, length))
    low = high * rng.uniform(-1, 1, (4, length)) * 2.0**-54
    (one, other), lost = pair_sum(high, low)
    for row in range(4):
        exact = sum((mpq(float(v)) for v in (*high[row], *low[row])), mpq(0))
        assert abs(mpq(float(one[row, 0])) + mpq(float(other[row, 0])) - exact) <= mpq(float(lost[row, 0]))


def test_a_sum_of_one_large_and_small_terms_is_exact():
    """In the softmax of a row with one large number, only the logarithm of this sum is left."""
    high = np.array([[0, 2.0**-300, 1, 0]])
    (one, other), lost = pair_sum(high, np.zeros((1, 4)))
    assert (one[0, 0], other[0, 0], lost[0, 0] <= 2.0**-350) == (1, 2.0**-300, True)
    row = np.array([60, 0, 0], np.float32)  # 2 e^-60, which is lost in any float64 sum
    (first, *_) = oracle.golden("aclnnLogSoftmax", self=row, dim=0)["out"]
    assert first == np.float32(-2 * np.exp(-60.0))
