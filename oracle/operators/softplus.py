"""aclnnSoftplus: out = self where beta * self > threshold, else ln(1 + e^(beta * self)) / beta.

Sources: document aclnnSoftplus; activation/softplus_v2/op_api/aclnn_softplus.cpp (checks, cast); op_kernel/arch35
(ascend950, June 2026); public copies of the built-in TBE kernels (CANN 8.1.RC1). All compute the logarithm as
accurately as log1p. beta and threshold are float32.

Document and source differ, and the source wins: no null scalar is accepted; out can have any dtype that self's dtype
casts to, and the result is first rounded to self's dtype. The document names no ascend950, which has kernels and is
judged.

Special values follow the formula in IEEE float64: NaN and beta * self = threshold take the logarithm; beta = 0 gives
+inf, or NaN with an infinite self. Unspecified: elements for which e^(beta * self) overflows float32 below the
threshold (kernels and PyTorch return inf), and on ascend950 |beta| <= 2^-23, which is read as 0 there.
"""

from __future__ import annotations

import math

from ..page import (
    MAIN, Args, Arguments, Aten, Checks, Expression, Form, Formula, KernelName, Operator, Platform, can_cast,
    dtype_in, ends_if_empty, exp, float32, float_types, log1p, max_rank, maximum, not_null, number, output, ratio,
    same_shape, scalar_casts, tensor, where,
)  # fmt: skip

SCALARS = ("beta", "threshold")


def formula(x: Expression, beta: Expression, threshold: Expression, w: Expression) -> Expression:
    """The document's formula, with an exponential that cannot overflow; ``w`` is 1."""
    b = x * beta
    return where(b > threshold, x, (maximum(b, 0) + log1p(exp(-abs(b)))) / beta * w)


def kernel_950(x: Expression, beta: Expression, threshold: Expression) -> Expression:
    """Times the reciprocal of beta, which is infinite for a beta of nearly 0."""
    b = x * beta
    y = log1p(exp(b))
    return where(b > threshold, x, where(abs(beta) <= ratio(1, 2**23), y / (beta * 0), y * (1 / beta)))


def kernel_tbe(x: Expression, beta: Expression, threshold: Expression) -> Expression:
    b = x * beta
    return where(b > threshold, x, log1p(exp(b)) / beta)


def reciprocal(x: Expression, beta: Expression, threshold: Expression) -> Expression:
    """Times the reciprocal of beta, as on ascend950 for an ordinary beta."""
    b = x * beta
    return where(b > threshold, x, log1p(exp(b)) * (1 / beta))


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "self", *SCALARS, "out")
    yield dtype_in(a, "self", float_types(platform))
    for name in SCALARS:
        yield scalar_casts(a, name)
    yield can_cast(a, "self", "out")
    yield max_rank(a, "self")
    yield same_shape(a, "self", "out")
    yield ends_if_empty(a, "self")


def scalars(a: Arguments) -> dict[str, float]:
    """An infinite factor for beta = 0, so that the result is infinite and no exact value is searched."""
    return {"w": 1.0 if float32(a["beta"]) else math.inf}


OPERATOR = Operator(
    name="aclnnSoftplus",
    parameters=(
        tensor("self", "x", MAIN),
        number("beta", "beta"),
        number("threshold", "threshold", plain=20.0),
        output("out"),
    ),
    documented=("ascend910_93", "ascend910b", "ascend310p", "ascend910"),
    source="activation/softplus_v2/op_api/aclnn_softplus.cpp",
    checks=checks,
    computes=Formula(formula, {"950": Form(kernel_950, departs=True), "tbe": kernel_tbe, "reciprocal": reciprocal}),
    scalars=scalars,
    points={"x": (0.0, 20.0)},
    kernel=KernelName("softplus_v2", ("self",), {"beta": ("beta", 1.0), "threshold": ("threshold", 20.0)}),
    aten=Aten(lambda aten, t: aten.softplus(t["self"], t["beta"], t["threshold"]), departs=True),
)
