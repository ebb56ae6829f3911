"""aclnnGeluBackward: the gradient of GELU's tanh approximation, gradOutput * (s + self * 2u' * s * (1 - s)) with u =
sqrt(2 / pi) (self + 0.044715 self^3), s = 1 / (1 + e^(-2u)).

Sources: document aclnnGeluBackward; activation/gelu_grad/op_api/aclnn_gelu_backward.cpp (checks, promotion);
op_kernel/arch35 (ascend950); public copies of the built-in TBE kernels; official golden. The document's formula is that
of the exact GELU (up to 8.7e-4 away); kernels and golden compute the approximation, and so does this page. Its
constants are real numbers.

Document and source differ, and the source wins: integer inputs pass together with a floating one, bfloat16 passes on
every product if the common dtype is float32, gradInput can have any dtype. Inputs that broadcast are cast to their
common dtype, and the result is rounded to it before the cast to gradInput.

The order of ascend910_93 is not known, because the copies do not name this product. The orders of ascend910b and of the
copies' other products are both right there.

Special values follow the formula in IEEE float64. Unspecified: an infinite self, and on ascend910 and ascend910_93 a
self whose square overflows float32. There ascend910 and PyTorch give NaN (0 * inf); the others give gradOutput for a
positive self and 0 * gradOutput for a negative one.
"""

from __future__ import annotations

from ..page import (
    MAIN, MUTUAL, Args, Aten, Checks, Expression, Form, Formula, KernelName, MindSpore, Operator, Platform,
    broadcast_together, check, dtype_in, ends_if_empty, exp, float_types, is_nan, max_ranks, not_null, output,
    promoted_type, promotes, tensor, where,
)  # fmt: skip
from .gelu import BETA, CUBIC, TYPES

INPUTS = ("gradOutput", "self")


def formula(g: Expression, x: Expression) -> Expression:
    """The formula, s in front of the sum."""
    q = x * x
    s = 1 / (1 + exp(-(BETA * (x + CUBIC * (q * x)))))
    return g * (s * (1 + x * (BETA * (1 + 3 * CUBIC * q)) * (1 - s)))


def kernel_950(g: Expression, x: Expression) -> Expression:
    """The order of ascend950, ascend910b and ascend310p; NaN becomes 0 in the term that can be 0 * inf."""
    q = x * x
    p = exp((-BETA + -(BETA * CUBIC) * q) * x)
    d = 1 / (p + 1)
    z = p * d * ((BETA + 3 * BETA * CUBIC * q) * x) * d
    return g * (where(is_nan(z), 0, z) + d)


def kernel_others(g: Expression, x: Expression) -> Expression:
    """The order of products that the public copies do not name: 1 - s cancels for a self above 0."""
    q = x * x
    d = 1 / (exp((-BETA + -(BETA * CUBIC) * q) * x) + 1)
    return ((d - 1) * x * (-(3 * BETA * CUBIC) * q - BETA) + 1) * d * g


def kernel_910(g: Expression, x: Expression) -> Expression:
    """With the kernel's own hyperbolic tangent, which loses the tail."""
    q = x * x
    v = BETA * 0.5 * (x + CUBIC * (q * x))
    e = exp(-2 * abs(v))
    t = (v - e * v) / ((e + 1) * (abs(v) + 2.0**-126))
    return ((t + 1) * 0.5 + (BETA * 0.75 * CUBIC * q + BETA * 0.25) * ((1 - t * t) * x)) * g


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, *INPUTS, "gradInput")
    yield promotes(a, INPUTS, float_types(platform))
    yield from max_ranks(a, *INPUTS)
    yield broadcast_together(a, INPUTS, "gradInput")
    yield ends_if_empty(a, *INPUTS)


def demands(a: Args, platform: Platform) -> Checks:
    """The demands of the document that the host does not check."""
    text = "the document's formula is the exact GELU's, the kernels compute that of its tanh approximation"
    yield check("formula of the document", text if a["self"].dtype is not None else None)
    yield dtype_in(a, "gradInput", TYPES)


OPERATOR = Operator(
    name="aclnnGeluBackward",
    parameters=(tensor("gradOutput", "g", MUTUAL), tensor("self", "x", MAIN), output("gradInput")),
    source="activation/gelu_grad/op_api/aclnn_gelu_backward.cpp",
    checks=checks,
    demands=demands,
    computes=Formula(
        formula,
        {
            "950": kernel_950,
            "tbe_a2": kernel_950,
            "tbe_a2_a3": Form(kernel_others, departs=True),
            "tbe_910": Form(kernel_910, departs=True),
        },
    ),
    kernel_type=promoted_type(*INPUTS),
    points={"x": (-0.7524614, 0.0)},
    kernel=KernelName("gelu_grad", INPUTS, optional=("y",)),
    aten=Aten(
        lambda aten, t: aten.gelu_backward(t["gradOutput"], t["self"], approximate="tanh"), mixed=True, departs=True
    ),
    mindspore=MindSpore(lambda primitives, t: primitives.GeLUGrad()(t["gradOutput"], t["self"], t["self"])),
)
