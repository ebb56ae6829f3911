"""Verdicts of a standard on numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from oracle.standards import Verdict, judge
from oracle.standards.base import OUTPUT_TYPES


def judged(
    standard: str, golden: Any, actual: Any, dtype: str = "float32", third: Any = None, **options: Any
) -> Verdict:
    """Return a verdict. The device's and the third party's numbers are rounded to the output's dtype."""
    kind = OUTPUT_TYPES[dtype]
    golden = np.asarray(golden, kind.numpy if kind.is_whole else np.float64)
    stored = [None if numbers is None else np.asarray(numbers).astype(kind.numpy) for numbers in (actual, third)]
    return judge(standard, golden=golden, actual=stored[0], third=stored[1], dtype=dtype, **options)
