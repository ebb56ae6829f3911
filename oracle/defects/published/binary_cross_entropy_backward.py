"""The published defects of aclnnBinaryCrossEntropyBackward, B01 to B08."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...numerics.formula.expressions import Expression, maximum, minimum
from ...operators.binary_cross_entropy_backward import CLAMP, OPERATOR, formula
from ...operators.definition.parameters import SUM
from ..base.base import EVERY_SOC, WITH_INFINITIES, Defect
from ..base.device import Device
from ..base.elementwise import Operands, changing, computing, traced
from ..base.kernels import plain
from ..base.pieces import Arguments, F, Kernel
from ..base.stores import half_away, saturated, truncated

RIGHT = traced(OPERATOR)
ARGUMENTS = {
    f"operand/{OPERATOR.slug}/self inf as largest": "what an infinite self gives is unspecified: right kernels disagree"
}


def in_float16(k: Operands, a: Arguments) -> Any:
    """float16 inputs in float16 throughout, where 1e-12 is zero."""
    return RIGHT(k, np.float16).astype(F) if a["self"].dtype == np.float16 else None


def no_clamp(g: Expression, x: Expression, y: Expression, w: Expression) -> Expression:
    return g * (x - y) / ((1 - x) * x) * w


def clamp_first(g: Expression, x: Expression, y: Expression, w: Expression) -> Expression:
    return formula(g, minimum(maximum(x, CLAMP), 1 - CLAMP), y, w)


def summed(k: Operands, a: Arguments) -> Any:
    return np.sum(RIGHT(k), dtype=F) if a["reduction"] == SUM else None


def by_batch(k: Operands, a: Arguments) -> None:
    if "n" in k:
        k["n"] = a["self"].shape[0] if a["self"].ndim else 1


def null_weight_is_zero(k: Operands, a: Arguments) -> None:
    k.setdefault("w", 0.0)


def rows() -> Iterator[Defect]:
    """Yield B01 to B08."""
    op, right = OPERATOR, plain(OPERATOR)
    table: list[tuple[str, str, str, Kernel, dict[str, Any], str, str]] = [
        ("B01", "NUM", "float16 is computed in float16, where the clamp is zero", changing(op, in_float16), {},
         "float16 with self at 0 or 1", "Oneflow #7476"),
        ("B02", "NUM", "the divisor is not clamped", computing(op, no_clamp), {},
         "self at 0, at 1 or outside [0, 1]", "torch/nn #730, tiny-dnn #410"),
        ("B03", "NUM", "self is clamped before the numerator too", computing(op, clamp_first), {},
         "self and target both near 0, or self outside [0, 1]", "pytorch #187557"),
        ("B04", "RED", "sum adds all elements up", changing(op, summed), {}, "sum with more than one element",
         "pytorch #59477, #77852"),
        ("B05", "RED", "mean divides by the first dim", changing(op, by_batch), {}, "mean of rank 2 or more",
         "class of aprender #2182"),
        ("B06", "RED", "a missing weight is read as zeros", changing(op, null_weight_is_zero), {}, "no weight",
         "ops-nn !2958/#1486"),
        ("B07", "SPEC", "float16 overflow gives 65504 and NaN gives 0", right, {"store": saturated},
         "float16 results that overflow, or NaN", "DIPU #684, DIOPI #644"),
        ("B08", "NUM", "16-bit stores round ties away from zero", right, {"store": half_away},
         "results that lie exactly halfway between two 16-bit numbers", "ops-nn !8521/#4692"),
        ("B08/truncates", "NUM", "16-bit stores cut the digits off", right, {"store": truncated},
         "any inexact 16-bit result", "ops-nn !8521/#4692"),
    ]  # fmt: skip
    for name, kind, what, kernel, steps, needs, evidence in table:
        socs = WITH_INFINITIES if name == "B07" else EVERY_SOC
        yield Defect(name, op.name, kind, what, Device(name, kernel, **steps), needs, evidence, socs)
