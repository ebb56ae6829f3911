"""aclnnNLLLossBackward: out[i, target[i]] = -gradOutput * weight[target[i]] (/ totalWeight for mean), zero elsewhere.

Sources: document aclnnNLLLossBackward; loss/nll_loss_grad/op_api/aclnn_nll_loss_backward.cpp (checks, dispatch); the
ascend950 kernel; public copies of the built-in TBE kernel.

Document and source differ, and the source wins: ``out`` can have any dtype that self casts to; totalWeight any shape
with one element; the divisor of mean is totalWeight as given, never recomputed. self (C) with a 1-D target of length C
is accepted and only target[0] is used; self (0, C) with a 0-d target is accepted, because the missing dim reads as 0.

A target outside [0, C) that is not ignoreIndex is unspecified (undefined on ascend950): the golden refuses it. Special
values follow -(gradOutput * weight) / totalWeight in IEEE float64: a zero product gives -0 for a positive gradient,
totalWeight 0 an infinity or NaN; ignored rows and other classes are +0 for any operands.
"""

from __future__ import annotations

from ..page import (
    CLASS_INDEX, MAIN, MEAN, ONE_VALUE, PER_CLASS, PER_SAMPLE, REDUCTIONS, Args, Aten, Checks, Formula, Forward,
    KernelName, MindSpore, Operator, Platform, can_cast, check, dtype_in, ends_if_empty, equal, float_types,
    gradient_per_sample, has_rank, ignore_index, in_range, not_null, one_element, output, place, reduction, same_dtype,
    same_dtypes, same_shape, tensor, where, widened,
)  # fmt: skip
from ..page import Expression as E


def formula(g: E, t: E, w: E, ignore: E, total: E) -> E:
    """The document's formula: a value at each sample's class, unless that is the ignored one."""
    return where(equal(place(), t) & ~equal(t, ignore), -(g * w) / total, 0)


def kernel(g: E, t: E, w: E, ignore: E, total: E) -> E:
    """Every public kernel divides the gradient first."""
    return where(equal(place(), t) & ~equal(t, ignore), -(g / total * w), 0)


ORDERS = {
    "950": kernel, "tbe": kernel, "product": formula,
    "reciprocal": lambda g, t, w, ignore, total: where(equal(place(), t) & ~equal(t, ignore), -(1 / total * g * w), 0),
    "weight_first": lambda g, t, w, ignore, total: where(equal(place(), t) & ~equal(t, ignore), -(w / total * g), 0),
}  # fmt: skip


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "gradOutput", "self", "target", "weight", "totalWeight", "out")
    yield from same_dtypes(a, ("weight", "gradOutput", "totalWeight"), "self")
    yield can_cast(a, "self", "out")
    yield dtype_in(a, "self", float_types(platform))
    yield dtype_in(a, "target", ("int64", "int32", "uint8"))
    yield in_range(a, "reduction", 0, 2)
    yield has_rank(a, "self", {2: "(N, C)", 1: "(C)"})
    yield has_rank(a, "target", {1: "(N)", 0: "()"})
    self, target, weight = a["self"], a["target"], a["weight"]
    length = target.shape[0] if target.shape else 0  # the source reads dim 0 of rank 0 too, and the unused slot holds 0
    problem = f"target of shape {target.shape} does not fit self of shape {self.shape}: dim 0 must be equal"
    fits = (self.rank == 1 and target.rank == 0) or self.shape[0] == length
    yield check("one target per sample", None if fits else problem)
    problem = f"weight has shape {weight.shape}; it must be ({self.shape[-1]},), one weight per class"
    yield check("one weight per class", None if weight.shape == self.shape[-1:] else problem)
    yield one_element(a, "totalWeight")
    yield gradient_per_sample(a, self.shape[:1] if self.rank == 2 else None)
    yield same_shape(a, "out", "self")
    yield ends_if_empty(a, "self")


def demands(a: Args, platform: Platform) -> Checks:
    """The demands of the document that the host does not check."""
    yield same_dtype(a, "out", "self")
    target, self, total = a["target"], a["self"], a["totalWeight"].shape
    problem = f"totalWeight has shape {total}; the document says (1,)"
    yield check("shape of totalWeight", None if total == (1,) else problem)
    problem = f"target of shape {target.shape} with self of shape {self.shape}; the document says (N) or ()"
    yield check("a target for each sample", None if target.rank == self.rank - 1 else problem)


OPERANDS = ("self", "gradOutput", "target", "weight", "totalWeight")
ATEN = ("gradOutput", "self", "target", "weight", "reduction", "ignoreIndex", "totalWeight")
OPERATOR = Operator(
    name="aclnnNLLLossBackward",
    parameters=(
        tensor("gradOutput", "g", PER_SAMPLE),
        tensor("self", "", MAIN, read=False),
        tensor("target", "t", CLASS_INDEX),
        tensor("weight", "w", PER_CLASS),
        reduction("reduction"),
        ignore_index("ignoreIndex", symbol="ignore"),
        tensor("totalWeight", "total", ONE_VALUE),
        output("out"),
    ),
    documented=("ascend950", "ascend910_93", "ascend910b", "ascend910"),
    source="loss/nll_loss_grad/op_api/aclnn_nll_loss_backward.cpp",
    checks=checks,
    demands=demands,
    empty=("self",),
    computes=Formula(formula, ORDERS, over="all but target"),
    scalars=lambda a: {} if a["reduction"] == MEAN else {"total": 1},  # only a mean divides
    kernel_type=widened,
    forwards=(Forward("aclnnNLLLoss", {"totalWeight": "totalWeightOut"}),),
    kernel=KernelName(
        "nll_loss_grad", OPERANDS, {"reduction": ("reduction", 1), "ignore_index": ("ignoreIndex", -100)}
    ),
    aten=Aten(lambda aten, t: aten.nll_loss_backward(*map(t.get, ATEN))),
    mindspore=MindSpore(
        lambda primitives, t: primitives.NLLLossGrad(REDUCTIONS[t["reduction"]], t["ignoreIndex"])(
            *map(t.get, OPERANDS)
        ),
        ranks=(2,),  # it takes the number of classes from the second axis, and writes by it where there is none
    ),
)
