"""Operands read from wrong places: with other strides, without their offset, backwards, shifted, one for all."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..defects.base.asking import broadcasting
from ..defects.one_change.layouts import MISTAKES, SPREADS, offset_of, packed, reread
from ..model.call import Array, Call, row_major, strides_of
from ..operators import OPERATORS
from .findings import LARGEST, Findings, is_of_values
from .simulated import Explanation, but, explained

FIRST = "its first element stood for all"


def read_elsewhere(found: Findings) -> Iterator[Explanation]:
    """The golden of a call one of whose operands is read from other places is what the device gave."""
    call = found.call
    if call is None or found.actual.size > LARGEST or (np.count_nonzero(found.bad) < 2 < found.bad.size):
        return  # one wrong element of many tells nothing of places
    for name, array in call.inputs.items():
        if not isinstance(array, np.ndarray) or not array.size:
            continue
        for told, changed in _readings(call, name, array):
            yield from _proved(call, name, told, changed, found)
    views = {n: v for n, v in call.inputs.items() if isinstance(v, np.ndarray) and v.size and not v.flags.c_contiguous}
    if len(views) > 1:
        every = but(call, **{n: packed(v) for n, v in views.items()})
        told = "are read as if they were contiguous: their strides are ignored"
        yield from explained(" and ".join(views), told, every, found)


def _readings(call: Call, name: str, array: Array) -> Iterator[tuple[str, Array]]:
    yield from _strided(call, name, array)
    if array.size > 1:
        flat = np.ascontiguousarray(array).reshape(-1)
        if not array.flags.c_contiguous:
            yield "it stood in memory in reverse order", packed(array).reshape(-1)[::-1].reshape(array.shape)
        yield "its elements stood in reverse order", flat[::-1].reshape(array.shape)
        yield "its elements were shifted by one place", np.roll(flat, 1).reshape(array.shape)
        yield "its elements were shifted by one place, to the front", np.roll(flat, -1).reshape(array.shape)
        yield FIRST, np.broadcast_to(flat[:1].reshape((1,) * array.ndim), array.shape)
    if array.ndim > 1 and array.shape[0] > 1:
        yield "its first row stood for all", np.broadcast_to(array[:1], array.shape)
    op = OPERATORS[call.op]
    shape = op.output_shape({**call.attrs, **call.inputs})
    if 1 < array.size < math.prod(shape) and op.by_name[name] in broadcasting(op):
        yield "it repeated at the flat index modulo its size", SPREADS["modulo"][1](array, shape)
        yield "it were aligned with the leading axes", SPREADS["left"][1](array, shape)


def _proved(call: Call, name: str, told: str, read: Array, found: Findings) -> Iterator[Explanation]:
    """The claim; no proof where other numbers in the place of those read would give the same, as in a formula of steps,
    and their places are none either: one element stands for all, or the wrong places are those of the right values."""
    for fits in explained(name, f"is read as if {told}", but(call, **{name: read}), found):
        proof = True
        if told == FIRST or is_of_values(call.inputs[name], found.bad):
            others = (np.where(read == 0, 1, read + read), np.where(read == 0, -1, read / 2))
            proof = not any(list(explained(name, "", but(call, **{name: v.astype(read.dtype)}), found)) for v in others)
        yield replace(fits, proof=proof)


def _strided(call: Call, name: str, array: Array) -> Iterator[tuple[str, Array]]:
    own = strides_of(array)
    seen = {own}
    if not array.flags.c_contiguous:
        seen.add(row_major(array.shape))
        yield "it were contiguous: its strides are ignored", packed(array)
    for _what, change, _needs in MISTAKES.values():
        if (strides := change(own, array.shape)) not in seen:
            seen.add(strides)
            yield f"its strides were {list(strides)}, not {list(own)}", reread(array, strides, 0)
    if offset := offset_of(call, name):
        yield f"it had no offset: {offset} elements too early", reread(array, own, -offset)
