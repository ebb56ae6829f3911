"""aclnnGelu: GELU's tanh approximation, out = self / (1 + e^(-2u)) with u = sqrt(2 / pi) (self + 0.044715 self^3).

Sources: document aclnnGelu; activation/gelu/op_api/aclnn_gelu.cpp (checks); op_kernel/arch35 (ascend950); public copies
of the built-in TBE kernels in high precision (CANN 8.1.RC1), as aclnn takes them; official golden and ATK, which
compute the approximation too. Its constants are real numbers.

Document and source differ, and the source wins: a private format of self or out is refused.

Special values follow the formula in IEEE float64: +inf stays, -inf gives NaN (inf / inf), a zero keeps its sign. Below
-10.06 e^(-2u) overflows float32, and kernels return -0 (ascend910 and ascend310p a number down to -1.2e-38). PyTorch's
float32 loses all digits below -5. On an NPU before ascend950 it ignores ``approximate`` and calls this operator.
"""

from __future__ import annotations

from ..page import (
    MAIN, PI, Args, Aten, Checks, Expression, Formula, KernelName, Operator, Platform, bfloat16_where_supported,
    dtype_in, ends_if_empty, exp, max_rank, minimum, not_null, output, public_format, ratio, same_dtype, same_shape,
    sqrt, tensor,
)  # fmt: skip

TYPES = ("float32", "float16", "bfloat16")
BETA = 2 * sqrt(2 / PI)  # 2u = BETA (x + CUBIC x^3)
CUBIC = ratio(44715, 1000000)


def formula(x: Expression) -> Expression:
    """The document's formula, in the order of Atlas A2."""
    return x / (exp(-(BETA * (x + CUBIC * (x * x * x)))) + 1)


def kernel_950(x: Expression) -> Expression:
    return x / (exp((x * x * x + x * (1 / CUBIC)) * -(BETA * CUBIC)) + 1)


def kernel_910(x: Expression) -> Expression:
    """The order of ascend910 and ascend310p, whose exponential does not overflow."""
    m = BETA * (x + CUBIC * (x * x * x))
    return x / (exp(-abs(m)) + 1) * exp(minimum(m, 0))


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "self", "out")
    yield bfloat16_where_supported(a, "self", platform)
    yield dtype_in(a, "self", TYPES)
    yield same_dtype(a, "self", "out")
    for name in ("self", "out"):
        yield public_format(a, name)
    yield max_rank(a, "self")
    yield same_shape(a, "self", "out")
    yield ends_if_empty(a, "self")


OPERATOR = Operator(
    name="aclnnGelu",
    parameters=(tensor("self", "x", MAIN), output("out")),
    source="activation/gelu/op_api/aclnn_gelu.cpp",
    checks=checks,
    computes=Formula(formula, {"950": kernel_950, "tbe_a2": formula, "tbe_a2_310p": kernel_910, "tbe_910": kernel_910}),
    points={"x": (0.0, -0.7524614, -10.06)},
    kernel=KernelName("gelu", ("self",)),
    aten=Aten(lambda aten, t: aten.gelu(t["self"], approximate="tanh"), departs=True),
)
