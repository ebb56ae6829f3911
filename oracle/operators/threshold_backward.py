"""aclnnThresholdBackward: out = 0 where self <= threshold, else gradOutput.

Sources: document aclnnThresholdBackward; activation/threshold_grad_v2_d/op_api/aclnn_threshold_backward.cpp (checks);
op_kernel/arch35 (ascend950); public copies of the built-in TBE kernels. A threshold within 2^-23 of zero is read as
zero, because the host then runs ReluGrad.

dtypes are equal on every product; int64 is accepted by ascend950 for a zero threshold. Integer inputs are not served by
the golden. Document and source differ, and the source wins: null pointers are 161001, the shape of out is checked.

self = NaN keeps gradOutput, a threshold that is NaN keeps all. On ascend950 this holds only since August 2026 (ops-nn
3dec8c86e, after CANN 9.2); before, NaN gives 0 unless the threshold is zero, and is unspecified. A zero threshold
multiplies by 0 or 1 on ascend950, so an infinite gradient is NaN there and 0 elsewhere: unspecified. Before ascend950 a
clamped self replaces some comparisons. Unspecified there: in bfloat16, at a zero threshold, NaN and 0 < self < 2^-126;
on ascend910 NaN, always. Kernels before ascend950 compare float16 with the threshold rounded to float16.
"""

from __future__ import annotations

from ..page import (
    MAIN, MUTUAL, Args, Aten, Checks, Expression, Form, Formula, Forward, KernelName, MindSpore, Operator, Platform,
    broadcast_shape, broadcast_together, check, dtypes_in, ends_if_empty, float32, is_nan, max_ranks, not_null, number,
    output, same_dtype, source_unless, tensor, where,
)  # fmt: skip

INPUTS = ("self", "gradOutput")
ZERO = 2.0**-23  # thresholds up to here are read as zero
TINY = 2.0**-126  # the smallest normal float32


def formula(g: Expression, x: Expression, t: Expression) -> Expression:
    """The document's formula."""
    return where(x <= where(abs(t) <= ZERO, 0, t), 0, g)


def kernel_950(g: Expression, x: Expression, t: Expression) -> Expression:
    return where(abs(t) <= ZERO, g * where(x <= 0, 0, 1), where(x <= t, 0, g))


def kernel_950_until_9_2(g: Expression, x: Expression, t: Expression) -> Expression:
    """By the opposite comparison, which is false for NaN."""
    return where(abs(t) <= ZERO, g * where(x <= 0, 0, 1), where(x > t, g, 0))


def kernel_910(g: Expression, x: Expression, t: Expression) -> Expression:
    """At a zero threshold a mask of clamped numbers instead of a comparison."""
    mask = where(x > 0, where(x < TINY, x * (1 / TINY), 1), 0)
    return where(abs(t) <= ZERO, g * mask, where(x > t, g, 0))


def unknown(x: Expression, t: Expression) -> Expression:
    """Only bfloat16 has this mask, at a zero threshold."""
    return (abs(t) <= ZERO) & (is_nan(x) | ((x > 0) & (x < TINY)))


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield source_unless(None in (a["gradOutput"], a["self"]), not_null(a, "threshold", "out", "gradOutput", "self"))
    types = ["float32", "int32", "float16", "int8", "uint8", *(["bfloat16"] if platform.bfloat16 else [])]
    if platform.regbase and abs(float32(a["threshold"])) <= ZERO:
        types.append("int64")
    yield from dtypes_in(a, ("gradOutput", "self"), tuple(types))
    yield same_dtype(a, "gradOutput", "self")
    yield same_dtype(a, "out", "self")
    yield from max_ranks(a, "gradOutput", "self")
    together = broadcast_shape(a["self"].shape, a["gradOutput"].shape) is not None
    yield source_unless(not together, broadcast_together(a, INPUTS, "out"))
    yield ends_if_empty(a, *INPUTS)


def demands(a: Args, platform: Platform) -> Checks:
    """The demands of the document that the host does not check."""
    text = f"threshold is {a['threshold']}; the document does not say that up to 2^-23 it counts as zero"
    yield check("threshold", text if 0 < abs(float32(a["threshold"])) <= ZERO else None)


OPERATOR = Operator(
    name="aclnnThresholdBackward",
    parameters=(
        tensor("gradOutput", "g", MUTUAL),
        tensor("self", "x", MAIN),
        number("threshold", "t"),
        output("out"),
    ),
    source="activation/threshold_grad_v2_d/op_api/aclnn_threshold_backward.cpp",
    checks=checks,
    demands=demands,
    computes=Formula(
        formula,
        {
            "950": kernel_950,
            "950@9.2": Form(kernel_950_until_9_2, departs=True),
            "tbe_a2": Form(formula, native=("float16",)),
            "tbe_910": Form(kernel_910, native=("float16",), departs=True),
        },
        unspecified={"tbe_a2 bfloat16": unknown},
    ),
    points={"x": (0.0, 1.0)},
    forwards=(Forward("aclnnRelu", {"self": "out"}, lambda a: {"threshold": 0.0}),),
    kernel=KernelName("threshold_grad_v2_d", ("gradOutput", "self"), {"threshold": ("threshold", 0.0)}),
    aten=Aten(
        lambda aten, t: aten.threshold_backward(t["gradOutput"], t["self"], t["threshold"]),
        departs=True,
    ),
    mindspore=MindSpore(
        lambda primitives, t: primitives.ThresholdGrad()(t["gradOutput"], t["self"], t["threshold"]),
    ),
)
