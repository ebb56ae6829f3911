"""Elements on which the kernels of some SoCs are unknown, or known to differ: only there no value is required."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from calls import call_of

import oracle
from oracle.model.aclnn import PLATFORMS
from oracle.model.dtypes import DTYPES
from oracle.operators.answers.api import reference

NAN = np.nan
BEFORE_950 = [soc for soc, p in PLATFORMS.items() if not p.flushes]
JUST_BELOW = float(np.nextafter(np.float32(1e-6), np.float32(0)))


def unspecified(
    name: str, soc: str, attrs: dict[str, Any] | None = None, output: str = "", **inputs: Any
) -> list[bool]:
    """Return which elements of an output are unspecified."""
    arrays = {n: np.atleast_1d(np.array(v, np.float32)) for n, v in inputs.items()}
    return reference(call_of(name, soc, **arrays, **(attrs or {})), output).unspecified.reshape(-1).tolist()


def test_what_a_sigmoid_that_ascend910_clamps_makes_of_nan_is_not_known() -> None:
    x, t = [-105, -105, -88.6, 40, NAN], [0, 1, 0, 1, 0]
    for soc in BEFORE_950:  # they flush such a sigmoid
        result = unspecified(
            "aclnnBinaryCrossEntropyWithLogitsBackward", soc, {"reduction": 0},
            gradOutput=np.full(5, 1e30), self=x, target=t,
        )  # fmt: skip
        assert result == [*[False] * 4, soc == "ascend910"], soc


def test_a_beta_of_which_ascend950_makes_nan_is_below_the_float32_of_1e_6() -> None:
    inside = {"gradOut": [1, 1], "self": [1e-8, 5e-7], "target": [0, 0]}
    for beta, wanted in ((1e-6, [False, False]), (JUST_BELOW, [True, True]), (1e-7, [True, False])):
        assert unspecified("aclnnSmoothL1LossBackward", "ascend950", {"reduction": 0, "beta": beta}, **inside) == wanted


def test_a_difference_that_is_nan_beside_beta_0_is_known_of_ascend950_alone() -> None:
    given = {"gradOut": [1, 1, 1], "self": [NAN, 1, 2], "target": [0, NAN, 1]}
    for soc in PLATFORMS:
        result = unspecified("aclnnSmoothL1LossBackward", soc, {"reduction": 0, "beta": 0.0}, **given)
        assert result == ([False] * 3 if soc == "ascend950" else [True, True, False]), soc
        result = unspecified("aclnnSmoothL1LossBackward", soc, {"reduction": 0, "beta": 1.0}, **given)
        assert result == [False] * 3, soc


def test_a_product_that_overflows_before_the_factor_of_a_mean_is_known_of_ascend950_alone() -> None:
    given = {"gradOutput": [2e38, *[1] * 7], "self": [2] * 8, "target": [-4] * 8}
    for soc in PLATFORMS:
        result = unspecified("aclnnSoftMarginLossBackward", soc, {"reduction": 1}, **given)
        assert result == [soc != "ascend950", *[False] * 7], soc


@pytest.mark.parametrize(
    ("op", "given", "attributes"),
    [
        ("BinaryCrossEntropyWithLogits", {"self": [3e38] * 2, "target": [0] * 2}, {}),
        ("KlDiv", {"self": [-3e38] * 2, "target": [1] * 2}, {"logTarget": False}),
        ("L1Loss", {"self": [3e38] * 2, "target": [0] * 2}, {}),
        ("MseLoss", {"self": [1.7e19] * 2, "target": [0] * 2}, {}),
        ("SmoothL1Loss", {"self": [3e38] * 2, "target": [0] * 2}, {"beta": 1.0}),
        ("SoftMarginLoss", {"self": [3e38] * 2, "target": [-1] * 2}, {}),
    ],
)
def test_a_sum_that_overflows_before_the_factor_of_a_mean_is_unspecified_on_ascend950(
    op: str, given: dict[str, Any], attributes: dict[str, Any]
) -> None:
    output = "result" if op == "SmoothL1Loss" else "out"
    attributes = {"reduction": 1, **attributes}
    assert unspecified(f"aclnn{op}", "ascend950", attributes, output=output, **given) == [True]


def test_what_ascend910_makes_of_nan_is_not_known_where_it_clamps_or_its_comparison_is_not() -> None:
    x = {"gradOutput": [1, 1], "self": [NAN, 1]}
    for soc in PLATFORMS:
        wanted = [soc == "ascend910", False]
        assert unspecified("aclnnSeluBackward", soc, gradOutput=[1, 1], result=[NAN, 1]) == wanted, soc
        assert unspecified("aclnnPreluBackward", soc, weight=[2], **x) == wanted, soc
        assert unspecified("aclnnPreluBackward", soc, output="gradWeight", weight=[2], **x) == wanted[:1], soc
        assert unspecified("aclnnLeakyReluBackward", soc, {"negativeSlope": 0.1, "selfIsResult": False}, **x) == wanted
        masked = [soc in ("ascend910", "ascend950"), False]  # ascend950 in every release
        assert unspecified("aclnnThresholdBackward", soc, {"threshold": 1.0}, **x) == masked, soc
        assert unspecified("aclnnHardtanhBackward", soc, {"min": 0.0, "max": 2.0}, **x) == wanted, soc


def test_a_clamped_self_stands_for_thresholds_comparison_in_bfloat16_alone() -> None:
    x = np.array([NAN, 1e-39, 1], np.float32)
    for kind, wanted in (("float32", [False] * 3), ("bfloat16", [True, True, False])):
        dtype = DTYPES[kind].numpy
        call = call_of("aclnnThresholdBackward", threshold=0.0, gradOutput=np.ones(3, dtype), self=x.astype(dtype))
        assert reference(call).unspecified.tolist() == wanted, kind


def test_ascend950_rounds_one_number_to_hardsigmoids_edge() -> None:
    below = np.nextafter(np.float32(3), np.float32(0))
    x = [below, np.nextafter(below, np.float32(0)), -below, 3, -3]
    for soc in PLATFORMS:
        result = unspecified("aclnnHardsigmoidBackward", soc, gradOutput=np.ones(5), self=x)
        assert result == [soc == "ascend950", *[False] * 4], soc


def test_an_infinite_target_without_a_weight_of_positives_is_not_known() -> None:
    """PyTorch and ascend950 multiply by posWeight only if it is given, and return infinity; the formula gives NaN."""
    x, t = np.array([1, -1], np.float32), np.full(2, np.inf, np.float32)
    for weight, known in ((None, False), (np.full(2, 2, np.float32), True)):
        answer = oracle.reference(
            "aclnnBinaryCrossEntropyWithLogits", self=x, target=t, posWeightOptional=weight, reduction=0
        )
        assert (~answer["out"].unspecified).tolist() == [known, known]
