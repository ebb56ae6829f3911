"""aclnnSelu: out = scale * (max(self, 0) + alpha * (e^min(self, 0) - 1)).

Sources: document aclnnSelu; activation/selu/op_api/aclnn_selu.cpp (checks, cast); op_kernel/arch35 (ascend950); public
copies of the built-in TBE kernels (CANN 8.1.RC1). scale and alpha are SELU's real constants, which kernels store as
float32.

Document and source differ, and the source wins: out can have another dtype of the list than self; there is no limit of
rank. The result is rounded to self's dtype before the cast to out. int32 and int8 are accepted and not served by the
golden.

Special values follow the formula in IEEE float64: -inf gives -scale * alpha. All kernels compute the exponential and
subtract 1, and lose all digits of a small negative self.
"""

from __future__ import annotations

from ..page import (
    MAIN, Args, Aten, Checks, Expression, Formula, KernelName, Operator, Platform, dtypes_in, ends_if_empty, exp, expm1,
    float_types, has_axes, max_rank, maximum, minimum, not_null, output, same_dtype, same_shape, tensor, where,
)  # fmt: skip
from .selu_backward import ALPHA, SCALE


def formula(x: Expression) -> Expression:
    """The document's formula."""
    return SCALE * where(x > 0, x, ALPHA * expm1(x))


def kernel_950(x: Expression) -> Expression:
    return SCALE * (maximum(x, 0) + minimum(ALPHA * (exp(minimum(x, 0)) - 1), 0))


def kernel_tbe(x: Expression) -> Expression:
    return where(x > 0, x * SCALE, (exp(x) - 1) * (SCALE * ALPHA))


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "self", "out")
    yield from dtypes_in(a, ("self", "out"), (*float_types(platform), "int32", "int8"))
    yield same_shape(a, "self", "out")
    yield ends_if_empty(a, "self")


def demands(a: Args, platform: Platform) -> Checks:
    """The demands of the document that the host does not check."""
    yield has_axes(a, "self", "out")
    yield max_rank(a, "self")
    yield same_dtype(a, "self", "out")


OPERATOR = Operator(
    name="aclnnSelu",
    parameters=(tensor("self", "x", MAIN), output("out")),
    documented=("ascend910_93", "ascend910b", "ascend910"),
    source="activation/selu/op_api/aclnn_selu.cpp",
    checks=checks,
    demands=demands,
    computes=Formula(formula, {"950": kernel_950, "tbe": kernel_tbe, "expm1": formula}),
    points={"x": (0.0,)},
    kernel=KernelName("selu", ("self",)),
    aten=Aten(lambda aten, t: aten.selu(t["self"])),
)
