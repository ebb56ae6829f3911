"""Mutants of aclnnBinaryCrossEntropyWithLogitsBackward that no right verdict may notice."""

from __future__ import annotations

from collections.abc import Iterator

from ...defects.base import Argument
from ..binary_cross_entropy_with_logits_backward import OPERATOR


def rows() -> Iterator[Argument]:
    """Yield them."""
    slug = OPERATOR.slug
    yield Argument(f"divisor/{slug}/target's size", "target has the shape of self, and so its size")
    yield Argument(f"host/{slug}/out's type", "out has target's type, which never has more digits than the common one")
