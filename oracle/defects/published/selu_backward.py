"""A published difference of aclnnSeluBackward, and a mutant that before ascend950 no right verdict may notice."""

from __future__ import annotations

from collections.abc import Iterator

from ...numerics.formula.expressions import Expression, equal, where
from ...operators.selu_backward import OPERATOR, SCALE, formula
from ..base.base import BEFORE_950, Argument, Defect
from ..base.device import Device
from ..base.elementwise import computing

ZERO = "a result of 0 takes either branch and is unspecified"


def upper_at_zero(g: Expression, y: Expression) -> Expression:
    return where(equal(y, 0), g * SCALE, formula(g, y))


def rows() -> Iterator[Defect | Argument]:
    """Yield the defect of ascend950 before July 2026, and the argument."""
    yield Argument("formula/selu_backward/(y <= 0) -> (y < 0)", ZERO, BEFORE_950)
    yield Defect(
        "selu/zero", OPERATOR.name, "FORM", "a result of 0 takes the upper branch",
        Device("zero", computing(OPERATOR, upper_at_zero)), "a result of 0", "ops-nn, July 2026", socs=("ascend950",),
    )  # fmt: skip
