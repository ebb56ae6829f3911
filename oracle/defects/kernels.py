"""The base of every defect: a plain, right float32 kernel of each operator.

The ``*_formula`` functions are what :mod:`.formula` mutates; they are written in the document's order on float32
operands of the output's shape. ``kernel_of(op, formula)`` wraps one into a kernel that widens its inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..model.call import Array
from ..model.platforms import Platform
from .device import Arguments, Kernel

F = np.float32
MEAN = 1

BCE, NLL = "aclnnBinaryCrossEntropyBackward", "aclnnNLLLossBackward"
SOFTMAX, LOG_SIGMOID = "aclnnSoftmaxBackward", "aclnnLogSigmoidBackward"
SLUGS = {
    BCE: "binary_cross_entropy_backward",
    NLL: "nll_loss_backward",
    SOFTMAX: "softmax_backward",
    LOG_SIGMOID: "log_sigmoid_backward",
}


def single(array: Array) -> Array:
    """Widen to float32; float32 itself is not copied."""
    return array.astype(F, copy=False)


# ---- formulas --------------------------------------------------------------------------------------------------------


def bce_formula(g: Any, x: Any, y: Any, w: Any, reduction: int, count: Any) -> Any:
    a = x - y
    b = np.maximum((F(1.0) - x) * x, F(1e-12))
    r = g * a / b * w
    return r * (F(1.0) / count) if reduction == 1 else r


def nll_formula(g: Any, t: Any, w: Any, total: Any, reduction: int, ignore: int, out: Any) -> Any:
    rows = np.flatnonzero(t != ignore)
    c = t[rows]
    scale = g / total if reduction == 1 else g
    return scatter(out, rows, c, -(scale[rows] * gather(w, c)))


def softmax_formula(g: Any, y: Any, dim: int) -> Any:
    p = g * y
    s = row_sum(p, dim)
    return p - s * y


def log_sigmoid_formula(g: Any, x: Any) -> Any:
    z = np.exp(-np.abs(x))
    q = np.where(x < 0, F(1.0), z) / (F(1.0) + z)
    return q * g


FORMULAS: dict[str, Callable[..., Any]] = {
    BCE: bce_formula,
    NLL: nll_formula,
    SOFTMAX: softmax_formula,
    LOG_SIGMOID: log_sigmoid_formula,
}


# ---- what the formulas use -------------------------------------------------------------------------------------------


def gather(table: Array, index: Array) -> Array:
    """Read a table; an index outside it reads NaN, as foreign memory may."""
    inside = (index >= 0) & (index < table.size)
    values = np.full(index.shape, np.nan, table.dtype)
    values[inside] = table[index[inside]]
    return values


def scatter(out: Array, rows: Array, columns: Array, values: Array) -> Array:
    """Write values to (row, column); what falls outside the tensor is lost."""
    place = rows * out.shape[1] + columns
    inside = (place >= 0) & (place < out.size)
    out.reshape(-1)[place[inside]] = values[inside]
    return out


def row_sum(p: Array, dim: int) -> Array:
    """Sum along an axis, pairwise, keeping it."""
    if p.ndim == 0:
        return p
    rows = np.ascontiguousarray(np.moveaxis(p, dim, -1))
    return np.asarray(np.moveaxis(rows.sum(axis=-1, keepdims=True), -1, dim))


def shaped(values: Any, like: Array) -> Array:
    """Return values as an array in another one's shape."""
    return np.asarray(np.asarray(values).reshape(like.shape))


# ---- operands --------------------------------------------------------------------------------------------------------


def bce_operands(a: Arguments) -> dict[str, Any]:
    """gradOutput, self, target and weight in self's shape; a missing weight is one."""
    shape = a["self"].shape
    names = {"g": "gradOutput", "x": "self", "y": "target", "w": "weightOptional"}
    ready = {k: F(1) if a.get(n) is None else np.broadcast_to(single(a[n]), shape) for k, n in names.items()}
    return {**ready, "reduction": a["reduction"], "count": F(a["self"].size)}


def nll_operands(a: Arguments) -> dict[str, Any]:
    """One gradient, one divisor and one target class a row; ``out`` is the zero-filled result."""
    self = a["self"]
    rows = 1 if self.ndim == 1 else self.shape[0]
    t = np.atleast_1d(a["target"])[:rows].astype(np.int64)
    return {
        "g": np.broadcast_to(single(a["gradOutput"]).reshape(-1), (rows,)),
        "t": t,
        "w": single(a["weight"]),
        "total": np.broadcast_to(single(a["totalWeight"]).reshape(-1)[:1], (rows,)),
        "reduction": a["reduction"],
        "ignore": a["ignoreIndex"],
        "out": np.zeros((rows, self.shape[-1]), F),
    }


def softmax_operands(a: Arguments) -> dict[str, Any]:
    """gradOutput and output; a tensor of rank 0 is a row of one."""
    g, y = single(a["gradOutput"]), single(a["output"])
    return {"g": g, "y": y, "dim": a["dim"]}


def log_sigmoid_operands(a: Arguments) -> dict[str, Any]:
    """gradOutput and self; buffer is never read."""
    return {"g": single(a["gradOutput"]), "x": single(a["self"])}


OPERANDS: Mapping[str, Callable[[Arguments], dict[str, Any]]] = {
    BCE: bce_operands,
    NLL: nll_operands,
    SOFTMAX: softmax_operands,
    LOG_SIGMOID: log_sigmoid_operands,
}
MAIN = {BCE: "self", NLL: "self", SOFTMAX: "gradOutput", LOG_SIGMOID: "self"}  # has the output's shape


def kernel_of(op: str, formula: Callable[..., Any]) -> Kernel:
    """Return a kernel that calls a formula on float32 operands."""

    def kernel(a: Arguments, target: Platform) -> Array:
        result = np.asarray(formula(**OPERANDS[op](a)))
        return np.broadcast_to(result, a[MAIN[op]].shape) if result.ndim == 0 else result.reshape(a[MAIN[op]].shape)

    return kernel


BASE: dict[str, Kernel] = {op: kernel_of(op, formula) for op, formula in FORMULAS.items()}


@dataclass(frozen=True)
class Where:
    """A kernel that is ``wrong`` where ``holds`` says so, and ``plain`` on every other call."""

    plain: Kernel
    holds: Callable[[Arguments], bool]
    wrong: Kernel

    def __call__(self, a: Arguments, target: Platform) -> Array:
        return (self.wrong if self.holds(a) else self.plain)(a, target)
