"""Accuracy standards: one file per organisation that defines them, one function ``judge`` for all.

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
    of ``dtype`` (a name or a NumPy dtype; "hifloat32" is stored in float32 arrays). The verdict fails if ``actual`` has
    another shape than the golden or another dtype than ``dtype``. Raises OracleError for an unknown standard, dtype or
    option, and for arguments that allow no verdict.
    """
    if not isinstance(standard, str) or standard not in STANDARDS:
        raise unknown("standard", standard, STANDARDS)
    return STANDARDS[standard].judge(golden, actual, dtype, third, options)
