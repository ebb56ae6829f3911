"""Overflow of every format is told where it is certain, and nowhere else."""

from __future__ import annotations

import gmpy2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracle.numerics.formula.expressions import erf, exp, symbol
from oracle.numerics.proof.outward import BEYOND, overflowed

x, y = symbol("x"), symbol("y")
ROOTS = [exp(x) * y, exp(x) * y * -1 * (1 / y), -(y * exp(x)) / 7, exp(-x) * exp(x) * y, exp(x) / exp(y), y / exp(x)]
SINGLE = st.floats(width=32, allow_nan=False, allow_infinity=False)


def told(root, a, b):
    """What is told of a value that float64 does not know."""
    nothing = np.full(1, np.nan)
    with np.errstate(all="ignore"):
        (value,), (low,), (high,) = overflowed(root, {"x": np.array([a]), "y": np.array([b])}, (nothing,) * 3)
    assert (low, high) == (-np.inf, np.inf)
    return value


@pytest.mark.parametrize("root", ROOTS)
@given(a=SINGLE | st.floats(-1000, 1000), b=SINGLE.filter(bool))
def test_what_is_told_to_overflow_does(root, a, b):
    found = told(root, a, b)
    if found:
        wide = {"emax": gmpy2.get_emax_max(), "emin": gmpy2.get_emin_min()}
        with gmpy2.context(precision=200, **wide):
            p, q = gmpy2.mpfr(a), gmpy2.mpfr(b)
            up = gmpy2.exp(p)
            exact = [up * q, -up, -(q * up) / 7, q, gmpy2.exp(p - q), q / up][ROOTS.index(root)]
        assert gmpy2.is_nan(exact) or (abs(exact) > BEYOND and (exact > 0) == (found > 0))


def test_e_to_a_large_power_overflows_beside_any_number():
    assert told(exp(x) * y, 1e4, -(2.0**-149)) == -np.inf
    assert told(exp(x) * y, 1e38, 3.0) == np.inf
    assert told(exp(x) / y, 1e4, 3e38) == np.inf


def test_what_may_be_finite_is_not_told():
    assert told(exp(x) * y, 1e4, 0.0) == 0
    assert told(exp(-x) * exp(x) * y, 1e4, 1.0) == 0
    assert told(exp(x) * erf(y), 1e4, 1.0) == 0, "a function that the intervals do not know"


def test_values_that_are_known_stay_as_they_are():
    found = tuple(np.array(v) for v in ([1.0, np.inf], [0.5, -np.inf], [2.0, np.inf]))
    given = {"x": np.array([0.0, 1e4]), "y": np.ones(2)}
    with np.errstate(all="ignore"):
        value, low, high = overflowed(exp(x) * y, given, found)
    assert (value.tolist(), low.tolist(), high.tolist()) == ([1, np.inf], [0.5, -np.inf], [2, np.inf])
