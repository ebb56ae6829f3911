"""A bound is narrow if a formula only chooses, and wide if right kernels lose everything."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from calls import call_of

import oracle
from oracle.model.aclnn import PLATFORMS
from oracle.model.dtypes import DTYPES
from oracle.operators import compute, operator, references

A_FEW_ULPS = 2.0**-19  # 32 float32 roundings: what the longest of these formulas may lose
LARGEST = 3.4028235e38
ONE = {"alpha": 1.0}
# Operator, attributes, operands that a branch or a limit decides: kernels return the operand, a multiple of it, or 1.
CHOSEN: tuple[tuple[str, dict[str, Any], tuple[float, ...]], ...] = (
    ("aclnnGelu", {}, (20, 100, 1205.5, 1e20)),
    ("aclnnGeluV2", {"approximate": 0}, (23, 1000, 1e15, 1e30)),
    ("aclnnGeluV2", {"approximate": 1}, (20, 647, 2260)),
    ("aclnnCelu", ONE, (12, 30, 217, 300)),
    ("aclnnCelu", {"alpha": 0.1}, (2.56, 10, 21.9)),
    ("aclnnElu", {**ONE, "scale": 1.0, "inputScale": 1.0}, (1e-6, 1e-9, 30)),
    ("aclnnSelu", {}, (1e-6, 1e-9, 30)),
    ("aclnnHardsigmoid", {}, (1e3, 1e12, 3e38)),
    ("aclnnRelu", {}, (LARGEST,)),
    ("aclnnHardtanh", {"clipValueMin": -1.0, "clipValueMax": LARGEST}, (LARGEST,)),
    ("aclnnHardshrink", {"lambd": 0.5}, (LARGEST,)),
    ("aclnnSoftplus", {"beta": 1.0, "threshold": 20.0}, (LARGEST,)),
)


@pytest.mark.parametrize("soc", PLATFORMS)
def test_what_a_limit_decides_is_judged_to_a_few_roundings(soc: str) -> None:
    for name, attributes, numbers in CHOSEN:
        (operand,) = operator(name).names("input")
        given = {operand: np.array(numbers, np.float32), **attributes}
        (reference,) = oracle.reference(name, soc=soc, **given).values()
        assert not reference.unspecified.any(), (name, attributes)
        assert (reference.bound <= A_FEW_ULPS * np.abs(reference.value)).all(), (name, attributes, reference.bound)


def test_far_operands_of_logits_lose_a_few_roundings() -> None:
    x = np.array([1e8, 1e9, 1.9e9, 1e10], np.float32)
    for target in (0, 0.5):
        t = np.full_like(x, target)
        (reference,) = oracle.reference("aclnnBinaryCrossEntropyWithLogits", self=x, target=t, reduction=0).values()
        assert not reference.unspecified.any()
        assert (reference.bound <= 4 * A_FEW_ULPS * x).all()  # e^-x of a rounded x is wrong, but tiny next to 1


def test_zeros_and_beta_0_are_no_doubt() -> None:
    x, t = np.array([1, -1], np.float32), np.array([1, -3], np.float32)
    for reduction in (0, 1, 2):
        (reference,) = oracle.reference("aclnnSmoothL1Loss", self=x, target=t, beta=0.0, reduction=reduction).values()
        assert not reference.unspecified.any()


@pytest.mark.parametrize("soc", ["ascend950", "ascend910b"])
@pytest.mark.parametrize("count", [3, 24, 48, 300])
@pytest.mark.parametrize("number", [10.1, 1000.1])
def test_a_row_of_equal_numbers_has_the_variance_that_its_mean_leaves(soc: str, count: int, number: float) -> None:
    """x - mean is exactly 0, but computed as the error of the mean: only its square is added to epsilon."""
    x, epsilon = np.full((1, count), number, np.float32), np.float32(1e-5)
    total = variance = np.float32(0)
    for value in x[0]:
        total += value
    for value in x[0] - total / np.float32(count):
        variance += value * value
    answer = 1 / np.sqrt(variance / np.float32(count) + epsilon)
    given = {"input": x, "normalizedShape": (count,), "weightOptional": None, "biasOptional": None, "eps": 1e-5}
    reference = oracle.reference("aclnnLayerNorm", soc=soc, **given)["rstdOutOptional"]
    assert reference.unspecified.all() or (np.abs(answer - reference.value) <= reference.bound).all()


def test_a_radicand_that_may_be_negative_is_unspecified() -> None:
    """ascend910b computes the variance in one pass, mean of x^2 minus squared mean; these rows have a large mean."""
    x = (1000.1 + 0.01 * np.random.default_rng(1).standard_normal((20, 2, 5))).astype(DTYPES["float32"].numpy)
    call = call_of("aclnnGroupNorm", self=x, N=20, C=2, HxW=5, group=1, eps=1e-5)
    with np.errstate(invalid="ignore"):
        answer = compute(call, output="rstdOut")
    assert np.isnan(answer).any()
    assert references(call)["rstdOut"].unspecified[np.isnan(answer)].all()


def test_a_divisor_that_may_be_0_is_unspecified() -> None:
    weight, x = np.array([1, 1e-8, -1], np.float32), np.full((3, 3), -1.1, np.float32)
    reference = oracle.reference(
        "aclnnNLLLoss", self=x, target=np.arange(3), weight=weight, reduction=1, ignoreIndex=-100
    )
    assert reference["totalWeightOut"].bound > abs(reference["totalWeightOut"].value)
    assert reference["out"].unspecified
