"""A generated mutant of aclnnHardswishBackward that before ascend950 no right verdict may notice."""

from __future__ import annotations

from collections.abc import Iterator

from ...defects.base import BEFORE_950, Argument


def rows() -> Iterator[Argument]:
    """Yield the argument."""
    unspecified = "what self = NaN gives is unspecified"
    yield Argument("operand/hardswish_backward/self nan as zero", unspecified, BEFORE_950)
