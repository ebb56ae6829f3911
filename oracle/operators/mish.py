"""aclnnMish: out = self * tanh(ln(1 + e^self)).

Sources: document aclnnMish; activation/mish/op_api/aclnn_mish.cpp (checks); op_kernel/arch35 (ascend950); public copies
of the built-in TBE kernels (CANN 8.1.RC1); official golden. They agree.

Special values follow the formula in IEEE float64: +inf stays, -inf gives NaN (inf * 0), a zero keeps its sign. Where
e^self is subnormal in float32 (self < -87.34) ascend950 returns -0.
"""

from __future__ import annotations

from ..page import (
    MAIN, Args, Aten, Checks, Expression, Formula, KernelName, Operator, Platform, dtypes_in, ends_if_empty, exp,
    float_types, log1p, max_ranks, not_null, output, same_dtype, same_shape, tanh, tensor, where,
)  # fmt: skip
from .mish_backward import tanh_of_softplus


def formula(x: Expression) -> Expression:
    """The document's formula in e = e^-|self|: the hyperbolic tangent is a quotient of polynomials in it."""
    e = exp(-abs(x))
    return x * where(x <= 0, e * (e + 2) / (e * (e + 2) + 2), (2 * e + 1) / (2 * e + 1 + 2 * (e * e)))


def kernel(x: Expression) -> Expression:
    """The order of ascend950, and of the TBE kernels except for the branch of 0, where both are 0."""
    return x * tanh_of_softplus(x, x < 0)


def kernel_torch(x: Expression) -> Expression:
    """The document's order, which PyTorch has."""
    return x * tanh(log1p(exp(x)))


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "self", "out")
    yield from dtypes_in(a, ("self", "out"), float_types(platform))
    yield same_dtype(a, "self", "out")
    yield from max_ranks(a, "self", "out")
    yield same_shape(a, "self", "out")
    yield ends_if_empty(a, "self")


OPERATOR = Operator(
    name="aclnnMish",
    parameters=(tensor("self", "x", MAIN), output("out")),
    documented=("ascend950", "ascend910_93", "ascend910b", "ascend910"),
    source="activation/mish/op_api/aclnn_mish.cpp",
    checks=checks,
    computes=Formula(formula, {"950": kernel, "tbe": kernel, "torch": kernel_torch}),
    points={"x": (0.0, -1.1924312)},
    kernel=KernelName("mish", ("self",)),
    aten=Aten(lambda aten, t: aten.mish(t["self"])),
)
