"""A generated mutant of aclnnGeluBackward that no right verdict may notice."""

from __future__ import annotations

from collections.abc import Iterator

from ...defects.base import Argument

NO_ZERO = (
    "the derivative has no zero among the numbers of any type: where float32 makes it one, right kernels round it to a"
    " number of either sign, and what an infinite gradient gives there is unspecified"
)


def rows() -> Iterator[Argument]:
    """Yield the argument."""
    slope = "((2 * sqrt((2 / pi))) * (1 + (0.134145 * (self * self))))"
    sigmoid = "(1 / (1 + exp((-((2 * sqrt((2 / pi))) * (self + (0.044715 * ((self * self) * self))))))))"
    yield Argument(f"mask/gelu_backward/(1 + ((self * {slope}) * (1 - {sigmoid})))", NO_ZERO)
