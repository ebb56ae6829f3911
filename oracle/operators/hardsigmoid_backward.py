"""aclnnHardsigmoidBackward: out = gradOutput / 6 where |self| < 3, else 0.

Sources: document aclnnHardsigmoidBackward (which has no formula); activation/hard_sigmoid_grad/op_api/
aclnn_hardsigmoid_backward.cpp (checks, promotion); op_kernel/arch35 (ascend950); public copies of the built-in TBE
kernels. The factor is the real 1/6, which kernels store as a float32.

Shapes are equal; inputs are cast to their common dtype, and the result is rounded to it before the cast to out, which
can have any type that the common dtype casts to (in the document only the inputs' dtype).

self = NaN gives 0, and so does every masked element, for any gradient. ascend950 compares self / 6 + 0.5, rounded
twice, and gives 0 just below 3: there the result is unspecified. Kernels before ascend950 compute float16 in float16.
"""

from __future__ import annotations

from ..page import (
    MAIN, SAME, Args, Aten, Checks, Expression, Form, Formula, KernelName, MindSpore, Operator, Platform,
    can_cast_promoted, dtype_in, dtypes_in, ends_if_empty, float_types, max_ranks, not_null, output, promoted_type,
    ratio, same_shape, tensor, where,
)  # fmt: skip

INPUTS = ("gradOutput", "self")
SIXTH = ratio(1, 6)


def formula(g: Expression, x: Expression) -> Expression:
    """The formula as TBE kernels and PyTorch decide it."""
    return where(abs(x) < 3, g * SIXTH, 0)


def kernel_950(g: Expression, x: Expression) -> Expression:
    t = x * SIXTH + 0.5
    return where((t > 0) & (t < 1), g * SIXTH, 0)


def edge(x: Expression) -> Expression:
    """Elements with self < 3 for which self / 6 + 0.5 rounds to 1: one float32. Just above -3 none rounds to 0."""
    return (x < 3) & (x > 3 - 2.0**-21)


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, *INPUTS, "out")
    yield from dtypes_in(a, INPUTS, float_types(platform))
    yield can_cast_promoted(a, INPUTS, "out")
    yield from max_ranks(a, *INPUTS, "out")
    yield same_shape(a, "self", "gradOutput")
    yield same_shape(a, "self", "out")
    yield ends_if_empty(a, *INPUTS, "out")


def demands(a: Args, platform: Platform) -> Checks:
    """The demands of the document that the host does not check."""
    yield dtype_in(a, "out", float_types(platform))


OPERATOR = Operator(
    name="aclnnHardsigmoidBackward",
    parameters=(tensor("gradOutput", "g", SAME), tensor("self", "x", MAIN), output("out")),
    source="activation/hard_sigmoid_grad/op_api/aclnn_hardsigmoid_backward.cpp",
    checks=checks,
    demands=demands,
    computes=Formula(
        formula,
        {"950": Form(kernel_950, departs=True), "tbe": Form(formula, native=("float16",))},
        unspecified={"950": edge},
    ),
    kernel_type=promoted_type(*INPUTS),
    points={"x": (-3.0, 3.0)},
    kernel=KernelName("hard_sigmoid_grad", INPUTS),
    aten=Aten(lambda aten, t: aten.hardsigmoid_backward(t["gradOutput"], t["self"]), mixed=True),
    mindspore=MindSpore(
        lambda primitives, t: primitives.HSigmoidGrad()(t["gradOutput"], t["self"]), ranks=tuple(range(8))
    ),
)
