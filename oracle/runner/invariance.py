"""--invariance: the same call laid out contiguously, and a slice of its batch, must give the same bits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ..catalogue.case import Case
from ..model.call import Array, TensorSpec
from ..operators import OPERATORS
from .memory import Memory

Part = tuple[slice, ...]


def variants(case: Case, memory: Memory) -> Iterator[tuple[str, Memory, Part]]:
    """Yield (what, call, part): calls whose output must equal that part of the original's, bit for bit."""
    memory.restore()
    if not _is_contiguous(memory):
        yield "a contiguous layout", _rebuild(case, memory, None), (slice(None),) * _rank(memory)
    axis = batch_axis(case)
    if axis is not None:
        size = memory.outputs[OPERATORS[case.op].output].view.shape[axis]
        part = (slice(None),) * axis + (slice(0, (size + 1) // 2),)
        yield "a slice of the batch", _rebuild(case, memory, (axis, part[axis])), part


def batch_axis(case: Case) -> int | None:
    """Return an axis of the output along which the operator works slice by slice, of two or more; None if none is."""
    op = OPERATORS[case.op]
    plan = case.outputs[op.output]
    if plan is None or len(case.outputs) > 1:
        return None
    if any(given is not None and math.prod(given.shape) > math.prod(plan.shape) for given in case.inputs.values()):
        return None  # terms of other places are summed
    return next((axis for axis in op.slice_axes(plan.shape, case.attrs) if plan.shape[axis] > 1), None)


def _rank(memory: Memory) -> int:
    return next(iter(memory.outputs.values())).view.ndim


def _is_contiguous(memory: Memory) -> bool:
    arrays = [v for v in memory.inputs.values() if isinstance(v, np.ndarray)]
    return all(a.flags.c_contiguous for a in [*arrays, *(o.view for o in memory.outputs.values())])


def _rebuild(case: Case, memory: Memory, cut: tuple[int, slice] | None) -> Memory:
    """Return the call with contiguous tensors, cut along an axis of the output if asked."""
    inputs = {n: _input(case, n, v, cut) for n, v in memory.inputs.items()}
    outputs = {}
    for name, plan in case.outputs.items():
        shape = () if plan is None else plan.shape
        if cut is not None:
            axis, part = cut
            shape = (*shape[:axis], part.stop, *shape[axis + 1 :])
        outputs[name] = plan and replace(plan, shape=shape, view="contiguous", storage_shape=None)
    made = replace(case, outputs=outputs)
    specs = {n: TensorSpec.of(v) for n, v in inputs.items() if isinstance(v, np.ndarray)}
    for n, v in specs.items():
        v.format = memory.call.specs[n].format if n in memory.call.specs else "ND"
    return Memory(made, memory.call.soc, inputs, specs, under=memory.under)


def _input(case: Case, name: str, value: Any, cut: tuple[int, slice] | None) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    if cut is not None:
        value = _cut(case, name, value, *cut)
    return np.array(value, order="C")


def _cut(case: Case, name: str, value: Array, axis: int, part: slice) -> Array:
    """Cut an operand along the output's axis, where it has that axis."""
    op = OPERATORS[case.op]
    plan = case.outputs[op.output]
    assert plan is not None
    axes = op.axes_of(name, plan.shape, value.shape, case.attrs)
    return value[(slice(None),) * axes.index(axis) + (part,)] if axis in axes else value
