"""aclnnL1LossBackward: gradInput = sign(self - target) * (gradOutput * c), c = 1, or 1 / numel(gradInput) for a mean.

Sources: document aclnnL1LossBackward (which has no formula); loss/l1_loss_grad/op_api/aclnn_l1_loss_backward.cpp
(checks, promotion); op_kernel/arch35 (ascend950); public copies of the built-in TBE kernels; official golden. The sign
comes from comparisons, so it is 1 or -1 even for neighbouring numbers. A mean divides by the elements of the common
shape, because the host broadcasts first. No sum is ever computed.

Document and source differ, and the source wins: the dtypes can differ, and only the common one is tested. So integers
pass together with a floating operand, and gradInput can have any type that the common one casts to; rank 0 is accepted.
Inputs are cast to the common dtype, and the result is rounded to it before the cast to gradInput.

self = target gives 0 * gradOutput, NaN for an infinite gradient. Unspecified before ascend950: a self or target that is
NaN (0 on ascend950, official golden and PyTorch; public TBE copies give -gradOutput).
"""

from __future__ import annotations

from ..page import (
    MAIN, MEAN, MUTUAL, REDUCTIONS, Args, Aten, Checks, Expression, Form, Formula, KernelName, MindSpore, Operator,
    Platform, broadcast_together, can_cast_promoted, common_size, dtypes_in, ends_if_empty, equal, float_types,
    has_axes, in_range, max_ranks, not_null, output, promoted_type, promotes, reduction, tensor, torch_npu, where,
)  # fmt: skip

INPUTS = ("gradOutput", "self", "target")


def formula(g: Expression, x: Expression, t: Expression, n: Expression) -> Expression:
    """The formula in the order of the kernels."""
    return where(x > t, 1, where(x < t, -1, 0)) * (g * (1 / n))


def kernel_tbe(g: Expression, x: Expression, t: Expression, n: Expression) -> Expression:
    return where(equal(x, t), 0, where(x > t, 1, -1)) * (g * (1 / n))


def quotient(g: Expression, x: Expression, t: Expression, n: Expression) -> Expression:
    """The official golden divides."""
    return where(x > t, 1, where(x < t, -1, 0)) * (g / n)


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, *INPUTS, "gradInput")
    yield in_range(a, "reduction", 0, 2)
    yield can_cast_promoted(a, INPUTS, "gradInput")
    yield promotes(a, INPUTS, float_types(platform))
    yield from max_ranks(a, "self", "target", "gradOutput", "gradInput")
    yield broadcast_together(a, INPUTS, "gradInput")
    yield ends_if_empty(a, "self", "gradOutput", "target")


def demands(a: Args, platform: Platform) -> Checks:
    """The demands of the document that the host does not check."""
    yield has_axes(a, *INPUTS, "gradInput")
    yield from dtypes_in(a, (*INPUTS, "gradInput"), ("float32", "float16", "bfloat16"))


OPERATOR = Operator(
    name="aclnnL1LossBackward",
    parameters=(
        tensor("gradOutput", "g", MUTUAL),
        tensor("self", "x", MAIN),
        tensor("target", "t", MUTUAL),
        reduction("reduction"),
        output("gradInput"),
    ),
    source="loss/l1_loss_grad/op_api/aclnn_l1_loss_backward.cpp",
    checks=checks,
    demands=demands,
    computes=Formula(formula, {"950": formula, "tbe": Form(kernel_tbe, departs=True), "quotient": quotient}),
    kernel_type=promoted_type(*INPUTS),
    mean=lambda a: common_size(a, INPUTS),
    points={"x": (0.0,)},
    kernel=KernelName("l1_loss_grad", ("gradOutput", "self", "target"), {"reduction": ("reduction", 1)}),
    aten=Aten(
        # aten has no backward of its own: use autograd.
        lambda aten, t: aten.mul(
            aten.div(t["gradOutput"], common_size(t, INPUTS) if t["reduction"] == MEAN else 1),
            aten.sgn(aten.sub(t["self"], t["target"])),
        ),
        npu=lambda aten, t: torch_npu("l1_loss_backward")(t["gradOutput"], t["self"], t["target"], t["reduction"]),
        mixed=True,
    ),
    mindspore=MindSpore(
        lambda primitives, t: primitives.L1LossBackwardExt()(
            t["gradOutput"], t["self"], t["target"], REDUCTIONS[t["reduction"]]
        )
    ),
)
