"""Generated mutants of aclnnHardshrinkBackward that no right verdict may notice."""

from __future__ import annotations

from collections.abc import Iterator

from ...defects.base import Argument

ARGUMENTS = {"operand/hardshrink_backward/self without sign": "the formula compares the magnitude of self alone"}


def rows() -> Iterator[Argument]:
    """Yield the arguments."""
    for name, why in ARGUMENTS.items():
        yield Argument(name, why)
