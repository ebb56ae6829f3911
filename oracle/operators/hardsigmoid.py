"""aclnnHardsigmoid: out = min(max(self / 6 + 1/2, 0), 1).

Sources: document aclnnHardsigmoid; activation/hard_sigmoid/op_api/aclnn_hardsigmoid.cpp (checks); op_kernel/arch35
(ascend950, July 2026); public copies of the built-in TBE kernels; official golden. The factor is the real 1/6, which
kernels store as a float32.

out has self's dtype, and their storage formats are equal. int32 is computed in float32 and loses its fraction: 1 from 3
on, 0 below.

self = NaN is unspecified: no public text gives the result of the devices' minimum and maximum.
"""

from __future__ import annotations

from ..page import (
    MAIN, Args, Aten, Checks, Expression, Formula, KernelName, Operator, Platform, dtype_in, ends_if_empty,
    float_types, is_nan, max_rank, maximum, minimum, not_null, output, ratio, same_dtype, same_format, same_shape,
    tensor, where,
)  # fmt: skip


def formula(x: Expression) -> Expression:
    """The document's formula, in the order of the TBE kernels."""
    return minimum(maximum(x * ratio(1, 6) + 0.5, 0), 1)


def kernel_950(x: Expression) -> Expression:
    """The upper limit first."""
    return maximum(minimum(x * ratio(1, 6) + 0.5, 1), 0)


def quotient(x: Expression) -> Expression:
    """PyTorch's order."""
    return minimum(maximum(x + 3, 0), 6) / 6


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "self", "out")
    yield dtype_in(a, "self", (*float_types(platform), "int32"))
    yield max_rank(a, "self")
    yield same_shape(a, "self", "out")
    yield same_dtype(a, "out", "self")
    yield same_format(a, "self", "out")
    yield ends_if_empty(a, "self")


OPERATOR = Operator(
    name="aclnnHardsigmoid",
    parameters=(tensor("self", "x", MAIN), output("out")),
    documented=("ascend950", "ascend910_93", "ascend910b", "ascend910"),
    source="activation/hard_sigmoid/op_api/aclnn_hardsigmoid.cpp",
    checks=checks,
    computes=Formula(
        formula,
        {"950": kernel_950, "tbe": formula, "quotient": quotient},
        unspecified={"": lambda x: is_nan(x)},
        integers=lambda x: where(x >= 3, 1, 0),
    ),
    points={"x": (-3.0, 3.0)},
    kernel=KernelName("hard_sigmoid", ("self",)),
    aten=Aten(lambda aten, t: aten.hardsigmoid(t["self"])),
)
