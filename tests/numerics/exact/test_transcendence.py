"""A formula is found to be rational if its functions cancel, and a value that is then halfway has a golden."""

from __future__ import annotations

from fractions import Fraction

import gmpy2
import ml_dtypes
import numpy as np
import pytest
from gmpy2 import mpfr, mpq

import oracle
from oracle.model.dtypes import FORMATS
from oracle.numerics import expressions
from oracle.numerics.exact.enclosures import exact, holds
from oracle.numerics.exact.transcendence import nearest, rational_sum
from oracle.numerics.expressions import (
    PI,
    constant,
    erf,
    erfc,
    exp,
    expm1,
    log,
    log1p,
    maximum,
    ratio,
    symbol,
    tanh,
    where,
)
from oracle.numerics.proof import round_enclosures

x, t, w = symbol("x"), symbol("t"), symbol("w")
SIGMOID, MIRRORED = 1 / (1 + exp(-x)), 1 / (1 + exp(x))

GIVEN = {"x": 15.0625, "t": 0.5, "w": 3.0}

SAME = {  # value at x = 15.0625, t = 0.5, w = 3, independent of e^x
    "two sigmoids": (w * (SIGMOID + MIRRORED), 3),
    "with weights that happen to agree": (t * SIGMOID + (1 - t) * MIRRORED, mpq(1, 2)),
    "a quotient": (exp(x) / exp(x), 1),
    "powers of a common argument": (exp(x * ratio(1, 3)) * exp(x * ratio(1, 3)) / exp(x * ratio(2, 3)), 1),
    "tanh by e^2x": (tanh(x) - (exp(x * 2) - 1) / (exp(x * 2) + 1) + t, mpq(1, 2)),
    "expm1": (w * (expm1(x) - exp(x)), -3),
    "the way that is taken": (where(t < 1, SIGMOID + MIRRORED, log(x)), 1),
    "an argument of 0": (exp(x * 0) + t, mpq(3, 2)),
    "arguments of a small common measure": (exp(x) / exp(x * ratio(1000, 999)) * exp(x * ratio(1, 999)), 1),
    "a logarithm of a power": (log(exp(x)), mpq(241, 16)),
    "an argument of its own": (exp(x / exp(x)) / exp(x / exp(x)), 1),
    "logarithms of powers of 2": (log(t) + log(1 / t) + w * log(constant(1)), 0),
    "logarithms of one odd number": (log(x * 4) - log(x) - log(constant(8)) - log(t), 0),
    "a logarithm twice": (t * log1p(exp(-x)) - log(1 + exp(-x)) / 2, 0),
    "pi": (PI * t / PI, mpq(1, 2)),
    "the larger of irrational numbers": (maximum(log(w), -100) - log(w) + abs(log(t)) + log(t), 0),
    "a condition on e^x": (where(exp(x) < 1, 1, 2), 2),
    "a pole that is no value of e^x": ((exp(x) - 3) / (exp(x) - 3) + (exp(x) - 2) / (exp(x) - 2), 2),
}
OTHERS = {
    "one sigmoid": SIGMOID,
    "agrees at one number": (exp(x) - 2) * (exp(x) - 3) * (exp(x) - 4),
    "an identity of two functions": erf(x) + erfc(x),
    "a logarithm of a negative number": log(-x) - log(-x),
    "logarithms of 3, 5 and 15": log(constant(3)) + log(constant(5)) - log(constant(15)),
    "an argument without a value": exp(1 / (x - x)) / exp(1 / (x - x)),
}


@pytest.mark.parametrize("name", SAME)
def test_a_value_that_does_not_depend_on_e_to_the_x_is_told(name):
    root, value = SAME[name]
    assert nearest(root, GIVEN, holds) == (value, 0)
    assert nearest(root + exp(x), GIVEN, holds) is None


@pytest.mark.parametrize("name", OTHERS)
def test_nothing_is_said_of_other_values(name):
    assert nearest(OTHERS[name], {"x": 15.0625}) is None


def test_an_infinite_argument_has_no_powers():
    assert nearest(exp(x) / exp(x), {"x": float("inf")}) is None


def test_enclosures_end_with_the_value():
    *_, last = exact(w * (SIGMOID + MIRRORED), {"x": 15.0625, "w": 0.3})
    assert last.low == last.high == mpq(0.3)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32])
def test_a_gradient_of_logits_that_is_rational_is_rounded_as_the_rational_is(dtype):
    """If posWeight * target is target - 1, the gradient is gradOutput * weight * (1 - target) for every self."""
    given = np.random.default_rng(0)
    size = 400
    g, w, x = (given.uniform(-2, 2, size).astype(dtype) for _ in range(3))
    t, p = np.full(size, 0.5, dtype), np.full(size, -1.0, dtype)
    result = oracle.golden(
        "aclnnBinaryCrossEntropyWithLogitsBackward",
        gradOutput=g, self=x, target=t, weightOptional=w, posWeightOptional=p, reduction=0,
    )["out"]  # fmt: skip
    products = [Fraction(float(a)) * Fraction(float(b)) / 2 for a, b in zip(g, w, strict=True)]
    exactly = np.asarray([float(each) for each in products])  # 48 bits: exact in float64
    assert [Fraction(each) for each in exactly] == products
    assert result.tobytes() == exactly.astype(dtype).tobytes()


