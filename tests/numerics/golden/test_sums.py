"""Sums of a formula's values where single terms have none, or float64 does not hold them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oracle.numerics.expressions import exp, log, where
from oracle.numerics.golden import sums
from oracle.numerics.orders.formula import Formula
from oracle.numerics.proof import Sink


def summed(formula: Any, g: list[float], x: list[float]) -> float:
    """The golden of one sum in float16."""
    operands = {"g": np.array([g], np.float32), "x": np.array([x], np.float32)}
    out = np.zeros(1, np.float16)
    sums.evaluate(Formula(formula), operands, ((1, len(g)), (1, 1)), Sink(out, "float16", judged=True))
    return float(out[0])


@pytest.mark.parametrize("formula", [lambda g, x: g / (1 / x), lambda g, x: g * exp(log(x))])
def test_a_term_without_a_value_is_what_ieee_arithmetic_gives(formula):
    """The sum of the others, 1 + 2^-11, is a tie, which only exact values decide."""
    assert summed(formula, [1, 2.0**-11, 3], [1, 1, 0]) == 1


def test_a_term_beyond_float64_is_found_beside_one_without_a_value():
    def formula(g, x):
        return where(x <= 1, g * exp(log(x)), g * exp(x) / exp(x))

    assert summed(formula, [2, 3, 1], [800, 0, 1]) == 3
