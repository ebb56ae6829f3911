"""Generated mutants of aclnnTanhBackward that no right verdict may notice."""

from __future__ import annotations

from collections.abc import Iterator

from ...defects.base import Argument

ARGUMENTS = {
    "operand/tanh_backward/output without sign": "the formula has the square of output alone",
    "operand/tanh_backward/output half flushed": "below 2^-14 the square is below 2^-28, far below half an ulp of 1",
}


def rows() -> Iterator[Argument]:
    """Yield the arguments."""
    for name, why in ARGUMENTS.items():
        yield Argument(name, why)
