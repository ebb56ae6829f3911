"""A generated mutant of aclnnThresholdBackward that before ascend950 no right verdict may notice."""

from __future__ import annotations

from collections.abc import Iterator

from ..base.base import BEFORE_950, Argument

CLAMPED = "a threshold other than 0 is far from subnormal numbers, and at 0 what they give is unspecified"


def rows() -> Iterator[Argument]:
    """Yield the argument."""
    yield Argument("operand/threshold_backward/self flushed", CLAMPED, BEFORE_950)
