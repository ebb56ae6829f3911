"""aclnnLeakyReluBackward: out = gradOutput where self > 0, else gradOutput * negativeSlope.

Sources: document aclnnLeakyReluBackward; activation/leaky_relu_grad/op_api/aclnn_leaky_relu_backward.cpp (checks,
promotion); op_kernel/arch35 (ascend950); public copies of the built-in TBE kernels. They agree on the formula; the
slope is a float32, also for float64 tensors. selfIsResult changes no value.

Document and source differ, and the source wins: an integer, bool or (from real inputs) any other output that the common
dtype does not cast to is refused, though the document promises it; only an empty ``self`` ends a call early. A negative
slope is refused with selfIsResult. float64 inputs are accepted (AiCpu) and not served by the golden.

self = 0 and NaN take the slope. An infinite gradient times a slope of zero is NaN. On ascend910 a mask made by clamping
replaces the comparison: unspecified there for NaN and an infinite slope; for 0 < self < 2^-126 both results are right.
Kernels before ascend950 compute float16 in float16.
"""

from __future__ import annotations

from ..page import (
    MAIN, MUTUAL, Args, Aten, Checks, Expression, Form, Formula, Forward, KernelName, MindSpore, Operator, Platform,
    broadcast_together, can_cast_promoted, check, differentiated, dtypes_in, ends_if_empty, flag, float_types, is_nan,
    max_ranks, not_null, number, output, promoted_type, scalar_in, source_only, tensor, where,
)  # fmt: skip

INPUTS = ("gradOutput", "self")
SLOPES = ("float32", "float16", "float64", "int32", "int64", "int8", "uint8", "bool", "int16")


def formula(g: Expression, x: Expression, slope: Expression) -> Expression:
    """The document's formula, in the order of every kernel."""
    return where(x > 0, g, g * slope)


def kernel_910(g: Expression, x: Expression, slope: Expression) -> Expression:
    """A mask of clamped numbers instead of a comparison."""
    m = where(x > 0, where(x < 2.0**-126, x * 2.0**126, 1), 0)
    return g * (abs(m - 1) * slope + m)


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "gradOutput", "self", "negativeSlope", "out")
    yield from dtypes_in(a, INPUTS, float_types(platform, "float64"))
    yield scalar_in(a, "negativeSlope", (*SLOPES, *(("bfloat16",) if platform.bfloat16 else ())))
    yield from max_ranks(a, *INPUTS)
    yield broadcast_together(a, INPUTS, "out")
    negative = a["selfIsResult"] and float(a["negativeSlope"]) < 0
    problem = f"negativeSlope is {a['negativeSlope']}; with selfIsResult it must not be negative"
    yield check("negativeSlope of a forward result", problem if negative else None)
    yield source_only(can_cast_promoted(a, INPUTS, "out"))
    yield ends_if_empty(a, "self")


OPERATOR = Operator(
    name="aclnnLeakyReluBackward",
    parameters=(
        tensor("gradOutput", "g", MUTUAL),
        tensor("self", "x", MAIN),
        number("negativeSlope", "slope", plain=0.01),
        flag("selfIsResult"),
        output("out"),
    ),
    source="activation/leaky_relu_grad/op_api/aclnn_leaky_relu_backward.cpp",
    checks=checks,
    empty=("self",),
    computes=Formula(
        formula,
        {
            "950": formula,
            "tbe_a2": Form(formula, native=("float16",)),
            "tbe_910": Form(kernel_910, native=("float16",), departs=True),
        },
        unspecified={"tbe_910": lambda x: is_nan(x)},
    ),
    kernel_type=promoted_type(*INPUTS),
    points={"x": (0.0,)},
    forwards=(Forward("aclnnLeakyRelu", {"self": "out"}, lambda a: {"selfIsResult": True}),),
    kernel=KernelName("leaky_relu_grad", INPUTS, {"negative_slope": ("negativeSlope", 0.0)}),
    aten=Aten(
        lambda aten, t: aten.leaky_relu_backward(t["gradOutput"], t["self"], t["negativeSlope"], t["selfIsResult"]),
        mixed=True,
    ),
    mindspore=MindSpore(
        lambda primitives, t: primitives.LeakyReLUGradExt()(
            t["gradOutput"], t["self"], t["negativeSlope"], t["selfIsResult"]
        ),
        composed=lambda ms, t: differentiated(
            ms, lambda x: ms.ops.leaky_relu(x, float(t["negativeSlope"])), t["self"], t["gradOutput"]
        ),
    ),
)
