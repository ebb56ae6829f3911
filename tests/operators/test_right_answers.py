"""Every layer accepts the answers of right kernels, also if kernels differ by more than a rounding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pytest

import oracle
from oracle import verdict

SINGLE = np.float32
SCALE, ALPHA = 1.0507009873554805, 1.6732632423543772  # SELU's constants


def layers(op: str, actual: Any, soc: str = "ascend910b", **params: Any) -> dict[str, bool]:
    """Return, by layer, whether it accepts an answer to a call with one output."""
    (reference,) = oracle.reference(op, soc=soc, **params).values()
    answer = np.asarray(actual, reference.golden.dtype).reshape(reference.golden.shape)
    result = verdict.compare(reference, answer)
    return {
        "structure": verdict.values_structure(result, answer.shape).passed,
        "standard": verdict.standard("mixed", reference, answer, result).passed,
        "strict": verdict.strict(result, answer.shape).passed,
    }


def column(*values: float) -> Any:
    return np.array(values, SINGLE)


class Answer(NamedTuple):
    """An answer to one call, and whether it is right."""

    op: str
    params: Mapping[str, Any]
    actual: float
    right: bool
    soc: str = "ascend910b"


SOFTPLUS = {"gradOutput": column(1), "self": column(10), "beta": 0.1, "threshold": 1.0}  # float32(0.1) * 10 is above 1
FURTHER = {**SOFTPLUS, "self": column(10.01)}
EQUAL = {"gradOut": column(3), "self": column(1), "target": column(1), "reduction": 0, "beta": 0.0}
EXACT = {**SOFTPLUS, "beta": 1.0, "self": column(1)}  # beta * self is the threshold, without rounding
INFINITE = {"gradOutput": column(1), "self": column(1), "target": column(-np.inf), "reduction": 0}

ANSWERS = {
    "softplus_above": Answer("aclnnSoftplusBackward", SOFTPLUS, 1.0, True),
    "softplus_below": Answer("aclnnSoftplusBackward", SOFTPLUS, 0.7310586, True),  # float32(beta * self) is 1
    "softplus_neither": Answer("aclnnSoftplusBackward", SOFTPLUS, 0.7, False),
    "softplus_decided": Answer("aclnnSoftplusBackward", FURTHER, 0.7310586, False),
    "softplus_at_the_threshold": Answer("aclnnSoftplusBackward", EXACT, 1 / (1 + np.exp(-1.0)), True),
    "softplus_exactly_decided": Answer("aclnnSoftplusBackward", EXACT, 1.0, False),
    "smooth_l1_tbe": Answer("aclnnSmoothL1LossBackward", EQUAL, 0.0, True),
    "smooth_l1_torch": Answer("aclnnSmoothL1LossBackward", EQUAL, -3.0, True),
    "smooth_l1_experimental": Answer("aclnnSmoothL1LossBackward", EQUAL, 3.0, True),
    "smooth_l1_nan": Answer("aclnnSmoothL1LossBackward", EQUAL, np.nan, False),
    "smooth_l1_950": Answer("aclnnSmoothL1LossBackward", EQUAL, np.nan, True, "ascend950"),
    "soft_margin_nan": Answer("aclnnSoftMarginLossBackward", INFINITE, np.nan, True),
    "soft_margin_infinite": Answer("aclnnSoftMarginLossBackward", INFINITE, np.inf, True),
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_every_layer_accepts_both_sides_of_what_rounding_decides(answer: Answer) -> None:
    result = layers(answer.op, answer.actual, answer.soc, **answer.params)
    assert all(result.values()) is answer.right, result


def selu_fused(g: Any, y: Any) -> Any:
    """Return fma(g, y, g * scale * alpha): the product of two float32 numbers is exact in float64."""
    return np.where(y <= 0, g.astype(float) * y + g * SINGLE(SCALE * ALPHA), g * SINGLE(SCALE))


def selu_added(g: Any, y: Any) -> Any:
    return np.where(y <= 0, g * y + g * SINGLE(SCALE * ALPHA), g * SINGLE(SCALE))


def tanh_subtracted(g: Any, y: Any) -> Any:
    return g - (g * y) * y


ORDERS = {
    "selu_fused": ("aclnnSeluBackward", "result", selu_fused),
    "selu_added": ("aclnnSeluBackward", "result", selu_added),
    "tanh_subtracted": ("aclnnTanhBackward", "output", tanh_subtracted),
}


@pytest.mark.parametrize(("op", "name", "kernel"), ORDERS.values(), ids=ORDERS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_an_order_that_multiplies_the_gradient_first_is_within_the_bound(
    op: str, name: str, kernel: Any, dtype: str
) -> None:
    drawn = np.random.default_rng(7)
    kind = oracle.TensorSpec((), dtype).dtype.numpy  # type: ignore[union-attr]
    g = drawn.uniform(-4, 4, 4000).astype(kind)
    y = np.concatenate([drawn.uniform(-1.8, 1, 2000), 1 - 2 ** drawn.uniform(-24, 0, 2000)]).astype(kind)
    result = layers(op, kernel(g.astype(SINGLE), y.astype(SINGLE)), **{"gradOutput": g, name: y})
    assert result["strict"], result
