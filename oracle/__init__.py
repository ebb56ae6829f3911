"""Correctly rounded NumPy goldens and a conformance suite for CANN operators: the public names."""

from __future__ import annotations

from .errors import OracleError
from .operators import golden, operators, validate
from .signature import Call, TensorSpec
from .standards import Verdict, judge
from .status import Status

__all__ = [
    "Call",
    "OracleError",
    "Status",
    "TensorSpec",
    "Verdict",
    "golden",
    "judge",
    "operators",
    "validate",
]
