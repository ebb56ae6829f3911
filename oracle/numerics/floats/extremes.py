"""The largest and the smallest element, and whether a mask holds anything, without a reduction's start-up cost.

Most tensors of a catalogue are small, and there ``max``, ``min``, ``any`` and ``all`` cost several times what the
arithmetic does that they follow.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...model.call import Array

SHORT_ROW = 64  # elements
LONG = 1 << 14  # elements: of more, the reduction takes half the time that the search for the place takes


def highest(values: Array) -> Any:
    """Return the largest element of an array that has some; NaN if there is one."""
    if values.size < LONG:
        return values.item(values.argmax())
    with np.errstate(invalid="ignore"):
        return values.max().item()


def lowest(values: Array) -> Any:
    """Return the smallest element of an array that has some; NaN if there is one."""
    if values.size < LONG:
        return values.item(values.argmin())
    with np.errstate(invalid="ignore"):
        return values.min().item()


def highest_of_rows(rows: Array) -> Array:
    """Return the largest element of each row, the last axis, which is kept; -inf of an empty one."""
    return _of_rows(np.maximum, rows, -np.inf)


def _of_rows(ufunc: np.ufunc, rows: Array, initial: float) -> Array:
    """Reduce rows. NumPy begins anew at every row, which costs as much as 50 elements: short ones are turned first."""
    length = rows.shape[-1]
    if not 0 < length <= SHORT_ROW:
        return np.asarray(ufunc.reduce(rows, axis=-1, keepdims=True, initial=initial))
    turned = np.ascontiguousarray(rows.reshape(-1, length).T)
    return np.asarray(ufunc.reduce(turned, axis=0, initial=initial)).reshape(*rows.shape[:-1], 1)


def some(mask: Array) -> bool:
    """Whether any element is true."""
    return bool(np.count_nonzero(mask))


def every(mask: Array) -> bool:
    """Whether all elements are true."""
    return int(np.count_nonzero(mask)) == mask.size
