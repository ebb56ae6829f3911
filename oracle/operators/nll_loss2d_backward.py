"""aclnnNLLLoss2dBackward: out[n, target[n, h, w], h, w] = -gradOutput * weight[target] (/ totalWeight for a mean), zero
elsewhere.

Sources: document aclnnNLLLoss2dBackward; loss/nll_loss_grad/op_api/aclnn_nll_loss2d_backward.cpp (checks, dispatch);
the ascend950 kernel; public copies of the built-in TBE kernel. self gives a shape and a dtype; its values are never
read.

Document and source differ, and the source wins: weight can have any shape with C elements, totalWeight any shape with
one; with any reduction except 0 (also an invalid one, which is refused last) gradOutput has one element and at most one
axis. Unlike the operator of one dimension less, out must have self's dtype.

A target outside [0, C) that is not ignoreIndex is unspecified (undefined on ascend950): the golden refuses it. Before
ascend950 the host casts targets to int32: the golden refuses a target outside int32 there, even if it is ignoreIndex.
Special values follow -(gradOutput * weight) / totalWeight in IEEE float64: a zero product gives -0 for a positive
gradient, totalWeight 0 an infinity or NaN; ignored pixels and other classes are +0 for any operands.
"""

from __future__ import annotations

from ..page import (
    Args, Aten, Checks, Forward, Operator, Platform, check, dtype_in, ends_if_empty, float_types, gradient_per_sample,
    has_rank, in_range, not_null, one_element, same_dtypes, same_shape, widened,
)  # fmt: skip
from .nll_loss2d import one_target_per_pixel, weight_of_one_axis
from .nll_loss_backward import OPERATOR as FLAT  # the operator of samples without axes


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "gradOutput", "self", "target", "weight", "out", "totalWeight")
    yield dtype_in(a, "self", float_types(platform))
    yield from same_dtypes(a, ("gradOutput", "weight", "out", "totalWeight"), "self")
    yield dtype_in(a, "target", ("int64", "uint8", "int32"))
    yield gradient_per_sample(a, a["target"].shape)
    yield has_rank(a, "self", {4: "(N, C, H, W)"})
    yield has_rank(a, "target", {3: "(N, H, W)"})
    yield one_target_per_pixel(a)
    classes = a["self"].shape[1]
    problem = f"weight has shape {a['weight'].shape}; it must have {classes} elements, one per class"
    yield check("one weight per class", None if a["weight"].size == classes else problem)
    yield same_shape(a, "out", "self")
    yield one_element(a, "totalWeight")
    yield in_range(a, "reduction", 0, 2)
    yield ends_if_empty(a, "self")


def demands(a: Args, platform: Platform) -> Checks:
    """The demands of the document that the host does not check."""
    yield weight_of_one_axis(a)


OPERATOR = Operator(
    name="aclnnNLLLoss2dBackward",
    parameters=FLAT.parameters,
    documented=("ascend950", "ascend910_93", "ascend910b", "ascend910"),
    source="loss/nll_loss_grad/op_api/aclnn_nll_loss2d_backward.cpp",
    checks=checks,
    demands=demands,
    empty=("self",),
    computes=FLAT.computes,
    scalars=FLAT.scalars,
    indices=lambda platform: "int64" if platform.regbase else "int32",
    kernel_type=widened,
    forwards=(Forward("aclnnNLLLoss2d", {"totalWeight": "totalWeightOut"}),),
    kernel=FLAT.kernel,
    aten=Aten(
        lambda aten, t: aten.nll_loss2d_backward(
            t["gradOutput"], t["self"], t["target"], t["weight"].reshape(-1), t["reduction"], t["ignoreIndex"],
            t["totalWeight"],
        ),
        index_types=("int64",),
    ),
)  # fmt: skip
