"""What the official golden of aclnnGroupNorm gives otherwise."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...model.call import Array
from ...model.platforms import Platform
from ...operators.group_norm import OPERATOR
from ..base.base import Defect
from ..base.device import Device
from ..base.kernels import plain
from ..base.pieces import Arguments, F


def variance(a: Arguments, target: Platform) -> Array:
    """The third output of the official golden."""
    r = plain(OPERATOR.of("rstdOut"))(a, target)
    return np.asarray(1 / (r * r) - F(a["eps"]))


def rows() -> Iterator[Defect]:
    """Yield what the official golden gives."""
    yield Defect(
        "group_norm/variance", OPERATOR.name, "NUM", "rstdOut is the variance",
        Device("variance", variance, output="rstdOut"), "any call", "ops-nn golden.py",
    )  # fmt: skip
