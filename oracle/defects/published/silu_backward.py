"""A published defect of aclnnSiluBackward, and a generated mutant that no right verdict may notice."""

from __future__ import annotations

from collections.abc import Iterator

from ...model.call import Call
from ...model.dtypes import dtype_of
from ...operators.silu_backward import INPUTS, OPERATOR
from ..base.base import Defect
from ..base.device import Device
from ..base.kernels import plain
from ..base.pieces import Arguments
from .gelu_backward import NO_ZERO

ARGUMENTS = {"mask/silu_backward/(1 + ((1 - (1 / (exp((-self)) + 1))) * self))": NO_ZERO}


def of_the_first(call: Call, a: Arguments) -> str:
    return dtype_of(a[INPUTS[0]].dtype).name


def rows() -> Iterator[Defect]:
    """Yield the defect."""
    yield Defect(
        "silu/type of the first", OPERATOR.name, "DTY", "beside a self of another type the result has gradOutput's",
        Device("first", plain(OPERATOR), kernel_type=of_the_first), "a 16-bit gradOutput beside a float32 self",
        "ops-nn ce49caa8b", socs=("ascend950",),
    )  # fmt: skip
