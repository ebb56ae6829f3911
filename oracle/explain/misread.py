"""Operands and attributes that are read wrongly: from other places, or as other values.

Places: with other strides, without their offset, backwards, shifted, one for all. Values: fewer digits, no sign, no
specials, numbers taken for others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ..defects.base.asking import broadcasting
from ..defects.base.stores import cut
from ..defects.one_change.layouts import MISTAKES, SPREADS, offset_of, packed, reread
from ..defects.one_change.numbers import NUMBERS
from ..model.call import Array, Call, row_major, strides_of
from ..model.dtypes import DTYPES, FLOATS, FORMATS
from ..operators import OPERATORS
from ..operators.definition.operator import Operator
from ..operators.definition.parameters import Parameter
from .findings import LARGEST, Findings, is_of_values
from .simulated import Explanation, but, explained

FIRST = "its first element stood for all"
F = np.float32
Change = Callable[[Array], Array]
TOP = FORMATS["float32"].max
# What is read in the place of an operand's values, and how it is told.
WAYS: tuple[tuple[Change, str], ...] = (
    (np.abs, "is read without its sign"),
    (lambda v: np.where(np.isnan(v), F(0), v), "is read with 0 for NaN"),
    (lambda v: np.clip(v, -TOP, TOP), "is read with the largest number for infinities"),
    (lambda v: np.where(np.abs(v) < 2.0**-126, F(0), v), "is read with its subnormal numbers flushed to zero"),
    (lambda v: np.where(np.abs(v) < 2.0**-14, F(0), v), "is read with its numbers below 2^-14 flushed to zero"),
    (lambda v: v.astype(np.float16).astype(F), "is rounded to float16 when it is read"),
    (lambda v: v.astype(DTYPES["bfloat16"].numpy).astype(F), "is rounded to bfloat16 when it is read"),
)
FRACTIONS = (16, 10, 7)  # bits that matrix units keep of a float32 operand


# ---- from other places -----------------------------------------------------------------------------------------------


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


# ---- as other values -------------------------------------------------------------------------------------------------


def read_as_other_values(found: Findings) -> Iterator[Explanation]:
    """The golden of a call with other values of an operand or an attribute is what the device gave."""
    call = found.call
    if call is None or found.actual.size > LARGEST:
        return
    for name, told, changed in _changes(call, OPERATORS[call.op]):
        yield from explained(name, told, changed, found)


def _changes(call: Call, op: Operator) -> Iterator[tuple[str, str, Call]]:
    """Yield (of what, what is told of it, the call that this comes to)."""
    given = {p.name: call.inputs.get(p.name) for p in op.operands}
    floats = {n: v for n, v in given.items() if isinstance(v, np.ndarray) and v.size and str(v.dtype) in FLOATS}
    for name, array in floats.items():
        for told, changed in _values(array):
            if changed.tobytes() != np.ascontiguousarray(array).tobytes():
                yield name, told, but(call, **{name: changed})
    for p in (p for p in op.operands if p.optional and call.inputs.get(p.name) is not None):
        yield p.name, "counts as absent", but(call, **{p.name: None})
    main = call.inputs[op.main]
    rank = main.ndim if isinstance(main, np.ndarray) else 0
    for p in (p for p in op.parameters if p.kind == "attr"):
        for value in _others(p, call.attrs.get(p.name), rank):
            other = replace(call, attrs={**call.attrs, p.name: value})
            yield f"the attribute {p.name}", f"is read as {value!r}", other
    wide = {n: v for n, v in floats.items() if v.dtype == F}
    for bits in FRACTIONS if wide else ():
        few = but(call, **{n: cut(v, bits) for n, v in wide.items()})
        yield "", f"float32 operands are cut to {bits} fraction bits: digits are lost", few


def _values(array: Array) -> Iterator[tuple[str, Array]]:
    """An operand's values as a device may take them, each way in words."""
    wide = array.astype(F)
    for change, told in WAYS:
        yield told, np.asarray(change(wide)).astype(array.dtype)
    if array.itemsize == 2:
        other = "bfloat16" if array.dtype == np.float16 else "float16"
        taken = np.ascontiguousarray(array).view(DTYPES[other].numpy).reshape(array.shape)
        yield f"has its bits taken for those of {other}", taken.astype(array.dtype)


def _others(p: Parameter, value: Any, rank: int) -> list[Any]:
    """Other values for an attribute: what a number becomes when it is misread, the other words, the other flag, the
    other axes."""
    found: list[Any] = []
    if p.role == "number":
        own = p.plain if value is None else value
        if isinstance(own, (int, float)) and not isinstance(own, bool):
            with np.errstate(all="ignore"):
                found = [change(float(own), p) for change, _what, _needs in NUMBERS.values()]
    elif p.role == "flag":
        found = [not value]
    elif p.role == "axis":
        found = [k for k in range(rank) if k != value % rank]
    elif p.role == "choice":
        found = list(p.choices)
    elif p.words:  # a number with a word behind each value
        found = list(range(len(p.words)))
    return [v for k, v in enumerate(found) if v != value and v not in found[:k]]
