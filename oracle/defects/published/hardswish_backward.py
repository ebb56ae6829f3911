"""A published defect of aclnnHardswishBackward, and a mutant that before ascend950 no right verdict may notice."""

from __future__ import annotations

from collections.abc import Iterator

from ...numerics.formula.expressions import Expression, equal, where
from ...operators.hardswish_backward import OPERATOR, formula
from ..base.base import BEFORE_950, Argument, Defect
from ..base.device import Device
from ..base.elementwise import computing


def overwritten(g: Expression, x: Expression) -> Expression:
    return where(equal(x, 3), 1, where(equal(x, -3), 0, formula(g, x)))


def rows() -> Iterator[Argument | Defect]:
    """Yield the argument and the defect."""
    unspecified = "what self = NaN gives is unspecified"
    yield Argument("operand/hardswish_backward/self nan as zero", unspecified, BEFORE_950)
    yield Defect(
        "hardswish/constant edges", OPERATOR.name, "FORM", "self = -3 gives 0, self = 3 gives 1 whatever gradOutput is",
        Device("edges", computing(OPERATOR, overwritten)), "self = 3 beside a gradient other than 1", "op-plugin",
    )  # fmt: skip
