"""aclnnSwish: out = self / (1 + e^-(beta * self)).

Sources: document aclnnSwish; activation/swish/op_api/aclnn_swish.cpp (checks); op_kernel/arch35 (ascend950, its
tiling); public copies of the built-in TBE kernels (CANN 8.1.RC1); official golden, which follows each product's order.
beta is any scalar that is not complex, cast to float32; a null scalar is 1.

Special values follow the formula in IEEE float64: an infinite beta * self gives self above, and NaN (inf / inf) or -0
below; beta = 0 with an infinite self gives NaN (0 * inf). Unspecified: this case on ascend950, which returns self / 2
for |beta| <= 2^-23; infinities on ascend910 and ascend310p, where the order gives NaN. Where e^-(beta * self) overflows
float32 (beta * self < -88.72) kernels return a zero, the exact value is about 2e-37 * self and smaller.
"""

from __future__ import annotations

from ..page import (
    MAIN, Args, Checks, Expression, Form, Formula, KernelName, Operator, Platform, bfloat16_where_supported, dtype_in,
    ends_if_empty, exp, max_ranks, maximum, minimum, not_null, number, output, ratio, same_dtype, same_shape,
    scalar_casts, tensor, where,
)  # fmt: skip

TYPES = ("float32", "float16", "bfloat16")


def formula(x: Expression, beta: Expression) -> Expression:
    """The document's formula, in the order of the TBE kernels."""
    return x / (exp(-(x * beta)) + 1)


def kernel_950(x: Expression, beta: Expression) -> Expression:
    """The tiling handles a beta of nearly 0 separately."""
    return where(abs(beta) <= ratio(1, 2**23), x * 0.5, x / (exp(-x * beta) + 1))


def kernel_910(x: Expression, beta: Expression) -> Expression:
    """Without an exponential that overflows. The kernel computes (b - |b|) / 2: b or 0 without a rounding, but NaN for
    b = inf."""
    b = x * beta
    above = maximum(b, 0)
    return x * exp(minimum(b, 0) + (above - above)) / (exp(-abs(b)) + 1)


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "self", "out")
    yield dtype_in(a, "self", TYPES)
    yield same_dtype(a, "self", "out")
    yield bfloat16_where_supported(a, "self", platform)
    if a["betaOptional"] is not None:
        yield scalar_casts(a, "betaOptional")
    yield from max_ranks(a, "self", "out")
    yield same_shape(a, "self", "out")
    yield ends_if_empty(a, "self")


OLD = Form(kernel_910, departs=True)

OPERATOR = Operator(
    name="aclnnSwish",
    parameters=(tensor("self", "x", MAIN), number("betaOptional", "beta", optional=True), output("out")),
    source="activation/swish/op_api/aclnn_swish.cpp",
    checks=checks,
    computes=Formula(
        formula, {"950": Form(kernel_950, departs=True), "tbe_a2": formula, "tbe_a2_310p": OLD, "tbe_910": OLD}
    ),
    points={"x": (0.0, -88.7228)},
    kernel=KernelName("swish", ("self",), {"scale": ("betaOptional", 1.0)}),
)
