"""The memory of a call beyond 32 bits: its tensors in full, everything else one block at a time.

The operator works slice by slice along one axis of the output, and the values repeat along this axis. Only one block of
slices and its golden are made; both stand for all blocks. A block has an odd number of slices, at least three. So an
index that is wrong by a power of two meets other values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..catalogue.data.case import Case, TensorPlan, make_values, specs_of, stored_shape
from ..catalogue.data.layout import Buffer, allocate, arrange
from ..model.call import Array, Call
from ..model.dtypes import DTYPES, dtype_of
from ..model.errors import OracleError
from ..numerics.floats.codes import words
from ..operators import OPERATORS
from ..operators.answers.parts import along, axis_in
from ..operators.definition.roles import Shape
from .prepare import PATTERN, Output, holding, sliced_axes

BLOCK = 1 << 21  # elements of a block, approximately
LARGEST_BLOCK = 1 << 23  # elements of a block with long slices
BESIDE = 1 << 30  # bytes that making and judging need in addition to the tensors
POISON = "nan"  # no golden has this value here: an element that contains it was not written
_CHUNK = 1 << 26  # bytes of a storage that are checked at once


def bytes_of(case: Case) -> int:
    """Return how many bytes the host needs for a case: its tensors, and the memory for making and judging."""
    plans = case.plans.values()
    return BESIDE + sum(arrange(p.shape, p.view).span * dtype_of(p.dtype).numpy.itemsize for p in plans)


@dataclass(frozen=True)
class Cut:
    """How a case is cut: along ``axis`` of the first output, which has ``length`` slices, ``block`` at a time."""

    axis: int
    length: int
    block: int

    @classmethod
    def of(cls, case: Case) -> Cut:
        """Cut along the longest axis. Raises OracleError for a call that cannot be judged by blocks along any axis."""
        shape = case.plans[OPERATORS[case.op].outputs[0]].shape
        size = math.prod(shape)
        axis = max(sliced_axes(case), key=lambda k: shape[k], default=None)
        if axis is None or 3 * size > shape[axis] * LARGEST_BLOCK or shape[axis] < 3:
            raise OracleError(
                f"{case.op}: an output of shape {shape} cannot be judged by blocks: the huge tier needs an axis along "
                f"which the operator works slice by slice, in slices of at most {LARGEST_BLOCK // 3:,} elements"
            )
        length = shape[axis]
        block = max(3, min(BLOCK * length // size, length // 4))
        return cls(axis, length, block - 1 + block % 2)

    def pieces(self) -> Iterator[slice]:
        """Yield the blocks in order; the last may be shorter."""
        for start in range(0, self.length, self.block):
            yield slice(start, min(start + self.block, self.length))


@dataclass(frozen=True)
class Input:
    """An input in its memory.

    ``axis``: its axis that runs along the cut. ``values``: the stored values of a block; one value if a stride is 0."""

    plan: TensorPlan
    buffer: Buffer
    axis: int | None
    values: Array
    cut: Cut

    @classmethod
    def make(cls, case: Case, name: str, plan: TensorPlan, cut: Cut, seed: int) -> Input:
        """Make a block of values by the case's id, and write it along the tensor."""
        op = OPERATORS[case.op]
        shape = case.plans[op.outputs[0]].shape
        axis = axis_in(op, name, plan.shape, shape, cut.axis, case.attrs)
        stored = _cut(stored_shape(plan.shape, plan.view), axis, cut.block)
        if math.prod(stored) > LARGEST_BLOCK:
            raise OracleError(
                f"{case.op}: {name} of shape {plan.shape} cannot be made by blocks: none of its axes runs along axis "
                f"{cut.axis} of the output; give it at most {LARGEST_BLOCK:,} elements, or stride 0"
            )
        values = make_values(plan.data or {}, stored, plan.dtype, case.id, name, seed)
        made = cls(plan, allocate(plan.shape, plan.dtype, plan.view), axis, values, cut)
        made._fill()
        return made

    @property
    def block(self) -> Array:
        """The input of one block's call."""
        return np.broadcast_to(self.values, _cut(self.plan.shape, self.axis, self.cut.block))

    def changed(self) -> bool:
        """Return whether the device changed an element, or the memory around or between the elements."""
        if any(not np.array_equal(words(result), words(wanted)) for result, wanted in self._pieces()):
            return True
        around = words(np.array([self._around], self.buffer.base.dtype))
        if any((words(end) != around).any() for end in self._ends()):
            return True
        storage = self.buffer.storage
        if storage.size == math.prod(self._stored):
            return False
        inside = sum(int(np.count_nonzero(words(result))) for result, _ in self._pieces())
        return inside != sum(int(np.count_nonzero(words(chunk))) for chunk in _chunks(storage))

    def _fill(self) -> None:
        """Write the values, and NaN around the storage if the dtype has one. Between elements there are zeros."""
        for end in self._ends():
            words(end)[...] = words(np.array([self._around], end.dtype))
        for result, wanted in self._pieces():
            result[...] = wanted

    @property
    def _stored(self) -> Shape:
        return stored_shape(self.plan.shape, self.plan.view)

    @property
    def _around(self) -> float:
        return np.nan if DTYPES[self.plan.dtype].kind in ("float", "narrow") else 0

    def _ends(self) -> tuple[Array, Array]:
        guard = (self.buffer.base.size - self.buffer.storage.size) // 2
        return self.buffer.base[:guard], self.buffer.base[-guard:]

    def _pieces(self) -> Iterator[tuple[Array, Array]]:
        """Yield the stored elements piece by piece, with the values of each."""
        stored = self._stored
        view = self.buffer.view[tuple(slice(0, n) for n in stored)]
        if self.axis is None or stored[self.axis] == 1:
            yield view, self.values
            return
        for piece in self.cut.pieces():
            yield along(view, self.axis, piece), along(self.values, self.axis, slice(0, piece.stop - piece.start))


