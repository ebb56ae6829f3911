"""Exact values: rationals exactly, all others between ends that MPFR rounds outwards and that converge."""

from __future__ import annotations

from itertools import islice, pairwise

import gmpy2
import numpy as np
import pytest
from gmpy2 import mpfr, mpq
from hypothesis import given, strategies as st

from oracle.model.dtypes import FORMATS
from oracle.model.errors import OracleError
from oracle.numerics.exact.enclosures import OPERATIONS, Ends, Interval, enclose, exact, round_constant
from oracle.numerics.exact.rationals import Undefined
from oracle.numerics.expressions import (
    PI,
    erf,
    erfc,
    exp,
    expm1,
    log,
    log1p,
    maximum,
    minimum,
    ratio,
    sign,
    sqrt,
    symbol,
    tanh,
    where,
)
from oracle.numerics.proof import round_enclosures

x, y = symbol("x"), symbol("y")
SINGLE = st.floats(width=32, allow_nan=False, allow_infinity=False)
SMALL = st.floats(min_value=-80, max_value=80, width=32)


@given(SINGLE, SINGLE)
def test_a_rational_formula_is_computed_exactly(a, b):
    root = where(x < y, (x - y) * ratio(1, 3), maximum(x, y) + minimum(x, y) * sign(x) - abs(y))
    p, q = mpq(a), mpq(b)
    expected = (p - q) / 3 if p < q else max(p, q) + min(p, q) * ((p > 0) - (p < 0)) - abs(q)
    assert exact(root, {"x": a, "y": b}) == expected


FORMULAS = {
    "sigmoid": (1 / (1 + exp(-x)), lambda v: 1 / (1 + gmpy2.exp(-v))),
    "tanh": (1 - tanh(x) * tanh(x), lambda v: 1 - gmpy2.tanh(v) ** 2),
    "erf": ((1 + erf(x / sqrt(2))) / 2, lambda v: (1 + gmpy2.erf(v / gmpy2.sqrt(mpfr(2)))) / 2),
    "softplus": (log(1 + exp(x)), lambda v: gmpy2.log(1 + gmpy2.exp(v))),
    "log1p": (log1p(x * x), lambda v: gmpy2.log1p(v * v)),
    "expm1": (expm1(x) * x, lambda v: gmpy2.expm1(v) * v),
    "constant": (x * sqrt(2 / PI), lambda v: v * gmpy2.sqrt(2 / gmpy2.const_pi())),
}


@pytest.mark.parametrize("name", FORMULAS)
@given(value=SMALL)
def test_enclosures_hold_the_value_and_shrink(name, value):
    root, truth = FORMULAS[name]
    with gmpy2.context(precision=2000):
        expected = mpq(truth(mpfr(value)))
    result = exact(root, {"x": value})
    ends = [Ends(result, result)] if isinstance(result, type(mpq())) else list(islice(result, 3))
    for low, high, above, below in ends:
        assert low <= expected + abs(expected) / mpq(2) ** 1900
        assert high >= expected - abs(expected) / mpq(2) ** 1900
        if abs(value) < 8:  # else 2000 bits do not separate erf from 1
            assert not (above and low == expected)
            assert not (below and high == expected)
    widths = [e.high - e.low for e in ends]
    assert all(later <= earlier / 2**100 for earlier, later in pairwise(widths))


@pytest.mark.parametrize("root", [exp(x), exp(-x) * y, tanh(x), 1 / (1 + exp(-x)), log(1 + exp(-x)) - 1])
@pytest.mark.parametrize("value", [3.0e38, -3.0e38, 2.0**-149])
def test_values_beyond_every_format_have_ends_that_are_small_to_write_down(root, value):
    low, high, *_ = next(exact(root, {"x": value, "y": 1.0}))
    assert low <= high
    assert max(low.numerator.bit_length(), high.denominator.bit_length()) < 1 << 20


def test_only_the_branch_that_is_chosen_is_looked_at():
    assert exact(where(x > 0, x / 2, 1 / y), {"x": 1.0, "y": 0.0}) == mpq(1, 2)
    with pytest.raises(Undefined):
        exact(where(x > 0, x / 2, 1 / y), {"x": -1.0, "y": 0.0})


@pytest.mark.parametrize(("root", "value"), [(log(x), -1.0), (1 / (x * exp(y)), 0.0), (sqrt(x), -2.0)])
def test_what_has_no_value_is_undefined(root, value):
    with pytest.raises(Undefined):
        next(exact(root, {"x": value, "y": 1.0}))


