"""aclnnNLLLoss: -weight[target[i]] * self[i, target[i]]; with a reduction their sum, for a mean divided by
totalWeightOut, the sum of weight[target[i]]. Samples whose target is ignoreIndex are ignored.

Sources: document aclnnNLLLoss; loss/nll_loss/op_api/aclnn_nll_loss.cpp (checks, dispatch); the ascend950 kernels;
public copies of the built-in TBE kernels.

Document and source differ, and the source wins: each output can have any dtype that self casts to; totalWeightOut can
have any shape with one element. With reduction none it is not written, and not judged.

A target outside [0, C) that is not ignoreIndex is unspecified: the golden refuses it. Special values are IEEE's: a mean
of no sample, or of weights that add up to 0, is NaN or infinite. The kernel of ascend950 ignores the weight of the
only sample of a vector: if this weight is 0 or not finite, or the sample is ignored, the mean is not judged there.
"""

from __future__ import annotations

from typing import Any

from ..page import (
    CLASS_INDEX, MAIN, MEAN, NONE, ONE_VALUE, PER_CLASS, Args, Arguments, Aten, Checks, Expression, Formula, KernelName,
    Operator, Platform, Result, Shape, can_cast, check, dtype_in, ends_if_empty, equal, filled, float_types, has_rank,
    ignore_index, in_range, is_finite, not_null, one_element, output, place, reduction, same_dtype, same_dtypes,
    sum_over, tensor, where, widened,
)  # fmt: skip

E = Expression


def formula(x: E, t: E, w: E, ignore: E, mean: E) -> E:
    """The document's formula: the values at the samples' classes, summed along the classes and by the reduction."""
    total = sum_over(where(equal(place(), t) & ~equal(t, ignore), -(w * x), 0))
    return where(mean, total / total_weight(t, w, ignore), total)


def total_weight(t: E, w: E, ignore: E) -> E:
    return sum_over(where(equal(place(), t) & ~equal(t, ignore), w, 0))


def unweighted(w: E, alone: E) -> E:
    """``alone``: whether the mean is that of a vector's only sample."""
    return equal(alone, 1) & (equal(w, 0) | ~is_finite(w))


def scalars(a: Arguments) -> dict[str, float]:
    mean = a["reduction"] == MEAN
    return {"mean": int(mean), "alone": int(mean and len(a["self"].shape) == 1)}


def loss_of(a: Arguments) -> Shape:
    return tuple(a["target"].shape) if a["reduction"] == NONE else ()


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "self", "target", "weight", "out", "totalWeightOut")
    yield same_dtype(a, "weight", "self")
    yield can_cast(a, "self", "out")
    yield can_cast(a, "self", "totalWeightOut")
    yield dtype_in(a, "self", float_types(platform))
    yield dtype_in(a, "target", ("int64", "uint8", "int32"))
    yield in_range(a, "reduction", 0, 2)
    yield has_rank(a, "self", {2: "(N, C)", 1: "(C)"})
    yield has_rank(a, "target", {1: "(N)", 0: "()"})
    self, target, out, classes = a["self"], a["target"], a["out"], a["self"].shape[-1]
    problem = f"target has shape {target.shape}; with self of shape {self.shape} it must be {self.shape[:-1]}"
    yield check("one target per sample", None if target.shape == self.shape[:-1] else problem)
    problem = f"weight has shape {a['weight'].shape}; it must be ({classes},), one weight per class"
    yield check("one weight per class", None if a["weight"].shape == (classes,) else problem)
    each = a["reduction"] == NONE and self.rank == 2
    problem = f"out has shape {out.shape}; it must {f'be {target.shape}' if each else 'have one element'}"
    fits = out.shape == target.shape if each else out.rank <= 1 and out.size == 1
    yield check("shape of out", None if fits else problem)
    yield one_element(a, "totalWeightOut")
    problem = f"there are no classes, and target has shape {target.shape}"
    yield check("classes for the samples", problem if classes == 0 and target.size else None)
    yield ends_if_empty(a, "self")


def demands(a: Args, platform: Platform) -> Checks:
    """The demands of the document that the host does not check."""
    yield from same_dtypes(a, ("out", "totalWeightOut"), "self")


def one_total(found: tuple[Any, Any]) -> tuple[Any, Any]:
    """PyTorch's outputs; its sum of weights has no axis."""
    return found[0], found[1].reshape(1)


PARAMETERS = (
    tensor("self", "x", MAIN),
    tensor("target", "t", CLASS_INDEX),
    tensor("weight", "w", PER_CLASS),
    reduction("reduction"),
    ignore_index("ignoreIndex", symbol="ignore"),
    output("out"),
    output("totalWeightOut", ONE_VALUE),
)
WEIGHT = Result(
    lambda a: (1,),
    Formula(total_weight, over="all"),
    terms=lambda a: tuple(a["self"].shape),
    filled=lambda a: 0.0,
    skipped=lambda a: a["reduction"] == NONE,
)
KERNEL = KernelName(
    "nll_loss",
    ("self", "target", "weight"),
    {"reduction": ("reduction", 1), "ignore_index": ("ignoreIndex", -100)},
)
OPERATOR = Operator(
    name="aclnnNLLLoss",
    parameters=PARAMETERS,
    source="loss/nll_loss/op_api/aclnn_nll_loss.cpp",
    checks=checks,
    demands=demands,
    empty=("self",),
    filled=filled,
    computes=Formula(formula, over="reduction", unspecified={"950": unweighted}),
    shape=loss_of,
    terms=lambda a: tuple(a["self"].shape),
    scalars=scalars,
    kernel_type=widened,
    further={"totalWeightOut": WEIGHT},
    kernel=KERNEL,
    aten=Aten(
        lambda aten, t: one_total(
            aten.nll_loss_forward(t["self"], t["target"], t["weight"], t["reduction"], t["ignoreIndex"])
        )
    ),
)
