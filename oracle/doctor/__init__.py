"""Check whether a machine can run the suite on an NPU: findings, each with its remedy."""

from __future__ import annotations

from .examination import examine, pack
from .probe import Finding, failed, worst

__all__ = ["Finding", "examine", "failed", "pack", "worst"]
