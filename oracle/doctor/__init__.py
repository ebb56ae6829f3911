"""Whether a machine can run the suite on an NPU, and if not, what to do: findings, each with its remedy."""

from __future__ import annotations

from .examination import examine
from .findings import Finding, failed, worst
from .packing import pack

__all__ = ["Finding", "examine", "failed", "pack", "worst"]
