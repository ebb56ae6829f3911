"""Kernels whose arithmetic on places has 32 bits: the registry of the huge tier.

What is wrong begins where a count, or a place in memory, reaches a limit: 2^31 elements, 2^31 bytes or 2^32 bytes.
``bits`` moves the limits (2^bits, 2^bits and 2^(bits + 1)), so that small calls show the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ...backends.cpu import Backend as Right
from ...model.call import Array, Call, TensorSpec, address, memory_of, row_major, strides_of
from ...model.status import Status
from ...operators import OPERATORS, compute
from ...operators.answers.parts import axis_in, part_of, parts, slice_axes
from ...operators.definition.operator import Operator
from ..base.asking import call_of

Fault = Literal["count", "read", "write"]


@dataclass(frozen=True)
class Wrapping:
    """A backend that computes rightly up to a limit.

    ``fault``: ``count``, no element of the output from the limit on is written; ``read`` and ``write``, an element of
    ``tensor`` that lies at the limit or beyond it is looked for, or written, so much before its place. ``limit``: in
    elements, or in bytes where ``in_bytes`` says so.
    """

    op: str
    fault: Fault
    tensor: str
    limit: int
    in_bytes: bool
    told: str
    wrong = True

    @property
    def name(self) -> str:
        return f"{self.fault} of {self.tensor} wraps at {self.told}"

    def run(self, call: Call) -> Status | None:
        """Compute rightly, then do what a wrapped place does."""
        before = {name: given[(-1,) * given.ndim].copy() for name, given in call.outputs.items()}
        status = Right().run(call)
        if status is None or status.ok:
            self.spoil(call, before)
        return status

    def spoil(self, call: Call, before: Mapping[str, Array]) -> bool:
        """Change a right answer into this kernel's; ``before``: what an element of each output held before the call.
        Return whether the call reaches the limit."""
        given = {**call.inputs, **call.outputs}[self.tensor]
        if given is None or not given.ndim:
            return False
        if self.fault != "read" and given.flags.c_contiguous:
            given = given.reshape(-1)  # element by element, not slice by slice
        own, first = self._reached(given, call.specs.get(self.tensor))
        if first >= given.shape[own]:
            return False
        if self.fault == "read":
            return self._read_elsewhere(call, given, own, first)
        tail = given[(slice(None),) * own + (slice(first, None),)]
        if self.fault == "count":
            tail[...] = before[self.tensor]
            return True
        for here, there in _blocks(tail, self._shifted(given, own, first)):
            there[...] = here
            here[...] = before[self.tensor]
        return True

    def _reached(self, given: Array, spec: TensorSpec | None) -> tuple[int, int]:
        """Return the tensor's axis of the longest stride, and the first of its slices that lies wholly beyond the
        limit."""
        limit = self.limit // given.itemsize if self.in_bytes else self.limit
        strides, offset = strides_of(given), 0 if spec is None else spec.offset
        if self.fault == "count":  # elements in their order, wherever they lie
            strides, offset = row_major(given.shape), 0
        own = max(range(given.ndim), key=lambda axis: strides[axis])
        if not strides[own]:
            return own, given.shape[own]
        return own, max(0, -(-(limit - offset) // strides[own]))

    def _read_elsewhere(self, call: Call, given: Array, own: int, first: int) -> bool:
        """Compute the slices beyond the limit anew, of what is found so much before their places."""
        op, shape = OPERATORS[call.op], call.outputs[OPERATORS[call.op].outputs[0]].shape
        shapes = [{n: v.shape for n, v in t.items() if v is not None} for t in (call.inputs, call.outputs)]
        axes = slice_axes(op, shapes[0], shapes[1], call.attrs)
        axis = next((k for k in axes if axis_in(op, self.tensor, given.shape, shape, k, call.attrs) == own), None)
        if axis is None:
            return False
        tail = part_of(call, axis, slice(first, None))
        tail = replace(tail, inputs={**tail.inputs, self.tensor: self._shifted(given, own, first)})
        for part in parts(tail):
            for name, out in part.outputs.items():
                out[...] = compute(part, output=name)
        return True

    def _shifted(self, given: Array, own: int, first: int) -> Array:
        """The slices from the first one on, at the places where they are looked for."""
        memory, item = memory_of(given), given.itemsize
        start = (
            address(given)
            - address(memory)
            + first * given.strides[own]
            - (self.limit if self.in_bytes else self.limit * item)
        )
        shape = (*given.shape[:own], given.shape[own] - first, *given.shape[own + 1 :])
        found: Array = np.ndarray(shape, given.dtype, memory.data, start, given.strides)
        return found


def _blocks(here: Array, there: Array, most: int = 1 << 22) -> Iterator[tuple[Array, Array]]:
    """Yield two arrays of a shape in pieces along their first axis."""
    step = max(1, most * here.shape[0] // here.size)
    for start in range(0, here.shape[0], step):
        yield here[start : start + step], there[start : start + step]


def wrapping(op: Operator, bits: int = 31) -> Iterator[Wrapping]:
    """Yield the kernels of an operator: each fault of each tensor that can be as large as the main operand."""
    limits = [(1 << bits, False, f"2^{bits} elements"), (1 << bits, True, f"2^{bits} bytes")]
    limits.append((2 << bits, True, f"2^{bits + 1} bytes"))
    faults: list[tuple[Fault, str]] = [("count", op.output), ("write", op.output)]
    for fault, tensor in (*faults, *(("read", name) for name in _as_large(op))):
        for limit, in_bytes, told in limits:
            yield Wrapping(op.name, fault, tensor, limit, in_bytes, told)


def _as_large(op: Operator) -> list[str]:
    """The operands that may be as large as the main one, of an operator whose leading axis can be computed slice by
    slice."""
    shape = (64, 64)
    call = call_of(op, shape)
    inputs = {name: spec.shape for name, spec in call.inputs.items()}
    if 0 not in slice_axes(op, inputs, {name: spec.shape for name, spec in call.outputs.items()}, call.attrs):
        return []
    return [p.name for p in op.operands if 2 * math.prod(inputs[p.name]) >= math.prod(shape)]
