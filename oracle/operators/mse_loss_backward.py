"""aclnnMseLossBackward: out = (self - target) * c * gradOutput, c = 2, or 2 / numel(self) for a mean.

Sources: document aclnnMseLossBackward; loss/mse_loss_grad_v2/op_host/op_api/aclnn_mse_loss_backward.cpp (checks);
op_kernel (ascend950, ascend910b, ascend310p); public copies of the built-in TBE kernels; official golden. They agree; a
mean divides by the elements of self even if the output is larger. No sum is ever computed.

Inputs are of one dtype and broadcast with one another; the result is rounded to it before the cast to out, which can
have another dtype. Rank 0 is accepted, against the document.

Special values follow the formula in IEEE float64: equal infinities give NaN. Unspecified: elements whose doubled
difference overflows float32 and whose result does not.
"""

from __future__ import annotations

from ..page import (
    MAIN, MUTUAL, REDUCTIONS, Args, Aten, Checks, Expression, Formula, KernelName, MindSpore, Operator, Platform,
    broadcast_together, common_room, dtype_in, ends_if_empty, float_types, has_axes, in_range, max_ranks, not_null,
    output, reduction, same_dtype, source_only, tensor,
)  # fmt: skip

INPUTS = ("gradOutput", "self", "target")


def formula(g: Expression, x: Expression, t: Expression, n: Expression) -> Expression:
    """The document's formula, in the order of every kernel."""
    return (x - t) * (2 / n) * g


def gradient_first(g: Expression, x: Expression, t: Expression, n: Expression) -> Expression:
    """The gradient multiplied before the factor; no public kernel does so, but a right one can."""
    return (x - t) * g * (2 / n)


def factor_first(g: Expression, x: Expression, t: Expression, n: Expression) -> Expression:
    """The gradient times the factor first; no public kernel does so, but a right one can."""
    return (x - t) * (g * (2 / n))


def quotient(g: Expression, x: Expression, t: Expression, n: Expression) -> Expression:
    """Divided at the end; no public kernel does so, but a right one can."""
    return (x - t) * 2 * g / n


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, *INPUTS, "out")
    yield same_dtype(a, "gradOutput", "self")
    yield same_dtype(a, "target", "self")
    yield dtype_in(a, "self", float_types(platform))
    yield source_only(dtype_in(a, "out", float_types(platform)))
    yield in_range(a, "reduction", 0, 2)
    yield from max_ranks(a, *INPUTS)
    yield broadcast_together(a, INPUTS, "out")
    yield ends_if_empty(a, "self", "gradOutput", "target")


def demands(a: Args, platform: Platform) -> Checks:
    """The demands of the document that the host does not check."""
    yield has_axes(a, *INPUTS, "out")


OPERATOR = Operator(
    name="aclnnMseLossBackward",
    parameters=(
        tensor("gradOutput", "g", MUTUAL),
        tensor("self", "x", MAIN),
        tensor("target", "t", MUTUAL),
        reduction("reduction"),
        output("out"),
    ),
    documented=("ascend950", "ascend910_93", "ascend910b", "ascend310p"),
    source="loss/mse_loss_grad_v2/op_host/op_api/aclnn_mse_loss_backward.cpp",
    checks=checks,
    demands=demands,
    computes=Formula(
        formula,
        {
            "950": formula,
            "tbe": formula,
            "gradient_first": gradient_first,
            "factor_first": factor_first,
            "quotient": quotient,
        },
    ),
    points={"x": (0.0,)},
    kernel=KernelName("mse_loss_grad", ("self", "target", "gradOutput"), {"reduction": ("reduction", 1)}),
    aten=Aten(
        lambda aten, t: aten.mse_loss_backward.grad_input(
            *map(t.get, INPUTS), t["reduction"], grad_input=common_room(t, INPUTS)
        ),
        npu=lambda aten, t: aten.mse_loss_backward(*map(t.get, INPUTS), t["reduction"]),
    ),
    mindspore=MindSpore(
        lambda primitives, t: primitives.MSELossGradExt()(
            t["gradOutput"], t["self"], t["target"], REDUCTIONS[t["reduction"]]
        )
    ),
)
