"""Sums of a formula's values if single terms have no value, or no float64 number represents them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from calls import call_of

import oracle
from oracle.numerics.expressions import exp, log, where
from oracle.numerics.golden import sums
from oracle.numerics.orders.formula import Formula
from oracle.numerics.sink import Sink
from oracle.operators import reference


def summed(formula: Any, g: list[float], x: list[float]) -> float:
    """Return the golden of one sum in float16."""
    operands = {"g": np.array([g], np.float32), "x": np.array([x], np.float32)}
    out = np.zeros(1, np.float16)
    sums.evaluate(Formula(formula), operands, ((1, len(g)), (1, 1)), Sink(out, "float16", judged=True))
    return float(out[0])


@pytest.mark.parametrize("formula", [lambda g, x: g / (1 / x), lambda g, x: g * exp(log(x))])
def test_a_term_without_a_value_is_what_ieee_arithmetic_gives(formula):
    """The sum of the others, 1 + 2^-11, is a tie; only exact values decide it."""
    assert summed(formula, [1, 2.0**-11, 3], [1, 1, 0]) == 1


def test_a_term_beyond_float64_is_found_beside_one_without_a_value():
    def formula(g, x):
        return where(x <= 1, g * exp(log(x)), g * exp(x) / exp(x))

    assert summed(formula, [2, 3, 1], [800, 0, 1]) == 3


def test_sums_whose_terms_cancel_are_exact() -> None:
    """No number of bits shows this: log 2 - log 2, or losses of equal elements with opposite weights."""
    zeros, halves = np.zeros(5, np.float32), np.array([2, 0.5, 0.5, 0.5, 0.5], np.float32)
    assert oracle.golden("aclnnKlDiv", self=zeros, target=halves, logTarget=False, reduction=2)["out"] == 0
    two, weight = np.array([0.3, 0.3], np.float32), np.array([1, -1], np.float32)
    ones = np.ones(2, np.float32)
    for name, optional in (
        ("aclnnBinaryCrossEntropy", "weight"),
        ("aclnnBinaryCrossEntropyWithLogits", "weightOptional"),
    ):
        assert oracle.golden(name, self=two, target=ones, **{optional: weight}, reduction=1)["out"] == 0
    given = {"self": np.array([2e4, 0], np.float32), "target": np.array([1e4, 5e3], np.float32)}
    assert oracle.golden("aclnnKlDiv", **given, logTarget=True, reduction=2)["out"] == -np.inf  # e^5000 less e^10000
    x, t, p = (np.array([v], np.float32) for v in (1.0000001, 4, 0.75))  # 1 - t + p t is 0: only (1 - t) x is left
    (result,) = oracle.golden("aclnnBinaryCrossEntropyWithLogits", self=x, target=t, posWeightOptional=p, reduction=0)[
        "out"
    ]
    assert result == np.float32(-3 * float(x[0]))


def test_terms_that_overflow_before_their_mean_are_not_specified() -> None:
    """100 times the weight is infinite in every order, although a hundredth of that is finite."""
    weight = np.ones(200, np.float32)
    weight[:2] = 1.7e38, -1.7e38
    inputs = {"self": np.ones(200, np.float32), "target": np.full(200, 2, np.float32), "weight": weight}
    result = reference(call_of("aclnnBinaryCrossEntropy", **inputs, reduction=1))
    assert np.isfinite(result.golden)
    assert result.unspecified is not None
    assert result.unspecified.all()


def test_what_a_mean_may_lose_is_what_its_sum_may_lose():
    """Every term loses 1 if the partial sum is above 2^25: a kernel adds the terms, then multiplies by the factor."""
    terms = np.concatenate([[2.0**25], 4 * np.random.default_rng(0).permutation(4000)[:2999] + 1]).astype(np.float32)
    total = np.add.accumulate(terms, dtype=np.float32)[-1]
    for reduction, kernel in ((2, total), (1, total / np.float32(terms.size))):
        result = oracle.reference("aclnnL1Loss", self=terms, target=np.zeros_like(terms), reduction=reduction)["out"]
        assert abs(float(kernel) - float(result.value)) <= float(result.bound)
