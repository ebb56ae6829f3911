"""Whether a machine can run the suite on an NPU, and if not, what to do: findings, each with its remedy."""

from __future__ import annotations

from .examination import examine, pack
from .probe import Finding, failed, worst

__all__ = ["Finding", "examine", "failed", "pack", "worst"]
