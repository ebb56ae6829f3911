"""aclnnGluBackward: with self = [a | b] along dim and s = 1 / (1 + e^-b), out = [gradOut * s | gradOut * s * (1 - s) *
a].

Sources: document aclnnGluBackward; activation/glu_grad/op_api/aclnn_glu_backward.cpp (checks, dispatch);
op_kernel/arch35 (ascend950). Before ascend950 the host chains operators: ga = g * s, gb = (a - a * s) * ga; float16 is
cast to float32 first and back once. bfloat16 is not: every step rounds to it, so that gb is lost from b = 6.2 on. Such
a result is right, and within the strict bound, on those SoCs only. ascend950 has its own kernel since July 2026; up to
CANN 9.1 it computes like them.

Document and source agree; the document's first line of the gradient omits gradOut. Nothing broadcasts, and out has
self's dtype. float64 is accepted and not served by the golden.

Special values follow the formula in IEEE float64: an infinite a gives an infinity, or NaN with s = 0 or 1. Unspecified:
values for which a kernel's order gives another result (a - a * s for an infinite a, a sigmoid that float32 rounds to
1).
"""

from __future__ import annotations

from ..page import (
    HALF, MAIN, Args, Aten, Checks, Expression, Form, Formula, KernelName, Operator, Platform, axis, dtype_in,
    ends_if_empty, equal, exp, float_types, max_ranks, not_null, output, same_dtype, same_shape, tensor, where,
)  # fmt: skip
from .glu import halves


def formula(g: Expression, a: Expression, b: Expression, part: Expression) -> Expression:
    """The gradients of a and of b, with a separate sigmoid for 1 - s, so that float64 does not cancel."""
    s = 1 / (exp(-b) + 1)
    return where(equal(part, 0), g * s, s * (1 / (exp(b) + 1)) * a * g)


def kernel_950(g: Expression, a: Expression, b: Expression, part: Expression) -> Expression:
    s = 1 / (exp(-b) + 1)
    return where(equal(part, 0), g * s, (1 - s) * s * a * g)


def kernel_tbe(g: Expression, a: Expression, b: Expression, part: Expression) -> Expression:
    """The chain of operators."""
    s = 1 / (exp(-b) + 1)
    return where(equal(part, 0), g * s, (a - a * s) * (g * s))


def document(g: Expression, a: Expression, b: Expression, part: Expression) -> Expression:
    """The document's order; no public kernel has it, but a right one can."""
    s = 1 / (exp(-b) + 1)
    return where(equal(part, 0), g * s, g * s * (1 - s) * a)


CHAINED = Form(kernel_tbe, native=("bfloat16",))


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "self", "gradOut", "out")
    yield dtype_in(a, "self", float_types(platform, "float64"))
    yield same_dtype(a, "gradOut", "self")
    yield same_dtype(a, "out", "self")
    yield from max_ranks(a, "self", "out", "gradOut")
    yield from halves(a, "gradOut")
    yield same_shape(a, "out", "self")
    yield ends_if_empty(a, "self")


OPERATOR = Operator(
    name="aclnnGluBackward",
    parameters=(
        tensor("gradOut", "g", HALF),
        tensor("self", "x", MAIN, parts=("a", "b")),
        axis("dim"),
        output("out"),
    ),
    source="activation/glu_grad/op_api/aclnn_glu_backward.cpp",
    checks=checks,
    empty=("self",),
    computes=Formula(
        formula,
        {
            "950": kernel_950,
            "950@9.1": CHAINED,
            "tbe": CHAINED,
            "stable": formula,
            "document": document,
        },
    ),
    points={"x": (-87.34, 0.0, 16.6355)},
    kernel=KernelName("glu_grad", ("gradOut", "self"), {"dim": ("dim", -1)}),
    aten=Aten(lambda aten, t: aten.glu_backward(t["gradOut"], t["self"], t["dim"])),
)
