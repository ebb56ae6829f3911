"""The published defects of aclnnGeluBackward, and a generated mutant that no right verdict may notice."""

from __future__ import annotations

from collections.abc import Iterator

from ...numerics.formula.expressions import Expression, exp, where
from ...operators.gelu_backward import BETA, CUBIC, OPERATOR, formula
from ..base.base import Defect
from ..base.device import Device
from ..base.elementwise import computing

NO_ZERO = (
    "the derivative has no zero among the numbers of any type: where float32 makes it one, right kernels round it to a"
    " number of either sign, and what an infinite gradient gives there is unspecified"
)
SLOPE = "((2 * sqrt((2 / pi))) * (1 + (0.134145 * (self * self))))"
SIGMOID = "(1 / (1 + exp((-((2 * sqrt((2 / pi))) * (self + (0.044715 * ((self * self) * self))))))))"
ARGUMENTS = {f"mask/gelu_backward/(1 + ((self * {SLOPE}) * (1 - {SIGMOID})))": NO_ZERO}


def without_selection(g: Expression, x: Expression) -> Expression:
    q = x * x
    p = exp((-BETA + -(BETA * CUBIC) * q) * x)
    d = 1 / (p + 1)
    return g * (p * d * ((BETA + 3 * BETA * CUBIC * q) * x) * d + d)


def divided_by_self(g: Expression, x: Expression) -> Expression:
    return where(x > 0, 1, where(x < 0, 1, x / x)) * formula(g, x)


def rows() -> Iterator[Defect]:
    """Yield them."""
    yield Defect(
        "gelu/no selection", OPERATOR.name, "NUM", "the term inf * 0 of a large negative self stays NaN",
        Device("no selection", computing(OPERATOR, without_selection)), "self below -10.06",
        "ops-nn experimental/activation", socs=("ascend910b", "ascend910_93", "ascend310p", "ascend950"),
    )  # fmt: skip
    yield Defect(
        "gelu/divided by self", OPERATOR.name, "NUM", "the output is divided by self: NaN at 0",
        Device("divided", computing(OPERATOR, divided_by_self)), "self = 0", "Paddle #14857",
    )  # fmt: skip
