"""aclnnLogSoftmax: out = self - m - log(sum(e^(self - m), dim)) with m = max(self, dim).

Sources: document aclnnLogSoftmax; activation/log_softmax_v2/op_api/aclnn_log_softmax.cpp (checks); the ascend950
kernels; public copies of the built-in TBE kernels (CANN 8.1.RC1); official golden. They agree in the order.

Document and source differ, and the source wins: ``dim`` is checked before dtypes; rank 0 is accepted; ``out`` can have
another dtype of the list. The host casts ``self`` to out's dtype first, and the kernel computes in that dtype. If this
cast rounds, or gives float64, there is no golden.

Special values follow the formula in IEEE float64: NaN, +inf, or a row of only -inf gives a row of NaN; -inf next to
finite numbers gives -inf there.
"""

from __future__ import annotations

from ..page import (
    MAIN, Args, Arguments, Aten, Checks, Expression, Formula, KernelName, Operator, Platform, axis,
    bfloat16_where_supported, dtype_of, dtypes_in, ends_if_empty, exp, in_range, log, max_over, max_ranks, not_null,
    output, same_shape, sum_over, tensor,
)  # fmt: skip

TYPES = ("float32", "float16", "float64", "bfloat16")


def formula(x: Expression) -> Expression:
    """The document's formula."""
    d = x - max_over(x)
    return d - log(sum_over(exp(d)))


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "self", "out")
    rank = max(1, a["self"].rank)
    yield in_range(a, "dim", -rank, rank - 1)
    for name in ("self", "out"):
        yield bfloat16_where_supported(a, name, platform)
    yield from dtypes_in(a, ("self", "out"), TYPES)
    yield from max_ranks(a, "self", "out")
    yield same_shape(a, "out", "self")
    yield ends_if_empty(a, "self")


def kernel_type(a: Arguments, platform: Platform) -> str:
    """The host casts self to out's dtype first."""
    return dtype_of(a["out"].dtype).name


def undefined(a: Arguments) -> str | None:
    """A cast that rounds self or overflows, and float64, which the AiCpu's kernel computes."""
    given, wanted = dtype_of(a["self"].dtype).name, a["out"].dtype_name
    kept = given == wanted or (given in ("float16", "bfloat16") and wanted == "float32")
    return None if kept else f"self of {given} is cast to out's {wanted} before the kernel"


OPERATOR = Operator(
    name="aclnnLogSoftmax",
    parameters=(tensor("self", "x", MAIN), axis("dim"), output("out")),
    source="activation/log_softmax_v2/op_api/aclnn_log_softmax.cpp",
    checks=checks,
    undefined=undefined,
    kernel_type=kernel_type,
    computes=Formula(formula, {"950": formula, "tbe": formula}, over="dim"),
    points={"x": (-87.34, -103.97, 88.72)},
    kernel=KernelName("log_softmax_v2", ("self",), {"axes": ("dim", -1)}),
    aten=Aten(lambda aten, t: aten._log_softmax(t["self"], t["dim"], False)),
)
