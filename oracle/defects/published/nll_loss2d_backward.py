"""The published defects of aclnnNLLLoss2dBackward, and those of its sibling that a kernel of images shares."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...operators.nll_loss2d_backward import OPERATOR
from ..base.base import Argument, Defect
from ..base.device import Device
from ..base.pieces import Arguments, F
from ..base.samples import NEVER, Formula, Samples, changing

RIGHT = Formula(OPERATOR)


def _low_bits(k: Samples, a: Arguments) -> None:
    k.ignore = int(np.int64(k.ignore).astype(np.int32))


def _never_ignored(k: Samples, a: Arguments) -> None:
    if 0 <= k.ignore < k.count:
        k.ignore = NEVER


def _not_cleared(k: Samples, a: Arguments) -> None:
    k.out[...] = np.nan


def _classes_last(k: Samples, a: Arguments) -> Any:
    """The result laid out as (N, H, W, C), as the host has it before it transposes it back."""
    batch, classes, *image = a["self"].shape
    last = RIGHT(k).reshape(batch, *image, classes)
    return np.moveaxis(last.reshape(batch, classes, *image), 1, -1).reshape(-1, classes).astype(F)


def rows() -> Iterator[Defect | Argument]:
    """Yield the table."""
    table: list[tuple[str, str, str, Callable[[Samples, Arguments], Any], str, str]] = [
        ("2D01", "IDX", "ignoreIndex is cut to its low 32 bits", _low_bits,
         "an ignoreIndex beyond int32 whose low bits are a class that occurs", "ops-nn eb818ca68"),
        ("2D02", "LAY", "the result is not transposed back from (N, H, W, C)", _classes_last,
         "an image of several pixels and several classes", "class of hicann/ops-nn nll_loss_grad (TBE route)"),
        ("2D03", "IDX", "an ignoreIndex inside [0, C) is never honoured", _never_ignored,
         "an ignoreIndex that is a class and occurs in the target", "pytorch/xla #896, pytorch #109574"),
        ("2D04", "SPEC", "the output is not cleared: other classes and ignored pixels keep garbage", _not_cleared,
         "more than one class, or an ignored pixel", "pytorch #20406"),
    ]  # fmt: skip
    for name, kind, what, change, needs, evidence in table:
        yield Defect(name, OPERATOR.name, kind, what, Device(name, changing(OPERATOR, change)), needs, evidence)
    kept = "out has self's dtype: what is computed in float32 is rounded to float16 at last, and once"
    yield Argument(f"host/{OPERATOR.slug}/float16 kept", kept)
