"""aclnnBinaryCrossEntropyWithLogitsBackward: out = ((q + 1 - target) * s - q) * gradOutput * weight, q = posWeight *
target, s = 1 / (1 + e^-self); a mean divides by the elements of self.

Sources: document aclnnBinaryCrossEntropyWithLogitsBackward (which has no formula); loss/
sigmoid_cross_entropy_with_logits_grad_v2/op_api/aclnn_binary_cross_entropy_with_logits_backward.cpp (checks,
promotion); op_kernel/arch35 (ascend950); public copies of the built-in TBE kernels. They agree, except that the kernel
of ascend910 first raises self to at least -88.7; null weights are ones.

Document and source differ, and the source wins: mixed dtypes are promoted, but out must have target's; only ``out`` is
tested for rank > 8; formats of target and out must agree with self's; an empty ``self`` skips the shape checks. The
result is rounded to the common dtype before the cast to out.

Special values follow the formula in IEEE float64: an infinite posWeight or target gives NaN. For a posWeight of 1
PyTorch gives an infinity for such a target: unspecified. If e^-self overflows float32 (self < -88.72) kernels use 0 for
s; that is within the rounding of their own operations. On ascend910 s is never below 3e-39: unspecified there if it
matters, and for self = NaN, which the maximum need not keep.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..page import (
    BROADCAST, MAIN, MEAN, REDUCTIONS, SAME, Args, Aten, Checks, Expression, Form, Formula, KernelName, MindSpore,
    Operator, Platform, broadcasts_to, constant, dtypes_in, ends_if_empty, equal, exp, float_types, in_range, is_empty,
    is_finite, is_nan, max_rank, not_null, output, present, promoted_type, reduction, same_dtype, same_dtypes,
    same_format, same_shape, source_only, tensor, torch_npu, where,
)  # fmt: skip
from .binary_cross_entropy_with_logits import WEIGHTS

LEAST = -88.69999694824219  # 0xC2B16666


def formula(g: Expression, x: Expression, t: Expression, w: Expression, p: Expression) -> Expression:
    """The formula; for finite operands with a separate sigmoid for 1 - s, so that float64 does not cancel."""
    return _slope(x, t, p) * g * w


def _slope(x: Expression, t: Expression, p: Expression) -> Expression:
    q = p * t
    stable = (1 - t) * (1 / (exp(-x) + 1)) - q * (1 / (exp(x) + 1))
    return where(is_finite(q), stable, (q + 1 - t) * (1 / (exp(-x) + 1)) - q)


def kernel(g: Expression, x: Expression, t: Expression, w: Expression, p: Expression) -> Expression:
    """The order of every kernel."""
    q = p * t
    return ((q + 1 - t) * (1 / (exp(-x) + 1)) - q) * g * w


def kernel_910(g: Expression, x: Expression, t: Expression, w: Expression, p: Expression) -> Expression:
    """A raised self. For all other elements any order of the formula: the kernels' order cancels in float64 too."""
    return where(x < LEAST, kernel(g, constant(LEAST), t, w, p), formula(g, x, t, w, p))


def gradient_last(g: Expression, x: Expression, t: Expression, w: Expression, p: Expression) -> Expression:
    """The weight multiplied first; no public kernel does so, but a right one can."""
    q = p * t
    return ((q + 1 - t) * (1 / (exp(-x) + 1)) - q) * w * g


def weighted_gradient(g: Expression, x: Expression, t: Expression, w: Expression, p: Expression) -> Expression:
    """The gradient times the weight first; no public kernel does so, but a right one can."""
    q = p * t
    return g * w * ((q + 1 - t) * (1 / (exp(-x) + 1)) - q)


def difference(g: Expression, x: Expression, t: Expression, w: Expression, p: Expression) -> Expression:
    """PyTorch's order for a posWeight of 1, in which an infinite target gives no NaN."""
    s, q = 1 / (exp(-x) + 1), p * t
    return where(equal(p, 1), s - t, (q + 1 - t) * s - q) * g * w