def test_a_rational_that_is_no_number_of_ours_is_not_told():
    assert nearest(w * w * (SIGMOID + MIRRORED) + t / symbol("v"), {**GIVEN, "v": float("inf")}) is None


def test_a_hidden_zero_is_positive():
    result = round_enclosures(exact(w * (SIGMOID + MIRRORED) - w, GIVEN), FORMATS["float32"])
    assert (result, np.signbit(result)) == (0, False)


HALFWAY = 1 + 2.0**-11  # between two numbers of float16


@pytest.mark.parametrize("far", [20000.0, 65504.0, 1e30])
@pytest.mark.parametrize("side", [1, -1])
def test_a_value_that_is_next_to_one_between_two_numbers_is_rounded_by_its_side(far, side):
    root = HALFWAY + w / (1 + exp(x)) * side  # w e^-x, too small next to 1 for any precision
    assert nearest(root, {"x": far, "w": 3.0}) == (mpq(HALFWAY), side)
    assert nearest(root, {"x": -far, "w": 0.0}) == (mpq(HALFWAY), 0)
    assert nearest(root, {"x": 15.0625, "w": 3.0}) is None
    truth = 1 + 2.0**-10 if side > 0 else 1.0
    assert round_enclosures(exact(root, {"x": far, "w": 3.0}), FORMATS["float16"]) == truth
    assert round_enclosures(exact(-root, {"x": far, "w": 3.0}), FORMATS["float16"]) == -truth


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32])
@pytest.mark.parametrize("x", [20000.0, -20000.0])
@pytest.mark.parametrize("t", [2.0, -1.0])
def test_a_gradient_of_logits_far_out_is_rounded_as_40000_bits_say(dtype, x, t):
    """The limit is gradOutput * weight * (s - target), with s 0 or 1: an odd multiple of half an ULP. The difference
    from it is about e^-20000."""
    bits = ml_dtypes.finfo(dtype).nmant
    g, w = np.asarray([1 + 2.0**-bits], dtype), np.asarray([1.5], dtype)
    result = oracle.golden(
        "aclnnBinaryCrossEntropyWithLogitsBackward",
        gradOutput=g, self=np.asarray([x], dtype), target=np.asarray([t], dtype), weightOptional=w, reduction=0,
    )["out"]  # fmt: skip
    with gmpy2.context(precision=40000):
        value = (1 / (1 + gmpy2.exp(-mpfr(float(np.asarray(x, dtype))))) - t) * mpfr(float(g[0])) * mpfr(1.5)
    with gmpy2.context(precision=bits + 1):
        assert float(result[0]) == float(+value)


def test_other_operands_make_no_other_graphs():
    asked = w * SIGMOID + w * MIRRORED
    known = []
    for number in range(1, 40):
        assert nearest(asked, {"x": float(number), "w": 1 / number}) == (mpq(1 / number), 0)
        known.append(len(expressions._NODES))
    assert known[0] == known[-1]


SUMS = {  # the formula in x, numbers and arguments of the terms, the sum
    "what cancels": (w * exp(x), [(2, 0.5), (-3, 0.5), (1, 0.5)], 0),
    "what is left": (w * exp(x) + w, [(1.5, 2), (-1.5, 2), (4, -40), (-4, -40), (7, 0)], 14),
    "expm1 and products": ((expm1(x) - exp(x)) * w / 4, [(3, 1), (5, 2)], -2),
    "a square": (exp(x) * exp(x) * w, [(1, 1.5), (-1, 1.5)], 0),
    "other arguments": (w * exp(x), [(1, 1), (-1, 2)], None),
    "a quotient": (w / (1 + exp(x)), [(1, 1), (-1, 1)], None),
    "an infinite number": (w * exp(x), [(float("inf"), 1), (float("-inf"), 1)], None),
}


@pytest.mark.parametrize("name", SUMS)
def test_a_sum_is_told_where_the_terms_of_every_argument_cancel(name):
    root, terms, value = SUMS[name]
    assert rational_sum(root, [{"w": float(number), "x": float(argument)} for number, argument in terms]) == value


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32])
def test_a_sum_that_is_halfway_is_rounded_to_even(dtype):
    """Terms with e^target cancel, and the remaining terms with target 0 sum to a value between two numbers."""
    bits = ml_dtypes.finfo(dtype).nmant
    g = np.asarray([1, -1, 1, 2.0 ** -(bits + 1)], dtype)
    result = oracle.golden(
        "aclnnKlDivBackward", gradOutput=g, self=np.zeros(1, dtype), target=np.asarray([0.5, 0.5, 0, 0], dtype),
        reduction=0, logTarget=True,
    )["out"]  # fmt: skip
    assert result.astype(np.float64).tolist() == [-1.0]
