"""aclnnSigmoidBackward: gradInput = gradOutput * (1 - output) * output, output being the forward result.

Sources: document aclnnSigmoidBackward; activation/sigmoid_grad/op_api/aclnn_sigmoid_backward.cpp (checks, promotion);
op_kernel/arch35 (ascend950); public copies of the built-in TBE kernels. Document, official golden and kernels agree.

Document and source differ, and the source wins: rank 0 is accepted; products without bfloat16 refuse it only for
gradOutput; inputs that broadcast are cast to their common dtype, to which the result is rounded before the cast to
gradInput; float64 and complex inputs are accepted (AiCpu) and not served by the golden.

Special values are the formula's in IEEE float64: an infinite output gives an infinity against gradOutput's sign, zero
times infinity is NaN, output 0 and 1 keep the sign of the product.
"""

from __future__ import annotations

from ..page import (
    MAIN, MUTUAL, Args, Aten, Checks, Expression, Formula, Forward, KernelName, MindSpore, Operator, Platform,
    bfloat16_where_supported, broadcast_together, can_cast_promoted, dtypes_in, ends_if_empty, has_axes, max_ranks,
    not_null, output, promoted_type, promotes, tensor,
)  # fmt: skip

TYPES = ("float32", "float16", "float64", "complex64", "complex128", "bfloat16")
INPUTS = ("gradOutput", "output")


def formula(g: Expression, y: Expression) -> Expression:
    """The document's formula, in the order of every kernel."""
    return g * (1 - y) * y


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "gradOutput", "output", "gradInput")
    yield from dtypes_in(a, ("gradOutput", "output", "gradInput"), TYPES)
    yield bfloat16_where_supported(a, "gradOutput", platform)
    yield from max_ranks(a, *INPUTS)
    yield promotes(a, INPUTS, TYPES)
    yield can_cast_promoted(a, INPUTS, "gradInput")
    yield broadcast_together(a, INPUTS, "gradInput")
    yield ends_if_empty(a, *INPUTS)


def demands(a: Args, platform: Platform) -> Checks:
    """The demands of the document that the host does not check."""
    yield has_axes(a, "gradOutput", "output", "gradInput")


OPERATOR = Operator(
    name="aclnnSigmoidBackward",
    parameters=(tensor("gradOutput", "g", MUTUAL), tensor("output", "y", MAIN), output("gradInput")),
    source="activation/sigmoid_grad/op_api/aclnn_sigmoid_backward.cpp",
    checks=checks,
    demands=demands,
    computes=Formula(formula),
    kernel_type=promoted_type(*INPUTS),
    points={"y": (0.0, 0.5, 1.0)},
    forwards=(Forward("aclnnSigmoid", {"output": "out"}),),
    kernel=KernelName("sigmoid_grad", ("output", "gradOutput")),
    aten=Aten(lambda aten, t: aten.sigmoid_backward(t["gradOutput"], t["output"]), mixed=True),
    mindspore=MindSpore(lambda primitives, t: primitives.SigmoidGrad()(t["output"], t["gradOutput"])),
)
