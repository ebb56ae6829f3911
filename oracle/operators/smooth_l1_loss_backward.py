"""aclnnSmoothL1LossBackward: gradInput = v * gradOut * c, v = (self - target) / beta inside |self - target| <= beta and
the difference's sign outside; c = 1, or 1 / numel(self) for a mean.

Sources: document aclnnSmoothL1LossBackward (whose formula has beta = 1); loss/smooth_l1_loss_grad_v2/op_api/
aclnn_smooth_l1_loss_backward.cpp (checks, promotion); op_kernel/arch35 (ascend950); public copies of the built-in TBE
kernels; official golden. A mean divides by the elements of self even if the output is larger (the golden divides by the
output's). No sum is ever computed. beta is a float32.

The dtypes can differ; inputs are cast to their common one, and the result is rounded to it before the cast to
gradInput. beta must not be negative or NaN.

Special values follow the formula in IEEE float64. Public kernels differ inside: ascend950 multiplies by 1 / beta, which
is NaN below the float32 1e-6, and TBE kernels divide by beta + 1e-6. Unspecified there: a small beta, a difference of
NaN at beta = 0 (0 before ascend950), and an infinite difference at beta = inf. At beta = 0 a difference of zero has the
sign 0, 1 or -1 before ascend950 (TBE, experimental A2, PyTorch): each is right, NaN is not.
"""

from __future__ import annotations

from ..page import (
    MAIN, MUTUAL, Args, Aten, Checks, Expression, Form, Formula, KernelName, Operator, Platform, broadcast_together,
    check, common_room, dtypes_in, ends_if_empty, equal, float32, float_types, in_range, is_nan, max_ranks, not_null,
    number, output, promoted_type, promotes, reduction, sign, tensor, where,
)  # fmt: skip

INPUTS = ("gradOut", "self", "target")
LEAST = float32(1e-6)  # 0x358637BD: ascend950 gives NaN for a smaller beta


def formula(g: Expression, x: Expression, t: Expression, beta: Expression, n: Expression) -> Expression:
    """The formula; on the edge both sides agree."""
    d = x - t
    return where(abs(d) < beta, d / beta, sign(d)) * g * (1 / n)


def kernel_950(g: Expression, x: Expression, t: Expression, beta: Expression, n: Expression) -> Expression:
    d = x - t
    return where(d > beta, 1, where(d < -beta, -1, d * (1 / beta))) * g * (1 / n)


def kernel_tbe(g: Expression, x: Expression, t: Expression, beta: Expression, n: Expression) -> Expression:
    d = x - t
    return where(abs(d) < beta, d / (beta + 1e-6), sign(d)) * g * (1 / n)


def reciprocal(g: Expression, x: Expression, t: Expression, beta: Expression, n: Expression) -> Expression:
    """The same formula with the strict comparison of the others."""
    d = x - t
    return where(abs(d) < beta, d * (1 / beta), sign(d)) * g * (1 / n)


def small(x: Expression, t: Expression, beta: Expression) -> Expression:
    """ascend950 multiplies by NaN."""
    return (beta < LEAST) & (abs(x - t) <= beta)


def nothing(x: Expression, t: Expression, beta: Expression) -> Expression:
    """Elements with a NaN that only a quotient would keep."""
    return equal(beta, 0) & is_nan(x - t)


def mean_first(g: Expression, x: Expression, t: Expression, beta: Expression, n: Expression) -> Expression:
    """The order of the official golden and PyTorch, with PyTorch's comparisons: a difference of 0 at beta = 0 is -1."""
    d = x - t
    return where(d <= -beta, -1, where(d >= beta, 1, d / beta)) * (1 / n) * g


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, *INPUTS, "gradInput")
    yield from dtypes_in(a, (*INPUTS, "gradInput"), float_types(platform))
    yield from max_ranks(a, *INPUTS)
    yield in_range(a, "reduction", 0, 2)
    problem = f"beta is {a['beta']}; it must be at least 0"
    yield check("range of beta", None if float32(a["beta"]) >= 0 else problem)
    yield promotes(a, INPUTS, float_types(platform))
    yield broadcast_together(a, INPUTS, "gradInput")
    yield ends_if_empty(a, *INPUTS)


OPERATOR = Operator(
    name="aclnnSmoothL1LossBackward",
    parameters=(
        tensor("gradOut", "g", MUTUAL),
        tensor("self", "x", MAIN),
        tensor("target", "t", MUTUAL),
        reduction("reduction"),
        number("beta", "beta", c="float"),
        output("gradInput"),
    ),
    source="loss/smooth_l1_loss_grad_v2/op_api/aclnn_smooth_l1_loss_backward.cpp",
    checks=checks,
    computes=Formula(
        formula,
        {
            "950": Form(kernel_950, departs=True),
            "tbe": Form(kernel_tbe, departs=True),
            "reciprocal": reciprocal,
            "mean_first": mean_first,
        },
        unspecified={"950": small, "": nothing},
    ),
    kernel_type=promoted_type(*INPUTS),
    points={"x": (-1.0, 0.0, 1.0)},
    kernel=KernelName(
        "smooth_l1_loss_grad_v2",
        ("self", "target", "gradOut"),
        {"sigma": ("beta", 1.0), "reduction": ("reduction", 1)},
    ),
    aten=Aten(
        lambda aten, t: aten.smooth_l1_loss_backward.grad_input(
            *map(t.get, INPUTS), t["reduction"], t["beta"], grad_input=common_room(t, INPUTS)
        ),
        npu=lambda aten, t: aten.smooth_l1_loss_backward(*map(t.get, INPUTS), t["reduction"], t["beta"]),
        mixed=True,
    ),
)
