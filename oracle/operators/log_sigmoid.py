"""aclnnLogSigmoid: out = ln(1 / (1 + e^-self)).

Sources: document aclnnLogSigmoid; activation/log_sigmoid/op_api/aclnn_logsigmoid.cpp (checks); op_kernel/arch35
(ascend950); public copies of the built-in TBE kernels (CANN 8.1.RC1). Both compute the logarithm as accurately as
log1p; older copies (2021) lose everything above 16.6.

Document and source differ, and the source wins: no rank is limited, and rank 0 is accepted; formats are free.

Special values follow the formula in IEEE float64: +inf gives a zero, -inf stays.
"""

from __future__ import annotations

from ..page import (
    MAIN, Args, Aten, Checks, Expression, Formula, KernelName, Operator, Platform, dtypes_in, ends_if_empty, exp,
    float_types, has_axes, log1p, max_rank, minimum, not_null, output, same_dtype, same_shape, tensor, where,
)  # fmt: skip


def formula(x: Expression) -> Expression:
    """The order of ascend950 and of PyTorch."""
    return minimum(x, 0) - log1p(exp(-abs(x)))


def kernel_tbe(x: Expression) -> Expression:
    """Both branches, one selected."""
    return where(x <= 0, x - log1p(exp(x)), -log1p(exp(-x)))


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "self", "out")
    yield from dtypes_in(a, ("self", "out"), float_types(platform))
    yield same_dtype(a, "self", "out")
    yield same_shape(a, "self", "out")
    yield ends_if_empty(a, "self")


def demands(a: Args, platform: Platform) -> Checks:
    """The demands of the document that the host does not check."""
    yield has_axes(a, "self", "out")
    yield max_rank(a, "self")


COMPUTES = Formula(formula, {"950": formula, "tbe": kernel_tbe})
POINTS = (0.0, 16.6355, 87.34, 103.97)

OPERATOR = Operator(
    name="aclnnLogSigmoid",
    parameters=(tensor("self", "x", MAIN), output("out")),
    documented=("ascend950", "ascend910_93", "ascend910b", "ascend910"),
    source="activation/log_sigmoid/op_api/aclnn_logsigmoid.cpp",
    checks=checks,
    demands=demands,
    computes=COMPUTES,
    points={"x": POINTS},
    kernel=KernelName("log_sigmoid", ("self",)),
    aten=Aten(lambda aten, t: aten.log_sigmoid(t["self"])),
)
