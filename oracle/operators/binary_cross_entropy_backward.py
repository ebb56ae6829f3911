"""aclnnBinaryCrossEntropyBackward: out = gradOutput * weight * (self - target) / (self * (1 - self)).

Sources: document aclnnBinaryCrossEntropyBackward; loss/binary_cross_entropy_grad/op_api/
aclnn_binary_cross_entropy_backward.cpp (checks, promotion); op_kernel/arch35 (ascend950); public copies of the
built-in TBE kernels.

Document and source differ, and the source wins: mixed dtypes are promoted, not refused; only ``out`` is tested for rank
> 8; the formats of self, target and weightOptional must agree, the formats of gradOutput and out are not checked; an
empty ``self`` skips the shape checks. The document's "mean(grad_input)" divides by the number of elements and keeps the
shape; "sum" equals "none", and no reduction takes place.

self * (1 - self) is clamped from below at float32(1e-12), as kernels, official golden and PyTorch do. Special values
follow gradOutput * (self - target) / clamp * weight / count in IEEE float64: an exact zero has the sign of that
product, zero times infinity is NaN. An infinite self is no probability: a kernel that computes self - self * self gives
NaN, another kernel's clamped divisor gives an infinity. Unspecified.
"""

from __future__ import annotations

import numpy as np

from ..page import (
    BROADCAST, FORMATS, MAIN, REDUCTIONS, Args, Aten, Checks, Expression, Formula, KernelName, MindSpore, Operator,
    Platform, broadcasts_to, dtype_in, ends_if_empty, float_types, in_range, is_empty, max_rank, max_ranks, maximum,
    not_null, output, present, promoted_type, reduction, same_dtypes, same_format, same_shape, source_only, tensor,
)  # fmt: skip

CLAMP = float(np.float32(1e-12))
LARGEST = FORMATS["float32"].max


def formula(g: Expression, x: Expression, y: Expression, w: Expression) -> Expression:
    """The document's formula; a mean divides by the number of elements."""
    return g * (x - y) / maximum((1 - x) * x, CLAMP) * w


def kernel_tbe(g: Expression, x: Expression, y: Expression, w: Expression) -> Expression:
    """Built-in TBE kernels before ascend950: quotient, then weight, then gradient."""
    return (x - y) / maximum(x * (x * -1 + 1), CLAMP) * w * g


def weight_first(g: Expression, x: Expression, y: Expression, w: Expression) -> Expression:
    """The document's order: gradient times weight first. No public kernel does so, but a right one can."""
    return g * w * (x - y) / maximum((1 - x) * x, CLAMP)


def reciprocal(g: Expression, x: Expression, y: Expression, w: Expression) -> Expression:
    """Times the reciprocal of the divisor."""
    return g * (x - y) * (1 / maximum((1 - x) * x, CLAMP)) * w


def infinite(x: Expression) -> Expression:
    """Elements with an infinite self."""
    return abs(x) > LARGEST


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    weighted = a["weightOptional"] is not None
    yield not_null(a, "gradOutput", "self", "target", "out")
    yield max_rank(a, "out")
    for name in ("self", "gradOutput", "target", "out", *present(a, "weightOptional")):
        yield dtype_in(a, name, float_types(platform))
    yield source_only(same_format(a, "target", "self"))
    if weighted:
        yield source_only(same_format(a, "weightOptional", "self"))
    if not is_empty(a["self"]):
        yield same_shape(a, "out", "self")
        yield broadcasts_to(a, "target", "self")
        if weighted:
            yield broadcasts_to(a, "weightOptional", "self")
        yield broadcasts_to(a, "gradOutput", "self")
    yield in_range(a, "reduction", 0, 2)
    yield ends_if_empty(a, "self")


def demands(a: Args, platform: Platform) -> Checks:
    """The demands of the document that the host does not check."""
    given = present(a, "gradOutput", "target", "weightOptional")
    yield from same_dtypes(a, (*given, "out"), "self")
    yield from max_ranks(a, "self", *given)
    yield same_shape(a, "out", "self")
    for name in given:
        yield broadcasts_to(a, name, "self")


OPERATOR = Operator(
    name="aclnnBinaryCrossEntropyBackward",
    parameters=(
        tensor("gradOutput", "g", BROADCAST),
        tensor("self", "x", MAIN),
        tensor("target", "y", BROADCAST),
        tensor("weightOptional", "w", BROADCAST, optional=True),
        reduction("reduction"),
        output("out"),
    ),
    source="loss/binary_cross_entropy_grad/op_api/aclnn_binary_cross_entropy_backward.cpp",
    checks=checks,
    demands=demands,
    empty=("self",),
    computes=Formula(
        formula,
        {"950": formula, "tbe": kernel_tbe, "weight_first": weight_first, "reciprocal": reciprocal},
        unspecified={"": infinite},
    ),
    kernel_type=promoted_type("self", "target", "gradOutput", "weightOptional"),
    points={"x": (0.0, 0.5, 1.0)},
    kernel=KernelName(
        "binary_cross_entropy_grad",
        ("self", "target", "gradOutput", "weightOptional"),
        {"reduction": ("reduction", 1)},
    ),
    aten=Aten(
        lambda aten, t: aten.binary_cross_entropy_backward(
            t["gradOutput"], t["self"], t["target"], t["weightOptional"], t["reduction"]
        ),
        expanded=("gradOutput", "target", "weightOptional"),
    ),
    mindspore=MindSpore(
        lambda primitives, t: primitives.BinaryCrossEntropyGrad(REDUCTIONS[t["reduction"]])(
            t["self"], t["target"], t["gradOutput"], t["weightOptional"]
        ),
        scalar_gradient=True,
    ),
)
