"""The operators, and what the world asks of them: golden, validate, reference, compute."""

from __future__ import annotations

from .api import bind, compute, golden, operator, operators, reference, validate
from .base import Operator, Reference
from .registry import OPERATORS

__all__ = [
    "OPERATORS",
    "Operator",
    "Reference",
    "bind",
    "compute",
    "golden",
    "operator",
    "operators",
    "reference",
    "validate",
]
