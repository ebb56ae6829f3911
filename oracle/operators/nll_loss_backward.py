"""aclnnNLLLossBackward: out[i, target[i]] = -gradOutput * weight[target[i]] (/ totalWeight for mean), zero elsewhere.

Sources: document aclnnNLLLossBackward; loss/nll_loss_grad/op_api/aclnn_nll_loss_backward.cpp (checks, dispatch); the
ascend950 kernel; public copies of the built-in TBE kernel.

Document and source differ, and the source wins: ``out`` may have any dtype self casts to; totalWeight any shape with
one element; the divisor of mean is totalWeight as given, never recomputed. self (C) with a 1-D target of length C is
accepted and only target[0] counts; self (0, C) with a 0-d target is accepted, because the missing dim reads as 0.

A target outside [0, C) that is not ignoreIndex is unspecified (undefined on ascend950): the golden refuses it.
Special values follow -(gradOutput * weight) / totalWeight in IEEE float64: a zero product gives -0 for a positive
gradient, totalWeight 0 an infinity or NaN; ignored rows and other classes are +0 whatever the operands hold.
"""

from __future__ import annotations

from ..page import (
    CLASS_INDEX,
    MAIN,
    ONE_VALUE,
    PER_CLASS,
    PER_SAMPLE,
    REDUCTIONS,
    Args,
    Aten,
    Check,
    Checks,
    KernelName,
    MindSpore,
    Operator,
    Platform,
    TensorSpec,
    can_cast,
    check,
    dtype_in,
    ends_if_empty,
    float_types,
    ignore_index,
    in_range,
    not_null,
    one_element,
    output,
    reduction,
    same_dtype,
    same_shape,
    tensor,
)
from .negative_log_likelihood import NegativeLogLikelihood, kernel_type


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "gradOutput", "self", "target", "weight", "totalWeight", "out")
    yield same_dtype(a, "weight", "self")
    yield same_dtype(a, "gradOutput", "self")
    yield same_dtype(a, "totalWeight", "self")
    yield can_cast(a, "self", "out")
    yield dtype_in(a, "self", float_types(platform))
    yield dtype_in(a, "target", ("int64", "int32", "uint8"))
    yield in_range(a, "reduction", 0, 2)
    yield self_rank(a["self"])
    yield target_rank(a["target"])
    yield target_length(a["self"], a["target"])
    yield weight_length(a["self"], a["weight"])
    yield one_element(a, "totalWeight")
    yield gradient_shape(a)
    yield same_shape(a, "out", "self")
    yield ends_if_empty(a, "self")


def self_rank(self: TensorSpec) -> Check:
    problem = f"self has rank {self.rank}; it must be (N, C) or (C)"
    return check("rank of self", None if self.rank in (1, 2) else problem)


def target_rank(target: TensorSpec) -> Check:
    problem = f"target has rank {target.rank}; it must be (N) or ()"
    return check("rank of target", None if target.rank <= 1 else problem)


def target_length(self: TensorSpec, target: TensorSpec) -> Check:
    """The source reads dim 0 of a rank-0 target too: the unused slot holds 0."""
    length = target.shape[0] if target.shape else 0
    fits = (self.rank == 1 and target.rank == 0) or self.shape[0] == length
    problem = f"target of shape {target.shape} does not fit self of shape {self.shape}: dim 0 must be equal"
    return check("one target per sample", None if fits else problem)


def weight_length(self: TensorSpec, weight: TensorSpec) -> Check:
    problem = f"weight has shape {weight.shape}; it must be ({self.shape[-1]},), one weight per class"
    return check("one weight per class", None if weight.shape == self.shape[-1:] else problem)


def gradient_shape(a: Args) -> Check:
    """(N) for reduction none on (N, C), otherwise one element of rank at most 1."""
    grad, self = a["gradOutput"], a["self"]
    problem = None
    if a["reduction"] == 0 and self.rank == 2:
        wanted = self.shape[:1]
        problem = None if grad.shape == wanted else f"gradOutput has shape {grad.shape}; it must be {wanted}"
    elif grad.rank > 1:
        problem = f"gradOutput has rank {grad.rank}; with reduction {a['reduction']} it must be (1,) or ()"
    elif grad.size != 1:
        problem = f"gradOutput has shape {grad.shape}; it must have exactly one element"
    return check("shape of gradOutput", problem)


def demands(a: Args, platform: Platform) -> Checks:
    """What the document demands and the host does not check."""
    yield same_dtype(a, "out", "self")
    total, target, self = a["totalWeight"], a["target"], a["self"]
    problem = f"totalWeight has shape {total.shape}; the document says (1,)"
    yield check("shape of totalWeight", None if total.shape == (1,) else problem)
    problem = f"target of shape {target.shape} beside self of shape {self.shape}; the document says (N) or ()"
    yield check("a target for each sample", None if target.rank == self.rank - 1 else problem)


OPERATOR = Operator(
    name="aclnnNLLLossBackward",
    parameters=(
        tensor("gradOutput", "g", PER_SAMPLE),
        tensor("self", "", MAIN, read=False),
        tensor("target", "", CLASS_INDEX),
        tensor("weight", "w", PER_CLASS),
        reduction("reduction"),
        ignore_index("ignoreIndex"),
        tensor("totalWeight", "total", ONE_VALUE),
        output("out"),
    ),
    documented=("ascend950", "ascend910_93", "ascend910b", "ascend910"),
    source="loss/nll_loss_grad/op_api/aclnn_nll_loss_backward.cpp",
    checks=checks,
    demands=demands,
    empty=("self",),
    computes=NegativeLogLikelihood("aclnnNLLLossBackward"),
    kernel_type=kernel_type,
    kernel=KernelName(
        "nll_loss_grad",
        ("self", "gradOutput", "target", "weight", "totalWeight"),
        {"reduction": ("reduction", 1), "ignore_index": ("ignoreIndex", -100)},
    ),
    aten=Aten(
        lambda aten, t: aten.nll_loss_backward(
            t["gradOutput"], t["self"], t["target"], t["weight"], t["reduction"], t["ignoreIndex"], t["totalWeight"]
        )
    ),
    mindspore=MindSpore(
        lambda primitives, t: primitives.NLLLossGrad(REDUCTIONS[t["reduction"]], t["ignoreIndex"])(
            t["self"], t["gradOutput"], t["target"], t["weight"], t["totalWeight"]
        ),
        # It takes the number of classes from the second axis, and writes by it where there is none.
        ranks=(2,),
    ),
)
