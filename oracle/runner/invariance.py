"""--invariance: the same call laid out contiguously, and a slice of its batch, must give the same bits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ..catalogue.case import Case
from ..model.call import Array, TensorSpec
from .memory import POISONS, Memory

Part = tuple[slice, ...]


def variants(case: Case, memory: Memory) -> Iterator[tuple[str, Memory, Part]]:
    """Yield (what, call, part): calls whose output must equal that part of the original's, bit for bit."""
    memory.restore()
    if not _is_contiguous(memory):
        yield "a contiguous layout", _rebuild(case, memory, None), (slice(None),) * _rank(memory)
    axis = batch_axis(case)
    if axis is not None:
        size = next(iter(memory.outputs.values())).view.shape[axis]
        part = (slice(None),) * axis + (slice(0, (size + 1) // 2),)
        yield "a slice of the batch", _rebuild(case, memory, (axis, part[axis])), part


def batch_axis(case: Case) -> int | None:
    """Return an axis of the output along which the operator works slice by slice, of two or more; None if none is.

    Element-wise operators: any axis, unless the mean divides by the element count. Softmax: any axis but ``dim``.
    NLL: the rows.
    """
    (plan,) = case.outputs.values()
    if plan is None or not plan.shape:
        return None
    axes = [axis for axis, size in enumerate(plan.shape) if size > 1]
    if "dim" in case.attrs:
        axes = [axis for axis in axes if axis != case.attrs["dim"] % len(plan.shape)]
    elif "ignoreIndex" in case.attrs:
        axes = [axis for axis in axes if axis == 0 and len(plan.shape) == 2]
    elif case.attrs.get("reduction") == 1:
        axes = []
    return axes[0] if axes else None


def _rank(memory: Memory) -> int:
    return next(iter(memory.outputs.values())).view.ndim


def _is_contiguous(memory: Memory) -> bool:
    arrays = [v for v in memory.inputs.values() if isinstance(v, np.ndarray)]
    return all(a.flags.c_contiguous for a in [*arrays, *(o.view for o in memory.outputs.values())])


def _rebuild(case: Case, memory: Memory, cut: tuple[int, slice] | None) -> Memory:
    """Return the call with contiguous tensors, cut along an axis of the output if asked."""
    (name, plan), = case.outputs.items()  # fmt: skip
    assert plan is not None
    rank = len(plan.shape)
    inputs = {n: _input(n, v, rank, plan.shape, case, cut) for n, v in memory.inputs.items()}
    shape = plan.shape
    if cut is not None:
        axis, part = cut
        shape = (*shape[:axis], part.stop, *shape[axis + 1 :])
    made = replace(case, outputs={name: replace(plan, shape=shape, view="contiguous", storage_shape=None)})
    specs = {n: TensorSpec.of(v) for n, v in inputs.items() if isinstance(v, np.ndarray)}
    for n, v in specs.items():
        v.format = memory.call.specs[n].format if n in memory.call.specs else "ND"
    return Memory(made, memory.call.soc, inputs, specs, POISONS[0])


def _input(name: str, value: Any, rank: int, shape: tuple[int, ...], case: Case, cut: tuple[int, slice] | None) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    if cut is not None:
        value = _cut(name, value, rank, shape, case, *cut)
    return np.array(value, order="C")


def _cut(name: str, value: Array, rank: int, shape: tuple[int, ...], case: Case, axis: int, part: slice) -> Array:
    """Cut an operand along the output's axis: right-aligned as it broadcasts, NLL's per-row vectors by their rows."""
    if "ignoreIndex" in case.attrs:
        rows = name in ("self", "target") or (name == "gradOutput" and value.ndim == 1 and case.attrs["reduction"] == 0)
        return value[part] if rows else value
    own = axis - (rank - value.ndim)
    if own < 0 or value.shape[own] != shape[axis] or name == "buffer":
        return value
    return value[(slice(None),) * own + (part,)]