def two_sigmoids(g: Expression, x: Expression, t: Expression, w: Expression, p: Expression) -> Expression:
    """1 - s as a sigmoid of its own in float32; no public kernel does so, but a right one can."""
    return _slope(x, t, p) * w * g


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "gradOutput", "self", "target", "out")
    yield max_rank(a, "out")
    yield from dtypes_in(a, ("gradOutput", "self", "target", *present(a, *WEIGHTS), "out"), float_types(platform))
    yield same_dtype(a, "out", "target")
    yield source_only(same_format(a, "target", "self"))
    yield source_only(same_format(a, "out", "self"))
    if not is_empty(a["self"]):
        yield same_shape(a, "target", "self")
        yield same_shape(a, "out", "self")
        for name in ("gradOutput", *present(a, *WEIGHTS)):
            yield broadcasts_to(a, name, "self")
    yield in_range(a, "reduction", 0, 2)
    yield ends_if_empty(a, "self")


def autograd(aten: Any, t: Mapping[str, Any]) -> Any:
    """The function that PyTorch's autograd computes."""
    s = aten.sigmoid(t["self"])
    if t["posWeightOptional"] is None:
        result = aten.mul(aten.sub(s, t["target"]), t["gradOutput"])
    else:
        q = aten.mul(t["posWeightOptional"], t["target"])
        result = aten.mul(aten.sub(aten.mul(aten.sub(aten.add(q, 1), t["target"]), s), q), t["gradOutput"])
    if t["weightOptional"] is not None:
        result = aten.mul(result, t["weightOptional"])
    return aten.div(result, t["self"].numel()) if t["reduction"] == MEAN else result


def demands(a: Args, platform: Platform) -> Checks:
    """The demands of the document that the host does not check."""
    yield from same_dtypes(a, ("target", *present(a, *WEIGHTS)), "self")


OPERATOR = Operator(
    name="aclnnBinaryCrossEntropyWithLogitsBackward",
    parameters=(
        tensor("gradOutput", "g", BROADCAST),
        tensor("self", "x", MAIN),
        tensor("target", "t", SAME),
        tensor("weightOptional", "w", BROADCAST, optional=True),
        tensor("posWeightOptional", "p", BROADCAST, optional=True),
        reduction("reduction"),
        output("out"),
    ),
    source="loss/sigmoid_cross_entropy_with_logits_grad_v2/op_api/aclnn_binary_cross_entropy_with_logits_backward.cpp",
    checks=checks,
    demands=demands,
    empty=("self",),
    computes=Formula(
        formula,
        {
            "950": kernel,
            "tbe_a2": kernel,
            "tbe_910": Form(kernel_910, departs=True),
            "gradient_last": gradient_last,
            "weighted_gradient": weighted_gradient,
            "difference": difference,
            "two_sigmoids": two_sigmoids,
        },
        unspecified={"tbe_910": lambda x: is_nan(x)},
    ),
    kernel_type=promoted_type("self", "target", "gradOutput", *WEIGHTS),
    like="target",
    points={"x": (0.0,), "t": (0.0, 1.0)},
    kernel=KernelName(
        "sigmoid_cross_entropy_with_logits_grad_v2",
        ("self", "target", "gradOutput", *WEIGHTS),
        {"reduction": ("reduction", 1)},
    ),
    aten=Aten(
        # aten has no backward of its own: use autograd.
        autograd,
        npu=lambda aten, t: torch_npu("npu_binary_cross_entropy_with_logits_backward")(
            t["gradOutput"], t["self"], t["target"], t["weightOptional"], t["posWeightOptional"], t["reduction"]
        ),
        mixed=True,
    ),
    mindspore=MindSpore(
        lambda primitives, t: primitives.BinaryCrossEntropyWithLogitsBackward()(
            t["gradOutput"],
            t["self"],
            t["target"],
            t["weightOptional"],
            t["posWeightOptional"],
            REDUCTIONS[t["reduction"]],
        )
    ),
)
