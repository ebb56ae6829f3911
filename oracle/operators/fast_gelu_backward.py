"""aclnnFastGeluBackward: gradInput = gradOutput * ((s - 1) * (-1.702 self) + 1) * s with s = 1 / (1 + e^(-1.702 self)).

Sources: document aclnnFastGeluBackward; activation/fast_gelu_grad/op_api/aclnn_fast_gelu_backward.cpp (checks);
op_kernel/arch35 (ascend950); public copies of the built-in TBE kernels. Document, official golden and kernel agree;
1.702 is the real number, which kernels store as a float32.

Rank 0 is accepted. Products other than ascend950, ascend910_93 and ascend910b refuse every dtype. Storage formats must
agree, also those of empty tensors.

Special values follow the formula in IEEE float64: an infinite self gives NaN (0 * inf). Where e^(-1.702 self) overflows
float32 (self < -52.13) kernels return a zero against gradOutput's sign, the exact value is about -1e-37; an infinite
gradient there is unspecified. On ascend910b and ascend910_93 float16 is computed in float16.
"""

from __future__ import annotations

from ..page import (
    MAIN, SAME, Args, Aten, Checks, Expression, Form, Formula, KernelName, MindSpore, Operator, Platform, dtype_in,
    ends_if_empty, exp, float_types, max_rank, not_null, output, ratio, same_dtype, same_format, same_shape, tensor,
    torch_npu,
)  # fmt: skip

SLOPE = ratio(1702, 1000)


def formula(g: Expression, x: Expression) -> Expression:
    """The document's formula, in the order of every kernel."""
    b = x * -SLOPE
    s = 1 / (exp(b) + 1)
    return g * (((s - 1) * b + 1) * s)


def gradient_first(g: Expression, x: Expression) -> Expression:
    """The gradient multiplied before the last factor; no public kernel does so, but a right one can."""
    b = x * -SLOPE
    s = 1 / (exp(b) + 1)
    return g * s * ((s - 1) * b + 1)


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "gradOutput", "self", "gradInput")
    yield same_dtype(a, "self", "gradOutput")
    yield same_dtype(a, "gradOutput", "gradInput")
    yield dtype_in(a, "gradInput", float_types(platform) if platform.arch in ("DAV_2201", "DAV_3510") else ())
    yield same_shape(a, "self", "gradOutput")
    yield same_shape(a, "gradOutput", "gradInput")
    yield max_rank(a, "self")
    yield same_format(a, "self", "gradInput")
    yield same_format(a, "self", "gradOutput")
    yield ends_if_empty(a, "gradOutput", "self")


OPERATOR = Operator(
    name="aclnnFastGeluBackward",
    parameters=(tensor("gradOutput", "g", SAME), tensor("self", "x", MAIN), output("gradInput")),
    documented=("ascend950", "ascend910_93", "ascend910b"),
    source="activation/fast_gelu_grad/op_api/aclnn_fast_gelu_backward.cpp",
    checks=checks,
    computes=Formula(
        formula, {"950": formula, "tbe": Form(formula, native=("float16",)), "gradient_first": gradient_first}
    ),
    points={"x": (-0.7511543, 0.0)},
    kernel=KernelName("fast_gelu_grad", ("gradOutput", "self")),
    aten=Aten(None, npu=lambda aten, t: torch_npu("npu_fast_gelu_backward")(t["gradOutput"], t["self"])),
    mindspore=MindSpore(
        lambda primitives, t: primitives.FastGeLUGrad()(t["gradOutput"], t["self"]), ranks=tuple(range(8))
    ),
)
