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

from typing import Any, ClassVar

import numpy as np
from gmpy2 import mpq

from ..model.call import Array, TensorSpec
from ..model.errors import OracleError
from ..model.platforms import Platform
from ..numerics.blocks import ONE, Index, Lane, block_size, blocks, pool_for, run_blocks
from ..numerics.proof import U
from ..numerics.sink import LARGEST, QUANTUM, UNIT, Sink
from .checks import (
    Args,
    Check,
    Checks,
    can_cast,
    check,
    dtype_in,
    ends_if_empty,
    float_types,
    in_range,
    not_null,
    same_dtype,
    same_shape,
)
from .operator import Arguments, Aten, KernelName, Operator
from .parameters import (
    CLASS_INDEX,
    MAIN,
    ONE_VALUE,
    PER_CLASS,
    PER_SAMPLE,
    ignore_index,
    output,
    reduction,
    tensor,
)

MEAN = 1
RELATIVE = 2 * U  # the product is exact in float64 (24 + 24 bits); only the quotient rounds
ROWS = 1 << 18  # rows whose targets are looked at at once


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
    yield one_element("totalWeight", a["totalWeight"])
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


def one_element(name: str, spec: TensorSpec) -> Check:
    problem = f"{name} has shape {spec.shape}; it must have exactly one element"
    return check(f"{name} of one element", None if spec.size == 1 else problem)


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


def formula(g: Any, w: Any, total: Any) -> Any:
    """The value at a row's target class; ``total`` is the neutral factor unless the reduction is mean."""
    return -(g * w) / total


def classes_of(a: Arguments, start: int, stop: int) -> tuple[Array, Array]:
    """Return the rows of [start, stop) that count, and their target classes (self viewed as (N, C)), as int64.

    Raises OracleError for a target that is neither a class nor ignoreIndex.
    """
    classes = a["self"].shape[-1]
    chosen = np.atleast_1d(a["target"])[start:stop].astype(np.int64)
    counts = chosen != a["ignoreIndex"]
    wrong = counts & ((chosen < 0) | (chosen >= classes))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise OracleError(
            f"aclnnNLLLossBackward: target[{start + row}] is {int(chosen[row])}, outside [0, {classes}) and not "
            f"ignoreIndex ({a['ignoreIndex']}): the result is unspecified, so there is no golden"
        )
    rows = np.flatnonzero(counts)
    return rows + start, chosen[rows]


def gradients(a: Arguments, count: int) -> Array:
    """The gradient of every row: its own with reduction none on (N, C), else the only one (stride 0)."""
    grad: Array = a["gradOutput"]
    per_row = a["reduction"] == 0 and a["self"].ndim == 2
    return grad if per_row else np.broadcast_to(grad.reshape(()), (count,))


def values(grad: Array, weight: Array, total: Any, sink: Sink) -> Sink:
    """Return proved values of the formula for pairs of gradient and weight, in a sink of their own."""
    table = sink.vector(grad.size)

    def work(block: Index) -> None:
        pool = pool_for(grad[block].shape)
        region = table.region(block)

        def exact(i: Index) -> Any:
            return formula(mpq(float(g.values[i])), mpq(float(w.values[i])), mpq(total))

        with np.errstate(all="ignore"):
            g, w = Lane.load(pool, grad[block]), Lane.load(pool, weight[block])
            v = formula(g, w, total if total is ONE else np.float64(total))
            region.put_relative((Ellipsis,), v.values, 0.0 if total is ONE else RELATIVE)
            region.finish(exact)
            if sink.judged:
                region.sink.put_bound((Ellipsis,), v.values, *kernel_error(g.values, w.values, total, v.values))

    run_blocks(blocks(grad.shape, block_size()), work)
    return table


def kernel_error(g: Array, w: Array, total: Any, v: Array) -> tuple[Array, Array, Array]:
    """What a right float32 kernel may lose: three roundings, g / totalWeight first (docs/bounds.md).

    Nothing is lost where totalWeight is a power of two and quotient, product and result are float32 numbers.
    """
    scale = np.abs(g / total)
    error = np.abs(v) * (4 * UNIT) + QUANTUM * (np.abs(w) + 1)
    finite = np.isfinite(v) & np.isfinite(error)
    odd = (np.maximum(scale, np.abs(g * w)) >= LARGEST) & (np.abs(v) < 2 * LARGEST) & finite
    odd |= np.isinf(w) & (scale < 2.0**-125)  # infinity times a quotient that may underflow to zero
    error[~finite] = 0
    exact = single(scale) & single(g * w) & single(v) & (np.abs(np.frexp(np.float64(total))[0]) == 0.5)
    return error, odd, exact


def single(values: Array) -> Array:
    """Whether float64 values are float32 numbers."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(values.astype(np.float32) == values)


def kernel_type(a: Arguments, platform: Platform) -> str:
    """Before ascend950 the host promotes float16 to float32; otherwise self's dtype."""
    name = str(a["self"].dtype)
    return "float32" if name == "float16" and not platform.regbase else name


def scaled_weight(g: Any, w: Any, total: Any) -> Any:
    """The weight scaled by the quotient, then by -1."""
    return w * (g / total) * -1


def reciprocal(g: Any, w: Any, total: Any) -> Any:
    """Times the reciprocal of totalWeight."""
    return w * (g * (1 / total)) * -1


class NegativeLogLikelihood:
    """The evaluation, by blocks of samples."""

    formula = staticmethod(formula)
    forms: ClassVar = {"scaled_weight": scaled_weight, "reciprocal": reciprocal}  # orders that right kernels may have

    def evaluate(self, a: Arguments, platform: Platform, sink: Sink) -> None:
        """Zero the output, then a block of rows at a time: one proved value per row, scattered to its class."""
        count = a["self"].shape[0] if a["self"].ndim == 2 else 1
        grad, weight = gradients(a, count), a["weight"]
        total = float(a["totalWeight"].reshape(())) if a["reduction"] == MEAN else ONE
        sink.clear()
        shared = grad.strides == (0,) and count > weight.size  # one gradient: the values form a table by class
        table = values(np.broadcast_to(grad[:1], weight.shape), weight, total, sink) if shared else None
        for start in range(0, count, ROWS):
            rows, classes = classes_of(a, start, min(start + ROWS, count))
            if table is None:
                sink.scatter(rows, classes, values(grad[rows], weight[classes], total, sink), slice(None))
            else:
                sink.scatter(rows, classes, table, classes)

    def kernel(self, a: Arguments, form: str, compute: Any) -> Array:
        """The public kernels, every intermediate in ``compute``; all forms scale the gradient first."""
        count = a["self"].shape[0] if a["self"].ndim == 2 else 1
        rows, classes = classes_of(a, 0, count)
        out = np.zeros((count, a["self"].shape[-1]), compute)
        with np.errstate(all="ignore"):
            scale = gradients(a, count).astype(compute)[rows]
            if a["reduction"] == MEAN:
                scale = scale / a["totalWeight"].reshape(()).astype(compute)[()]
            out[rows, classes] = -(scale * a["weight"].astype(compute)[classes])
        return np.asarray(out.reshape(a["self"].shape))


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
    checks=checks,
    empty=("self",),
    computes=NegativeLogLikelihood(),
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
)
