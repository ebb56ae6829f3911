"""Pairs of float64 numbers: within their stated errors of MPFR, and every element is settled on the right side."""

from __future__ import annotations

from itertools import islice

import ml_dtypes
import numpy as np
import pytest
from gmpy2 import mpq
from hypothesis import given, strategies as st

import oracle
from oracle.model.dtypes import DTYPES, FORMATS
from oracle.numerics import double_double
from oracle.numerics.double_double import add, divide, exponential, multiply, refined, supports
from oracle.numerics.exact.enclosures import exact
from oracle.numerics.expressions import erf, erfc, exp, expm1, log, log1p, sign, sqrt, symbol, tanh, trace, where
from oracle.numerics.floats.rounding import round_rational, round_to
from oracle.numerics.proof import round_enclosures

x = symbol("x")
NUMBER = st.floats(min_value=-1e30, max_value=1e30).filter(lambda v: v == 0 or abs(v) > 1e-30)


def value_of(pair) -> mpq:
    return mpq(float(pair[0])) + mpq(float(pair[1]))


def pair_of(high: float, low: float):
    total = np.float64(high) + np.float64(high * low * 2.0**-54)
    return np.float64(high), np.float64(high * low * 2.0**-54) if total == high else np.float64(0)


PAIRS = st.builds(pair_of, NUMBER, st.floats(min_value=-0.9, max_value=0.9))


ARITHMETIC = {add: (lambda a, b: a + b, 102), multiply: (lambda a, b: a * b, 102), divide: (lambda a, b: a / b, 99)}


@pytest.mark.parametrize("operation", ARITHMETIC)
@given(a=PAIRS, b=PAIRS)
def test_arithmetic_keeps_its_bits(operation, a, b):
    truth, bits = ARITHMETIC[operation]
    if operation is divide and b[0] == 0:
        return
    expected = truth(value_of(a), value_of(b))
    assert abs(value_of(operation(a, b)) - expected) <= abs(expected) / mpq(2) ** bits


@given(st.floats(min_value=-600, max_value=600), st.floats(min_value=-0.9, max_value=0.9))
def test_e_to_the_x_keeps_ninety_bits(high, low):
    a = pair_of(high, low)
    total = value_of(a)
    root, operands = exp(symbol("h") + symbol("l")), {"h": float(a[0]), "l": float(a[1])}
    result = exact(root, operands)
    truth = result if isinstance(result, type(mpq())) else next(result)[0]
    assert abs(value_of(exponential(a)) - truth) <= abs(truth) / mpq(2) ** 90, total


def test_e_to_the_x_of_huge_arguments_is_infinite_or_zero():
    """k ln 2 has no digit of them; before, 1 - p / (e^x + 1) came out as 1 - p."""
    huge = np.array([2e3, 1e10, 1e16, 1.13e19, 1e300])
    with np.errstate(over="ignore", invalid="ignore"):
        assert np.isinf(exponential((huge, np.zeros(5)))[0]).all()
        assert not exponential((-huge, np.zeros(5)))[0].any()
    big = np.array([1.1313042263954686e19], ml_dtypes.bfloat16)
    given = {"gradOutput": 1, "target": 0.953125, "weightOptional": -1.2890625, "posWeightOptional": 2.984375}
    inputs = {name: np.array([value], ml_dtypes.bfloat16) for name, value in given.items()}
    result = oracle.golden("aclnnBinaryCrossEntropyWithLogitsBackward", self=big, reduction=0, **inputs)["out"]
    assert float(result[0]) == -0.060302734375, "just below the tie"


def test_what_pairs_do_not_have_is_left_to_mpfr():
    assert supports(trace(lambda g, x: where(x < 0, g / (1 + exp(x)), g * exp(-x))))
    assert not supports(sign(x))
    assert supports(erfc(x) * exp(x) - erf(x))
    assert not supports(erf(x), everywhere=True)


def between(low: float, high: float):
    return st.floats(min_value=low, max_value=high).filter(lambda v: abs(v) > 1e-200)


