"""aclnnLeakyRelu: out = self where self > 0, else self * negativeSlope.

Sources: document aclnnLeakyRelu; activation/leaky_relu/op_api/aclnn_leaky_relu.cpp (checks, cast); op_kernel/arch35
(ascend950); public copies of the built-in TBE kernels; official golden. The slope is a float32, which the kernels of
ascend910b and ascend910_93 round to float16 for float16 tensors.

The slope can be above 1 or negative; its dtype is not checked. out can have any dtype that self's dtype casts to; the
result is first rounded to self's dtype. float64 is accepted and not served by the golden.

Special values follow the formula in IEEE float64: a slope of 0 turns -inf into NaN, and NaN stays NaN. Unspecified
before ascend950: -inf with a slope of 0. ascend910 adds both branches, so an infinite slope gives NaN there.
"""

from __future__ import annotations

from ..page import (
    MAIN, Args, Aten, Checks, Expression, Form, Formula, KernelName, Operator, Platform, can_cast, dtype_in,
    ends_if_empty, equal, float_types, is_finite, max_rank, maximum, minimum, not_null, number, output, same_shape,
    tensor, where,
)  # fmt: skip


def formula(x: Expression, s: Expression) -> Expression:
    """The document's formula."""
    return where(x > 0, x, x * s)


def kernel_910(x: Expression, s: Expression) -> Expression:
    """Without an instruction for leaky ReLU: both branches, added."""
    return maximum(x, 0) + minimum(x, 0) * s


def unknown(x: Expression, s: Expression) -> Expression:
    """Elements with -inf * 0, for which the instruction of ascend910b is not documented."""
    return equal(s, 0) & ~is_finite(x)


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "self", "negativeSlope", "out")
    yield dtype_in(a, "self", (*float_types(platform), "float64"))
    yield can_cast(a, "self", "out")
    yield max_rank(a, "self")
    yield same_shape(a, "self", "out")
    yield ends_if_empty(a, "self")


OPERATOR = Operator(
    name="aclnnLeakyRelu",
    parameters=(tensor("self", "x", MAIN), number("negativeSlope", "s", plain=0.01), output("out")),
    documented=("ascend950", "ascend910_93", "ascend910b", "ascend910"),
    source="activation/leaky_relu/op_api/aclnn_leaky_relu.cpp",
    checks=checks,
    computes=Formula(
        formula,
        {"950": formula, "tbe_a2": Form(formula, native=("float16",)), "tbe_910": Form(kernel_910, departs=True)},
        unspecified={"tbe": unknown},
    ),
    points={"x": (0.0,)},
    kernel=KernelName("leaky_relu", ("self",), {"negative_slope": ("negativeSlope", 0.0)}),
    aten=Aten(lambda aten, t: aten.leaky_relu(t["self"], t["negativeSlope"])),
)
