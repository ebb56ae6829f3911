"""aclnnMseLoss: loss = (self - target)^2; its mean, or its sum, over all elements of the common shape.

Sources: document aclnnMseLoss; loss/mse_loss/op_host/op_api/aclnn_mse_loss.cpp (checks); op_kernel of MSELossV2
(ascend950, ascend910b, ascend310p); public copies of the built-in TBE kernels; official golden.

Inputs of different floating types are cast to their common one; the kernel squares, adds and divides in float32, and
its result is rounded to that type before the cast to out, which can have another type. The mean of an empty call is
NaN, its sum 0; without a reduction it writes no output.

Kernels multiply partial sums, or their total, by the factor of a mean, in any order of additions. ascend950 compensates
a sum over its cores, so that an infinite term gives NaN or an infinity: unspecified. Other special values follow the
formula in IEEE float64: equal infinities give NaN.
"""

from __future__ import annotations

from ..page import (
    MAIN, MUTUAL, NONE, REDUCTIONS, Args, Arguments, Aten, Checks, Expression, Form, Formula, KernelName, MindSpore,
    Operator, Platform, common_shape, dtypes_in, ends_if_empty, equal, filled, float_types, in_range, is_finite,
    loss_shape, max_ranks, not_null, output, promoted_type, reduced_shape, reduction, size_of, tensor,
)  # fmt: skip

INPUTS = ("self", "target")
COMMON = common_shape(*INPUTS)


def formula(x: Expression, t: Expression, reduced: Expression) -> Expression:
    """The document's formula. ``reduced``: whether there is a reduction; this decides which elements are
    unspecified."""
    return (x - t) * (x - t)


def infinite_term(x: Expression, t: Expression, reduced: Expression) -> Expression:
    """A term that spoils the compensation of ascend950."""
    return equal(reduced, 1) & ~is_finite((x - t) * (x - t))


def reduces(a: Arguments) -> dict[str, float]:
    return {"reduced": int(a["reduction"] != NONE)}


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, *INPUTS, "out")
    yield from dtypes_in(a, (*INPUTS, "out"), float_types(platform))
    yield in_range(a, "reduction", 0, 2)
    yield from max_ranks(a, *INPUTS)
    yield loss_shape(a, INPUTS, "out")
    yield ends_if_empty(a, *INPUTS)


OPERATOR = Operator(
    name="aclnnMseLoss",
    parameters=(
        tensor("self", "x", MAIN),
        tensor("target", "t", MUTUAL),
        reduction("reduction"),
        output("out"),
    ),
    source="loss/mse_loss/op_host/op_api/aclnn_mse_loss.cpp",
    checks=checks,
    filled=filled,
    computes=Formula(
        formula,
        {"950": Form(formula, mean="sum"), "tbe": Form(formula, mean="sum")},
        unspecified={"950": infinite_term},
    ),
    kernel_type=promoted_type(*INPUTS),
    shape=reduced_shape(*INPUTS),
    terms=COMMON,
    added="float32",
    mean=size_of(COMMON),
    scalars=reduces,
    points={"x": (0.0,)},
    kernel=KernelName("mse_loss_v2", INPUTS, {"reduction": ("reduction", 1)}),
    aten=Aten(lambda aten, t: aten.mse_loss(t["self"], t["target"], t["reduction"]), mixed=True),
    mindspore=MindSpore(
        lambda primitives, t: primitives.MSELossExt()(t["self"], t["target"], REDUCTIONS[t["reduction"]])
    ),
)
