"""aclnnPrelu: out = self where self > 0, else self * weight of its channel (axis 1), or one weight for all.

Sources: document aclnnPrelu; activation/p_relu/op_api/aclnn_prelu.cpp (checks, promotion); op_kernel/arch35
(ascend950); public copies of the built-in TBE kernels.

The three dtypes can all differ: inputs are cast to their common one, and the result is rounded to it before the cast to
out. The weight's shape is free, its number of elements is not. self of one axis has one channel.

self = 0 takes the weight, and so does NaN. ascend910 adds both branches: there an infinite weight gives NaN for a
positive self.
"""

from __future__ import annotations

from typing import Any

from ..page import (
    MAIN, PER_CHANNEL, Args, Aten, Check, Checks, Expression, Form, Formula, KernelName, Operator, Platform, TensorSpec,
    can_cast_promoted, check, dtypes_in, ends_if_empty, float_types, max_ranks, maximum, minimum, not_null, output,
    promoted_type, promotes, same_shape, tensor, where,
)  # fmt: skip

INPUTS = ("self", "weight")


def formula(x: Expression, w: Expression) -> Expression:
    """The document's formula."""
    return where(x > 0, x, x * w)


def kernel_910(x: Expression, w: Expression) -> Expression:
    """Both branches, added."""
    return maximum(x, 0) + minimum(x, 0) * w


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, *INPUTS, "out")
    yield from dtypes_in(a, (*INPUTS, "out"), float_types(platform))
    yield promotes(a, INPUTS, float_types(platform))
    yield can_cast_promoted(a, INPUTS, "out")
    yield from max_ranks(a, *INPUTS, "out")
    yield same_shape(a, "out", "self")
    yield weight_length(a["self"], a["weight"])
    yield ends_if_empty(a, *INPUTS)


def weight_length(self: TensorSpec, weight: TensorSpec) -> Check:
    channels = self.shape[1] if self.rank > 1 else 1
    problem = f"weight has {weight.size} elements; it must have 1, or one per channel of self's shape {self.shape}"
    return check("one weight, or one per channel", None if weight.size in (1, channels) else problem)


def by_channel(t: Any) -> Any:
    """The weight as a vector, as PyTorch requires it."""
    return t["weight"].reshape(-1)


OPERATOR = Operator(
    name="aclnnPrelu",
    parameters=(tensor("self", "x", MAIN), tensor("weight", "w", PER_CHANNEL), output("out")),
    source="activation/p_relu/op_api/aclnn_prelu.cpp",
    checks=checks,
    computes=Formula(formula, {"950": formula, "tbe_a2": formula, "tbe_910": Form(kernel_910, departs=True)}),
    kernel_type=promoted_type(*INPUTS),
    points={"x": (0.0,)},
    kernel=KernelName("p_relu", INPUTS),
    aten=Aten(lambda aten, t: aten.prelu(t["self"], by_channel(t))),
)
