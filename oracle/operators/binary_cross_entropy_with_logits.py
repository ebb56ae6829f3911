"""aclnnBinaryCrossEntropyWithLogits: loss = -weight * (posWeight * target * log s + (1 - target) * log(1 - s)),
s = 1 / (1 + e^-self); its mean, or its sum, over all elements of the loss.

Sources: document aclnnBinaryCrossEntropyWithLogits; loss/sigmoid_cross_entropy_with_logits_v2/op_api/
aclnn_binary_cross_entropy_with_logits.cpp (checks, promotion, reduction); op_kernel/arch35 (ascend950); public copies
of the built-in TBE kernels. They agree; null weights are ones.

Document and source differ, and the source wins: out must have target's dtype, self can have another, and the dtypes of
the weights are never checked. Weights broadcast with target, and larger weights make a larger loss. For 16-bit inputs
too the kernel gives a float32 loss; the host adds it up and casts once to out. Without a reduction out's shape is
compared after the kernel is created; with a reduction never: an out of more than one element is unspecified. An empty
self fills out with NaN for a mean and with 0 for a sum; without a reduction it writes no output.

No kernel has log1p, so that losses below 2^-24 are lost. An infinite self gives NaN if a factor of a logarithm is 0. An
infinite target gives NaN. With a posWeight of 1, PyTorch and ascend950 give an infinity: unspecified.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..page import (
    MAIN, MUTUAL, NONE, REDUCTIONS, SAME, Args, Arguments, Aten, Checks, Expression, Form, Formula, KernelName,
    MindSpore, Operator, Platform, broadcast_together, broadcasting, common_shape, dtype_of, dtypes_in, ends_if_empty,
    equal, exp, filled, float_types, in_range, is_empty, is_finite, log, log1p, max_ranks, maximum, minimum, not_null,
    one_number, output, present, promoted, reduced_shape, reduction, same_dtype, same_dtypes, same_shape, size_of,
    tensor, where,
)  # fmt: skip

WEIGHTS = ("weightOptional", "posWeightOptional")
COMMON = common_shape("self", *WEIGHTS)


def formula(x: Expression, t: Expression, w: Expression, p: Expression) -> Expression:
    """The formula; for finite operands as a sum of two losses that do not cancel each other.

    Beyond 1,000 a logarithm only decides on which side of the other loss the result lies: there it is that of 1,000.
    """
    one, other = (maximum(b, 0) + log1p(exp(-minimum(abs(b), 1000))) for b in (-x, x))
    return where(is_finite(x) & is_finite(t), p * t * one + (1 - t) * other, (1 - t) * x + ((p - 1) * t + 1) * one) * w


def kernel_950(x: Expression, t: Expression, w: Expression, p: Expression) -> Expression:
    loss = minimum(x, 0) - log(exp(-abs(x)) + 1)
    return ((1 - t) * x - loss * ((p - 1) * t + 1)) * w


def kernel_tbe(x: Expression, t: Expression, w: Expression, p: Expression) -> Expression:
    m = maximum(-x, 0)
    return ((1 - t) * x + (log(exp(-m) + exp(-m - x)) + m) * ((p - 1) * t + 1)) * w


def pytorch(x: Expression, t: Expression, w: Expression, p: Expression) -> Expression:
    """PyTorch's order, which loses no small logarithm."""
    loss = minimum(x, 0) - log1p(exp(-abs(x)))
    return ((1 - t) * x - ((p - 1) * t + 1) * loss) * w


def unweighted(x: Expression, t: Expression, w: Expression, p: Expression) -> Expression:
    """PyTorch's and ascend950's order for a posWeight of 1, in which an infinite target gives no NaN."""
    loss = minimum(x, 0) - log1p(exp(-abs(x)))
    return ((1 - t) * x - where(equal(p, 1), loss, ((p - 1) * t + 1) * loss)) * w


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "self", "target", "out")
    yield from dtypes_in(a, ("self", "target", "out"), float_types(platform))
    yield same_dtype(a, "out", "target")
    yield in_range(a, "reduction", 0, 2)
    yield from max_ranks(a, "self", "target", *present(a, *WEIGHTS))
    yield same_shape(a, "target", "self")
    given = [name for name in present(a, *WEIGHTS) if not is_empty(a[name])]
    yield broadcasting(a, "target", *given)._replace(name="target and weights broadcast")
    yield ends_if_empty(a, "self")
    if a["reduction"] == NONE:
        yield broadcast_together(a, ("target", *present(a, *WEIGHTS)), "out")._replace(name="out of the common shape")


def demands(a: Args, platform: Platform) -> Checks:
    """The demands of the document that the host does not check."""
    yield from same_dtypes(a, ("self", *present(a, *WEIGHTS)), "target")


def undefined(a: Arguments) -> str | None:
    """Unspecified calls that no check refuses."""
    for name in present(a, *WEIGHTS):
        if 0 in a[name].shape and 0 not in a["self"].shape:
            return f"{name} is empty"
        if dtype_of(a[name].dtype).name != promoted(*(dtype_of(a[each].dtype).name for each in ("self", "target"))):
            return f"{name} has another dtype than self and target have in common"
    return None if 0 in a["self"].shape else one_number(a, "out")


def logits(aten: Any, t: Mapping[str, Any]) -> Any:
    """PyTorch's function."""
    return aten.binary_cross_entropy_with_logits(
        t["self"], t["target"], t["weightOptional"], t["posWeightOptional"], t["reduction"]
    )


OPERATOR = Operator(
    name="aclnnBinaryCrossEntropyWithLogits",
    parameters=(
        tensor("self", "x", MAIN),
        tensor("target", "t", SAME),
        tensor("weightOptional", "w", MUTUAL, optional=True),
        tensor("posWeightOptional", "p", MUTUAL, optional=True),
        reduction("reduction"),
        output("out"),
    ),
    source="loss/sigmoid_cross_entropy_with_logits_v2/op_api/aclnn_binary_cross_entropy_with_logits.cpp",
    checks=checks,
    demands=demands,
    empty=("self",),
    filled=filled,
    undefined=undefined,
    computes=Formula(
        formula,
        {"950": Form(kernel_950, mean="sum"), "tbe": kernel_tbe, "pytorch": pytorch, "unweighted": unweighted},
    ),
    kernel_type=lambda a, platform: "float32",
    shape=reduced_shape("self", *WEIGHTS),
    terms=COMMON,
    like="target",
    mean=size_of(COMMON),
    points={"x": (0.0,), "t": (0.0, 1.0)},
    kernel=KernelName(
        "sigmoid_cross_entropy_with_logits_v2", ("self", "target", *WEIGHTS), {"reduction": ("reduction", 1)}
    ),
    aten=Aten(logits, mixed=True),
    mindspore=MindSpore(
        lambda primitives, t: primitives.BCEWithLogitsLoss(REDUCTIONS[t["reduction"]])(
            t["self"], t["target"], t["weightOptional"], t["posWeightOptional"]
        )
    ),
)
