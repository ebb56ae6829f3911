"""aclnnGeluBackwardV2: the gradient of GELU, gradOutput * (Phi(self) + self * phi(self)) for approximate = "none", that
of its tanh approximation (as aclnnGeluBackward) for "tanh".

Sources: document aclnnGeluBackwardV2; activation/gelu_grad_v2/op_api/aclnn_gelu_backward_v2.cpp (checks, promotion);
op_kernel/arch35 (ascend950); public copies of the built-in TBE kernels. The official golden ignores approximate. Phi is
computed as erfc(-self / sqrt 2) / 2: kernels by 1 + erf lose the tail below -3, within their own rounding.

Document and source differ, and the source wins: there is no limit of rank; integer inputs pass together with a floating
one, bfloat16 passes on every product if the common dtype is float32. Inputs that broadcast are cast to their common
dtype, which gradInput must have.

The order of ascend910_93 is not known, because the copies do not name this product. The orders of ascend910b and of the
copies' other products are both right there.

Special values follow the document's formula in IEEE float64: an infinite self gives NaN by 0 * inf, and so does an
infinite gradOutput where the factor underflows (self below -38.6 for "none"). Unspecified in a verdict: an infinite
self (right kernels give NaN, or gradOutput for +inf and 0 * gradOutput for -inf).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..page import (
    MAIN, MUTUAL, PI, Args, Aten, Checks, Expression, Form, Formula, KernelName, MindSpore, Operator, Platform,
    broadcast_together, check, choice, differentiated, ends_if_empty, erf, erfc, exp, float_types, max_ranks, maximum,
    minimum, not_null, output, promoted, promoted_type, promotes, sqrt, tensor, torch_npu, where,
)  # fmt: skip
from . import gelu_backward
from .gelu_backward import INPUTS
from .gelu_v2 import WORDS


def formula(g: Expression, x: Expression, approximate: Expression) -> Expression:
    """Phi + x phi, or the approximation. Beyond +-37 Phi and phi have their value at +-37 in every format, sign
    included."""
    y = minimum(maximum(x, -37), 37)
    exact = g * (erfc(-y / sqrt(2)) / 2 + x * (exp(y * y / -2) / sqrt(2 * PI)))
    return where(approximate, gelu_backward.formula(g, x), exact)


def unclamped(g: Expression, x: Expression, approximate: Expression) -> Expression:
    """The document's formula unchanged: its underflow decides special values."""
    exact = g * (erfc(-x / sqrt(2)) / 2 + x * (exp(x * x / -2) / sqrt(2 * PI)))
    return where(approximate, gelu_backward.formula(g, x), exact)


def kernel_950(g: Expression, x: Expression, approximate: Expression) -> Expression:
    c = erf(x * (1 / sqrt(2))) * 0.5 + 0.5
    f = exp(x * x * -0.5) * (1 / sqrt(2 * PI))
    return where(approximate, gelu_backward.kernel_950(g, x), (f * x + c) * g)


def kernel_a2(g: Expression, x: Expression, approximate: Expression) -> Expression:
    """By rational functions of |x| up to 30 (as accurate as erfc), a sign at the end."""
    a = where(x < 0, -x, x)
    a = where(a < 30, a, 30)
    r = erfc(a * (1 / sqrt(2))) * 0.5 - a * (exp(a * a * -0.5) * (1 / sqrt(2 * PI)))
    return where(approximate, gelu_backward.kernel_950(g, x), where(x < 0, r, 1 - r) * g)


def kernel_others(g: Expression, x: Expression, approximate: Expression) -> Expression:
    """The order of products that the public copies do not name."""
    return where(approximate, gelu_backward.kernel_others(g, x), kernel_950(g, x, approximate))


def kernel_910(g: Expression, x: Expression, approximate: Expression) -> Expression:
    return where(approximate, gelu_backward.kernel_910(g, x), kernel_950(g, x, approximate))


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    common = promoted(*(a[name].dtype_name for name in INPUTS)) if None not in (a[n] for n in INPUTS) else None
    yield not_null(a, *INPUTS, "gradInput", "approximate")
    yield promotes(a, INPUTS, float_types(platform))
    kind = a["gradInput"].dtype_name
    problem = f"gradInput has dtype {kind}; it must be {common}, the inputs' common dtype"
    yield check("gradInput of the common dtype", None if kind == common else problem)
    yield broadcast_together(a, INPUTS, "gradInput")
    problem = f"approximate is {a['approximate']!r}; it must be one of {', '.join(WORDS)}"
    yield check("approximate is known", None if a["approximate"] in WORDS else problem)
    yield ends_if_empty(a, *INPUTS)


def demands(a: Args, platform: Platform) -> Checks:
    """The demands of the document that the host does not check."""
    yield from max_ranks(a, "gradOutput", "self", "gradInput")


def own_function(aten: Any, t: Mapping[str, Any]) -> Any:
    """torch_npu's own function: its aten.gelu_backward is aclnnGeluBackward, except in compatible mode and on
    ascend950. The result has self's dtype, so both inputs get the common one."""
    import torch

    g, x = aten.broadcast_tensors([t[name] for name in INPUTS])
    common = torch.promote_types(g.dtype, x.dtype)
    return torch_npu("npu_gelu_backward")(g.to(common), x.to(common), approximate=t["approximate"])


OPERATOR = Operator(
    name="aclnnGeluBackwardV2",
    parameters=(
        tensor("gradOutput", "g", MUTUAL),
        tensor("self", "x", MAIN),
        choice("approximate", WORDS, "approximate"),
        output("gradInput"),
    ),
    source="activation/gelu_grad_v2/op_api/aclnn_gelu_backward_v2.cpp",
    checks=checks,
    demands=demands,
    computes=Formula(
        formula,
        {
            "950": kernel_950,
            "tbe_a2": kernel_a2,
            "tbe_a2_a3": Form(kernel_others, departs=True),
            "tbe_910": Form(kernel_910, departs=True),
        },
        specials=unclamped,
    ),
    kernel_type=promoted_type(*INPUTS),
    points={"x": (-0.7517916, 0.0)},
    kernel=KernelName("gelu_grad_v2", INPUTS, {"approximate": ("approximate", "none")}),
    aten=Aten(  # broadcast as the host does: aten's own oneDNN cannot
        lambda aten, t: aten.gelu_backward(
            *aten.broadcast_tensors([t[name] for name in INPUTS]), approximate=t["approximate"]
        ),
        npu=own_function,
        mixed=True,
        departs=True,
    ),
    mindspore=MindSpore(
        lambda primitives, t: primitives.GeluGradExt()(t["gradOutput"], t["self"], t["approximate"]),
        composed=lambda ms, t: differentiated(
            ms, lambda x: ms.ops.gelu(x, approximate=t["approximate"]), t["self"], t["gradOutput"]
        ),
    ),
)