AROUND_ONE = st.integers(-60, 60).map(lambda k: 1 + k * 2.0**-52)
FUNCTIONS = {
    erf: between(-0.999, 0.999),
    erfc: between(-0.999, 0.999),
    sqrt: between(1e-200, 1e200),
    log: between(1e-200, 1e200) | between(0.6, 1.6) | AROUND_ONE,
    log1p: between(-0.999, 1e30) | between(-0.35, 0.45) | between(-1e-20, 1e-20),
    expm1: between(-90, 90) | between(-0.4, 0.4) | between(-1e-20, 1e-20),
    tanh: between(-25, 25) | between(-0.4, 0.4) | between(-1e-20, 1e-20),
}


@pytest.mark.parametrize("function", FUNCTIONS)
@given(data=st.data())
def test_functions_keep_the_bits_that_are_claimed(function, data):
    a = pair_of(data.draw(FUNCTIONS[function]), data.draw(st.just(0.0) | between(-0.9, 0.9)))
    result = double_double.evaluate(function(symbol("h") + symbol("l")), {"h": a[0], "l": a[1]})
    made = exact(function(symbol("h") + symbol("l")), {"h": float(a[0]), "l": float(a[1])})
    # The fourth enclosure: log(1 + 1e-216) has its first digits behind 717 bits.
    truth = made if isinstance(made, type(mpq())) else list(islice(made, 4))[-1][0]
    units = 2.0**-102 * double_double.ARITHMETIC.accuracy[function.__name__]
    assert abs(value_of(result) - truth) <= abs(truth) * mpq(units)


def test_functions_outside_their_domain_are_not_known():
    numbers = np.array([-1.5, -np.inf, np.nan, np.inf])
    with np.errstate(all="ignore"):
        for function in (sqrt(x), log(x), log1p(x)):
            assert not np.isfinite(double_double.evaluate(function, {"x": numbers})[0]).any()
        assert np.isnan(double_double.evaluate(log(x), {"x": np.zeros(1)})[0])
    assert double_double.evaluate(sqrt(x), {"x": np.zeros(1)})[0] == 0


def test_erf_of_more_than_one_is_not_known():
    with np.errstate(invalid="ignore"):
        assert np.isnan(double_double.error_function((np.array([1.0 + 2.0**-52, -3.0, np.inf]), np.zeros(3)))[0]).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_near_ties_are_settled_on_their_side(dtype):
    """g / (1 + e^x) for tiny x is close to g / 2, which is a midpoint for an odd subnormal g."""
    fmt = FORMATS[dtype]
    root = trace(lambda g, x: g / (1 + exp(x)))
    rng = np.random.default_rng(0)
    g = (2.0 * rng.integers(0, 60, 300) + 1) * fmt.quantum * rng.choice([-1, 1], 300)
    x = rng.choice([-1, 1], 300) * 2.0 ** rng.uniform(-80, -30, 300)
    x = x.astype(np.float32).astype(np.float64)
    value, low, high = refined(root, {"g": g, "x": x}, DTYPES[dtype].numpy, np.abs(g) * 2.0**-50)
    settled = low == high
    assert settled.mean() > 0.9
    rounded = round_to(value, dtype)
    for k in np.flatnonzero(settled):
        result = exact(root, {"g": float(g[k]), "x": float(x[k])})
        truth = round_rational(result, fmt) if isinstance(result, type(mpq())) else round_enclosures(result, fmt)
        assert float(rounded[k]) == truth, (g[k], x[k])


def test_ties_are_not_decided():
    """At x = 0 the value is the midpoint itself."""
    g = np.array([3.0 * FORMATS["bfloat16"].quantum])
    _, low, high = refined(trace(lambda g, x: g / (1 + exp(x))), {"g": g, "x": np.zeros(1)}, ml_dtypes.bfloat16, g / 8)
    assert low < high


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_what_vanishes_beside_a_number_of_the_format_leaves_that_number(dtype):
    fmt = FORMATS[dtype]
    root = trace(lambda g, x: g - exp(x))
    own, tie = 1 + 2.0**-fmt.mant, 1 + 2.0 ** -(fmt.mant + 1)
    g = np.array([own, -own, 1.0, tie, fmt.tiny, fmt.max])
    _, low, high = refined(root, {"g": g, "x": np.full(6, -300.0)}, DTYPES[dtype].numpy, np.inf)
    settled = low == high
    assert settled.tolist() == [True, True, True, False, True, True]
    np.testing.assert_array_equal(low[settled], g[settled])
