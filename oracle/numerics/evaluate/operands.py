"""A graph's operands by symbol: arrays of the output's shape, or numbers; some of their elements, another type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...model.call import Array
from ..floats.codes import castable
from .programs import Values

Operands = Mapping[str, Values]  # arrays of the output's shape, or numbers, by symbol


def changed(operands: Operands, change: Callable[[Array], Array]) -> Operands:
    """Change the operands that are arrays."""
    return {n: change(o) if isinstance(o, np.ndarray) else o for n, o in operands.items()}


def pick(operands: Operands, index: Any) -> Operands:
    """Index the operands that are arrays."""
    return changed(operands, lambda array: array[index])


def cast(operands: Operands, dtype: Any) -> Operands:
    """Round the operands that are arrays to a dtype."""
    wide = np.dtype(dtype).itemsize > 2
    return changed(operands, lambda array: (castable(array) if wide else array).astype(dtype))
