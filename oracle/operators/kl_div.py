"""aclnnKlDiv: loss = T * (L - self), L = target and T = e^target (logTarget), or T = target and L = log target; its
mean, its sum, or its sum divided by the batch, over all elements of the common shape.

Sources: document aclnnKlDiv; ops-math math/kl_div_v2/op_api/aclnn_kl_div.cpp (checks, promotion, broadcast); op_kernel/
arch35 (ascend950); public copies of the built-in TBE kernels; official golden.

Document and source differ, and the source wins: reduction 3 divides the sum by dim 0 of the common shape (1 for a
scalar), and others are refused since March 2026 (after CANN 8.5); a reduced out can have any shape of one element. An
empty self or target ends the call before the shapes are compared: a mean is NaN, a sum 0, a batch mean NaN if dim 0 of
self is 0, else 0; without a reduction no output is written. Kernels compute in float32; the result is rounded to the
inputs' common type before the cast to out.

For a target of 0 the logarithm is that of 1: the loss is a zero, and NaN with an infinite self. A negative target gives
NaN, a log target of minus infinity too. An infinite target gives infinity, but NaN in PyTorch. ascend950 multiplies the
sum by the factor of a mean, the TBE kernels multiply every term.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..page import (
    MAIN, MEAN, MUTUAL, NONE, REDUCTIONS, Args, Arguments, Aten, Check, Checks, Expression, Form, Formula, KernelName,
    MindSpore, Operator, Platform, broadcasting, check, common_shape, dtypes_in, ends_if_empty, equal, exp, filled,
    flag, float_types, in_range, is_empty, log, max_ranks, not_null, one_number, output, promoted_type, reduced_shape,
    reduction, same_dtype, size_of, tensor, where,
)  # fmt: skip

INPUTS = ("self", "target")
COMMON = common_shape(*INPUTS)
WORDS = (*REDUCTIONS, "batchmean")
BATCH_MEAN = WORDS.index("batchmean")


def formula(x: Expression, t: Expression, logs: Expression) -> Expression:
    """The formula in the order of every kernel."""
    return where(logs, exp(t) * (t - x), t * (where(equal(t, 0), 0, log(t)) - x))


def products(x: Expression, t: Expression, logs: Expression) -> Expression:
    """The order of PyTorch: a difference of products."""
    return where(logs, exp(t) * (t - x), where(equal(t, 0), 0, t * log(t)) - t * x)


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, *INPUTS, "out")
    yield from dtypes_in(a, (*INPUTS, "out"), float_types(platform))
    yield from max_ranks(a, *INPUTS)
    if platform.since("9.0"):
        yield in_range(a, "reduction", 0, BATCH_MEAN)
    yield ends_if_empty(a, *INPUTS)
    yield broadcasting(a, *INPUTS)
    yield shape_of_out(a)


def shape_of_out(a: Args) -> Check:
    given, common = a["out"].shape, COMMON(a)
    fits = given == common if a["reduction"] == NONE else a["out"].size == 1
    wanted = f"have one element under reduction {a['reduction']}" if a["reduction"] != NONE else f"be {common}"
    return check("shape of out", None if fits else f"out has shape {given}; it must {wanted}")


def demands(a: Args, platform: Platform) -> Checks:
    """The demands of the document that the host does not check."""
    yield same_dtype(a, "target", "self")
    yield same_dtype(a, "out", "self")
    yield in_range(a, "reduction", 0, BATCH_MEAN)


def batch(a: Arguments) -> dict[str, float]:
    """The divisor of a batch mean; 1 for a scalar."""
    return {"n": (COMMON(a) or (1,))[0]} if a["reduction"] == BATCH_MEAN else {}


def empty_fill_value(a: Arguments) -> float | None:
    """The value that an empty call is filled with."""
    if a["reduction"] != BATCH_MEAN:
        return filled(a)
    return math.nan if tuple(a["self"].shape)[:1] == (0,) else 0.0


def undefined(a: Arguments) -> str | None:
    """For an empty call no check looks at the shape of out, and in CANN 8.5 no check looks at the reduction."""
    if not 0 <= a["reduction"] <= BATCH_MEAN:
        return f"reduction is {a['reduction']}"
    return one_number(a, "out") if is_empty(a["self"], a["target"]) else None


def kl_div(aten: Any, t: Mapping[str, Any]) -> Any:
    """PyTorch's function, with the device's divisor of a batch mean."""
    if t["reduction"] != BATCH_MEAN:
        return aten.kl_div(t["self"], t["target"], t["reduction"], log_target=t["logTarget"])
    return aten.kl_div(t["self"], t["target"], 2, log_target=t["logTarget"]) / batch(t)["n"]


OPERATOR = Operator(
    name="aclnnKlDiv",
    parameters=(
        tensor("self", "x", MAIN),
        tensor("target", "t", MUTUAL),
        reduction("reduction", WORDS),
        flag("logTarget", "logs"),
        output("out"),
    ),
    source="math/kl_div_v2/op_api/aclnn_kl_div.cpp",
    checks=checks,
    changed=("9.0",),
    demands=demands,
    filled=empty_fill_value,
    undefined=undefined,
    computes=Formula(formula, {"950": Form(formula, mean="sum"), "tbe": formula, "products": products}),
    kernel_type=promoted_type(*INPUTS),
    shape=reduced_shape(*INPUTS),
    terms=COMMON,
    added="float32",
    mean=size_of(COMMON),
    scalars=batch,
    points={"t": (0.0, 1.0)},
    kernel=KernelName("kl_div_v2", INPUTS, {"reduction": ("reduction", MEAN), "log_target": ("logTarget", False)}),
    aten=Aten(kl_div, mixed=True),
    mindspore=MindSpore(
        lambda primitives, t: primitives.KLDiv()(t["self"], t["target"], WORDS[t["reduction"]], t["logTarget"])
    ),
)
