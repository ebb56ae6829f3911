"""aclnnSmoothL1Loss: with d = |self - target|, loss = d^2 / (2 * beta) where d < beta, else d - beta / 2; its mean, or
its sum, over all elements of the common shape.

Sources: document aclnnSmoothL1Loss; loss/smooth_l1_loss_v2/op_api/aclnn_smooth_l1_loss.cpp (checks, promotion);
op_kernel/arch35 (ascend950); public copies of the built-in TBE kernels; official golden. They agree, except that
ascend950 multiplies by 1 / beta, and by 0 instead for a beta below 1e-6.

Document and source differ, and the source wins: the document demands a reduced result of shape (1), the host checks the
shape only without a reduction; result can have any type that the common one casts to. beta can be 0 since April 2026
(after CANN 8.5), and -0 and infinity pass; beta 0 gives d. The result is rounded to the inputs' common type before the
cast to result. The mean of an empty call is NaN, its sum 0; without a reduction it writes no output.

The sum is multiplied by the factor of a mean. Special values follow the formula in IEEE float64.
"""

from __future__ import annotations

from ..page import (
    MAIN, MUTUAL, NONE, REDUCTIONS, Args, Aten, Checks, Expression, Form, Formula, KernelName, MindSpore, Operator,
    Platform, broadcast_together, broadcasting, can_cast_promoted, check, common_shape, dtype_in, dtypes_in,
    ends_if_empty, filled, float32, float_types, in_range, max_ranks, not_null, number, one_element, one_number, output,
    promoted_type, reduced_shape, reduction, size_of, tensor, where,
)  # fmt: skip

INPUTS = ("self", "target")
COMMON = common_shape(*INPUTS)
LEAST = 9.999999974752427e-07  # float32(1e-6)


def formula(x: Expression, t: Expression, beta: Expression) -> Expression:
    """The formula in the order of the TBE kernels."""
    d = abs(x - t)
    return where(d < beta, d * (d * 0.5) / beta, d - 0.5 * beta)


def kernel_950(x: Expression, t: Expression, beta: Expression) -> Expression:
    """ascend950 multiplies by the reciprocal, and by 0 for a small beta."""
    d = abs(x - t)
    return where(d < beta, d * (d * 0.5) * where(beta < LEAST, 0, 1 / beta), d - 0.5 * beta)


def square_first(x: Expression, t: Expression, beta: Expression) -> Expression:
    """The order of PyTorch."""
    d = abs(x - t)
    return where(d < beta, d * d * 0.5 / beta, d - 0.5 * beta)


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, *INPUTS, "result")
    yield from dtypes_in(a, INPUTS, float_types(platform))
    yield can_cast_promoted(a, INPUTS, "result")
    yield in_range(a, "reduction", 0, 2)
    yield from max_ranks(a, *INPUTS)
    yield broadcasting(a, *INPUTS)
    if a["reduction"] == NONE:
        yield broadcast_together(a, INPUTS, "result")
    beta, zero = float32(a["beta"]), platform.since("9.0")
    problem = f"beta is {a['beta']}; it must be {'at least' if zero else 'above'} 0"
    yield check("range of beta", None if beta > 0 or (beta == 0 and zero) else problem)
    yield ends_if_empty(a, *INPUTS)


def demands(a: Args, platform: Platform) -> Checks:
    """The demands of the document that the host does not check."""
    yield dtype_in(a, "result", float_types(platform))
    if a["reduction"] != NONE:
        yield one_element(a, "result")


OPERATOR = Operator(
    name="aclnnSmoothL1Loss",
    parameters=(
        tensor("self", "x", MAIN),
        tensor("target", "t", MUTUAL),
        reduction("reduction"),
        number("beta", "beta", c="float"),
        output("result"),
    ),
    source="loss/smooth_l1_loss_v2/op_api/aclnn_smooth_l1_loss.cpp",
    checks=checks,
    changed=("9.0",),
    demands=demands,
    filled=filled,
    undefined=lambda a: one_number(a, "result"),
    computes=Formula(
        formula,
        {
            "950": Form(kernel_950, mean="sum", departs=True),
            "tbe": Form(formula, mean="sum"),
            "square_first": Form(square_first, mean="sum"),
        },
    ),
    kernel_type=promoted_type(*INPUTS),
    shape=reduced_shape(*INPUTS),
    terms=COMMON,
    added="float32",
    mean=size_of(COMMON),
    points={"x": (0.0,)},
    kernel=KernelName("smooth_l1_loss_v2", INPUTS, {"sigma": ("beta", 1.0), "reduction": ("reduction", 1)}),
    aten=Aten(  # broadcast as the host does
        lambda aten, t: aten.smooth_l1_loss(
            *aten.broadcast_tensors([t["self"], t["target"]]), t["reduction"], t["beta"]
        ),
        mixed=True,
    ),
    mindspore=MindSpore(
        lambda primitives, t: primitives.SmoothL1Loss(t["beta"], REDUCTIONS[t["reduction"]])(t["self"], t["target"])
    ),
)
