"""aclnnHardshrinkBackward: gradInput = 0 where |self| <= lambd, else gradOutput.

Sources: document aclnnHardshrinkBackward; activation/hard_shrink_grad/op_api/aclnn_hardshrink_backward.cpp (checks,
promotion); op_kernel/arch35 (ascend950); public copies of the built-in TBE kernels. The host casts lambd to float32 and
replaces a negative one by 0, so that self = 0 always gives 0.

Document and source differ, and the source wins: the three dtypes can all differ (inputs are cast to their common dtype,
and the result is rounded to it); an empty gradOutput or self succeeds before any shape check.

self = NaN keeps gradOutput, a lambd that is NaN keeps all. Masked elements are 0 on ascend950 and 0 * gradOutput
before: an infinite gradient there is unspecified. float16 is compared with lambd rounded to float16.
"""

from __future__ import annotations

from ..page import (
    MAIN, MUTUAL, Args, Aten, Checks, Expression, Form, Formula, KernelName, MindSpore, Operator, Platform,
    broadcast_together, can_cast_promoted, dtypes_in, ends_if_empty, float_types, max_ranks, not_null, number, output,
    promoted_type, promotes, same_dtype, tensor, where,
)  # fmt: skip

INPUTS = ("gradOutput", "self")


def formula(g: Expression, x: Expression, limit: Expression) -> Expression:
    """The formula of ascend950: a selection."""
    return where(abs(x) <= where(limit < 0, 0, limit), 0, g)


def kernel_tbe(g: Expression, x: Expression, limit: Expression) -> Expression:
    return g * where(abs(x) <= where(limit < 0, 0, limit), 0, 1)


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "gradOutput", "self", "lambd", "gradInput")
    yield from dtypes_in(a, (*INPUTS, "gradInput"), float_types(platform))
    yield from max_ranks(a, *INPUTS, "gradInput")
    yield promotes(a, INPUTS, float_types(platform))
    yield can_cast_promoted(a, INPUTS, "gradInput")
    yield ends_if_empty(a, *INPUTS)
    yield broadcast_together(a, INPUTS, "gradInput")


def demands(a: Args, platform: Platform) -> Checks:
    """The demands of the document that the host does not check."""
    yield same_dtype(a, "gradOutput", "self")
    yield same_dtype(a, "gradInput", "self")
    yield broadcast_together(a, INPUTS, "gradInput")


OPERATOR = Operator(
    name="aclnnHardshrinkBackward",
    parameters=(
        tensor("gradOutput", "g", MUTUAL),
        tensor("self", "x", MAIN),
        number("lambd", "limit", plain=0.5),
        output("gradInput"),
    ),
    documented=("ascend950", "ascend910_93", "ascend910b", "ascend910"),
    source="activation/hard_shrink_grad/op_api/aclnn_hardshrink_backward.cpp",
    checks=checks,
    demands=demands,
    computes=Formula(
        formula, {"950": Form(formula, native=("float16",)), "tbe": Form(kernel_tbe, native=("float16",))}
    ),
    kernel_type=promoted_type(*INPUTS),
    points={"x": (-0.5, 0.0, 0.5)},
    kernel=KernelName("hard_shrink_grad", INPUTS, {"lambd": ("lambd", 0.5)}),
    aten=Aten(
        lambda aten, t: aten.hardshrink_backward(t["gradOutput"], t["self"], t["lambd"]), mixed=True, departs=True
    ),
    mindspore=MindSpore(lambda primitives, t: primitives.HShrinkGrad(t["lambd"])(t["gradOutput"], t["self"])),
)
