"""aclnnLogSoftmaxBackward: out = gradOutput - e^output * sum(gradOutput, dim).

Sources: document aclnnLogSoftmaxBackward; activation/log_softmax_grad/op_api/aclnn_logsoftmax_backward.cpp (checks);
the ascend950 kernels; public copies of the built-in TBE kernels; official golden. They agree in the order.

Document and source differ, and the source wins: ``out`` has no dtype check at all; dim = rank is refused; rank 0 is
accepted; before ascend950 an empty input succeeds before any other check, and shapes are compared before dim.
``output`` need not be a real log-softmax: it is not renormalised.

Special values follow the formula: a NaN or infinite gradient reaches its whole row; output = -inf gives gradOutput. An
e^output beyond float32 is a real number, so that a sum of zero gives gradOutput; kernels give NaN. Such elements are
unspecified; so are elements whose partial sums can overflow.
"""

from __future__ import annotations

from ..page import (
    MAIN, SAME, Args, Aten, Checks, Expression, Formula, Forward, KernelName, MindSpore, Operator, Platform, axis,
    bfloat16_where_supported, dtype_in, ends_if_empty, exp, has_axes, in_range, max_rank, not_null, output,
    same_dtype, same_shape, source_only, source_unless, sum_over, tensor,
)  # fmt: skip

TYPES = ("float32", "float16", "bfloat16")


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "gradOutput", "output", "out")
    if not (platform.regbase and platform.since("master")):
        yield ends_if_empty(a, "gradOutput", "output", name="an empty call succeeds before any other check")
    yield source_only(bfloat16_where_supported(a, "gradOutput", platform))
    yield source_only(bfloat16_where_supported(a, "output", platform))
    yield dtype_in(a, "output", TYPES)
    yield dtype_in(a, "gradOutput", TYPES)
    yield source_only(same_dtype(a, "gradOutput", "output"))
    yield max_rank(a, "gradOutput")
    yield max_rank(a, "output")
    yield same_shape(a, "gradOutput", "output")
    yield same_shape(a, "out", "gradOutput")
    rank = max(1, a["gradOutput"].rank)
    yield source_unless(a["dim"] != rank, in_range(a, "dim", -rank, rank - 1))
    yield ends_if_empty(a, "gradOutput", "output")


def formula(g: Expression, y: Expression) -> Expression:
    """The formula in the order of every kernel."""
    return g - exp(y) * sum_over(g)


def demands(a: Args, platform: Platform) -> Checks:
    """The demands of the document that the host does not check."""
    yield has_axes(a, "gradOutput", "output", "out")
    yield same_shape(a, "output", "gradOutput")  # before ascend950 an empty call is not checked
    yield same_shape(a, "out", "gradOutput")


OPERATOR = Operator(
    name="aclnnLogSoftmaxBackward",
    parameters=(
        tensor("gradOutput", "g", MAIN),
        tensor("output", "y", SAME),
        axis("dim"),
        output("out"),
    ),
    source="activation/log_softmax_grad/op_api/aclnn_logsoftmax_backward.cpp",
    checks=checks,
    demands=demands,
    changed=("master",),
    computes=Formula(formula, {"tbe": formula}, over="dim"),
    points={"y": (0.0, -87.34, 88.72)},
    forwards=(Forward("aclnnLogSoftmax", {"output": "out"}),),
    kernel=KernelName("log_softmax_grad", ("gradOutput", "output"), {"axis": ("dim", -1)}),
    aten=Aten(
        lambda aten, t: aten._log_softmax_backward_data(t["gradOutput"], t["output"], t["dim"], t["gradOutput"].dtype)
    ),
    mindspore=MindSpore(
        lambda primitives, t: primitives.LogSoftmaxGrad(t["dim"])(t["output"], t["gradOutput"]),
        ranks=tuple(range(1, 8)),  # 2.10.0 never returns for a scalar
    ),
)
