"""A wrong step of a formula is named if a kernel with that step gives the device's numbers."""

from __future__ import annotations

import numpy as np
import pytest
from test_diagnosis import call_of, told_of

from oracle.operators import OPERATORS

RNG = np.random.default_rng(3)
ROW = {"dim": -1}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def total(terms):
    return terms.sum(-1, keepdims=True)


# operator, attributes, the device's formula, the claim
STEPS = [
    ("aclnnSiluBackward", {}, lambda g, x: g * sigmoid(x) * (1 + x * (1 + sigmoid(x))),
     "`1 - (1 / (exp((-self)) + 1))` becomes `1 + (1 / (exp((-self)) + 1))`"),
    ("aclnnTanhBackward", {}, lambda g, y: g * (1 - y), "`output * output` becomes `output`"),
    ("aclnnSoftmaxBackward", ROW, lambda g, y: g * y - total(g * y),
     "`sum(gradOutput * output) * output` becomes `sum(gradOutput * output)`"),
    ("aclnnSoftmaxBackward", ROW, lambda g, y: y * (g - total(g * y) / 16),
     "instead of the sum over the axis: the mean"),
    ("aclnnLogSoftmaxBackward", ROW, lambda g, y: g - y * total(g), "`exp(output)` becomes `output`"),
]  # fmt: skip


def told_of_formula(op, attrs, formula, shape=(6, 16), dtype="float32", *, steps=True):
    call = call_of(op, shape, dtype, attrs)
    made = formula(*(call.inputs[p.name].astype(np.float64) for p in OPERATORS[op].inputs()))
    return told_of(call, output=lambda golden: made.astype(golden.dtype), steps=steps)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(("op", "attrs", "formula", "step"), STEPS)
def test_a_wrong_step_is_named_in_the_words_of_the_parameters(op, attrs, formula, step, dtype):
    assert told_of_formula(op, attrs, formula, dtype=dtype) == f"a step of the formula is wrong: {step}"


def test_the_halves_of_an_operand_have_names_of_their_own():
    def swapped(x):
        one, two = np.split(x, 2, -1)
        return two * sigmoid(two) * one

    x = RNG.normal(size=(6, 16)).astype(np.float32)
    call = call_of("aclnnSwiGlu", (6, 16), attrs={"dim": -1}, x=x)
    call.outputs["out"] = np.zeros((6, 8), np.float32)
    text = told_of(call, output=lambda golden: swapped(x.astype(np.float64)).astype(np.float32), steps=True)
    assert text == "a step of the formula is wrong: `part 1 of x` becomes `part 2 of x` in `-part 1 of x`"


def test_a_step_is_looked_for_only_on_request_and_among_enough_numbers():
    op, attrs, formula, _ = STEPS[0]
    assert told_of_formula(op, attrs, formula, steps=False) == ""
    assert told_of_formula(op, attrs, formula, (1, 2)) == ""
    assert told_of_formula(op, attrs, formula, (130, 64)) == ""  # larger than MOST


def test_errors_that_no_single_step_makes_name_none():
    for wrong in (
        lambda g, x: g * sigmoid(x) * (1 + x * (1 - sigmoid(x))) + 0.1 * np.sin(7 * x),
        lambda g, x: g * sigmoid(x) * (1 + x * (1 + sigmoid(x))) * (1 + 0.01 * np.sin(9 * x)),
    ):
        assert told_of_formula("aclnnSiluBackward", {}, wrong) == ""


def test_a_step_that_this_call_makes_undefined_is_passed_over():
    """Here the step from -x to -1 gives log1p(-1), which has no value."""
    x, t, w = RNG.uniform(0.1, 0.9, (3, 6, 16)).astype(np.float32)
    call = call_of("aclnnBinaryCrossEntropy", (6, 16), attrs={"reduction": 0}, self=x, target=t, weight=w)
    made = -w * (t * np.log(x) + (1 + t) * np.log1p(-x))
    assert "`1 - target` becomes `1 + target`" in told_of(call, output=lambda golden: made, steps=True)
