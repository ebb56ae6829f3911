"""Conditions that float64 cannot decide are decided by exact arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest

from oracle.numerics.exact import enclosures
from oracle.numerics.expressions import equal, exp, expm1, log, maximum, minimum, sign, where
from oracle.numerics.golden.elementwise import evaluate
from oracle.numerics.orders.formula import Formula, is_elementwise
from oracle.numerics.orders.kernel_orders import graphs_with
from oracle.numerics.sink import Sink
from oracle.operators import OPERATORS


def value(formula, dtype, **operands):
    given = {name: np.array([number], dtype) for name, number in operands.items()}
    sink = Sink(np.empty(1, dtype), dtype, judged=True, filled=True)
    evaluate(Formula(formula), given, sink)
    return float(sink.out[0]), bool(sink.unspecified[0])


@pytest.mark.parametrize(
    ("formula", "dtype", "g", "x", "right"),
    [
        (lambda g, x: where(exp(x) > exp(g), 1, 2), "float16", 1000, 1001, 1),
        (lambda g, x: where(exp(x) - exp(g) > 0, 1, 2), "float16", 1000, 1001, 1),
        (lambda g, x: where(exp(x) * exp(g) > 1, 1, 2), "float16", -999, 1000, 1),
        (lambda g, x: where((x * x * x * x * x) / (g * g * g * g * g) > 1, 1, 2), "float32", 1e38, 2e38, 1),
        (lambda g, x: where(exp(x) > exp(g), 1, 2), "float16", 1001, 1000, 2),
        (lambda g, x: log(minimum(exp(x), exp(g))), "float16", 1001, 1000, 1000),
        (lambda g, x: where(equal(log(exp(x)), x), g, 0), "float16", 3, -719.5, 3),
        (lambda g, x: exp(-x) * exp(g), "float32", 705, 800, np.float32(math.exp(-95))),
    ],
)
def test_sides_that_overflow_or_underflow_are_compared_as_real_numbers(formula, dtype, g, x, right):
    assert value(formula, dtype, g=g, x=x)[0] == right


def test_a_logarithm_of_zero_is_what_ieee_arithmetic_makes_of_it():
    def formula(g, x):
        return g * log(x)

    assert np.isnan(value(formula, "float32", g=0, x=0)[0])
    assert value(formula, "float32", g=2, x=0)[0] == -np.inf
    assert value(lambda g, x: g / log(x), "float32", g=2, x=0)[0] == 0


def test_where_a_kernel_may_not_find_the_way_around_an_overflow_it_may_answer_nan():
    def formula(g, x):
        return g * exp(x) / ((1 + exp(x)) * (1 + exp(x)))

    assert [value(formula, "float32", g=1, x=x)[1] for x in (60, 500, 2000)] == [False, True, True]


# They divide by a number of any size from the caller, so the slow methods decide them.
DIVIDED = {"aclnnCelu", "aclnnSoftplus"}


def test_few_formulas_of_this_package_may_lose_what_underflows_in_float64():
    fragile = {
        each.name
        for operator in OPERATORS.values()
        for each in operator.each
        if is_elementwise(each.computes)
        if any(graphs_with(each.computes, mean=mean).is_fragile for mean in (False, True))
    }
    assert fragile == DIVIDED


@pytest.mark.parametrize(
    ("formula", "is_fragile"),
    [
        (lambda x, y: x * y * x * y, False),
        (lambda x, y: x * x * x * x * x * x * x, False),
        (lambda x, y: (x * x * x * x * x * x * x) / (x * x * x * x * x * x), True),
        (lambda x, y: y / (1 + exp(-x)), False),
        (lambda x, y: y * exp(-x) / exp(-x), True),
        (lambda x, y: where(x * y > 0, x, y), False),
        (lambda x, y: where(exp(x) > 0.5, x, y), False),
        (lambda x, y: where(exp(x) > exp(y), x, y), True),
        (lambda x, y: sign(exp(x) - exp(y)), True),
    ],
)
def test_what_underflows_is_seen_in_the_formula(formula, is_fragile):
    assert graphs_with(Formula(formula)).is_fragile is is_fragile


@pytest.mark.parametrize(
    ("formula", "x", "below"),
    [
        (lambda g, x: g * (maximum(x, 0) - exp(x)), -800, True),
        (lambda g, x: g * (exp(x) - maximum(x, 0)), -800, False),
        (lambda g, x: g * (exp(x) * exp(x) - 2 * exp(x)), -1000, True),
        (lambda g, x: g * (maximum(x, 0) - minimum(x, 0) * 0), -800, False),  # exactly zero: IEEE arithmetic's sign
    ],
)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_sum_that_underflows_float64_is_a_zero_of_the_exact_sign(formula, x, below, dtype):
    for judged in (False, True):
        sink = Sink(np.empty(3, dtype), dtype, judged=judged)
        evaluate(Formula(formula), {"g": np.array([2, -2, 0], dtype), "x": np.full(3, x, dtype)}, sink)
        assert not sink.out.any()
        assert np.signbit(sink.out).tolist()[:2] == [below, not below]


@pytest.mark.parametrize(
    ("formula", "loses_signs"),
    [
        (lambda g, x: g * (maximum(x, 0) - exp(x)), True),
        (lambda g, x: g * (1 - exp(x)), False),
        (lambda g, x: g * (exp(x) + exp(-x) * 3), False),
        (lambda g, x: g / (1 + exp(x)) - g * x, True),
        (lambda g, x: g * x - g, False),
    ],
)
def test_a_sum_may_lose_its_sign_where_a_term_underflows_and_neither_is_far_from_zero(formula, loses_signs):
    assert graphs_with(Formula(formula)).loses_signs is loses_signs


def test_exact_ties_of_a_branch_without_functions_are_proved_together(monkeypatch):
    """One in ten float32 numbers times 1.25 lies between two others; an Elu of a million elements spent 24 s."""
    looked_at = []
    exact = enclosures.exact
    monkeypatch.setattr(enclosures, "exact", lambda root, operands: looked_at.append(root) or exact(root, operands))
    x = np.random.default_rng(3).normal(0, 4, 4000).astype(np.float32)
    out = np.empty_like(x)
    evaluate(Formula(lambda x: where(x > 0, x * 1.25, expm1(x))), {"x": x}, Sink(out, "float32"), rank=1)
    right = x.astype(np.float64) * 1.25  # exact: three bits more
    assert (out == np.where(x > 0, right, out)).sum() < x.size  # some are rounded
    assert np.array_equal(out[x > 0], right[x > 0].astype(np.float32))
    assert len(looked_at) < 10
