"""Functions that NumPy does not have: the C library's, element by element."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..model.call import Array

_ERF, _ERFC = np.frompyfunc(math.erf, 1, 1), np.frompyfunc(math.erfc, 1, 1)


def erf(x: Any, out: Array | None = None) -> Any:
    """Return the error function of float64 values."""
    return _stored(_ERF(x), out)


def erfc(x: Any, out: Array | None = None) -> Any:
    """Return the complementary error function of float64 values, small results as accurate as large ones."""
    return _stored(_ERFC(x), out)


def _stored(found: Any, out: Array | None) -> Any:
    values = np.asarray(found, np.float64)
    if out is None:
        return values
    np.copyto(out, values)
    return out