def test_a_comparison_of_irrational_values_is_decided_with_as_many_bits_as_it_takes():
    near = np.float32(np.exp(1.0))
    root = where(exp(x) < y, 1, 0)
    assert enclose(root, {"x": 1.0, "y": float(near)}, 128).low == float(gmpy2.exp(mpfr(1, 200)) < mpfr(float(near)))


def test_a_rounding_that_no_precision_settles_is_an_error_not_a_loop():
    hidden = erf(x) + erfc(x)  # exactly 1, but no rule here finds it
    with pytest.raises(OracleError, match="bits do not show"):
        list(exact(hidden, {"x": 1.0}))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_constants_are_rounded_once(dtype):
    widths = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
    with gmpy2.context(precision=300):
        truth = gmpy2.sqrt(2 / gmpy2.const_pi())
    with gmpy2.context(precision=widths[dtype]):
        assert round_constant(sqrt(2 / PI), dtype) == float(+truth)


BESIDE = {
    "below": [y - exp(x), y / (1 + exp(x)), -(exp(x) - y), abs(exp(x) - y), -exp(x) * y + y, y * erfc(x) - y],
    "above": [y + exp(x), y * (1 + exp(x)), exp(x * y) + y, (y + exp(x)) * (1 + exp(x)), y - (exp(x) - 1) * exp(x)],
}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("side", BESIDE)
def test_a_value_beside_a_midpoint_is_told_from_it_without_the_bits_that_hold_both(dtype, side):
    """A number plus e^-200 needs 300 bits; the sign of e^-200 alone needs none."""
    fmt = FORMATS[dtype]
    tie = 1 + 2.0 ** -(fmt.mant + 1)
    for root in BESIDE[side]:
        first = next(exact(root, {"x": -200.0, "y": tie}))
        assert first.low <= tie <= first.high
        assert round_enclosures(iter([first]), fmt) == (1 if side == "below" else 1 + 2.0**-fmt.mant)


def test_what_touches_a_number_may_be_that_number():
    """The upper end of min(1, e^x / e^x) meets the value: the value may be 1 itself."""
    first = next(exact(minimum(1, exp(x) / exp(x)), {"x": 1.0}))
    assert first.high == 1
    assert not first.below


def test_a_sign_loses_no_bits():
    """Python's minus would round to the precision of the current context, 53 bits."""
    positive, negative = (enclose(root, {"x": 1.0}, 128) for root in (exp(x), -exp(x)))
    assert mpq(negative.low) == -mpq(positive.high)
    assert mpq(negative.high) == -mpq(positive.low)


def test_products_and_quotients_are_the_hull_of_their_corners():
    down, up = (gmpy2.context(precision=20, round=way) for way in (gmpy2.RoundDown, gmpy2.RoundUp))
    ends = [mpfr(v) for v in ("-inf", "-7.1", "-0.3", "-0", "0", "0.7", "3.3", "inf")]
    intervals = [Interval(low, high) for k, low in enumerate(ends) for high in ends[k:] if gmpy2.is_finite(low + high)]
    for op, operation in (("*", "mul"), ("/", "div")):
        for a in intervals:
            for b in intervals:
                if op == "/" and b.low <= 0 <= b.high:
                    continue
                result = OPERATIONS[op]([a, b], down, up)
                corners = [(one, other) for one in (a.low, a.high) for other in (b.low, b.high)]
                assert result.low == min(getattr(down, operation)(*corner) for corner in corners)
                assert result.high == max(getattr(up, operation)(*corner) for corner in corners)


@pytest.mark.parametrize(
    ("root", "x", "wanted"),
    [
        (exp(ratio(1, 2) * log(x)), 2.25, 1.5),
        (exp(log(x) * -2), 0.25, 16.0),
        (exp(log(x)), 3.0, 3.0),
        (sqrt(x) * sqrt(x), 1.5, 1.5),
        (y * exp(ratio(3, 4) * log(x)), 16.0, 8.0),
    ],
)
def test_powers_and_roots_that_are_numbers_are_exact(root, x, wanted):
    result = next(exact(root, {"x": x, "y": 1.0}))
    assert result.low == result.high == wanted


def test_a_root_of_what_is_below_zero_has_no_value_even_squared():
    with pytest.raises(Undefined):
        next(exact(sqrt(x) * sqrt(x), {"x": -1.0}))
