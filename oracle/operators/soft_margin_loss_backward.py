"""aclnnSoftMarginLossBackward: out = -target * e / (1 + e) * (gradOutput * c), e = e^-(self * target); c = 1, or 1 /
numel(out) for a mean.

Sources: document aclnnSoftMarginLossBackward (which has no formula); loss/soft_margin_loss_grad/op_api/
aclnn_soft_margin_loss_backward.cpp (checks, promotion); op_kernel/arch35 (ascend950); public copies of the built-in TBE
kernels; official golden. A mean divides by the elements of the common shape, because the host broadcasts first. No sum
is ever computed.

The dtypes can differ; inputs are cast to their common one, and the result is rounded to it before the cast to out. Only
an empty self ends a call early. reduction is never checked; outside 0 to 2 the host reads outside a table: unspecified.

Special values follow the formula in IEEE float64. Where e overflows float32 (self * target < -88.72, an infinite target
too) ascend950, the official golden and PyTorch give NaN or an infinity, but the exact value is near -target *
gradOutput: unspecified. Before ascend950 the factor of a mean is multiplied last, so a value that overflows without it
is unspecified. Since August 2026 (ops-nn 8e6b992ef, after CANN 9.2) ascend950 multiplies the gradient by it first; an
overflow in earlier releases is a defect.
"""

from __future__ import annotations

from ..page import (
    MAIN, MUTUAL, REDUCTIONS, Args, Arguments, Aten, Checks, Expression, Form, Formula, KernelName, MindSpore, Operator,
    Platform, broadcast_together, common_size, dtypes_in, ends_if_empty, exp, float_types, is_finite, max_ranks,
    not_null, output, promoted_type, reduction, tensor, where,
)  # fmt: skip

INPUTS = ("gradOutput", "self", "target")
LARGEST = 88.75  # e to this power is above float32's largest number, e^88.72 is below


def formula(g: Expression, x: Expression, t: Expression, n: Expression) -> Expression:
    """The formula; its fraction multiplied by e^(self * target) where that is finite."""
    b = x * t
    return where(is_finite(b), -t / (1 + exp(b)), -t * exp(-b) / (1 + exp(-b))) * (g * (1 / n))


def kernel_950(g: Expression, x: Expression, t: Expression, n: Expression) -> Expression:
    e = exp(-(x * t))
    return -t * e / (1 + e) * (g * (1 / n))


def kernel_tbe(g: Expression, x: Expression, t: Expression, n: Expression) -> Expression:
    e = exp(x * -t)
    return e / (e + 1) * -t * g * (1 / n)


def mean_first(g: Expression, x: Expression, t: Expression, n: Expression) -> Expression:
    """The order of the official golden and PyTorch."""
    e = exp(-t * x)
    return t * e * -(1 / n) / (1 + e) * g


def overflows(x: Expression, t: Expression) -> Expression:
    """Elements for which e^-(self * target) overflows float32."""
    return x * t < -LARGEST


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, *INPUTS, "out")
    yield from dtypes_in(a, (*INPUTS, "out"), float_types(platform))
    yield from max_ranks(a, *INPUTS)
    yield broadcast_together(a, INPUTS, "out")
    yield ends_if_empty(a, "self")


def undefined(a: Arguments) -> str | None:
    """The host looks reduction up in a table of three."""
    known = 0 <= a["reduction"] < len(REDUCTIONS)
    return None if known else f"reduction is {a['reduction']}"


OPERATOR = Operator(
    name="aclnnSoftMarginLossBackward",
    parameters=(
        tensor("gradOutput", "g", MUTUAL),
        tensor("self", "x", MAIN),
        tensor("target", "t", MUTUAL),
        reduction("reduction"),
        output("out"),
    ),
    documented=("ascend950", "ascend910_93", "ascend910b", "ascend910"),
    source="loss/soft_margin_loss_grad/op_api/aclnn_soft_margin_loss_backward.cpp",
    checks=checks,
    empty=("self",),
    computes=Formula(
        formula,
        {"950": kernel_950, "tbe": Form(kernel_tbe, departs=True), "mean_first": mean_first},
        unspecified={"": overflows},
    ),
    kernel_type=promoted_type(*INPUTS),
    mean=lambda a: common_size(a, INPUTS),
    undefined=undefined,
    points={"x": (0.0,), "t": (-1.0, 0.0, 1.0)},
    kernel=KernelName("soft_margin_loss_grad", ("self", "target", "gradOutput"), {"reduction": ("reduction", 1)}),
    aten=Aten(  # broadcast as the host does, which then divides a mean by the common size
        lambda aten, t: aten.soft_margin_loss_backward(
            *aten.broadcast_tensors([t[name] for name in INPUTS]), t["reduction"]
        ),
        mixed=True,
    ),
    mindspore=MindSpore(
        lambda primitives, t: primitives.SoftMarginLossGrad(REDUCTIONS[t["reduction"]])(
            t["self"], t["target"], t["gradOutput"]
        )
    ),
)
