"""Generated mutants of aclnnL1LossBackward that no right verdict may notice before ascend950."""

from __future__ import annotations

from collections.abc import Iterator

from ...operators.l1_loss_backward import OPERATOR
from ..base.base import BEFORE_950, Argument

OF_NAN = "before ascend950 what a self or target that is NaN gives is unspecified: public kernels disagree"


def rows() -> Iterator[Argument]:
    """Yield them."""
    for mutant in ("formula/{}/(x < t) -> (x != t)", "operand/{}/self nan as zero", "operand/{}/target nan as zero"):
        yield Argument(mutant.format(OPERATOR.slug), OF_NAN, BEFORE_950)
