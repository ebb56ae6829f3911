"""The published defect of aclnnSwishBackward, and generated mutants that no right verdict may notice."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...operators.swish_backward import OPERATOR
from ..base.base import Defect
from ..base.device import Device
from ..base.elementwise import Operands, changing
from ..base.pieces import Arguments
from .gelu_backward import NO_ZERO

S, X = "(1 / (exp((-(self * betaOptional))) + 1))", "(self * betaOptional)"
ARGUMENTS = {
    f"mask/swish_backward/(((1 - {S}) * {X}) + 1)": NO_ZERO,
    f"mask/swish_backward/((((1 - {S}) * {X}) * {S}) + {S})": NO_ZERO,
}


def truncated(k: Operands, a: Arguments) -> None:
    k["beta"] = float(np.trunc(k["beta"])) if np.isfinite(k["beta"]) else k["beta"]


def rows() -> Iterator[Defect]:
    """Yield the defect of ascend950 before 2026."""
    yield Defect(
        "swish/whole beta", OPERATOR.name, "DTY", "beta is an integer: 1.1 is 1, 0.5 is 0",
        Device("whole beta", changing(OPERATOR, truncated)), "a beta that is no integer", "ops-nn eaebf6db2",
        socs=("ascend950",),
    )  # fmt: skip
