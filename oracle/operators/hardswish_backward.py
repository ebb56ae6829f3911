"""aclnnHardswishBackward: out = gradOutput * (self / 3 + 1/2) where -3 <= self <= 3, 0 below, gradOutput above.

Sources: document aclnnHardswishBackward; activation/hard_swish_grad/op_host/op_api/aclnn_hardswish_backward.cpp
(checks); op_kernel/arch35 (ascend950); public copies of the built-in TBE kernels. They agree, edges included (ascend950
since May 2026: up to CANN 9.0 the edges are unspecified there); aclnnHardswishBackwardV2 and PyTorch exclude the edges.
1/3 is the real number.

Shapes and dtypes are equal; rank 0 is accepted.

Every element is a product, also outside the interval: an infinite gradient below -3 is NaN. self = NaN gives gradOutput
on ascend950; before that it is unspecified (public copies give 1 or NaN). An infinite gradient at self = -1.5 is
unspecified too: there x / 3 + 1/2 is 0, or 1.5e-8 with a float32 of 1/3 in a fused multiply-add.
"""

from __future__ import annotations

from ..page import (
    FORMATS, MAIN, SAME, Args, Aten, Checks, Expression, Form, Formula, KernelName, MindSpore, Operator, Platform,
    dtypes_in, ends_if_empty, equal, float_types, is_nan, max_ranks, not_null, output, ratio, same_dtype, same_shape,
    tensor, where,
)  # fmt: skip


def formula(g: Expression, x: Expression) -> Expression:
    """The document's formula, in the order of every kernel."""
    return g * where(x <= 3, where(x >= -3, x * ratio(1, 3) + 0.5, 0), 1)


def edges_outside(g: Expression, x: Expression) -> Expression:
    """ascend950 before May 2026."""
    return g * where(x < 3, where(x > -3, x * ratio(1, 3) + 0.5, 0), 1)


def quotient(g: Expression, x: Expression) -> Expression:
    """PyTorch's order inside: a division."""
    return g * where(x <= 3, where(x >= -3, x / 3 + 0.5, 0), 1)


def middle(g: Expression, x: Expression) -> Expression:
    """Elements with an infinite gradient at the zero of x / 3 + 1/2, which some roundings miss."""
    return (abs(g) > FORMATS["float32"].max) & equal(x, ratio(-3, 2))


def nan_input(g: Expression, x: Expression) -> Expression:
    """The elements of ``middle``, and self = NaN, on which the public copies of the built-in kernels disagree."""
    return middle(g, x) | is_nan(x)


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "gradOutput", "self", "out")
    yield from dtypes_in(a, ("self", "gradOutput"), float_types(platform))
    yield same_dtype(a, "gradOutput", "self")
    yield same_dtype(a, "out", "self")
    yield from max_ranks(a, "gradOutput", "self")
    yield same_shape(a, "gradOutput", "self")
    yield same_shape(a, "out", "self")
    yield ends_if_empty(a, "gradOutput", "self")


OPERATOR = Operator(
    name="aclnnHardswishBackward",
    parameters=(tensor("gradOutput", "g", SAME), tensor("self", "x", MAIN), output("out")),
    documented=("ascend950", "ascend910_93", "ascend910b", "ascend910"),
    source="activation/hard_swish_grad/op_host/op_api/aclnn_hardswish_backward.cpp",
    checks=checks,
    computes=Formula(
        formula,
        {"950": formula, "950@9.0": Form(edges_outside, departs=True), "tbe": formula, "quotient": quotient},
        unspecified={"tbe": nan_input, "": middle},
    ),
    points={"x": (-3.0, -1.5, 3.0)},
    kernel=KernelName("hard_swish_grad", ("gradOutput", "self")),
    aten=Aten(lambda aten, t: aten.hardswish_backward(t["gradOutput"], t["self"]), departs=True),
    mindspore=MindSpore(lambda primitives, t: primitives.HSwishGrad()(t["gradOutput"], t["self"])),
)
