"""Accuracy standards: one file per body that sets them, one way to judge.

judge("mixed", golden=g, actual=a, dtype="float16").passed
"""

from __future__ import annotations

from typing import Any

from ..model.errors import unknown
from ..numerics.floats.environment import ieee_arithmetic
from . import atk_and_ttk, commercial, ecosystem, msprobe
from .base import Standard, Verdict
from .commercial import recheck

__all__ = ["STANDARDS", "Verdict", "judge", "recheck"]

_FILES = (ecosystem, commercial, atk_and_ttk, msprobe)
STANDARDS: dict[str, Standard] = {standard.name: standard for file in _FILES for standard in file.STANDARDS}


@ieee_arithmetic
def judge(standard: str, /, *, golden: Any, actual: Any, dtype: Any, third: Any = None, **options: Any) -> Verdict:
    """Judge one output by an accuracy standard.

    ``golden``: float64 for a float output, an integer or bool array for an integer one. ``actual``, ``third``: arrays
    of ``dtype`` (a name or a NumPy dtype; "hifloat32" travels in float32 arrays). An ``actual`` of another shape or
    dtype than the golden and ``dtype`` say is a failing verdict. Raises OracleError for an unknown standard, dtype or
    option, and for arguments no verdict can be given on.
    """
    if not isinstance(standard, str) or standard not in STANDARDS:
        raise unknown("standard", standard, STANDARDS)
    return STANDARDS[standard].judge(golden, actual, dtype, third, options)
