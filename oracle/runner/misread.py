"""Operands read with other strides, without their offset or backwards: is that call's golden what the device gave?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..defects.layouts import MISTAKES, offset_of, packed, reread
from ..model.call import Array, Call
from ..model.errors import OracleError
from ..model.storage import row_major, strides_of
from ..operators import compute
from ..operators import reference as reference_of
from .findings import LARGEST, Findings, near


def read_otherwise(found: Findings) -> Iterator[str]:
    """The golden of a call whose operand is read with other strides, or without its offset, is what the device gave."""
    call = found.call
    if call is None or found.actual.size > LARGEST:
        return
    for name, array in call.inputs.items():
        if not isinstance(array, np.ndarray) or not array.size:
            continue
        for told, changed in _readings(call, name, array):
            if _gives(replace(call, inputs={**call.inputs, name: changed}), found):
                yield f"{name} is read as if {told}"
    views = {n: v for n, v in call.inputs.items() if isinstance(v, np.ndarray) and v.size and not v.flags.c_contiguous}
    if len(views) > 1 and _gives(
        replace(call, inputs={**call.inputs, **{n: packed(v) for n, v in views.items()}}), found
    ):
        yield f"{' and '.join(views)} are read as if they were contiguous: their strides are ignored"


def _readings(call: Call, name: str, array: Array) -> Iterator[tuple[str, Array]]:
    own = strides_of(array)
    seen = {own}
    if not array.flags.c_contiguous:
        seen.add(row_major(array.shape))
        yield "it were contiguous: its strides are ignored", packed(array)
    for _what, change, _needs in MISTAKES.values():
        if (strides := change(own, array.shape)) not in seen:
            seen.add(strides)
            yield f"its strides were {list(strides)}, not {list(own)}", reread(array, strides, 0)
    if array.size > 1:
        yield "its elements stood in reverse order", packed(array).reshape(-1)[::-1].reshape(array.shape)
    if offset := offset_of(call, name):
        yield f"it had no offset: {offset} elements too early", reread(array, own, -offset)


def _gives(call: Call, found: Findings) -> bool:
    """Whether a changed call's golden is what the device gave, and not what it should have given."""
    try:
        if not _may_give(compute(call, output=found.output), found):
            return False
        other = reference_of(call, found.output)
    except OracleError:
        return False
    if other.golden.shape != found.actual.shape or other.golden.dtype != found.actual.dtype:
        return False
    actual = found.actual.astype(np.float64)
    away, off = np.abs(actual - other.value), np.abs(actual - found.reference.value)
    fits = near(found.actual, other.golden) | (away <= other.bound)
    closer = (away < off) | (np.isnan(actual) & np.isnan(other.value)) | (actual == other.golden.astype(np.float64))
    changed = ~near(other.golden, found.golden, 1)
    return bool(fits.all() and (closer & changed)[found.bad].all())


def _may_give(approximate: Array, found: Findings) -> bool:
    """Whether a kernel's answer to a changed call is about as near to the device's as the right one, on half of what is
    wrong: a first look, for a golden and its bound cost many times as much."""
    if approximate.shape != found.actual.shape:
        return False
    actual = found.actual[found.bad].astype(np.float64)
    away = np.abs(actual - approximate[found.bad].astype(np.float64))
    off = np.abs(actual - found.reference.value[found.bad])
    far = ~((away <= 16 * off) | np.isnan(actual) | ~np.isfinite(off))
    return bool(np.count_nonzero(far) * 2 <= away.size)
