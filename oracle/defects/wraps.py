"""Kernels whose arithmetic on places has 32 bits: the registry of the huge tier.

What is wrong begins where a count, or a place in memory, reaches a limit: 2^31 elements, 2^31 bytes or 2^32 bytes.
``bits`` moves the limits (2^bits, 2^bits and 2^(bits + 1)), so that small calls show the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ..backends.cpu import Backend as Right
from ..model.call import Array, Call
from ..model.status import Status
from ..model.storage import address, memory_of, row_major, strides_of
from ..operators import OPERATORS, compute
from ..operators.operator import Operator
from ..operators.parts import axis_in, part_of, parts, slice_axes

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
        reached = self._reached(call)
        if reached is None:
            return False
        axis, first, own = reached
        tail = part_of(call, axis, slice(first, None))
        if self.fault == "count":
            tail.outputs[self.tensor][...] = before[self.tensor]
            return True
        given = {**call.inputs, **call.outputs}[self.tensor]
        shifted = self._shifted(given, own, first)
        if self.fault == "read":
            tail = replace(tail, inputs={**tail.inputs, self.tensor: shifted})
            for part in parts(tail):
                for name, out in part.outputs.items():
                    out[...] = compute(part, output=name)
            return True
        for here, there in _blocks(tail.outputs[self.tensor], shifted):
            there[...] = here
            here[...] = before[self.tensor]
        return True

    def _reached(self, call: Call) -> tuple[int, int, int] | None:
        """Return an axis of the first output along which the operator works slice by slice, the first of its slices
        that lies wholly beyond the limit, and the tensor's own such axis; None where there is none."""
        op, given = OPERATORS[call.op], {**call.inputs, **call.outputs}[self.tensor]
        if given is None:
            return None
        shapes = [{n: v.shape for n, v in t.items() if v is not None} for t in (call.inputs, call.outputs)]
        limit = self.limit // given.itemsize if self.in_bytes else self.limit
        spec = call.specs.get(self.tensor)
        strides, offset = strides_of(given), 0 if spec is None else spec.offset
        if self.fault == "count":  # elements in their order, wherever they lie
            strides, offset = row_major(given.shape), 0
        shape = call.outputs[op.outputs[0]].shape
        for axis in slice_axes(op, shapes[0], shapes[1], call.attrs):
            own = axis_in(op, self.tensor, given.shape, shape, axis, call.attrs)
            if own is not None and strides[own] and strides[own] == max(strides):
                first = max(0, -(-(limit - offset) // strides[own]))
                return (axis, first, own) if first < given.shape[own] else None
        return None

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
    shape, attributes = (64, 64), {p.name: p.plain for p in op.parameters if p.kind == "attr"}
    read = [p.name for p in op.operands if 2 * np.prod(op.shape_of(p.name, shape, attributes)) >= np.prod(shape)]
    faults: list[tuple[Fault, str]] = [("count", op.output), ("write", op.output), *(("read", name) for name in read)]
    for fault, tensor in faults:
        for limit, in_bytes, told in limits:
            yield Wrapping(op.name, fault, tensor, limit, in_bytes, told)
