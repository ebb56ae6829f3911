"""The largest and the smallest element, and whether a mask holds anything, without a reduction's start-up cost.

Most tensors of a catalogue are small, and there ``max``, ``min``, ``any`` and ``all`` cost several times what the
arithmetic does that they follow.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..model.call import Array


def highest(values: Array) -> Any:
    """Return the largest element of an array that has some; NaN if there is one."""
    return values.item(values.argmax())


def lowest(values: Array) -> Any:
    """Return the smallest element of an array that has some; NaN if there is one."""
    return values.item(values.argmin())


def some(mask: Array) -> bool:
    """Whether any element is true."""
    return bool(np.count_nonzero(mask))


def every(mask: Array) -> bool:
    """Whether all elements are true."""
    return int(np.count_nonzero(mask)) == mask.size
