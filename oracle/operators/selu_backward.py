"""aclnnSeluBackward: gradInput = gradOutput * (result + scale * alpha) where result <= 0, else gradOutput * scale.

Sources: document aclnnSeluBackward; activation/selu_grad/op_api/aclnn_selu_backward.cpp (checks); op_kernel/arch35
(ascend950); public copies of the built-in TBE kernels. The document writes the formula in the input instead of the
result and omits scale; the kernels' formula wins. scale and alpha are SELU's real constants, which kernels store as
float32.

Shapes and dtypes are equal; there is no limit of rank. int32 and int8 are accepted and not served by the golden.

Special values follow the formula in IEEE float64; result = NaN takes the upper branch. result = 0 takes the lower
branch on ascend950 (since July 2026: after CANN 9.1) and in PyTorch, and the upper branch elsewhere: 1.758 and 1.051
times gradOutput, both right there. NaN is unspecified on ascend910, because its comparison is not known. Kernels before
ascend950 compute float16 in float16.
"""

from __future__ import annotations

from fractions import Fraction

from ..page import (
    MAIN, SAME, Args, Aten, Checks, Expression, Form, Formula, Forward, KernelName, MindSpore, Operator, Platform,
    check, dtypes_in, ends_if_empty, float_types, has_axes, is_empty, is_finite, is_nan, max_ranks, not_null, output,
    same_dtype, same_shape, tensor, where,
)  # fmt: skip

SCALE = Fraction("1.0507009873554804934193349852946")
ALPHA = Fraction("1.6732632423543772848170429916717")
TENSORS = ("gradOutput", "result", "gradInput")


def formula(g: Expression, y: Expression) -> Expression:
    """The formula of ascend950."""
    return where(y <= 0, g * (y + SCALE * ALPHA), g * SCALE)


def kernel_tbe(g: Expression, y: Expression) -> Expression:
    return where(y < 0, g * (y + SCALE * ALPHA), g * SCALE)


def distributed(g: Expression, y: Expression) -> Expression:
    """A finite gradient multiplied first; no public kernel of these products does so, but a right one can."""
    apart = where(is_finite(g), g * y + g * (SCALE * ALPHA), g * (y + SCALE * ALPHA))
    return where(y <= 0, apart, g * SCALE)


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, *TENSORS)
    yield same_dtype(a, "gradOutput", "result")
    yield same_dtype(a, "gradOutput", "gradInput")
    yield from dtypes_in(a, TENSORS, float_types(platform, "int32", "int8"))
    yield same_shape(a, "gradOutput", "result")
    yield same_shape(a, "gradOutput", "gradInput")
    yield ends_if_empty(a, "gradOutput", "result")


def demands(a: Args, platform: Platform) -> Checks:
    """The demands of the document that the host does not check."""
    text = "the document's formula leaves the scale out, and is one of the operator's input"
    yield check("formula of the document", text if a["result"].dtype is not None else None)
    yield has_axes(a, *TENSORS)
    yield from max_ranks(a, *TENSORS)
    yield check("result with elements", "result is empty" if is_empty(a["result"]) else None)


OPERATOR = Operator(
    name="aclnnSeluBackward",
    parameters=(tensor("gradOutput", "g", SAME), tensor("result", "y", MAIN), output("gradInput")),
    source="activation/selu_grad/op_api/aclnn_selu_backward.cpp",
    checks=checks,
    demands=demands,
    computes=Formula(
        formula,
        {
            "950": formula,
            "950@9.1": Form(kernel_tbe, departs=True),
            "tbe": Form(kernel_tbe, native=("float16",), departs=True),
            "distributed": distributed,
        },
        unspecified={"tbe_910": lambda y: is_nan(y)},
    ),
    points={"y": (-1.7580993, 0.0)},
    forwards=(Forward("aclnnSelu", {"result": "out"}),),
    kernel=KernelName("selu_grad", ("gradOutput", "result")),
    aten=Aten(
        # PyTorch differentiates selu by elu_backward.
        lambda aten, t: aten.elu_backward(t["gradOutput"], float(ALPHA), float(SCALE), 1, True, t["result"]),
        departs=True,
    ),
    mindspore=MindSpore(lambda primitives, t: primitives.SeluGrad()(t["gradOutput"], t["result"])),
)
