"""aclnnSoftmax: out = e^(self - m) / sum(e^(self - m), dim) with m = max(self, dim).

Sources: document aclnnSoftmax; activation/softmax_v2/op_api/aclnn_softmax.cpp (checks); the ascend950 kernels; public
copies of the built-in TBE kernels (CANN 8.1.RC1); official golden. They agree in the order, with two exceptions:
ascend310p multiplies by the reciprocal of the sum, and TBE kernels compute the maximum and the difference of float16
inputs in float16.

Document and source differ, and the source wins: an empty ``self`` succeeds before any other check, on every product;
``out`` can have another dtype of the list; ascend310b, which the document names, is none of the products here; rank 0
is accepted. The result is rounded to self's dtype, then cast to out.

Special values follow the formula in IEEE float64: NaN, +inf, or a row of only -inf gives a row of NaN; -inf next to
finite numbers gives 0. Before ascend950 the bound of float16 includes the rounding of the difference.
"""

from __future__ import annotations

from ..page import (
    MAIN, Args, Aten, Checks, Expression, Form, Formula, KernelName, Operator, Platform, axis, bfloat16_where_supported,
    dtype_in, ends_if_empty, exp, in_range, max_over, max_rank, not_null, output, same_shape, stored, sum_over, tensor,
)  # fmt: skip

TYPES = ("float32", "float16", "float64", "bfloat16")


def formula(x: Expression) -> Expression:
    """The document's formula."""
    e = exp(x - max_over(x))
    return e / sum_over(e)


def kernel_tbe(x: Expression) -> Expression:
    """The maximum and the difference of float16 in float16."""
    e = exp(stored(x - max_over(x), x, "float16"))
    return e / sum_over(e)


def reciprocal(x: Expression) -> Expression:
    """ascend310p: times the reciprocal of the sum."""
    e = exp(x - max_over(x))
    return e * (1 / sum_over(e))


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "self", "out")
    yield ends_if_empty(a, "self", name="an empty call succeeds before any other check")
    for name in ("self", "out"):
        yield bfloat16_where_supported(a, name, platform)
        yield dtype_in(a, name, TYPES)
    rank = max(1, a["self"].rank)
    yield in_range(a, "dim", -rank, rank - 1)
    yield max_rank(a, "self")
    yield same_shape(a, "out", "self")


OPERATOR = Operator(
    name="aclnnSoftmax",
    parameters=(tensor("self", "x", MAIN), axis("dim"), output("out")),
    source="activation/softmax_v2/op_api/aclnn_softmax.cpp",
    checks=checks,
    computes=Formula(
        formula, {"950": formula, "tbe": Form(kernel_tbe, departs=True), "reciprocal": reciprocal}, over="dim"
    ),
    points={"x": (-87.34, -103.97, 88.72)},
    kernel=KernelName("softmax_v2", ("self",), {"axes": ("dim", -1)}),
    aten=Aten(lambda aten, t: aten._softmax(t["self"], t["dim"], False)),
)
