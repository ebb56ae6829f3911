"""Right kernels: what a verdict must never flag.

The freedoms of a right kernel (section 6 of the defects' survey): the order of summation, fused multiply-add, float64
instead of float32 internals, the mean factor first, last or in chained divisions, y * (g - s) or g * y - s * y, the two
forms of the sigmoid, -0 for +0, the largest finite value for an infinity on products that saturate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from ..model.call import Array
from ..model.platforms import PLATFORMS, Platform
from ..operators import operator
from ..operators.api import device_kernel
from .device import Arguments, Device, Kernel
from .kernels import (
    BASE,
    BCE,
    LOG_SIGMOID,
    MAIN,
    MEAN,
    NLL,
    SOFTMAX,
    F,
    bce_operands,
    kernel_of,
    nll_operands,
    row_sum,
    shaped,
)

D = np.float64
SOCS = ("ascend910b", "ascend950", "ascend910")  # infinities, another host, saturation: all that a verdict reads


@dataclass(frozen=True)
class Right:
    """A right kernel. ``kernel`` returns float32 or float64 values and asks nothing of the SoC."""

    id: str
    op: str
    what: str
    kernel: Kernel

    @property
    def device(self) -> Device:
        """The kernel as a device that does everything else right."""
        return Device(self.id, self.kernel)


def fma(a: Any, b: Any, c: Any) -> Array:
    """a * b + c with one rounding: the product of two float32 is exact in float64."""
    return np.asarray((np.asarray(a, D) * b + c).astype(F))


# ---- softmax ---------------------------------------------------------------------------------------------------------


def _last(function: Callable[[Array], Array]) -> Callable[[Array, int], Array]:
    """Sum rows with the reduced axis last: (rows, R) -> (rows,)."""

    def total(p: Array, dim: int) -> Array:
        if p.ndim == 0:
            return p
        moved = np.moveaxis(p, dim, -1)
        sums = function(np.ascontiguousarray(moved).reshape(-1, moved.shape[-1]))
        return np.moveaxis(sums.reshape(*moved.shape[:-1], 1), -1, dim)

    return total


@_last
def sequential(p: Array) -> Array:
    return np.asarray(np.add.accumulate(p, axis=-1)[:, -1])


@_last
def tree(p: Array) -> Array:
    while p.shape[-1] > 1:
        half = (p.shape[-1] + 1) // 2
        left = p[:, :half].copy()
        left[:, : p.shape[-1] - half] += p[:, half:]
        p = left
    return p[:, 0]


def _cores(count: int) -> Callable[[Array, int], Array]:
    """Every core adds its own stretch in order; the partial sums are added in order."""

    @_last
    def total(p: Array) -> Array:
        parts = np.array_split(p, min(count, p.shape[-1]), axis=-1)
        sums = np.stack([np.add.accumulate(part, axis=-1)[:, -1] for part in parts], axis=-1)
        return np.asarray(np.add.accumulate(sums, axis=-1)[:, -1])

    return total


def _lanes(count: int) -> Callable[[Array, int], Array]:
    """A vector of accumulators over the row, then a tree over the lanes."""

    @_last
    def total(p: Array) -> Array:
        padded = np.zeros((p.shape[0], -(-p.shape[-1] // count) * count), F)
        padded[:, : p.shape[-1]] = p
        lanes = np.add.accumulate(padded.reshape(p.shape[0], -1, count), axis=1)[:, -1]
        return tree(lanes, -1)[:, 0]

    return total


@_last
def backwards(p: Array) -> Array:
    return np.asarray(np.add.accumulate(p[:, ::-1], axis=-1)[:, -1])


def _fused_sum(g: Array, y: Array, dim: int, lanes: int = 64) -> Array:
    """An accumulator a lane with fused multiply-add."""
    if g.ndim == 0:
        return np.asarray(g * y)
    g, y = (np.ascontiguousarray(np.moveaxis(t, dim, -1)) for t in (g, y))
    rows, length = g.shape[:-1], g.shape[-1]
    total = np.zeros((*rows, min(lanes, length)), F)
    for start in range(0, length, lanes):
        stop = min(start + lanes, length)
        part = np.s_[..., : stop - start]
        total[part] = fma(g[..., start:stop], y[..., start:stop], total[part])
    return np.asarray(np.moveaxis(tree(total, -1).reshape(*rows, 1), -1, dim))


def _softmax(total: Callable[[Array, int], Array], form: str = "products") -> Kernel:
    def formula(g: Array, y: Array, dim: int) -> Array:
        s = total(g * y, dim)
        if form == "products":
            return np.asarray(g * y - s * y)
        if form == "fused":
            return fma(-y, s, g * y)
        return np.asarray(y * (g - s))

    return kernel_of(SOFTMAX, formula)


def _softmax_fused(g: Array, y: Array, dim: int) -> Array:
    s = _fused_sum(g, y, dim)
    return fma(g, y, -(s * y))


def _softmax_double(a: Arguments, target: Platform) -> Array:
    g, y = (np.atleast_1d(a[n].astype(D)) for n in ("gradOutput", "output"))
    return shaped(y * (g - (g * y).sum(axis=a["dim"], keepdims=True)), a["output"])


# ---- binary cross entropy --------------------------------------------------------------------------------------------


def _bce(form: str) -> Kernel:
    def kernel(a: Arguments, target: Platform) -> Array:
        k = bce_operands(a)
        shape = a["self"].shape
        g, x, y, w = k["g"], k["x"], k["y"], k["w"]
        mean = a["reduction"] == MEAN
        c = F(1) / k["count"] if mean else F(1)
        b = np.maximum((F(1) - x) * x, F(1e-12))
        if form == "factor_first":
            r = g * c * (x - y) / b * w
        elif form == "chained":
            r = g * (x - y) / b * w
            for dim in shape if mean else ():
                r = r / F(dim)
        elif form == "divided":
            r = g * (x - y) / b * w / (k["count"] if mean else F(1))
        elif form == "weight_first":
            r = g * w * (x - y) / b * c
        elif form == "reciprocal":
            r = g * (x - y) * (F(1) / b) * w * c
        else:  # quotient first
            r = (x - y) / np.maximum(x * (x * F(-1) + F(1)), F(1e-12)) * w * g * c
        return np.asarray(np.broadcast_to(r, shape))

    return kernel


def _bce_double(a: Arguments, target: Platform) -> Array:
    shape = a["self"].shape
    names = ("gradOutput", "self", "target", "weightOptional")
    g, x, y, w = (D(1) if a.get(n) is None else np.broadcast_to(a[n].astype(D), shape) for n in names)
    r = g * (x - y) / np.maximum((1 - x) * x, D(F(1e-12))) * w
    return np.asarray(r / a["self"].size if a["reduction"] == MEAN else r)


# ---- negative log likelihood -----------------------------------------------------------------------------------------


def _nll(form: str) -> Kernel:
    def kernel(a: Arguments, target: Platform) -> Array:
        k = nll_operands(a)
        out = k["out"]
        if form == "negative_zero":
            out[...] = -0.0
        wide = D if form == "double" else F
        rows = np.flatnonzero(k["t"] != a["ignoreIndex"])
        c = k["t"][rows]
        g, w, total = k["g"][rows].astype(wide), k["w"][c].astype(wide), k["total"][rows].astype(wide)
        if a["reduction"] != MEAN:
            values = -g * w
        elif form in ("double", "product_first"):
            values = -(g * w) / total
        elif form == "reciprocal":
            values = w * (g * (F(1) / total)) * F(-1)
        else:
            values = (w * (g / total)) * F(-1)
        if form == "double":
            out = out.astype(D)
        out[rows, c] = values
        return shaped(out, a["self"])

    return kernel


# ---- log sigmoid -----------------------------------------------------------------------------------------------------


def _sigmoid_of(form: str) -> Kernel:
    def formula(g: Array, x: Array) -> Array:
        one = F(1)
        z = np.exp(-np.abs(x))
        if form == "document":
            return np.asarray(g / (one + np.exp(x)))
        if form == "product":
            return np.asarray(g * (one / (one + np.exp(x))))
        if form == "negative_exponent":  # torch: min(x, 0) and z
            return np.asarray(g * (np.where(x < 0, one, F(0)) - np.where(x < 0, one, -one) * (z / (one + z))))
        return np.asarray(np.where(x < 0, g, g * z) / (one + z))

    return kernel_of(LOG_SIGMOID, formula)


def _log_sigmoid_double(a: Arguments, target: Platform) -> Array:
    x = a["self"].astype(D)
    z = np.exp(-np.abs(x))
    return np.asarray(np.where(x < 0, 1.0, z) / (1 + z) * a["gradOutput"].astype(D))


# ---- PyTorch ---------------------------------------------------------------------------------------------------------


def _torch(op: str) -> Kernel:
    """PyTorch's float32 operator on widened, contiguous copies."""

    def kernel(a: Arguments, target: Platform) -> Array:
        import torch

        from ..backends.torch import called

        if torch.get_num_threads() > 1:
            torch.set_num_threads(1)  # the score has its own processes

        ready: dict[str, Any] = {}
        for p in operator(op).parameters:
            value = a.get(p.name)
            if isinstance(value, np.ndarray):
                kept = np.int64 if op == NLL and p.name == "target" else F
                value = torch.from_numpy(np.array(value.astype(kept), copy=True))
            ready[p.name] = value
        if op == NLL:
            ready |= {n: ready[n].reshape(()) for n in ("totalWeight",)}
            if a["self"].ndim == 1:
                ready["target"] = ready["target"].reshape(-1)[0]
                ready["gradOutput"] = ready["gradOutput"].reshape(())
        declared = operator(op)
        assert declared.aten is not None
        return shaped(called(declared.aten.call, declared, ready, dict(a))[0].numpy(), a[MAIN[op]])

    return kernel


