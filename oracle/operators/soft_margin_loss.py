"""aclnnSoftMarginLoss: loss = log(1 + e^(-target * self)); its mean, or its sum, over all elements of the common shape.

Sources: document aclnnSoftMarginLoss; loss/soft_margin_loss/op_api/aclnn_soft_margin_loss.cpp (checks, promotion,
reduction); op_kernel/arch35 (ascend950, since May 2026 without the overflow); public copies of the built-in TBE
kernels, which add 1 to e^(-self * target): infinite for a product below -88.72, which is unspecified there.

Document and source differ, and the source wins: reduction is never checked; 1 is a mean, and any other number than 0 a
sum. The result is rounded to the inputs' common type before the cast to out. An empty call writes NaN for reduction 1,
0 for 2, and no output for any other.

No kernel has log1p, so that losses below 2^-24 are lost. Special values follow the formula in IEEE float64.
"""

from __future__ import annotations

from ..page import (
    MAIN, MUTUAL, REDUCTIONS, SUM, Args, Aten, Checks, Expression, Form, Formula, KernelName, MindSpore, Operator,
    Platform, common_shape, dtypes_in, ends_if_empty, exp, filled, float_types, in_range, log, log1p, loss_shape,
    max_ranks, maximum, not_null, output, promoted_type, reduced_shape, reduction, size_of, tensor,
)  # fmt: skip

INPUTS = ("self", "target")
COMMON = common_shape(*INPUTS)


def formula(x: Expression, t: Expression) -> Expression:
    """The formula without the terms that overflow."""
    b = -(t * x)
    return maximum(b, 0) + log1p(exp(-abs(b)))


def kernel_950(x: Expression, t: Expression) -> Expression:
    b = -(t * x)
    return maximum(b, 0) + log(exp(-abs(b)) + 1)


def kernel_tbe(x: Expression, t: Expression) -> Expression:
    return log(exp(-x * t) + 1)


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, *INPUTS, "out")
    yield from dtypes_in(a, (*INPUTS, "out"), float_types(platform))
    yield from max_ranks(a, *INPUTS)
    yield loss_shape(a, INPUTS, "out")
    yield ends_if_empty(a, *INPUTS)


def demands(a: Args, platform: Platform) -> Checks:
    """The demands of the document that the host does not check."""
    yield in_range(a, "reduction", 0, SUM)


OPERATOR = Operator(
    name="aclnnSoftMarginLoss",
    parameters=(
        tensor("self", "x", MAIN),
        tensor("target", "t", MUTUAL),
        reduction("reduction"),
        output("out"),
    ),
    source="loss/soft_margin_loss/op_api/aclnn_soft_margin_loss.cpp",
    checks=checks,
    demands=demands,
    filled=filled,
    computes=Formula(
        formula,
        {"950": Form(kernel_950, mean="sum"), "tbe": Form(kernel_tbe, mean="sum", departs=True)},
    ),
    kernel_type=promoted_type(*INPUTS),
    shape=reduced_shape(*INPUTS),
    terms=COMMON,
    added="float32",
    mean=size_of(COMMON),
    points={"x": (0.0,), "t": (-1.0, 0.0, 1.0)},
    kernel=KernelName("soft_margin_loss", INPUTS, {"reduction": ("reduction", 1)}),
    aten=Aten(  # broadcast as the host does
        lambda aten, t: aten.soft_margin_loss(*aten.broadcast_tensors([t[n] for n in INPUTS]), t["reduction"]),
        mixed=True,
        departs=True,  # log(1 + exp) overflows
    ),
    mindspore=MindSpore(
        lambda primitives, t: primitives.SoftMarginLoss(REDUCTIONS[min(max(t["reduction"], 0), SUM)])(
            t["self"], t["target"]
        )
    ),
)
