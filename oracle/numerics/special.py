"""Functions that NumPy does not have: the C library's, element by element."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..model.call import Array


def erf(x: Any, out: Array | None = None) -> Any:
    """Return the error function of float64 values."""
    return _each(math.erf, x, out)


def erfc(x: Any, out: Array | None = None) -> Any:
    """Return the complementary error function of float64 values, small results as accurate as large ones."""
    return _each(math.erfc, x, out)


def _each(function: Callable[[float], float], x: Any, out: Array | None) -> Any:
    """Return a function's value of every element."""
    given = np.asarray(x, np.float64)
    # Through lists: a ufunc of Python's functions makes an array of objects first, which takes twice as long.
    values = np.fromiter(map(function, given.reshape(-1).tolist()), np.float64, given.size).reshape(given.shape)
    if out is None:
        return values
    np.copyto(out, values)
    return out
