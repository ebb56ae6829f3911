"""Published differences of aclnnKlDivBackward, and a generated mutant that no right verdict may notice."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ...model.call import Array
from ...model.platforms import Platform
from ...operators.definition.parameters import MEAN
from ...operators.kl_div_backward import BATCH_MEAN, OPERATOR, common
from ..base.base import Defect
from ..base.device import Device
from ..base.kernels import plain
from ..base.pieces import Arguments, F, Kernel

SLUG = "kl_div_backward"
ARGUMENTS = {
    f"check/{SLUG}/without self casts to out": (
        "of the types that the next check accepts each casts to every other: what does not cast is refused all the same"
    ),
}


def by_self(reduction: int) -> Kernel:
    """A mean that is divided by self's own count instead of the common shape's."""
    right = plain(OPERATOR)

    def kernel(a: Arguments, target: Platform) -> Array:
        result = right(a, target)
        if a["reduction"] != reduction:
            return result
        shapes = [shape if reduction == MEAN else (shape or (1,))[:1] for shape in (common(a), a["self"].shape)]
        whole, own = map(math.prod, shapes)
        return np.asarray(result * F(whole / max(1, own)))

    return kernel


def rows() -> Iterator[Defect]:
    """Yield what the official golden and PyTorch divide by."""
    for name, reduction, evidence in (
        ("mean", MEAN, "ops-nn golden.py"),
        ("batch mean", BATCH_MEAN, "PyTorch's kl_div"),
    ):
        yield Defect(
            f"kl_div/{name} of self", OPERATOR.name, "RED", f"a {name} divides by what self counts",
            Device(name, by_self(reduction)), f"a {name} of a self that broadcasts", evidence,
        )  # fmt: skip
