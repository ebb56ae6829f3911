"""aclnnSilu: out = self / (1 + e^-self).

Sources: document aclnnSilu; activation/swish/op_api/aclnn_silu.cpp (checks); the ascend950 kernel of Swish, with a
scale of 1; public copies of the built-in TBE kernels (CANN 8.1.RC1).

Document and source differ, and the source wins: no rank is limited (the tensor is flattened), and rank 0 is accepted.

Special values follow the formula in IEEE float64: +inf stays, -inf gives NaN (inf / inf), a zero keeps its sign. Where
e^-self overflows float32 (self < -88.72) kernels return -0, the exact value is about -2e-37 and smaller. ascend910 and
ascend310p compute in another order, which is right there and gives NaN for both infinities: unspecified.
"""

from __future__ import annotations

from ..page import (
    MAIN, Args, Aten, Checks, Expression, Form, Formula, Operator, Platform, bfloat16_where_supported, dtype_in,
    ends_if_empty, exp, has_axes, max_rank, not_null, output, same_dtype, same_shape, tensor,
)  # fmt: skip

TYPES = ("float32", "float16", "bfloat16")


def formula(x: Expression) -> Expression:
    """The document's formula, in the order of the kernels of ascend950 and of Atlas A2."""
    return x / (exp(-x) + 1)


def kernel_910(x: Expression) -> Expression:
    """Without an exponential that overflows. (self - |self|) / 2 is self for a negative self, else 0; inf - inf is
    NaN."""
    return x * exp((x - abs(x)) / 2) / (exp(-abs(x)) + 1)


OLD = Form(kernel_910, departs=True)


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "self", "out")
    yield dtype_in(a, "self", TYPES)
    yield dtype_in(a, "out", TYPES)
    yield same_dtype(a, "self", "out")
    yield bfloat16_where_supported(a, "self", platform)
    yield same_shape(a, "self", "out")
    yield ends_if_empty(a, "self")


def demands(a: Args, platform: Platform) -> Checks:
    """The demands of the document that the host does not check."""
    yield has_axes(a, "self", "out")
    yield max_rank(a, "self")


OPERATOR = Operator(
    name="aclnnSilu",
    parameters=(tensor("self", "x", MAIN), output("out")),
    source="activation/swish/op_api/aclnn_silu.cpp",
    checks=checks,
    demands=demands,
    computes=Formula(formula, {"950": formula, "tbe_a2": formula, "tbe_a2_310p": OLD, "tbe_910": OLD}),
    points={"x": (0.0, -88.7228)},
    # Its kernel is aclnnSwish's; tests that name only the kernel belong to that operator.
    aten=Aten(lambda aten, t: aten.silu(t["self"])),
)
