"""e^x, logarithms and tanh: as exact as the proofs take them to be, and the same bits on every machine."""

from __future__ import annotations

import hashlib

import gmpy2
import numpy as np
import pytest

from oracle.numerics import functions
from oracle.numerics.errorbounds import FLOAT64

NAMES = ("exp", "log", "log1p", "expm1", "tanh")
BITS = "99137aa5ce55bd3e28e88cc37c6f71b6bbf1f18675ed3d4a4b13c831f1b994bb"


def arguments(name: str, count: int = 2000) -> np.ndarray:
    """Numbers of both signs and every binade that matters, dense where a function changes its way."""
    bits = np.random.Philox(key=3).random_raw(4 * count)
    unit = (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53
    one, two, three, four = np.split(unit, 4)
    far = np.ldexp(1 + one, (two * 70 - 60).astype(np.int32))
    x = np.concatenate([three * 4 - 2, four * 1480 - 740, far, -far, np.rint(three * 2000) * 0.34657359027997264])
    if name == "log":
        return np.concatenate([np.abs(x), 1 + far[far < 0.5]])
    return x[(x > -1) & (x < 1e300)] if name == "log1p" else x


@pytest.mark.parametrize("name", NAMES)
def test_a_function_loses_no_more_than_the_proofs_allow_it(name: str) -> None:
    x = arguments(name)
    found = getattr(functions, name)(x)
    with gmpy2.context(precision=120, emin=-5000, emax=5000):
        exact = [getattr(gmpy2, name)(gmpy2.mpfr(v)) for v in x.tolist()]
        pairs = [(gmpy2.mpfr(a), e) for a, e in zip(found.tolist(), exact, strict=True) if np.isfinite(a)]
        assert len(pairs) > len(x) * 0.9
        assert all(abs(a - e) <= abs(e) * FLOAT64.accuracy[name] * 2.0**-53 + 2.0**-1074 for a, e in pairs)


@pytest.mark.parametrize("name", NAMES)
def test_special_values_and_types_are_those_of_numpy(name: str) -> None:
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e308, -1e308, 5e-324, -5e-324, -1, -2, 1, 1e-300])
    with np.errstate(all="ignore"):
        found, expected = getattr(functions, name)(x), getattr(np, name)(x)
        np.testing.assert_allclose(found, expected, rtol=1e-15)
        zeros = expected == 0
        assert (np.signbit(found) == np.signbit(expected))[zeros].all()
    half = np.linspace(0.25, 4, 60).reshape(3, 20).astype(np.float16)
    out = np.empty((20, 3)).T
    assert getattr(functions, name)(half).dtype == np.float16
    assert getattr(functions, name)(half, out=out) is out
    np.testing.assert_array_equal(out, getattr(functions, name)(half.astype(np.float64)))
    assert np.ndim(getattr(functions, name)(np.float32(1))) == 0


def test_everybody_gets_the_same_bits() -> None:
    digest = hashlib.sha256()
    for name in NAMES:
        found = getattr(functions, name)(arguments(name))
        digest.update(np.where(np.isnan(found), 0, found).tobytes())
    assert digest.hexdigest() == BITS
