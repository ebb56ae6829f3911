"""aclnnSiluBackward: gradInput = gradOutput * s * (1 + self * (1 - s)) with s = 1 / (1 + e^-self).

Sources: document aclnnSiluBackward; activation/silu_grad/op_api/aclnn_silu_backward.cpp (checks); op_kernel/arch35
(ascend950); public copies of the built-in TBE kernels. The document writes s * (1 + x - x * s), which is equal.

Document and source differ, and the source wins: only ascend950 broadcasts and takes inputs of two dtypes (the output
is then float32), elsewhere shapes and dtypes are equal; rank 0 is accepted; ascend310p is not refused.

Special values follow the formula in IEEE float64: an infinite self gives NaN (0 * inf). Where e^-self overflows float32
(self < -88.73) kernels return a zero against gradOutput's sign, the exact value is about -2e-37 and smaller; an
infinite gradient there is unspecified.
"""

from __future__ import annotations

from ..page import (
    MAIN, MUTUAL, Args, Aten, Checks, Expression, Formula, KernelName, MindSpore, Operator, Platform,
    bfloat16_where_supported, broadcast_together, check, dtypes_in, ends_if_empty, exp, has_axes, max_ranks, not_null,
    output, promoted_type, same_dtype, same_shape, tensor,
)  # fmt: skip

TYPES = ("float16", "float32", "bfloat16")
INPUTS = ("gradOutput", "self")


def formula(g: Expression, x: Expression) -> Expression:
    """The formula in the order of every kernel."""
    s = 1 / (exp(-x) + 1)
    return g * (s * (1 + (1 - s) * x))


def gradient_first(g: Expression, x: Expression) -> Expression:
    """The gradient multiplied before the last factor; no public kernel does so, but a right one can."""
    s = 1 / (exp(-x) + 1)
    return g * s * (1 + (1 - s) * x)


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "gradOutput", "self", "gradInput")
    yield from dtypes_in(a, (*INPUTS, "gradInput"), TYPES)
    if platform.regbase and a["gradOutput"].dtype != a["self"].dtype:
        kind = a["gradInput"].dtype_name
        problem = f"gradInput has dtype {kind}; for inputs of two dtypes it must be float32"
        yield check("float32 gradInput of mixed inputs", None if kind == "float32" else problem)
    else:
        yield same_dtype(a, "gradOutput", "gradInput")
        yield same_dtype(a, "self", "gradInput")
    yield bfloat16_where_supported(a, "self", platform)
    yield bfloat16_where_supported(a, "gradOutput", platform)
    yield from max_ranks(a, *INPUTS)
    if platform.regbase:
        yield broadcast_together(a, INPUTS, "gradInput")
    else:
        yield same_shape(a, "gradOutput", "gradInput")
        yield same_shape(a, "self", "gradInput")
    yield ends_if_empty(a, *INPUTS)


def demands(a: Args, platform: Platform) -> Checks:
    """The demands of the document that the host does not check."""
    yield has_axes(a, "gradOutput", "self", "gradInput")


OPERATOR = Operator(
    name="aclnnSiluBackward",
    parameters=(tensor("gradOutput", "g", MUTUAL), tensor("self", "x", MAIN), output("gradInput")),
    documented=("ascend950", "ascend910_93", "ascend910b", "ascend910"),
    source="activation/silu_grad/op_api/aclnn_silu_backward.cpp",
    checks=checks,
    demands=demands,
    computes=Formula(formula, {"950": formula, "tbe": formula, "gradient_first": gradient_first}),
    kernel_type=promoted_type(*INPUTS),
    points={"x": (-1.2784645, 0.0)},
    kernel=KernelName("silu_grad", INPUTS),
    aten=Aten(lambda aten, t: aten.silu_backward(t["gradOutput"], t["self"]), mixed=True),
    mindspore=MindSpore(lambda primitives, t: primitives.SiLUGrad()(t["gradOutput"], t["self"])),
)
