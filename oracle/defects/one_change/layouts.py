"""Kernels that misread or miswrite memory layouts, and kernels with 32-bit arithmetic on places."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from ...backends.cpu import Backend as Right
from ...model.aclnn import Status
from ...model.call import Array, Call, TensorSpec, address, memory_of, owner_of, row_major, strides_of
from ...operators import OPERATORS, compute
from ...operators.answers.parts import axis_in, part_of, parts, slice_axes
from ...operators.definition.operator import Operator
from ...operators.definition.roles import ONE_VALUE
from ..base.device import EVERY_SOC, Defect, Write, mutant, reading
from ..base.queries import (
    broadcasting,
    call_of,
    has_one_element,
    is_vector,
    main_shaped_operands,
    output_shape,
    usual_shape,
    where_accepted,
)


def storage_of(view: Array) -> tuple[Array, int]:
    """Return the memory of a view as a vector of its dtype, with guards, and the place at which the view begins."""
    owner = owner_of(view)
    flat = owner.reshape(-1, order="A") if owner.flags.c_contiguous else owner.ravel(order="K")
    flat = flat.view(view.dtype) if flat.dtype != view.dtype else flat
    return flat, (address(view) - address(owner)) // view.itemsize


def reread(view: Array, strides: tuple[int, ...], start: int) -> Array:
    """Read the memory of a view with other strides, in elements. Beyond the memory, its last element repeats."""
    flat, offset = storage_of(view)
    index = _places(view.shape, strides, offset + start)
    return np.asarray(flat[np.clip(index, 0, flat.size - 1)]) if flat.size else view


def _places(shape: tuple[int, ...], strides: tuple[int, ...], start: int) -> Array:
    """Return the places of a tensor's elements in a storage."""
    index = np.full(shape, start)
    for axis, stride in enumerate(strides):
        index += (np.arange(shape[axis]) * stride).reshape((-1,) + (1,) * (len(shape) - axis - 1))
    return index


def packed(view: Array) -> Array:
    """Read a view as if it were contiguous."""
    return reread(view, row_major(view.shape), 0)


# ---- mutants ---------------------------------------------------------------------------------------------------------

Strides = tuple[int, ...]
Change = Callable[[Strides, tuple[int, ...]], Strides]  # strides and a shape -> mistaken strides


MISTAKES: dict[str, tuple[str, Change, str]] = {
    "strides": ("strides are ignored", lambda own, shape: row_major(shape), "that is not contiguous"),
    "last stride": (
        "the last stride is taken for 1", lambda own, shape: (*own[:-1], 1) if own else own,
        "whose last axis is strided",
    ),
    "row strides": (
        "rows are taken to follow each other",
        lambda own, shape: tuple(s * (own[-1] or 1) for s in row_major(shape)) if own else own,
        "with gaps between its rows",
    ),
    "stride 0": (
        "stride 0 is taken for a packed axis", lambda own, shape: row_major(shape) if 0 in own else own,
        "that is expanded",
    ),
    "axis order": (  # right for row-major views
        "axes are taken in their order in memory", lambda own, shape: tuple(sorted(own, reverse=True)),
        "that is transposed",
    ),
}  # fmt: skip


def _misread(change: Change, array: Array) -> Array:
    own = strides_of(array)
    mistaken = change(own, array.shape)
    return array if mistaken == own else reread(array, mistaken, 0)


def offset_of(call: Call, name: str) -> int:
    """Return the distance in elements from the start of a tensor's storage to the tensor."""
    spec = call.spec(name)
    return 0 if spec is None else spec.offset


def misplaced(call: Call, name: str, view: Array) -> Iterator[tuple[str, Strides, int]]:
    """Yield how a device may misplace the elements of a tensor: in words (after "as if"), the strides that it takes for
    the tensor's own, and the place of the first element relative to the right one."""
    own = strides_of(view)
    seen = {own}
    if not view.flags.c_contiguous:
        seen.add(row_major(view.shape))
        yield "it were contiguous: its strides are ignored", row_major(view.shape), 0
    for _what, change, _needs in MISTAKES.values():
        if (strides := change(own, view.shape)) not in seen:
            seen.add(strides)
            yield f"its strides were {list(strides)}, not {list(own)}", strides, 0
    if offset := offset_of(call, name):
        yield f"it had no offset: {offset} elements too early", own, -offset


