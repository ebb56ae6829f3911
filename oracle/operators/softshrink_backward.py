"""aclnnSoftshrinkBackward: gradInput = gradOutput where |self| > lambda, else 0.

Sources: document aclnnSoftshrinkBackward; activation/soft_shrink_grad/op_api/aclnn_softshrink_backward.cpp (checks);
op_kernel/arch35 (ascend950); public copies of the built-in TBE kernels. They agree; lambda is a float32, compared
unrounded with every dtype. A negative one is refused.

Document and source differ, and the source wins: inputs of two dtypes are both cast to float32. The result is not cast:
a gradInput of another dtype than the inputs' (float32 for two) is unspecified.

self = NaN keeps gradOutput. Masked elements are 0 for any gradient. A lambda that is NaN gives 0 on ascend950, and
gradOutput elsewhere (unspecified there).
"""

from __future__ import annotations

from ..page import (
    MAIN, MUTUAL, Args, Arguments, Aten, Checks, Expression, Form, Formula, KernelName, MindSpore, Operator, Platform,
    broadcast_together, check, dtype_of, dtypes_in, ends_if_empty, float32, float_types, is_nan, max_ranks, not_null,
    number, output, promoted, promoted_type, same_dtype, tensor, where,
)  # fmt: skip

INPUTS = ("gradOutput", "self")


def formula(g: Expression, x: Expression, limit: Expression) -> Expression:
    """The document's formula."""
    return where((abs(x) > limit) | is_nan(x), g, 0)


def kernel_tbe(g: Expression, x: Expression, limit: Expression) -> Expression:
    return where(abs(x) <= limit, 0, g)


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "gradOutput", "self", "lambda", "gradInput")
    yield from dtypes_in(a, (*INPUTS, "gradInput"), float_types(platform))
    yield from max_ranks(a, *INPUTS)
    yield broadcast_together(a, INPUTS, "gradInput")
    problem = f"lambda is {a['lambda']}; it must not be negative"
    yield check("range of lambda", problem if float32(a["lambda"]) < 0 else None)
    yield ends_if_empty(a, "gradOutput", "gradInput")


def undefined(a: Arguments) -> str | None:
    """The host copies the result to gradInput without a cast."""
    wanted, given = promoted(*(dtype_of(a[name].dtype).name for name in INPUTS)), a["gradInput"].dtype_name
    return None if given == wanted else f"gradInput has dtype {given}, the result {wanted}"


def demands(a: Args, platform: Platform) -> Checks:
    """The demands of the document that the host does not check."""
    yield same_dtype(a, "gradOutput", "self")
    yield same_dtype(a, "gradInput", "self")


OPERATOR = Operator(
    name="aclnnSoftshrinkBackward",
    parameters=(
        tensor("gradOutput", "g", MUTUAL),
        tensor("self", "x", MAIN),
        number("lambda", "limit", plain=0.5),
        output("gradInput"),
    ),
    source="activation/soft_shrink_grad/op_api/aclnn_softshrink_backward.cpp",
    checks=checks,
    demands=demands,
    computes=Formula(formula, {"950": formula, "tbe": Form(kernel_tbe, departs=True)}),
    kernel_type=promoted_type(*INPUTS),
    undefined=undefined,
    points={"x": (-0.5, 0.0, 0.5)},
    kernel=KernelName("soft_shrink_grad", INPUTS, {"lambd": ("lambda", 0.5)}),
    aten=Aten(
        lambda aten, t: aten.softshrink_backward(t["gradOutput"], t["self"], t["lambda"]), mixed=True, departs=True
    ),
    mindspore=MindSpore(lambda primitives, t: primitives.SoftShrinkGrad(t["lambda"])(t["gradOutput"], t["self"])),
)
