"""aclnnMishBackward: gradInput = gradOutput * (t + self * s * (1 - t^2)), t = tanh(ln(1 + e^self)), s the sigmoid.

Sources: document aclnnMishBackward (which has no formula); activation/mish_grad/op_api/aclnn_mish_backward.cpp (checks,
promotion); op_kernel/arch35 (ascend950); public copies of the built-in TBE kernels; official golden (PyTorch's).

Document and source differ, and the source wins: empty tensors succeed; self and gradOutput broadcast both ways. The
three dtypes can all differ: inputs are cast to their common one, and the result is rounded to it before the cast to
gradInput. ascend310p refuses bfloat16, which the document says of ascend910 alone.

Special values follow the formula in IEEE float64: an infinite self gives NaN. For self < -88.73 the kernels of
ascend950 and PyTorch lose the term with s and return +e^self * gradOutput (0 on ascend950), others the exact (1 + self)
e^self, about -2e-37 and smaller: both are right. An infinite gradient there is unspecified.
"""

from __future__ import annotations

from ..page import (
    MAIN, MUTUAL, Args, Aten, Checks, Expression, Formula, KernelName, MindSpore, Operator, Platform, TensorSpec,
    broadcast_together, broadcasts_to, can_cast, check, differentiated, dtype_in, ends_if_empty, exp, float_types,
    is_empty, log1p, max_ranks, not_null, output, promoted_type, source_only, tanh, tensor, where,
)  # fmt: skip

TENSORS = ("gradOutput", "self", "gradInput")


def formula(g: Expression, x: Expression) -> Expression:
    """The formula in e = e^-|self|: t and 1 - t^2 are quotients of polynomials in it."""
    e = exp(-abs(x))
    m = e * (e + 2) + 2
    below = e * ((e + 2) * m + 4 * x * (1 + e)) / (m * m)
    d = 2 * (e * e) + 2 * e + 1
    above = (2 * e + 1) / d + 4 * x * (e * e) * (1 + e) / (d * d)
    return g * where(x <= 0, below, above)


def kernel_torch(g: Expression, x: Expression) -> Expression:
    """The order of the official golden and of PyTorch."""
    t = tanh(log1p(exp(x)))
    s = 1 / (1 + exp(-x))
    return g * (t + x * s * (1 - t * t))


def tanh_of_softplus(x: Expression, below: Expression) -> Expression:
    """The kernels' way to compute t, by exponentials that do not overflow."""
    m = 2 * exp(x) + exp(2 * x)
    n = 2 * exp(-x) + 1
    return where(below, m / (m + 2), n / (2 * exp(-2 * x) + n))


def kernel_950(g: Expression, x: Expression) -> Expression:
    t = tanh_of_softplus(x, x < 0)
    return (t - (t * t - 1) * x / (exp(-x) + 1)) * g


def kernel_tbe(g: Expression, x: Expression) -> Expression:
    t = tanh_of_softplus(x, x <= 0)
    s = where(x <= 0, x * exp(x) / (exp(x) + 1), x / (exp(-x) + 1))
    return (t + s * (1 - t * t)) * g


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, *TENSORS)
    yield can_cast(a, "self", "gradInput")
    for name in TENSORS:
        made = dtype_in(a, name, float_types(platform))
        yield source_only(made) if refused_by_host_only(a[name], platform) else made
    yield from max_ranks(a, *TENSORS)
    yield broadcast_together(a, ("self", "gradOutput"), "gradInput")
    yield ends_if_empty(a, "self", "gradOutput", "gradInput")


def refused_by_host_only(tensor: TensorSpec, platform: Platform) -> bool:
    """Return whether only the host refuses a dtype: the document excludes only ascend910 from bfloat16."""
    return platform.soc == "ascend310p" and tensor.dtype_name == "bfloat16"


def demands(a: Args, platform: Platform) -> Checks:
    """The demands of the document that the host does not check."""
    yield broadcasts_to(a, "gradOutput", "self")
    empty = is_empty(a["self"], a["gradOutput"])
    yield check("tensors with elements", "a tensor is empty" if empty else None)


OPERATOR = Operator(
    name="aclnnMishBackward",
    parameters=(tensor("gradOutput", "g", MUTUAL), tensor("self", "x", MAIN), output("gradInput")),
    source="activation/mish_grad/op_api/aclnn_mish_backward.cpp",
    checks=checks,
    demands=demands,
    computes=Formula(formula, {"950": kernel_950, "tbe": kernel_tbe, "torch": kernel_torch}),
    kernel_type=promoted_type("self", "gradOutput"),
    points={"x": (-1.1924312, 0.0)},
    kernel=KernelName("mish_grad", ("gradOutput", "self"), optional=("tanhx",)),
    aten=Aten(lambda aten, t: aten.mish_backward(t["gradOutput"], t["self"])),
    mindspore=MindSpore(
        lambda primitives, t: primitives.MishGradExt()(t["gradOutput"], t["self"]),
        composed=lambda ms, t: differentiated(ms, ms.ops.mish, t["self"], t["gradOutput"]),
    ),
)
