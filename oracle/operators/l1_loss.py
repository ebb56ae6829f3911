"""aclnnL1Loss: loss = |self - target|; its mean, or its sum, over all elements of the common shape.

Sources: document aclnnL1Loss; loss/l1_loss/op_api/aclnn_l1_loss.cpp (checks, promotion, the composition for int64); the
ascend950 kernel of LpLoss; public copies of the built-in TBE kernels; official golden.

Document and source differ, and the source wins: only the common dtype is tested, which can be int64 or a floating one,
and out can have any dtype that it casts to. Without a reduction an integer self with a floating target is refused; so
is a mean of two integer tensors. Inputs are cast to the common type before they are broadcast; the kernel computes in
float32, and only its reduced result is rounded to the common type before the cast to out. int64 is computed as int64,
and wraps. The mean of an empty call is NaN, its sum 0; without a reduction it writes no output.

The sum is multiplied by the factor of a mean. Special values follow the formula in IEEE float64: equal infinities give
NaN.
"""

from __future__ import annotations

from ..page import (
    MAIN, MEAN, MUTUAL, NONE, REDUCTIONS, Args, Aten, Check, Checks, Expression, Form, Formula, KernelName, MindSpore,
    Operator, Platform, can_cast_promoted, check, common_shape, dtypes_in, ends_if_empty, filled, float_types, in_range,
    loss_shape, max_ranks, not_null, output, promoted_type, promotes, reduced_shape, reduction, size_of, tensor,
)  # fmt: skip

INPUTS = ("self", "target")
COMMON = common_shape(*INPUTS)
INTEGERS = ("int", "uint", "bool")


def formula(x: Expression, t: Expression) -> Expression:
    """The document's formula."""
    return abs(x - t)


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, *INPUTS, "out")
    yield in_range(a, "reduction", 0, 2)
    yield floating_self(a)
    yield floating_mean(a)
    yield promotes(a, INPUTS, (*float_types(platform), "int64"))
    yield can_cast_promoted(a, INPUTS, "out")
    yield from max_ranks(a, *INPUTS)
    yield loss_shape(a, INPUTS, "out")
    yield ends_if_empty(a, *INPUTS)


def demands(a: Args, platform: Platform) -> Checks:
    """The demands of the document that the host does not check."""
    yield from dtypes_in(a, (*INPUTS, "out"), (*float_types(platform), "int64"))


def _integral(a: Args) -> list[bool]:
    return [a[name].dtype is not None and a[name].dtype.kind in INTEGERS for name in INPUTS]


def floating_self(a: Args) -> Check:
    own, other = _integral(a)
    problem = f"self has dtype {a['self'].dtype_name} with a target of {a['target'].dtype_name}; no reduction casts it"
    refused = a["reduction"] == NONE and own and not other
    return check("no integers of self with a floating target", problem if refused else None)


def floating_mean(a: Args) -> Check:
    problem = f"the mean of {a['self'].dtype_name} and {a['target'].dtype_name} is no integer"
    refused = a["reduction"] == MEAN and all(_integral(a))
    return check("no mean of integers", problem if refused else None)


OPERATOR = Operator(
    name="aclnnL1Loss",
    parameters=(
        tensor("self", "x", MAIN),
        tensor("target", "t", MUTUAL),
        reduction("reduction"),
        output("out"),
    ),
    source="loss/l1_loss/op_api/aclnn_l1_loss.cpp",
    checks=checks,
    demands=demands,
    filled=filled,
    computes=Formula(formula, {"950": Form(formula, mean="sum"), "tbe": Form(formula, mean="sum")}),
    kernel_type=promoted_type(*INPUTS),
    shape=reduced_shape(*INPUTS),
    terms=COMMON,
    added="float32",
    mean=size_of(COMMON),
    points={"x": (0.0,)},
    kernel=KernelName("lp_loss", INPUTS, {"reduction": ("reduction", 1)}),
    aten=Aten(lambda aten, t: aten.l1_loss(t["self"], t["target"], t["reduction"]), mixed=True),
    mindspore=MindSpore(
        lambda primitives, t: primitives.L1LossExt()(t["self"], t["target"], REDUCTIONS[t["reduction"]])
    ),
)
