"""aclnnCelu: out = max(self, 0) + min(alpha * (e^(self / alpha) - 1), 0).

Sources: document aclnnCelu; activation/celu_v2/op_api/aclnn_celu.cpp (checks, cast); op_kernel/arch35 (ascend950, July
2026); public copies of the built-in TBE kernels (CANN 8.1.RC1). alpha is a float32, and kernels multiply by its
reciprocal.

An alpha of 0 or NaN is refused, a negative or infinite one is not. out can have any dtype that self's dtype casts to;
the result is first rounded to self's dtype.

Special values follow the formula in IEEE float64: an infinite alpha gives NaN everywhere (0 * inf). TBE kernels compute
the exponential and subtract 1, and lose all digits of a small self. The tiling of ascend950 refuses an alpha below 1e-7
in the second phase; the result is then unspecified.
"""

from __future__ import annotations

from ..page import (
    MAIN, Args, Arguments, Aten, Checks, Expression, Form, Formula, KernelName, Operator, Platform, can_cast, check,
    dtype_in, ends_if_empty, exp, expm1, float32, float_types, max_rank, maximum, minimum, not_null, number, output,
    same_shape, scalar_casts, tensor, where,
)  # fmt: skip


def joined(x: Expression, below: Expression) -> Expression:
    """Both branches, each 0 on the other's side."""
    return maximum(x, 0) + minimum(below, 0)


def formula(x: Expression, alpha: Expression) -> Expression:
    """The document's formula."""
    return joined(x, alpha * expm1(x / alpha))


def kernel_950(x: Expression, alpha: Expression) -> Expression:
    """e^u - 1 within 1/2 by Kahan's quotient u (e^u - 1) / log e^u, as accurate as expm1."""
    u = x * (1 / alpha)
    return joined(x, where(abs(u) < 0.5, expm1(u), exp(u) - 1) * alpha)


def kernel_tbe(x: Expression, alpha: Expression) -> Expression:
    return joined(x, (exp(x * (1 / alpha)) - 1) * alpha)


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "self", "alpha", "out")
    yield dtype_in(a, "self", float_types(platform))
    yield scalar_casts(a, "alpha")
    yield can_cast(a, "self", "out")
    yield max_rank(a, "self")
    yield same_shape(a, "self", "out")
    alpha = float32(a["alpha"])
    yield check("alpha is not 0", None if alpha > 0 or alpha < 0 else f"alpha is {alpha:g}; it must not be 0 or NaN")
    yield ends_if_empty(a, "self")


def undefined(a: Arguments) -> str | None:
    """The rule of ascend950's tiling."""
    return f"alpha is {a['alpha']}, which ascend950 refuses in its tiling" if abs(float32(a["alpha"])) < 1e-7 else None


OPERATOR = Operator(
    name="aclnnCelu",
    parameters=(tensor("self", "x", MAIN), number("alpha", "alpha"), output("out")),
    documented=("ascend950", "ascend910_93", "ascend910b", "ascend910"),
    source="activation/celu_v2/op_api/aclnn_celu.cpp",
    checks=checks,
    undefined=undefined,
    computes=Formula(formula, {"950": kernel_950, "tbe": Form(kernel_tbe, departs=True), "expm1": formula}),
    points={"x": (0.0, -0.5)},
    kernel=KernelName("celu_v2", ("self",), {"alpha": ("alpha", 1.0)}),
    aten=Aten(lambda aten, t: aten.celu(t["self"], t["alpha"]), departs=True),
)
