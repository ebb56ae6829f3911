"""Operands and attributes whose values are changed on the way in: digits, signs, specials, numbers taken for others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ..defects.base.stores import cut
from ..defects.one_change.numbers import NUMBERS
from ..model.call import Array, Call
from ..model.dtypes import DTYPES, FLOATS, FORMATS
from ..operators import OPERATORS
from ..operators.definition.operator import Operator
from ..operators.definition.parameters import Parameter
from .findings import LARGEST, Findings
from .simulated import Explanation, but, explained

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
