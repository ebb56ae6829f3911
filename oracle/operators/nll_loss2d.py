"""aclnnNLLLoss2d: aclnnNLLLoss of images: -weight[target[n, h, w]] * self[n, target[n, h, w], h, w]; with a reduction
their sum, for a mean divided by totalWeightOut, the sum of the weights.

Sources: document aclnnNLLLoss2d; loss/nll_loss/op_api/aclnn_nll_loss2d.cpp (checks, dispatch); kernels as for
aclnnNLLLoss, except the kernel for vectors.

Document and source differ, and the source wins: the outputs can have any dtype that self casts to, and any shape with
one element if they have one; weight can have further axes, and the result is then unspecified unless their length
is 1. The document's example has a target beyond its classes.

A target outside [0, C) that is not ignoreIndex is unspecified: the golden refuses it. Special values are IEEE's, as
there.
"""

from __future__ import annotations

from ..page import (
    MEAN, NONE, Args, Arguments, Aten, Check, Checks, Formula, Operator, Platform, can_cast, check, dtype_in,
    ends_if_empty, filled, float_types, has_rank, in_range, not_null, one_element, same_dtype, widened,
)  # fmt: skip
from .nll_loss import KERNEL, PARAMETERS, WEIGHT, demands, formula, loss_of, one_total


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "self", "target", "weight", "out", "totalWeightOut")
    yield dtype_in(a, "self", float_types(platform))
    yield same_dtype(a, "weight", "self")
    yield can_cast(a, "self", "out")
    yield can_cast(a, "self", "totalWeightOut")
    yield dtype_in(a, "target", ("int64", "uint8", "int32"))
    yield in_range(a, "reduction", 0, 2)
    yield has_rank(a, "self", {4: "(N, C, H, W)"})
    classes, weight = a["self"].shape[1], a["weight"].shape
    problem = f"weight has shape {weight}; its first axis must have {classes} elements, one per class"
    first = weight[0] if weight else 0  # as the source reads a missing axis
    yield check("one weight per class", None if first == classes else problem)
    yield has_rank(a, "target", {3: "(N, H, W)"})
    yield one_target_per_pixel(a)
    pixels = a["target"].shape
    out, each = a["out"], a["reduction"] == NONE
    problem = f"out has shape {out.shape}; it must {f'be {pixels}' if each else 'have one element'}"
    yield check("shape of out", None if (out.shape == pixels if each else out.size == 1) else problem)
    yield one_element(a, "totalWeightOut")
    yield ends_if_empty(a, "self", "target", "weight")


def one_target_per_pixel(a: Args) -> Check:
    pixels = a["self"].shape[:1] + a["self"].shape[2:]
    problem = f"target has shape {a['target'].shape}; it must be {pixels}, self's without the classes"
    return check("one target per pixel", None if a["target"].shape == pixels else problem)


def weight_of_one_axis(a: Args) -> Check:
    problem = f"weight has rank {a['weight'].rank}; the document's has one value per class, in one axis"
    return check("weight of rank 1", None if a["weight"].rank == 1 else problem)


def document(a: Args, platform: Platform) -> Checks:
    """The demands of the document that the host does not check."""
    yield from demands(a, platform)
    yield weight_of_one_axis(a)


def undefined(a: Arguments) -> str | None:
    weights, classes = tuple(a["weight"].shape), a["self"].shape[1]
    several = any(n != 1 for n in weights[1:])
    return f"weight has shape {weights} for {classes} classes" if several else None


OPERATOR = Operator(
    name="aclnnNLLLoss2d",
    parameters=PARAMETERS,
    source="loss/nll_loss/op_api/aclnn_nll_loss2d.cpp",
    checks=checks,
    demands=document,
    undefined=undefined,
    filled=filled,
    computes=Formula(formula, over="reduction"),
    shape=loss_of,
    terms=lambda a: tuple(a["self"].shape),
    scalars=lambda a: {"mean": int(a["reduction"] == MEAN)},
    kernel_type=widened,
    further={"totalWeightOut": WEIGHT},
    kernel=KERNEL,
    aten=Aten(
        lambda aten, t: one_total(
            aten.nll_loss2d_forward(t["self"], t["target"], t["weight"].reshape(-1), t["reduction"], t["ignoreIndex"])
        ),
        index_types=("int64",),
    ),
)
