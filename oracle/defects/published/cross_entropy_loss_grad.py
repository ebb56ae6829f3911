"""Published defects of aclnnCrossEntropyLossGrad, and its generated mutants that no right verdict may notice."""

from __future__ import annotations

from collections.abc import Iterator

from ...operators.cross_entropy_loss_grad import OPERATOR
from ..base.base import Defect
from .cross_entropy_loss import of_samples


def rows() -> Iterator[Defect]:
    """Yield what was published."""
    yield from of_samples(OPERATOR, "the official golden, and a kernel of ascend950")
