"""e^x, logarithms, tanh and erf: as exact as the proofs assume, and the same bits on every machine."""

from __future__ import annotations

import hashlib
import math

import gmpy2
import numpy as np
import pytest

from oracle.numerics.floats import functions
from oracle.numerics.floats.rounding import FLOAT64

OWN = {name: getattr(functions, name) for name in ("exp", "log", "log1p", "expm1", "tanh")}
FUNCTIONS = {**OWN, "erf": functions.erf, "erfc": functions.erfc}
SPECIAL = {"erf": math.erf, "erfc": math.erfc}
BITS = "c4d301ed56b11ffa280d9ff299009e5a18a826e3feb22b8c8aa00fdf7ae7d43f"


def arguments(name: str, count: int = 2000) -> np.ndarray:
    """Return numbers of both signs and every relevant binade, dense where a function changes its method."""
    bits = np.random.Philox(key=3).random_raw(4 * count)
    unit = (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53
    one, two, three, four = np.split(unit, 4)
    far = np.ldexp(1 + one, (two * 70 - 60).astype(np.int32))
    x = np.concatenate([three * 4 - 2, four * 1480 - 740, far, -far, np.rint(three * 2000) * 0.34657359027997264])
    if name in ("erf", "erfc"):
        return np.concatenate([three * 60 - 30, three * 4 - 2, far[np.abs(far) < 28], -far])
    if name == "log":
        return np.concatenate([np.abs(x), 1 + far[far < 0.5]])
    return x[(x > -1) & (x < 1e300)] if name == "log1p" else x


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_loses_no_more_than_the_proofs_allow_it(name: str) -> None:
    x = arguments(name)
    result = FUNCTIONS[name](x)
    with gmpy2.context(precision=120, emin=-5000, emax=5000):
        exact = [getattr(gmpy2, name)(gmpy2.mpfr(v)) for v in x.tolist()]
        pairs = [(gmpy2.mpfr(a), e) for a, e in zip(result.tolist(), exact, strict=True) if np.isfinite(a)]
        assert len(pairs) > len(x) * 0.9
        assert all(abs(a - e) <= abs(e) * FLOAT64.accuracy[name] * 2.0**-53 + 2.0**-1074 for a, e in pairs)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values_and_types_are_those_of_numpy(name: str) -> None:
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e308, -1e308, 5e-324, -5e-324, -1, -2, 1, 1e-300])
    with np.errstate(all="ignore"):
        result, expected = (
            FUNCTIONS[name](x),
            np.vectorize(SPECIAL[name])(x) if name in SPECIAL else getattr(np, name)(x),
        )
        np.testing.assert_allclose(result, expected, rtol=1e-15)
        zeros = expected == 0
        assert (np.signbit(result) == np.signbit(expected))[zeros].all()
    half = np.linspace(0.25, 4, 60).reshape(3, 20).astype(np.float16)
    out = np.empty((20, 3)).T
    assert FUNCTIONS[name](half).dtype == np.float16
    assert FUNCTIONS[name](half, out=out) is out
    np.testing.assert_array_equal(out, FUNCTIONS[name](half.astype(np.float64)))
    assert np.ndim(FUNCTIONS[name](np.float32(1))) == 0


def test_everybody_gets_the_same_bits() -> None:
    digest = hashlib.sha256()
    for name in FUNCTIONS:
        result = FUNCTIONS[name](arguments(name))
        digest.update(np.where(np.isnan(result), 0, result).tobytes())
    assert digest.hexdigest() == BITS
