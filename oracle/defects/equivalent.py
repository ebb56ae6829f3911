"""Mutants of the formulas that no right verdict may notice, each with the argument why."""

from __future__ import annotations

FORMULA: dict[str, str] = {}
