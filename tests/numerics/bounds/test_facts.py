"""The known facts of a node hold for all operands."""

from __future__ import annotations

import pytest

from oracle.numerics.bounds.exact_steps import Facts, is_power_of_two
from oracle.numerics.expressions import PI, exp, maximum, ratio, sqrt, symbol, where

x, n = symbol("x"), symbol("n")


@pytest.mark.parametrize(
    ("node", "sign"),
    [
        (exp(x), 1), (-exp(x), -1), (x, 0), (x * x, 1), (abs(x) + 1, 1), (1 - x * x, 0), (1 / (1 + exp(x)), 1),
        (maximum(x, 0), 1), (where(x < 0, -exp(x), exp(x)), 0), (sqrt(x), 1), (n * exp(x), 1),
    ],
)  # fmt: skip
def test_signs_hold_for_all_operands(node, sign):
    assert Facts(["n"]).sign(node) == sign


@pytest.mark.parametrize(
    ("node", "bits"), [(x, 24), (x * x, 48), (2 * x, 25), (3 * x, 26), (x + 1, float("inf")), (maximum(x, 1), 24)]
)
def test_products_of_operands_have_few_bits(node, bits):
    assert Facts().bits(node) == bits


@pytest.mark.parametrize(("value", "power"), [(ratio(1, 8), True), (ratio(-4, 1), True), (ratio(3, 8), False),
                                              (ratio(0, 1), False), (PI, False), (x, False)])  # fmt: skip
def test_powers_of_two(value, power):
    assert is_power_of_two(value) is power


def test_operands_of_few_digits_have_products_of_few():
    x, y = symbol("x"), symbol("y")
    assert Facts().bits(x * y) == 48
    assert Facts(digits={"x": 8}).bits(x * y) == 32
    assert Facts(digits={"x": 8, "y": 11}).bits(x * x * y) == 27
