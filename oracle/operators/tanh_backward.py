"""aclnnTanhBackward: gradInput = gradOutput * (1 - output^2), output being the forward result.

Sources: document aclnnTanhBackward; ops-math math/tanh_grad/op_api/aclnn_tanh_backward.cpp (checks); op_kernel/arch35
(ascend950); public copies of the built-in TBE kernels. Document, official golden and kernels agree on the formula.

Document and source differ, and the source wins: the document calls different shapes an error, the source broadcasts;
rank 0 is accepted. Mixed dtypes are refused on every product. float64 is accepted (AiCpu, whose kernel does not
broadcast) and not served by the golden.

Special values follow the formula in IEEE float64: an infinite output gives an infinity against gradOutput's sign (NaN
for a zero gradient); |output| = 1 gives a zero of gradOutput's sign. Unspecified: elements whose square overflows
float32 and whose result does not.
"""

from __future__ import annotations

from ..page import (
    MAIN, MUTUAL, Args, Aten, Checks, Expression, Formula, Forward, KernelName, MindSpore, Operator, Platform,
    broadcast_together, dtypes_in, ends_if_empty, float_types, has_axes, is_finite, max_ranks, not_null, output,
    same_dtype, same_shape, tensor, where,
)  # fmt: skip

INPUTS = ("gradOutput", "output")


def formula(g: Expression, y: Expression) -> Expression:
    """The document's formula."""
    return g * (1 - y * y)


def kernel_950(g: Expression, y: Expression) -> Expression:
    """MulAddDst: multiplied, then added."""
    return (1 + y * -1 * y) * g


def kernel_tbe(g: Expression, y: Expression) -> Expression:
    return (y * y * -1 + 1) * g


def distributed(g: Expression, y: Expression) -> Expression:
    """A finite gradient multiplied first; no public kernel of these products does so, but a right one can."""
    return where(is_finite(g), g - g * y * y, g * (1 - y * y))


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "gradOutput", "output", "gradInput")
    yield from dtypes_in(a, ("gradOutput", "output", "gradInput"), float_types(platform, "float64"))
    yield same_dtype(a, "gradOutput", "output")
    yield same_dtype(a, "gradOutput", "gradInput")
    yield from max_ranks(a, *INPUTS)
    yield broadcast_together(a, INPUTS, "gradInput")
    yield ends_if_empty(a, *INPUTS)


def demands(a: Args, platform: Platform) -> Checks:
    """The demands of the document that the host does not check."""
    yield has_axes(a, "gradOutput", "output", "gradInput")
    yield same_shape(a, "gradOutput", "output")


OPERATOR = Operator(
    name="aclnnTanhBackward",
    parameters=(tensor("gradOutput", "g", MUTUAL), tensor("output", "y", MAIN), output("gradInput")),
    source="math/tanh_grad/op_api/aclnn_tanh_backward.cpp",
    checks=checks,
    demands=demands,
    computes=Formula(formula, {"950": kernel_950, "tbe": kernel_tbe, "distributed": distributed}),
    points={"y": (-1.0, 0.0, 1.0)},
    forwards=(Forward("aclnnTanh", {"output": "out"}),),
    kernel=KernelName("tanh_grad", ("output", "gradOutput")),
    aten=Aten(lambda aten, t: aten.tanh_backward(t["gradOutput"], t["output"])),
    mindspore=MindSpore(lambda primitives, t: primitives.TanhGrad()(t["output"], t["gradOutput"])),
)
