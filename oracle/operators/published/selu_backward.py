"""A published difference of aclnnSeluBackward, and generated mutants that no right verdict may notice."""

from __future__ import annotations

from collections.abc import Iterator

from ...defects.base import Argument, Defect
from ...defects.device import Device
from ...defects.elementwise import computing
from ...numerics.expressions import Expression, equal, where
from ..selu_backward import OPERATOR, SCALE, formula

ZERO = "before ascend950 a result of 0 takes either branch and is unspecified; on ascend950 `selu/zero` stands for it"
IN_FLOAT16 = (
    "the public kernels before ascend950 compute float16 step by step in float16, and what that may lose is more than a"
    " last rounding of another kind"
)
ARGUMENTS = {
    "formula/selu_backward/(y <= 0) -> (y < 0)": ZERO,
    **{f"num/selu_backward/{name}": IN_FLOAT16 for name in ("float16 in float16", "float16 truncate")},
}


def upper_at_zero(g: Expression, y: Expression) -> Expression:
    return where(equal(y, 0), g * SCALE, formula(g, y))


def rows() -> Iterator[Defect | Argument]:
    """Yield the defect of ascend950 before July 2026, and the arguments."""
    yield Defect(
        "selu/zero", OPERATOR.name, "FORM", "a result of 0 takes the upper branch",
        Device("zero", computing(OPERATOR, upper_at_zero)), "a result of 0", "ops-nn, July 2026", socs=("ascend950",),
    )  # fmt: skip
