"""Right kernels are right, and are what they say."""

from __future__ import annotations

import numpy as np
import pytest

from oracle.defects.right import SOCS, fma, right_kernels, sequential, tree
from oracle.model.platforms import PLATFORMS
from oracle.operators import OPERATORS
from oracle.runner.one_case import outcome_on


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("soc", SOCS)
@pytest.mark.parametrize("op", OPERATORS)
def test_right_kernels_pass_every_layer_on_stated_inputs(op, soc, seed, prepared):
    for p in prepared(op, soc, seed):
        for right in right_kernels(op):
            outcome = outcome_on(p, right.device)
            assert outcome.status == "pass", (right.id, p.case.id, outcome.reason)


@pytest.mark.parametrize("op", OPERATORS)
def test_every_public_form_is_among_them(op):
    assert {f"right/{p.kernel}" for p in PLATFORMS.values()} <= {right.id for right in right_kernels(op)}


def test_orders_of_summation_differ_in_bits_and_agree_in_value():
    rng = np.random.default_rng(7)
    p = rng.normal(size=(50, 3000)).astype(np.float32)
    one, other, truth = sequential(p, -1), tree(p, -1), p.astype(np.float64).sum(axis=-1, keepdims=True)
    assert one.shape == other.shape == truth.shape
    assert (one != other).any()
    size = np.abs(p).sum(axis=-1, keepdims=True)
    for total in (one, other):  # n roundings of at most 2^-24 each
        assert (np.abs(total - truth) <= 3000 * 2.0**-24 * size).all()


def test_fma_rounds_once():
    a = np.float32(1 + 2.0**-12)
    c = np.float32(-(a * a))  # the rounded square
    assert fma(a, a, c) == np.float32(2.0**-24)
    assert a * a + c == 0
