"""aclnnHardswish: out = self * min(max(self + 3, 0), 6) / 6.

Sources: document aclnnHardswish; activation/hard_swish/op_api/aclnn_hardswish.cpp (checks, cast); op_kernel/arch35
(ascend950, April 2026); public copies of the built-in TBE kernels. 1/6 is the real number, which kernels store as a
float32.

self and out may have different dtypes; the result is rounded to self's before the cast. The rank is not checked.

Special values follow the formula in IEEE float64: -inf gives NaN (ascend950 clamps it and gives 0), and an intermediate
product can overflow: ascend950 gives infinity above 5.67e37. self = NaN is unspecified.
"""

from __future__ import annotations

from ..page import (
    MAIN, Args, Aten, Checks, Expression, Form, Formula, KernelName, Operator, Platform, dtypes_in, ends_if_empty,
    float_types, is_nan, maximum, minimum, not_null, output, ratio, same_shape, tensor,
)  # fmt: skip

SIXTH = ratio(1, 6)


def gate(x: Expression) -> Expression:
    return minimum(maximum(x + 3, 0), 6)


def formula(x: Expression) -> Expression:
    """The document's formula."""
    return x * (gate(x) * SIXTH)


def kernel_950(x: Expression) -> Expression:
    """The product first, of a clamped self."""
    return maximum(x, -3) * maximum(minimum(x + 3, 6), 0) * SIXTH


def quotient(x: Expression) -> Expression:
    """PyTorch's order."""
    return x * gate(x) / 6


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "self", "out")
    yield from dtypes_in(a, ("self", "out"), float_types(platform))
    yield same_shape(a, "self", "out")
    yield ends_if_empty(a, "self")


OPERATOR = Operator(
    name="aclnnHardswish",
    parameters=(tensor("self", "x", MAIN), output("out")),
    documented=("ascend950", "ascend910_93", "ascend910b", "ascend910"),
    source="activation/hard_swish/op_api/aclnn_hardswish.cpp",
    checks=checks,
    computes=Formula(
        formula,
        {"950": Form(kernel_950, departs=True), "tbe": formula, "quotient": quotient},
        unspecified={"": lambda x: is_nan(x)},
    ),
    points={"x": (-3.0, 0.0, 3.0)},
    kernel=KernelName("hard_swish", ("self",)),
    aten=Aten(lambda aten, t: aten.hardswish(t["self"])),
)
