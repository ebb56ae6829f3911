"""aclnnLogSigmoidBackward: gradInput = gradOutput * 1 / (1 + e^self).

Sources: document aclnnLogSigmoidBackward; activation/logsigmoid_grad/op_api/aclnn_logsigmoid_backward.cpp (checks);
activation/logsigmoid_grad kernel of ascend950; public copies of the built-in TBE kernels.

Document and source differ: the document requires ``buffer`` to have the dtype and shape of ``self`` and rank 1-8; the
source only requires it to be non-null and has no limit of rank. The source wins. ``buffer`` is never read.

Special values follow the formula below in IEEE float64: NaN in self or gradOutput gives NaN; self = +inf gives
gradOutput * 0 (NaN for an infinite gradient), -inf gives gradOutput; a zero keeps the sign of gradOutput. An infinite
gradient is NaN where e^self overflows float64 (self > 709), as inf * 0 is on a device.
"""

from __future__ import annotations

from ..page import (
    MAIN, SAME, UNREAD, Args, Aten, Checks, Expression, Formula, KernelName, MindSpore, Operator, Platform,
    differentiated, dtype_in, ends_if_empty, exp, float_types, has_axes, log, max_rank, not_null, output,
    same_dtype, same_shape, tensor, where,
)  # fmt: skip


def formula(g: Expression, x: Expression) -> Expression:
    """The document's formula."""
    return g / (exp(x) + 1)


def kernel_950(g: Expression, x: Expression) -> Expression:
    z = exp(-abs(x))
    return where(x < 0, 1, z) / (1 + z) * g


def kernel_tbe_a2(g: Expression, x: Expression) -> Expression:
    z = exp(-abs(x))
    q = z / (1 + z)
    return where(x < 0, 1 - q, q) * g


def kernel_tbe_910(g: Expression, x: Expression) -> Expression:
    return exp(-log(1 + exp(x))) * g


def product(g: Expression, x: Expression) -> Expression:
    """The document's quotient first; no public kernel does so, but a right one can."""
    return g * (1 / (1 + exp(x)))


def numerator_first(g: Expression, x: Expression) -> Expression:
    """The gradient multiplied before the division."""
    z = exp(-abs(x))
    return g * where(x < 0, 1, z) / (1 + z)


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "gradOutput", "self", "buffer", "gradInput")
    yield dtype_in(a, "gradOutput", float_types(platform))
    yield dtype_in(a, "self", float_types(platform))
    yield same_dtype(a, "gradOutput", "gradInput")
    yield same_dtype(a, "self", "gradInput")
    yield same_shape(a, "gradOutput", "gradInput")
    yield same_shape(a, "self", "gradInput")
    yield ends_if_empty(a, "gradOutput", "self")


def demands(a: Args, platform: Platform) -> Checks:
    """The demands of the document that the host does not check."""
    yield has_axes(a, "gradOutput", "self", "gradInput")
    yield max_rank(a, "self")
    yield same_dtype(a, "buffer", "self")
    yield same_shape(a, "buffer", "self")


OPERATOR = Operator(
    name="aclnnLogSigmoidBackward",
    parameters=(
        tensor("gradOutput", "g", SAME),
        tensor("self", "x", MAIN),
        tensor("buffer", "", UNREAD),
        output("gradInput"),
    ),
    source="activation/logsigmoid_grad/op_api/aclnn_logsigmoid_backward.cpp",
    checks=checks,
    demands=demands,
    empty=("gradOutput", "self"),
    computes=Formula(
        formula,
        {
            "950": kernel_950,
            "tbe_a2": kernel_tbe_a2,
            "tbe_910": kernel_tbe_910,
            "document": formula,
            "product": product,
            "numerator_first": numerator_first,
        },
    ),
    points={"x": (0.0,)},
    kernel=KernelName("log_sigmoid_grad", ("gradOutput", "self")),
    aten=Aten(
        # On a CPU aten reads buffer as e^-|self|, unlike aclnn: it gets the buffer that its own forward makes.
        lambda aten, t: aten.log_sigmoid_backward(t["gradOutput"], t["self"], aten.log_sigmoid_forward(t["self"])[1]),
        npu=lambda aten, t: aten.log_sigmoid_backward(t["gradOutput"], t["self"], t["buffer"]),
    ),
    mindspore=MindSpore(
        lambda primitives, t: primitives.LogSigmoidGrad()(t["gradOutput"], t["self"], t["buffer"]),
        composed=lambda ms, t: differentiated(ms, ms.ops.logsigmoid, t["self"], t["gradOutput"]),
    ),
)
