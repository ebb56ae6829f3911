"""The published defect of aclnnSoftMarginLossBackward."""

from __future__ import annotations

from collections.abc import Iterator

from ...numerics.formula.expressions import Expression, exp
from ...operators.soft_margin_loss_backward import OPERATOR
from ..base.base import Defect
from ..base.device import Device
from ..base.elementwise import computing


def factor_last(g: Expression, x: Expression, t: Expression, n: Expression) -> Expression:
    e = exp(-(x * t))
    return -t * e / (1 + e) * g * (1 / n)


_SAME = "((-t) / (1 + exp((x * t))))"
_KERNELS = "(((-t) * exp((-(x * t)))) / (1 + exp((-(x * t)))))"
_FINITE = "(abs(((x * t) - (x * t))) <= 0)"
INFINITE = "both fractions are the same but where e^-(self * target) overflows, and there the answer is unspecified"
ARGUMENTS = {
    f"formula/{OPERATOR.slug}/{_FINITE} -> {_FINITE.replace('<=', '!=')}": INFINITE,
    f"formula/{OPERATOR.slug}/where({_FINITE}, {_SAME}, {_KERNELS}) -> where({_FINITE}, {_KERNELS}, {_SAME})": INFINITE,
}


def rows() -> Iterator[Defect]:
    """Yield the defect of ascend950 before August 2026."""
    yield Defect(
        "soft_margin/factor last", OPERATOR.name, "RED", "a mean's factor is multiplied last, to an infinity",
        Device("last", computing(OPERATOR, factor_last)), "a mean of huge gradients beside a target above 1",
        "ops-nn 8e6b992ef", socs=("ascend950",),
    )  # fmt: skip