def _cut(shape: Shape, axis: int | None, most: int) -> Shape:
    return shape if axis is None else (*shape[:axis], min(most, shape[axis]), *shape[axis + 1 :])


def _chunks(storage: Array) -> Iterator[Array]:
    step = max(1, _CHUNK // storage.itemsize)
    for start in range(0, storage.size, step):
        yield storage[start : start + step]


@dataclass
class HugeMemory:
    """A call beyond 32 bits, ready to run. ``block``: the call of one block; its reference is valid for all blocks."""

    case: Case
    cut: Cut
    inputs: Mapping[str, Input]
    outputs: Mapping[str, Output]
    call: Call
    block: Call
    axes: Mapping[str, int | None] = field(default_factory=dict)  # of the outputs, along the cut

    @classmethod
    def make(cls, case: Case, *, soc: str, seed: int, under: Mapping[str, str]) -> HugeMemory:
        """Make the data of a case and its outputs. Raises OracleError for a case that cannot be cut."""
        cut, op = Cut.of(case), OPERATORS[case.op]
        given = {name: plan for name, plan in case.inputs.items() if plan is not None}
        inputs = {name: Input.make(case, name, plan, cut, seed) for name, plan in given.items()}
        plans = {name: plan for name, plan in case.outputs.items() if plan is not None}
        outputs = {name: Output.make(plan, POISON) for name, plan in plans.items()}
        shape = plans[op.outputs[0]].shape
        axes = {name: axis_in(op, name, plan.shape, shape, cut.axis, case.attrs) for name, plan in plans.items()}
        specs = specs_of(case)
        arrays: dict[str, Any] = {name: inputs[name].buffer.view if name in inputs else None for name in case.inputs}
        views = {name: output.view for name, output in outputs.items()}
        attrs = dict(case.attrs)
        call = Call(case.op, soc, arrays, attrs, dict(views), specs, case.null, case.id, **under)
        blocks: dict[str, Any] = {name: inputs[name].block if name in inputs else None for name in case.inputs}
        first = slice(0, cut.block)
        empty = {n: np.empty(along(v, axes[n], first).shape, DTYPES[plans[n].dtype].numpy) for n, v in views.items()}
        block = replace(call, inputs=blocks, outputs=empty, specs={}, attrs=dict(attrs))
        return cls(case, cut, inputs, outputs, call, block, axes)

    def changed_inputs(self) -> list[str]:
        return [name for name, given in self.inputs.items() if given.changed()]

    def damaged(self, name: str) -> int:
        """Return how many elements around an output, or between its elements, lost their pattern."""
        output = self.outputs[name]
        if output.view.flags.c_contiguous:
            return output.damaged()
        around = output.base.size - output.view.size
        kept = sum(int(np.count_nonzero(holding(PATTERN, chunk))) for chunk in _chunks(output.base))
        pieces = (np.ascontiguousarray(along(output.view, self.axes[name], p)) for p in self.cut.pieces())
        inside = sum(int(np.count_nonzero(holding(PATTERN, piece.reshape(-1)))) for piece in pieces)
        return around - (kept - inside)
