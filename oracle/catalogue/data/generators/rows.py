"""Outputs of softmax: rows along an axis that sum to 1."""

from __future__ import annotations

import numpy as np

from ....model.call import Array
from ....model.errors import OracleError
from ....numerics.floats.extremes import highest_of_rows
from .exact_random import exp, fold_sum
from .registry import Shape, generator, size_of
from .streams import Stream


@generator
def softmax(stream: Stream, shape: Shape, dtype: str, *, dim: int, std: float = 1.0) -> Array:
    """Softmax along dim of normal logits with the given standard deviation."""
    return _normalise(std * stream.normal(size_of(shape)), shape, dim)


@generator
def softmax_edges(stream: Stream, shape: Shape, dtype: str, *, dim: int, share: float = 0.7) -> Array:
    """Softmax outputs whose mass sits where tiles end.

    In every row the last element, and a random half of the positions 2^k - 1, 2^k and 2^k + 1, hold ``share`` of the
    mass in unequal parts. A kernel that drops the tail of a row, or the edge of any tile, loses a visible part of it.
    """
    n, axis = _length(shape, dim)
    edges = sorted({p for k in range(n.bit_length() + 1) for p in (2**k - 1, 2**k, 2**k + 1) if p < n} | {n - 1})
    logits = _rows_last(0.5 * stream.normal(size_of(shape)), shape, axis)
    rows = logits.shape[0]
    chosen = stream.unit(rows * len(edges)).reshape(rows, len(edges)) < 0.5
    chosen[:, -1] = True
    boost = exp(stream.normal(rows * len(edges)) * 0.5).reshape(rows, len(edges))
    weights = exp(logits)
    rest = fold_sum(weights, 1) / n
    heavy = fold_sum(chosen * boost, 1)
    weights *= (1.0 - share) / (n * rest)
    weights[:, edges] += share * chosen * boost / heavy
    return _restore(weights / fold_sum(weights, 1), shape, axis)


@generator
def onehot(stream: Stream, shape: Shape, dtype: str, *, dim: int, gap: float = 12.0) -> Array:
    """Nearly one-hot softmax outputs: in every row one random element exceeds the other logits by about ``gap``."""
    n, axis = _length(shape, dim)
    logits = _rows_last(stream.normal(size_of(shape)), shape, axis)
    hot = stream.below(logits.shape[0], n)
    logits[np.arange(logits.shape[0]), hot] += gap
    weights = exp(logits - highest_of_rows(logits))
    return _restore(weights / fold_sum(weights, 1), shape, axis)


def _full(shape: Shape) -> Shape:
    return shape or (1,)


def _length(shape: Shape, dim: int) -> tuple[int, int]:
    """Length and index of axis dim; a tensor of rank 0 is a row of one."""
    rank = max(1, len(shape))
    if not -rank <= dim < rank:
        raise OracleError(f"no axis {dim} in shape {shape}")
    return _full(shape)[dim], dim % rank


def _rows_last(values: Array, shape: Shape, axis: int) -> Array:
    """Return a (rows, length) copy with the axis last."""
    moved: Array = np.moveaxis(values.reshape(_full(shape)), axis, -1)
    rows = size_of(moved.shape[:-1])
    return np.asarray(moved.reshape(rows, moved.shape[-1]).copy())


def _restore(rows: Array, shape: Shape, axis: int) -> Array:
    full = _full(shape)
    moved = rows.reshape(*full[:axis], *full[axis + 1 :], full[axis])
    return np.asarray(np.moveaxis(moved, -1, axis).reshape(-1))


def _normalise(logits: Array, shape: Shape, dim: int) -> Array:
    _, axis = _length(shape, dim)
    rows = _rows_last(logits, shape, axis)
    weights = exp(rows - highest_of_rows(rows))
    return _restore(weights / fold_sum(weights, 1), shape, axis)
