"""aclnnSwishBackward: gradInput = gradOutput * s * (1 + b * (1 - s)) with b = beta * self, s = 1 / (1 + e^-b).

Sources: document aclnnSwishBackward; activation/swish_grad/op_api/aclnn_swish_backward.cpp (checks); op_kernel/arch35
(ascend950); public copies of the built-in TBE kernels. Document, official golden and kernels agree on the formula. beta
is any scalar that is not complex, cast to float32; a null scalar is 1.

Shapes and dtypes are equal on every product; rank 0 is accepted.

Special values follow the formula in IEEE float64: an infinite b gives NaN, and so does a beta that is NaN or infinite;
beta = 0 gives gradOutput / 2. Where e^-b overflows float32 (b < -88.73) kernels return a zero (+0 * gradOutput on
ascend950, -0 * gradOutput elsewhere), the exact value is about -2e-37 and smaller; an infinite gradient there is
unspecified.
"""

from __future__ import annotations

from ..page import (
    MAIN, SAME, Args, Checks, Expression, Formula, KernelName, Operator, Platform, bfloat16_where_supported, dtypes_in,
    ends_if_empty, exp, max_ranks, not_null, number, output, same_dtype, same_shape, scalar_casts, tensor,
)  # fmt: skip

TYPES = ("float16", "float32", "bfloat16")


def formula(g: Expression, x: Expression, beta: Expression) -> Expression:
    """The document's formula, in the order of the TBE kernels."""
    b = x * beta
    s = 1 / (exp(-b) + 1)
    return s * ((1 - s) * b + 1) * g


def kernel_950(g: Expression, x: Expression, beta: Expression) -> Expression:
    b = x * beta
    s = 1 / (exp(-b) + 1)
    return ((1 - s) * b * s + s) * g


def gradient_first(g: Expression, x: Expression, beta: Expression) -> Expression:
    """The gradient multiplied before the last factor; no public kernel does so, but a right one can."""
    b = x * beta
    s = 1 / (exp(-b) + 1)
    return g * s * ((1 - s) * b + 1)


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "gradOutput", "self", "gradInput")
    yield from dtypes_in(a, ("gradOutput", "self"), TYPES)
    if a["betaOptional"] is not None:
        yield scalar_casts(a, "betaOptional")
    yield same_dtype(a, "gradOutput", "gradInput")
    yield same_dtype(a, "self", "gradInput")
    yield bfloat16_where_supported(a, "gradOutput", platform)
    yield from max_ranks(a, "gradOutput", "self", "gradInput")
    yield same_shape(a, "gradOutput", "gradInput")
    yield same_shape(a, "self", "gradInput")
    yield ends_if_empty(a, "gradOutput", "self")


OPERATOR = Operator(
    name="aclnnSwishBackward",
    parameters=(
        tensor("gradOutput", "g", SAME),
        tensor("self", "x", MAIN),
        number("betaOptional", "beta", optional=True),
        output("gradInput"),
    ),
    source="activation/swish_grad/op_api/aclnn_swish_backward.cpp",
    checks=checks,
    computes=Formula(formula, {"950": kernel_950, "tbe": formula, "gradient_first": gradient_first}),
    points={"x": (-1.2784645, 0.0)},
    kernel=KernelName("swish_grad", ("gradOutput", "self"), {"scale": ("betaOptional", 1.0)}, optional=("y",)),
)