def _without_offset(which: str, name: str, array: Array, call: Call) -> Array:
    offset = offset_of(call, name)
    return reread(array, strides_of(array), -offset) if name == which and offset else array


def _written_at(out: Array, result: Array, strides: Strides, early: int) -> Array:
    """Write with given strides, some elements too early."""
    memory, start = storage_of(out)
    index = _places(out.shape, strides, start - early)
    memory[np.clip(index, 0, memory.size - 1)] = result
    return out


def _miswritten(change: Change, out: Array, result: Array, mask: Array | None, call: Call) -> Array:
    return _written_at(out, result, change(strides_of(out), out.shape), 0)


def _written_too_early(out: Array, result: Array, mask: Array | None, call: Call) -> Array:
    """Write as if the output had no offset."""
    name = next(name for name, each in call.outputs.items() if each is out)
    return _written_at(out, result, strides_of(out), offset_of(call, name))


def _gaps_too(out: Array, result: Array, mask: Array | None, call: Call) -> Array:
    """Write all elements between the first and the last, gaps included."""
    memory, start = storage_of(out)
    if out.size:
        span = 1 + sum((n - 1) * s for n, s in zip(out.shape, strides_of(out), strict=True))
        memory[start : start + span] = 0
    out[...] = result
    return out


def _overrun(out: Array, result: Array, mask: Array | None, call: Call) -> Array:
    """Write the last 32-byte block completely, beyond the end of the output."""
    memory, start = storage_of(out)
    block = 32 // out.itemsize
    if out.flags.c_contiguous:
        memory[start : start + -(-out.size // block) * block] = 0
    out[...] = result
    return out


def _order(view: Array) -> tuple[int, ...] | None:
    """Return the axes of a dense tensor from the slowest in memory to the fastest; None for gaps or repeats."""
    axes = tuple(sorted(range(view.ndim), key=lambda axis: -view.strides[axis]))
    return axes if view.transpose(axes).flags.c_contiguous and all(n > 1 for n in view.shape) else None


def _paired_in_memory(which: str, main: str, name: str, array: Array, call: Call) -> Array:
    """Read a dense operand in its memory order, if the dense main operand has another order."""
    whole = call.inputs[main]
    if name != which or array.shape != whole.shape or array.flags.c_contiguous or whole.flags.c_contiguous:
        return array
    mine, its = _order(array), _order(whole)
    if mine is None or its is None or mine == its:
        return array
    flat = array.transpose(mine).reshape(-1).reshape([whole.shape[axis] for axis in its])
    return np.asarray(flat.transpose(np.argsort(its)))


def mutants(op: Operator) -> Iterator[Defect]:
    """Yield an operator's layout mutants: each operand misread, each output miswritten, in each way."""
    yield from _misreads(op)
    yield from _miswrites(op)
    yield from _broadcasts(op)


def _misreads(op: Operator) -> Iterator[Defect]:
    for p in (p for p in op.inputs() if p.read and (p in op.operands or op.whole is None)):
        name = p.name
        for label, (what, change, needs) in MISTAKES.items():
            if p.role is ONE_VALUE or (is_vector(op, p) and label in ("row strides", "axis order")):
                continue  # a single element, or a vector, has no rows
            read = reading(name, partial(_misread, change))
            yield mutant(op, "layout", f"{name} {label}", "LAY", f"{name}: {what}", f"a {name} {needs}", read=read)
        what, needs, read = f"{name}: the offset is ignored", f"a {name} with an offset", partial(_without_offset, name)
        yield mutant(op, "layout", f"{name} offset", "LAY", what, needs, read=read)
    for p in main_shaped_operands(op):
        yield mutant(
            op, "layout", f"{p.name} in memory order", "LAY", f"{p.name} and {op.main} pair by places in memory",
            f"a {p.name} and a {op.main} that are dense in different orders",
            read=partial(_paired_in_memory, p.name, op.main),
        )  # fmt: skip


def _miswrites(op: Operator) -> Iterator[Defect]:
    output = op.output
    ways: dict[str, tuple[str, Write, str]] = {
        label: (what, partial(_miswritten, change), needs)
        for label, (what, change, needs) in MISTAKES.items()
        if label != "stride 0"
    }
    ways |= {
        "offset": ("the offset is ignored", _written_too_early, "with an offset"),
        "gaps": ("the gaps between its elements are written", _gaps_too, "with gaps"),
        "overrun": ("the last 32-byte block is written whole", _overrun, "that ends inside a 32-byte block"),
    }
    if has_one_element(op):
        del ways["gaps"]
    for label, (what, write, needs) in ways.items():
        needs = f"an {output} {needs}"
        yield mutant(op, "layout", f"{output} {label}", "LAY", f"{output}: {what}", needs, write=write)


Spread = Callable[[Array, tuple[int, ...]], Array]  # an operand and the output's shape -> the operand in that shape


def _modulo(array: Array, shape: tuple[int, ...]) -> Array:
    return np.resize(array.reshape(-1), shape)


def _first(array: Array, shape: tuple[int, ...]) -> Array:
    return np.broadcast_to(array.reshape(-1)[:1].reshape((1,) * len(shape)), shape)


def _left_aligned(array: Array, shape: tuple[int, ...]) -> Array:
    padded = array.shape + (1,) * (len(shape) - array.ndim)
    fits = len(padded) == len(shape) and all(n in (1, m) for n, m in zip(padded, shape, strict=True))
    return np.broadcast_to(array.reshape(padded) if fits else array, shape)


SPREADS: dict[str, tuple[str, Spread, str]] = {
    "modulo": ("is read at the flat index modulo its size", _modulo, "that broadcasts along its last axis"),
    "first": ("gives its first element to all", _first, "that broadcasts along some of its axes"),
    "left": ("is aligned with the leading axes where that fits", _left_aligned, "of lower rank that fits there"),
}


def _broadcasts(op: Operator) -> Iterator[Defect]:
    shape = usual_shape(op)
    for p in broadcasting(op):
        smaller = ((1, *shape[1:]), (*shape[:-1], 1), shape[1:])
        socs = where_accepted(op, [{"shapes": {p.name: each}} for each in smaller])
        for label, (what, spread, needs) in SPREADS.items():
            yield mutant(
                op, "broadcast", f"{p.name} {label}", "IDX", f"a broadcast {p.name} {what}", f"a {p.name} {needs}",
                socs=socs or EVERY_SOC, read=partial(_spread, p.name, spread),
            )  # fmt: skip


def _spread(which: str, spread: Spread, name: str, array: Array, call: Call) -> Array:
    shape = output_shape(call)
    return np.asarray(spread(array, shape)) if name == which and array.size and array.shape != shape else array


# Kernels with 32-bit arithmetic on places: the registry of the huge tier.
#
# The fault begins at a limit of an element count or of a place in memory: 2^31 elements, 2^31 bytes or 2^32 bytes.
# ``bits`` moves the limits (2^bits, 2^bits and 2^(bits + 1)), so that small calls show the same faults.

Fault = Literal["count", "read", "write"]


@dataclass(frozen=True)
class Wrapping:
    """A backend that computes correctly up to a limit.

    ``fault``: ``count``: no element of the output from the limit on is written. ``read`` and ``write``: an element of
    ``tensor`` at the limit or beyond it is read, or written, ``limit`` before its place. ``limit``: in elements, or in
    bytes if ``in_bytes``.
    """

    op: str
    fault: Fault
    tensor: str
    limit: int
    in_bytes: bool
    where: str
    wrong = True

    @property
    def name(self) -> str:
        return f"{self.fault} of {self.tensor} wraps at {self.where}"

    def run(self, call: Call) -> Status | None:
        """Compute correctly, then apply the fault of the wrapped places."""
        before = {name: out[(-1,) * out.ndim].copy() for name, out in call.outputs.items()}
        status = Right().run(call)
        if status is None or status.ok:
            self.spoil(call, before)
        return status

    def spoil(self, call: Call, before: Mapping[str, Array]) -> bool:
        """Change a right answer into this kernel's answer. ``before``: one element of each output before the call.
        Return whether the call reaches the limit."""
        tensor = {**call.inputs, **call.outputs}[self.tensor]
        if tensor is None or not tensor.ndim:
            return False
        if self.fault != "read" and tensor.flags.c_contiguous:
            tensor = tensor.reshape(-1)  # element by element, not slice by slice
        own, first = self._reached(tensor, call.specs.get(self.tensor))
        if first >= tensor.shape[own]:
            return False
        if self.fault == "read":
            return self._read_elsewhere(call, tensor, own, first)
        tail = tensor[(slice(None),) * own + (slice(first, None),)]
        if self.fault == "count":
            tail[...] = before[self.tensor]
            return True
        for here, there in _blocks(tail, self._shifted(tensor, own, first)):
            there[...] = here
            here[...] = before[self.tensor]
        return True

    def _reached(self, tensor: Array, spec: TensorSpec | None) -> tuple[int, int]:
        """Return the tensor's axis with the longest stride, and the first of its slices that lies completely beyond
        the limit."""
        limit = self.limit // tensor.itemsize if self.in_bytes else self.limit
        strides, offset = strides_of(tensor), 0 if spec is None else spec.offset
        if self.fault == "count":  # elements in logical order, at any places
            strides, offset = row_major(tensor.shape), 0
        own = max(range(tensor.ndim), key=lambda axis: strides[axis])
        if not strides[own]:
            return own, tensor.shape[own]
        return own, max(0, -(-(limit - offset) // strides[own]))

    def _read_elsewhere(self, call: Call, tensor: Array, own: int, first: int) -> bool:
        """Recompute the slices beyond the limit from the elements found ``limit`` before their places."""
        op, shape = OPERATORS[call.op], call.outputs[OPERATORS[call.op].outputs[0]].shape
        shapes = [{n: v.shape for n, v in t.items() if v is not None} for t in (call.inputs, call.outputs)]
        axes = slice_axes(op, shapes[0], shapes[1], call.attrs)
        axis = next((k for k in axes if axis_in(op, self.tensor, tensor.shape, shape, k, call.attrs) == own), None)
        if axis is None:
            return False
        tail = part_of(call, axis, slice(first, None))
        tail = replace(tail, inputs={**tail.inputs, self.tensor: self._shifted(tensor, own, first)})
        for part in parts(tail):
            for name, out in part.outputs.items():
                out[...] = compute(part, output=name)
        return True

    def _shifted(self, tensor: Array, own: int, first: int) -> Array:
        """Return a view of the wrong places for the slices from ``first`` on: ``limit`` before the right ones."""
        memory, item = memory_of(tensor), tensor.itemsize
        limit = self.limit if self.in_bytes else self.limit * item
        start = address(tensor) - address(memory) + first * tensor.strides[own] - limit
        shape = (*tensor.shape[:own], tensor.shape[own] - first, *tensor.shape[own + 1 :])
        result: Array = np.ndarray(shape, tensor.dtype, memory.data, start, tensor.strides)
        return result


def _blocks(here: Array, there: Array) -> Iterator[tuple[Array, Array]]:
    """Yield two arrays of equal shape in pieces of about 2^22 elements along their first axis."""
    step = max(1, (1 << 22) * here.shape[0] // here.size)
    for start in range(0, here.shape[0], step):
        yield here[start : start + step], there[start : start + step]


def wrapping(op: Operator, bits: int = 31) -> Iterator[Wrapping]:
    """Yield the kernels of an operator: each fault of each tensor that can be as large as the main operand."""
    limits = [(1 << bits, False, f"2^{bits} elements"), (1 << bits, True, f"2^{bits} bytes")]
    limits.append((2 << bits, True, f"2^{bits + 1} bytes"))
    faults: list[tuple[Fault, str]] = [("count", op.output), ("write", op.output)]
    for fault, tensor in (*faults, *(("read", name) for name in _as_large(op))):
        for limit, in_bytes, text in limits:
            yield Wrapping(op.name, fault, tensor, limit, in_bytes, text)


def _as_large(op: Operator) -> list[str]:
    """Return the operands that can be as large as the main one, if the operator can be computed slice by slice along
    its leading axis."""
    shape = (64, 64)
    call = call_of(op, shape)
    inputs = {name: spec.shape for name, spec in call.inputs.items()}
    if 0 not in slice_axes(op, inputs, {name: spec.shape for name, spec in call.outputs.items()}, call.attrs):
        return []
    return [p.name for p in op.operands if 2 * math.prod(inputs[p.name]) >= math.prod(shape)]
