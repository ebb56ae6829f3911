"""Sums along an axis: in float64 by runs, as a device's binary tree, and exactly."""

from __future__ import annotations

import math

import numpy as np

from ...model.call import Array
from ..floats.blocks import axis_last

RUN = 128  # terms that are summed at once, in any order
CHUNK = 1 << 14  # terms of a row that are in memory at once
AGAIN = 1 << 15  # elements of rows that are evaluated at once after a compiled pass left them


def as_rows(values: Array, axes: tuple[int, ...]) -> Array:
    """Return values with some axes as one, the last; a view where strides allow. Values of those axes alone are one
    row."""
    if len(axes) == 1 and values.ndim > 1:
        return axis_last(values, axes[0])
    moved = np.moveaxis(values, axes, range(-len(axes), 0)) if axes else values
    kept = moved.shape[: moved.ndim - len(axes)]
    return moved.reshape(*(kept or (1,)), math.prod(moved.shape[moved.ndim - len(axes) :]))


def from_rows(rows: Array, shape: tuple[int, ...], axes: tuple[int, ...]) -> Array:
    """Return rows in a shape again; of one element each, the axes are kept as 1."""
    ends = [shape[k] if rows.shape[-1] == math.prod(shape[k] for k in axes) else 1 for k in axes]
    kept = [n for k, n in enumerate(shape) if k not in axes]
    whole = rows.reshape(*kept, *ends)
    return np.moveaxis(whole, range(-len(axes), 0), axes) if axes else whole


def run_sum(values: Array) -> Array:
    """Sums along the last axis, kept as an axis: RUN terms in any order, then those sums in any order."""
    whole = values.shape[-1] - values.shape[-1] % RUN
    total = values[..., whole:].sum(axis=-1, keepdims=True)
    if whole:
        total += values[..., :whole].reshape(*values.shape[:-1], -1, RUN).sum(axis=-1).sum(axis=-1, keepdims=True)
    return np.asarray(total)


def tree_sum(terms: Array, axis: int) -> Array:
    """Sums along an axis, kept, as a device makes them: a binary tree in the terms' own type."""
    terms = axis_last(terms, axis)
    while terms.shape[-1] > 1:
        half = terms.shape[-1] // 2
        pairs = terms[..., :half] + terms[..., half : 2 * half]
        terms = np.concatenate([pairs, terms[..., 2 * half :]], axis=-1)
    return np.moveaxis(terms, -1, axis)


def expanded(terms: list[float]) -> list[float]:
    """Return a short list of float64 numbers with exactly the same sum (math.fsum until nothing is left)."""
    steps = []
    while (step := math.fsum(terms)) != 0.0:
        steps.append(step)
        terms.append(-step)
    return steps
