"""aclnnGeluV2: y = x * Phi(x), or for approximate = 1 its tanh approximation, as aclnnGelu.

Sources: document aclnnGeluV2; activation/gelu_v2/op_api/aclnn_gelu_v2.cpp (checks); op_kernel/arch35 (ascend950);
public copies of the built-in TBE kernels in high precision (CANN 8.1.RC1), as aclnn takes them; official golden. Phi is
computed as erfc(-x / sqrt 2) / 2: kernels by 1 + erf (ascend950) or by a polynomial in an exponential (TBE, off by 1e-7
at most) lose the tail below -3, within their own rounding.

Document and source differ, and the source wins: there is no limit of rank, and every number except 1 is "none". One
unit test asserts 161002 for rank 9; its file calls a function that is declared nowhere, so it cannot have been
compiled.

Special values follow the formula in IEEE float64: +inf stays, -inf gives NaN (inf * 0), a zero keeps its sign.
"""

from __future__ import annotations

from ..page import (
    MAIN, Args, Aten, Checks, Expression, Formula, KernelName, Operator, Platform, choice, dtype_in, ends_if_empty,
    erf, erfc, float_types, in_range, max_rank, not_null, output, same_dtype, same_shape, sqrt, tensor, torch_npu,
    where,
)  # fmt: skip
from . import gelu

WORDS = ("none", "tanh")


def formula(x: Expression, approximate: Expression) -> Expression:
    """The document's formula, or the approximation."""
    return where(approximate, gelu.formula(x), x * (erfc(-x / sqrt(2)) / 2))


def kernel_950(x: Expression, approximate: Expression) -> Expression:
    exact = (erf(x * (1 / sqrt(2))) + 1) * (x * 0.5)
    return where(approximate, gelu.kernel_950(x), exact)


def kernel_910(x: Expression, approximate: Expression) -> Expression:
    return where(approximate, gelu.kernel_910(x), formula(x, approximate))


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "x", "y")
    yield same_dtype(a, "x", "y")
    yield dtype_in(a, "x", float_types(platform))
    yield same_shape(a, "x", "y")
    yield ends_if_empty(a, "x")


def demands(a: Args, platform: Platform) -> Checks:
    """The demands of the document that the host does not check."""
    yield max_rank(a, "x")
    yield in_range(a, "approximate", 0, 1)


OPERATOR = Operator(
    name="aclnnGeluV2",
    parameters=(
        tensor("x", "x", MAIN),
        choice("approximate", WORDS, "approximate", c="int64"),
        output("y"),
    ),
    source="activation/gelu_v2/op_api/aclnn_gelu_v2.cpp",
    checks=checks,
    demands=demands,
    computes=Formula(formula, {"950": kernel_950, "tbe_a2": formula, "tbe_a2_310p": kernel_910, "tbe_910": kernel_910}),
    points={"x": (0.0, -0.7517916, -5.5437)},
    kernel=KernelName("gelu_v2", ("x",), {"approximate": ("approximate", "none")}),
    aten=Aten(
        lambda aten, t: aten.gelu(t["x"], approximate=WORDS[t["approximate"] == 1]),
        npu=lambda aten, t: torch_npu("npu_gelu")(t["x"], approximate=WORDS[t["approximate"] == 1]),
        departs=True,
    ),
)
