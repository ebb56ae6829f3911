"""A published defect of aclnnMishBackward, and generated mutants that no right verdict may notice."""

from __future__ import annotations

from collections.abc import Iterator

from ...numerics.formula.expressions import Expression, exp
from ...operators.mish_backward import OPERATOR
from ..base.base import Defect
from ..base.device import Device
from ..base.elementwise import computing
from ..one_change.masks import factors_of
from .gelu_backward import NO_ZERO

ONE_FUNCTION = (
    "both branches are the same function; within 1 of zero neither cancels, and kernels that have one branch are right"
)
ARGUMENTS = {
    **{f"mask/mish_backward/{factor}": NO_ZERO for factor in factors_of(OPERATOR) if factor != "gradOutput"},
    **{f"formula/mish_backward/950: 0 -> {end} in (x < 0)": ONE_FUNCTION for end in (-1, 1)},
}


def closed(g: Expression, x: Expression) -> Expression:
    e = exp(x)
    m = (1 + e) * (1 + e) + 1
    return g * (4 * x * e * (e + 1) / (m * m) - 2 / m + 1)


def rows() -> Iterator[Defect]:
    """Yield the defect."""
    yield Defect(
        "mish/closed form", OPERATOR.name, "NUM", "a form in powers of e^self: inf / inf from 41.8 on",
        Device("closed", computing(OPERATOR, closed)), "self above 42", "TBE mish_grad, docstring",
    )  # fmt: skip