# ---- all of them -----------------------------------------------------------------------------------------------------


def _kernels() -> list[tuple[str, str, str, Kernel]]:
    found: list[tuple[str, str, str, Kernel]] = [
        (op, "plain", "the plain float32 kernel the defects are made from", kernel) for op, kernel in BASE.items()
    ]
    orders: dict[str, tuple[str, Callable[[Array, int], Array]]] = {
        "sequential": ("sum term by term", sequential),
        "backwards": ("sum from the last term", backwards),
        "tree": ("sum as a binary tree", tree),
        "cores_8": ("partial sums of 8 cores", _cores(8)),
        "cores_40": ("partial sums of 40 cores", _cores(40)),
        "lanes_64": ("a vector of 64 accumulators", _lanes(64)),
        "lanes_8": ("a vector of 8 accumulators", _lanes(8)),
    }
    found += [(SOFTMAX, name, what, _softmax(total)) for name, (what, total) in orders.items()]
    found += [
        (SOFTMAX, "difference_sequential", "y * (g - s) with a sequential sum", _softmax(sequential, "difference")),
        (SOFTMAX, "difference_tree", "y * (g - s) with a tree", _softmax(tree, "difference")),
        (SOFTMAX, "fused", "g * y - s * y with a fused multiply-add", _softmax(row_sum, "fused")),
        (SOFTMAX, "fused_sum", "fused multiply-add in the sum and the result", kernel_of(SOFTMAX, _softmax_fused)),
        (SOFTMAX, "double", "float64 internals", _softmax_double),
        (BCE, "double", "float64 internals", _bce_double),
        (NLL, "double", "float64 internals", _nll("double")),
        (LOG_SIGMOID, "double", "float64 internals", _log_sigmoid_double),
        (BCE, "quotient_first", "the quotient, then weight, gradient, factor", _bce("quotient_first")),
        (BCE, "factor_first", "the mean factor applied to the gradient first", _bce("factor_first")),
        (BCE, "chained", "the mean divided by one dim after the other", _bce("chained")),
        (BCE, "divided", "the mean divided by the count", _bce("divided")),
        (BCE, "weight_first", "the document's order: gradient times weight first", _bce("weight_first")),
        (BCE, "reciprocal", "times the reciprocal of the divisor", _bce("reciprocal")),
        (NLL, "scaled_weight", "the weight scaled by gradient / totalWeight, then by -1", _nll("scaled_weight")),
        (NLL, "product_first", "gradient times weight first", _nll("product_first")),
        (NLL, "reciprocal", "times the reciprocal of totalWeight", _nll("reciprocal")),
        (NLL, "negative_zero", "-0 where nothing is written", _nll("negative_zero")),
        (LOG_SIGMOID, "document", "g / (1 + e^x)", _sigmoid_of("document")),
        (LOG_SIGMOID, "product", "g * (1 / (1 + e^x))", _sigmoid_of("product")),
        (LOG_SIGMOID, "negative_exponent", "1 - z / (1 + z) below zero", _sigmoid_of("negative_exponent")),
        (LOG_SIGMOID, "numerator_first", "g * z before the division", _sigmoid_of("numerator_first")),
    ]
    if find_spec("torch") is not None:
        found += [(op, "torch", "PyTorch in float32", _torch(op)) for op in BASE]
    return found


@cache
def right_kernels(op: str) -> tuple[Right, ...]:
    """Return the right kernels of an operator, the plain one first."""
    found = [Right(f"right/{name}", own, what, kernel) for own, name, what, kernel in _kernels() if own == op]
    forms = dict.fromkeys(p.kernel for p in PLATFORMS.values())
    found += [Right(f"right/{form}", op, f"the public kernel {form}", _public(op, form)) for form in forms]
    return tuple(found)


def _public(op: str, form: str) -> Kernel:

    def run(a: Arguments, target: Platform) -> Array:
        ready = (
            a
            if np.ndim(a[MAIN[op]]) or op == NLL
            else {n: np.atleast_1d(v) if isinstance(v, np.ndarray) else v for n, v in a.items()}
        )
        return shaped(device_kernel(operator(op), ready, form, F), a[MAIN[op]])

    return run


__all__ = ["SOCS", "Right", "right_kernels"]
