"""Functions that NumPy does not have."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..model.call import Array

_ERF = np.frompyfunc(math.erf, 1, 1)


def erf(x: Any, out: Array | None = None) -> Any:
    """Return the error function of float64 values, by the C library."""
    values = np.asarray(_ERF(x), np.float64)
    if out is None:
        return values
    np.copyto(out, values)
    return out
