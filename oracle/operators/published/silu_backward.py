"""A generated mutant of aclnnSiluBackward that no right verdict may notice."""

from __future__ import annotations

from collections.abc import Iterator

from ...defects.base import Argument

NO_ZERO = (
    "the derivative has no zero among the numbers of any type: where float32 makes it one, right kernels round it to a"
    " number of either sign, and what an infinite gradient gives there is unspecified"
)


def rows() -> Iterator[Argument]:
    """Yield the argument."""
    yield Argument("mask/silu_backward/(1 + ((1 - (1 / (exp((-self)) + 1))) * self))", NO_ZERO)
