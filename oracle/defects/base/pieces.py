"""The parts that kernels of this registry are made of: types, reshaping, reading and writing by index."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...model.call import Array
from ...model.platforms import Platform
from ...operators.answers.api import device_kernel
from ...operators.definition.operator import Operator

Arguments = Mapping[str, Any]  # arrays (or None) and attributes by aclnn name, as the device read them
Kernel = Callable[[Arguments, Platform], Array]
F = np.float32


def public(op: Operator, form: str, compute: Any = F, *, flushing: bool = False) -> Kernel:
    """Return the kernel of a form that the page declares, every intermediate in a type. Scalars travel as vectors.
    ``flushing``: it answers 0 for subnormal results where the SoC's instructions do."""

    def kernel(a: Arguments, target: Platform) -> Array:
        shape = op.output_shape(a)
        ready = dict(a) if shape else {n: np.atleast_1d(v) if isinstance(v, np.ndarray) else v for n, v in a.items()}
        flushed = target.flushes if flushing else frozenset()
        return np.asarray(device_kernel(op, ready, form, compute, flushed)).reshape(shape)

    return kernel


@dataclass(frozen=True)
class Where:
    """A kernel that is ``wrong`` where ``holds`` says so, and ``plain`` on every other call."""

    plain: Kernel
    holds: Callable[[Arguments], bool]
    wrong: Kernel

    def __call__(self, a: Arguments, target: Platform) -> Array:
        return (self.wrong if self.holds(a) else self.plain)(a, target)


# ---- what kernels are made of ----------------------------------------------------------------------------------------


def single(array: Array) -> Array:
    """Widen to float32; float32 itself is not copied."""
    return array.astype(F, copy=False)


def shaped(values: Any, like: Array) -> Array:
    """Return values as an array in another one's shape."""
    return np.asarray(np.asarray(values).reshape(like.shape))


def gathered(op: Operator, values: Any, a: Arguments) -> Array:
    """Return a formula's values in the output's shape."""
    return np.asarray(spread(values, op.kept_shape(a)).reshape(op.output_shape(a)))


def spread(values: Any, shape: tuple[int, ...]) -> Array:
    """Return values in a shape they broadcast to, or that those of a larger one are summed to."""
    array = np.asarray(values)
    if array.size > math.prod(shape):
        kept = (1,) * (array.ndim - len(shape)) + shape
        summed = tuple(k for k in range(array.ndim) if kept[k] != array.shape[k])
        return np.asarray(array.sum(axis=summed, keepdims=True).reshape(shape))
    return array if array.shape == shape else np.broadcast_to(array, shape)


def flat(array: Array) -> Array:
    """Return an array's elements one after the other."""
    return np.ascontiguousarray(array).reshape(-1)


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
    out.reshape(-1)[place[inside]] = np.broadcast_to(values, place.shape)[inside]
    return out


def row_sum(p: Array, axis: int) -> Array:
    """Sum along an axis, pairwise, keeping it."""
    if p.ndim == 0:
        return p
    rows = np.ascontiguousarray(np.moveaxis(p, axis, -1))
    return np.asarray(np.moveaxis(rows.sum(axis=-1, keepdims=True), -1, axis))
