"""The orders in which right kernels sum the terms of a row in float32."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

import numpy as np

from ...model.call import Array
from .pieces import F

Sum = Callable[[Array, int], Array]


def _last(function: Callable[[Array], Array]) -> Sum:
    """Sum rows with the axis last: (rows, terms) -> (rows,)."""

    @wraps(function)
    def total(p: Array, axis: int) -> Array:
        if p.ndim == 0:
            return p
        moved = np.moveaxis(p, axis, -1)
        sums = function(np.ascontiguousarray(moved).reshape(-1, moved.shape[-1]))
        return np.moveaxis(sums.reshape(*moved.shape[:-1], 1), -1, axis)

    return total


@_last
def sequential(p: Array) -> Array:
    """Term by term."""
    return np.asarray(np.add.accumulate(p, axis=-1)[:, -1])


@_last
def backwards(p: Array) -> Array:
    """Term by term, from the last on."""
    return np.asarray(np.add.accumulate(p[:, ::-1], axis=-1)[:, -1])


@_last
def tree(p: Array) -> Array:
    """The second half added to the first, again and again."""
    while p.shape[-1] > 1:
        half = (p.shape[-1] + 1) // 2
        left = p[:, :half].copy()
        left[:, : p.shape[-1] - half] += p[:, half:]
        p = left
    return p[:, 0]


def _cores(count: int) -> Sum:
    """Every core adds its own stretch in order; the partial sums are added in order."""

    @_last
    def total(p: Array) -> Array:
        parts = np.array_split(p, min(count, p.shape[-1]), axis=-1)
        sums = np.stack([np.add.accumulate(part, axis=-1)[:, -1] for part in parts], axis=-1)
        return np.asarray(np.add.accumulate(sums, axis=-1)[:, -1])

    return total


def _lanes(count: int) -> Sum:
    """A vector of accumulators over the row, then a tree over the lanes."""

    @_last
    def total(p: Array) -> Array:
        padded = np.zeros((p.shape[0], -(-p.shape[-1] // count) * count), F)
        padded[:, : p.shape[-1]] = p
        lanes = np.add.accumulate(padded.reshape(p.shape[0], -1, count), axis=1)[:, -1]
        return tree(lanes, -1)[:, 0]

    return total


def fused_sum(g: Array, y: Array, axis: int, lanes: int = 64) -> Array:
    """A vector of accumulators of fused multiply-adds, then a tree: what one rounding per term gives."""
    g, y = (np.ascontiguousarray(np.moveaxis(t, axis, -1)) for t in (g, y))
    outer, length = g.shape[:-1], g.shape[-1]
    total = np.zeros((*outer, min(lanes, length)), F)
    for start in range(0, length, lanes):
        stop = min(start + lanes, length)
        part = np.s_[..., : stop - start]
        total[part] = fma(g[..., start:stop], y[..., start:stop], total[part])
    return np.asarray(np.moveaxis(tree(total, -1).reshape(*outer, 1), -1, axis))


def fma(a: Array, b: Array, c: Array) -> Array:
    """a * b + c with one rounding: the product of two float32 is exact in float64."""
    return np.asarray((np.asarray(a, np.float64) * b + c).astype(F))


ORDERS: dict[str, tuple[str, Sum]] = {
    "sequential": ("sum term by term", sequential),
    "backwards": ("sum from the last term", backwards),
    "tree": ("sum as a binary tree", tree),
    "cores_8": ("partial sums of 8 cores", _cores(8)),
    "cores_40": ("partial sums of 40 cores", _cores(40)),
    "lanes_64": ("a vector of 64 accumulators", _lanes(64)),
    "lanes_8": ("a vector of 8 accumulators", _lanes(8)),
}
