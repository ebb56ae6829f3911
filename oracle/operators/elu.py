"""aclnnElu: out = scale * self where self > 0, else scale * alpha * (e^(self * inputScale) - 1).

Sources: document aclnnElu; activation/elu/op_api/aclnn_elu.cpp (checks, the host's shortcut); op_kernel/arch35
(ascend950, July 2026); public copies of the built-in TBE kernels (CANN 8.1.RC1); official golden (PyTorch's). The
scalars are float32.

Document and source differ, and the source wins: with an alpha or an inputScale that is infinite or NaN the host
computes scale * (self <= 0 ? -alpha : self) instead. bfloat16 is accepted on every product; ascend910 and ascend310p
compute it on the CPU, with scalars of six decimals; so does every product for float64 (the golden serves neither). out
can have any dtype that self's dtype casts to; the result is first rounded to self's dtype.

Special values follow the formula in IEEE float64; 0 takes the lower branch, and so does NaN. TBE kernels compute the
exponential and subtract 1, and lose all digits of a small self.
"""

from __future__ import annotations

from ..page import (
    MAIN, Args, Aten, Checks, Expression, Form, Formula, KernelName, Operator, Platform, can_cast, check, dtype_in,
    ends_if_empty, exp, expm1, is_finite, max_rank, maximum, minimum, not_null, number, output, ratio, same_shape,
    scalar_casts, tensor, where,
)  # fmt: skip

SCALARS = ("alpha", "scale", "inputScale")
TYPES = ("float32", "float16", "float64", "bfloat16")


def by_host(x: Expression, alpha: Expression, scale: Expression, i: Expression, usual: Expression) -> Expression:
    """The usual result, or the host's shortcut for scalars that are not finite."""
    return where(is_finite(alpha) & is_finite(i), usual, where(x <= 0, -alpha, x) * scale)


def formula(x: Expression, alpha: Expression, scale: Expression, i: Expression) -> Expression:
    """The document's formula."""
    return by_host(x, alpha, scale, i, where(x > 0, x, alpha * expm1(x * i)) * scale)


def kernel_950(x: Expression, alpha: Expression, scale: Expression, i: Expression) -> Expression:
    """A polynomial below 0.1, as accurate as expm1."""
    v = x * i
    below = where(abs(v) < ratio(1, 10), expm1(v), exp(v) - 1) * alpha
    return by_host(x, alpha, scale, i, where(x > 0, x, below) * scale)


def kernel_tbe(x: Expression, alpha: Expression, scale: Expression, i: Expression) -> Expression:
    below = (exp(minimum(x, 0) * i) - 1) * alpha
    return by_host(x, alpha, scale, i, (below + maximum(x, 0)) * scale)


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "self", *SCALARS, "out")
    yield dtype_in(a, "self", TYPES)
    for name in ("scale", "alpha", "inputScale"):
        yield scalar_casts(a, name)
    yield can_cast(a, "self", "out")
    yield same_shape(a, "self", "out")
    yield max_rank(a, "self")
    yield ends_if_empty(a, "self")


def demands(a: Args, platform: Platform) -> Checks:
    """The calls for which the document's formula is the host's too."""
    for name in ("alpha", "inputScale"):
        finite = abs(float(a[name])) < 2.0**128  # as float32
        yield check(f"finite {name}", None if finite else f"{name} is {a[name]}; the host takes a shortcut")


OPERATOR = Operator(
    name="aclnnElu",
    parameters=(
        tensor("self", "x", MAIN),
        number("alpha", "alpha"),
        number("scale", "scale"),
        number("inputScale", "i"),
        output("out"),
    ),
    source="activation/elu/op_api/aclnn_elu.cpp",
    checks=checks,
    demands=demands,
    computes=Formula(formula, {"950": kernel_950, "tbe": Form(kernel_tbe, departs=True), "expm1": formula}),
    points={"x": (0.0, -0.1)},
    kernel=KernelName(
        "elu",
        ("self",),
        {"alpha": ("alpha", 1.0), "scale": ("scale", 1.0), "input_scale": ("inputScale", 1.0)},
    ),
    aten=Aten(lambda aten, t: aten.elu(t["self"], t["alpha"], t["scale"], t["inputScale"]), departs=True),
)
