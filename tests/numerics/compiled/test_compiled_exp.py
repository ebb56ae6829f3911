"""e^x in compiled loops stays within its bounds (MPFR)."""

from __future__ import annotations

import gmpy2
import numpy as np
import pytest

pytest.importorskip("numba", reason="the extra `fast` (numba) is not installed")
from oracle.numerics.bounds.windows import EXPONENT
from oracle.numerics.compiled import elements as compiled


def test_exp_is_within_its_bound():
    r = np.random.default_rng(5)
    edges = np.arange(-1000, 1000) * (np.log(2) / 2)
    x = np.concatenate([r.uniform(-1, 1, 5000), r.uniform(-700, 700, 5000), edges, np.nextafter(edges, 0), [-700, 700]])
    with gmpy2.context(precision=120):
        worst = max(abs(gmpy2.mpfr(compiled.exp(v)) / gmpy2.exp(gmpy2.mpfr(v)) - 1) for v in x.clip(-700, 700).tolist())
    assert worst < compiled.EXP_RELATIVE
    assert np.isnan(compiled.exp(np.nan))


def test_exp_in_float32_is_within_its_bound():
    r = np.random.default_rng(6)
    edges = np.arange(-231, 232) * (np.log(2) / 2)
    spread = [r.uniform(-1, 1, 5000), r.uniform(-EXPONENT, EXPONENT, 10000), r.normal(size=2000) * 1e-3, edges]
    x = np.concatenate([*spread, np.nextafter(edges, 0), [-EXPONENT, EXPONENT, 0.0]]).clip(-EXPONENT, EXPONENT)
    with gmpy2.context(precision=80):
        errors = [
            abs(gmpy2.mpfr(float(compiled.exp_single(v))) / gmpy2.exp(gmpy2.mpfr(float(v))) - 1)
            for v in x.astype(np.float32)
        ]
    assert max(errors) < compiled.EXP_SINGLE
