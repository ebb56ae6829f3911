"""aclnnKlDivBackward: out = -(T * gradOutput) * c, T = target or e^target (logTarget), c = 1, 1 / numel for a mean, 1 /
dim 0 for a batch mean, both of the common shape of self and target.

Sources: document aclnnKlDivBackward (which has no formula); loss/kl_div_loss_grad/op_api/aclnn_kl_div_backward.cpp
(checks, promotion, broadcast); op_kernel/arch35 (ascend950); public copies of the built-in TBE kernels; official
golden. self gives a shape and a dtype; its values are never read.

Document and source differ, and the source wins: out can have any listed dtype that self's dtype casts to; reduction is
never checked, and a number outside 0 to 3 acts as 0. Only if all inputs are float16 the kernel computes in float16
(before ascend950 step by step), since February 2026 (after CANN 8.5); otherwise all are cast to float32.

A target larger than self is accepted: out is then the sum of the terms that share an element of self. Special values
follow the formula in IEEE float64: target 0 gives -0 for a positive gradient, and a target whose e^target overflows
gives NaN for a zero gradient.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..page import (
    BROADCAST, MAIN, MEAN, Args, Arguments, Aten, Check, Checks, Expression, Form, Formula, KernelName, Operator,
    Platform, TensorSpec, broadcast_shape, can_cast, check, dtypes_in, ends_if_empty, exp, flag, float_types, has_axes,
    in_range, max_ranks, not_null, output, reduction, same_dtype, same_shape, size_of, tensor, torch_npu, where,
)  # fmt: skip
from .kl_div import COMMON, WORDS, batch

INPUTS = ("gradOutput", "self", "target")


def formula(g: Expression, t: Expression, log: Expression, n: Expression) -> Expression:
    """The formula in the order of every kernel."""
    return where(log, exp(t), t) * g * -1 * (1 / n)


def quotient(g: Expression, t: Expression, log: Expression, n: Expression) -> Expression:
    """The official golden divides."""
    return -(g * where(log, exp(t), t)) / n


def factor_first(g: Expression, t: Expression, log: Expression, n: Expression) -> Expression:
    """The gradient times the factor first; no public kernel does so, but a right one can."""
    return where(log, exp(t), t) * (g * (1 / n)) * -1


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, *INPUTS, "out")
    yield can_cast(a, "self", "out")
    yield from dtypes_in(a, (*INPUTS, "out"), float_types(platform))
    yield from max_ranks(a, *INPUTS, "out")
    common = broadcast_shape(a["self"].shape, a["target"].shape)
    problem = f"self of shape {a['self'].shape} and target of shape {a['target'].shape} do not broadcast"
    yield check("self broadcasts with target", problem if common is None else None)
    yield gradient_shape(a["gradOutput"], common or ())
    yield same_shape(a, "out", "self")
    yield ends_if_empty(a, "self")


def gradient_shape(grad: TensorSpec, common: tuple[int, ...]) -> Check:
    fits = broadcast_shape(grad.shape, common) == common
    problem = f"gradOutput of shape {grad.shape} does not broadcast to {common}, the common shape of self and target"
    return check("gradOutput broadcasts to the common shape", None if fits else problem)


def kernel_type(a: Arguments, platform: Platform) -> str:
    """float16 if all inputs are float16, else float32; before CANN 9.0 always float32."""
    narrow = platform.since("9.0") and all(str(a[name].dtype) == "float16" for name in INPUTS)
    return "float16" if narrow else "float32"


def autograd(aten: Any, t: Mapping[str, Any]) -> Any:
    """The function that PyTorch's autograd computes, with the device's divisor."""
    scale = aten.exp(t["target"]) if t["logTarget"] else t["target"]
    count = math.prod(COMMON(t)) if t["reduction"] == MEAN else batch(t).get("n", 1)
    terms = aten.div(aten.neg(aten.mul(scale, t["gradOutput"])), count)
    return terms.broadcast_to(COMMON(t)).sum_to_size(t["self"].shape)


def demands(a: Args, platform: Platform) -> Checks:
    """The demands of the document that the host does not check."""
    yield has_axes(a, *INPUTS, "out")
    yield same_dtype(a, "out", "self")
    yield in_range(a, "reduction", 0, 3)


OPERATOR = Operator(
    name="aclnnKlDivBackward",
    parameters=(
        tensor("gradOutput", "g", BROADCAST),
        tensor("self", "", MAIN, read=False),
        tensor("target", "t", BROADCAST),
        reduction("reduction", WORDS),
        flag("logTarget", "log"),
        output("out"),
    ),
    documented=("ascend950", "ascend910_93", "ascend910b"),
    source="loss/kl_div_loss_grad/op_api/aclnn_kl_div_backward.cpp",
    checks=checks,
    demands=demands,
    empty=("self",),
    computes=Formula(
        formula,
        {"950": formula, "tbe": Form(formula, native=("float16",)), "quotient": quotient, "factor_first": factor_first},
    ),
    kernel_type=kernel_type,
    mean=size_of(COMMON),
    scalars=batch,
    terms=COMMON,
    undefined=lambda a: "self of one element is to hold the sum of no terms" if 0 in COMMON(a) else None,
    points={"t": (0.0, -87.34, 88.72)},
    kernel=KernelName(
        "kl_div_loss_grad",
        INPUTS,
        {"reduction": ("reduction", 1), "log_target": ("logTarget", False)},
    ),
    aten=Aten(
        # aten has no backward of its own: use autograd.
        autograd,
        npu=lambda aten, t: torch_npu("kl_div_backward")(
            t["gradOutput"], t["self"], t["target"], t["reduction"], log_target=t["logTarget"]
        ),
        mixed=True,
    ),
)
