"""Published defects of losses over class indices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np

from ...operators import nll_loss2d_backward, nll_loss_backward
from ...operators.definition.operator import Operator
from ...operators.definition.parameters import MEAN, NONE as EACH, SUM
from ..base.device import Defect, Right, published_defect, reading
from ..base.elementwise import Arguments, F, gather
from ..base.samples import NEVER, Change, Formula, Samples, changing
from ..one_change.layouts import packed

# The published defects of aclnnNLLLossBackward, N01 to N12.

RIGHT = Formula(nll_loss_backward.OPERATOR)
BEYOND = 4096  # the "2^31" of N10; a catalogue can reach it


def _negative_targets_wrap(k: Samples, a: Arguments) -> None:
    """Do not honour a negative ignoreIndex; count a negative class from the end."""
    k.ignore = k.ignore if k.ignore >= 0 else NEVER
    k.classes = np.where(k.classes < 0, k.classes % k.count, k.classes)


def _low_bits(k: Samples, a: Arguments) -> None:
    k.ignore = int(np.int64(k.ignore).astype(np.int32))


def _never_ignored(k: Samples, a: Arguments) -> None:
    if 0 <= k.ignore < k.count:
        k.ignore = NEVER


def _divided_by_batch(k: Samples, a: Arguments) -> None:
    k.single["total"] = np.full(k.classes.size, k.classes.size, F)


def _gradient_ignored(k: Samples, a: Arguments) -> None:
    k.per_sample["g"] = np.ones_like(k.per_sample["g"])


def _sum_divided(k: Samples, a: Arguments) -> None:
    k.reduction = MEAN if k.reduction == SUM else k.reduction


def _total_not_positive(k: Samples, a: Arguments) -> Any:
    return k.out if k.reduction == MEAN and not (k.single["total"] > 0).all() else None


def _not_cleared(k: Samples, a: Arguments) -> None:
    k.out.fill(np.nan)


def _in_input_type(k: Samples, a: Arguments) -> Any:
    """Compute every intermediate in the input's type; for 16 bits, round the quotient before the product."""
    kind = a["self"].dtype
    rows = np.flatnonzero(k.classes != k.ignore)
    c = k.classes[rows]
    scale = k.per_sample["g"].astype(kind)
    if k.reduction == MEAN:
        scale = (scale / k.single["total"].astype(kind)).astype(kind)
    k.out[rows, c] = -(scale[rows] * gather(k.per_class["w"], c).astype(kind)).astype(F)
    return k.out


def beyond(k: Samples, a: Arguments, *, wraps: bool) -> Any:
    """Lose flat offsets of at least BEYOND, or wrap them around."""
    right = RIGHT(k).reshape(-1)
    if right.size <= BEYOND:
        return right
    out = right.copy()
    if wraps:
        for start in range(BEYOND, right.size, BEYOND):
            part = right[start : start + BEYOND]
            np.copyto(out[: part.size], part, where=part != 0)
    out[BEYOND:] = 0
    return out


def _changed(op: Operator, id: str, kind: str, what: str, change: Change, needs: str, evidence: str) -> Defect:
    return published_defect(op, id, kind, what, changing(op, change), needs, evidence)


def of_nll_loss_backward() -> list[Defect]:
    """Return N01 to N12."""
    op = nll_loss_backward.OPERATOR
    row = partial(_changed, op)
    return [
        row("N01", "IDX", "a negative ignoreIndex is not honoured and negative targets wrap", _negative_targets_wrap,
            "a negative ignoreIndex that stands in the target",
            "DIOPI #1161, PaddleCustomDevice #398 and #1390, pytorch #106118"),
        row("N02", "IDX", "ignoreIndex is cut to its low 32 bits", _low_bits,
            "an ignoreIndex beyond int32 whose low bits are a class that occurs", "ops-nn !1990/#1101, !1997/#1105"),
        row("N03", "IDX", "an ignoreIndex inside [0, C) is never honoured", _never_ignored,
            "an ignoreIndex that is a class and occurs in the target", "pytorch/xla #896, pytorch #109574"),
        row("N04", "RED", "mean divides by the batch instead of totalWeight", _divided_by_batch,
            "mean with a totalWeight that is not the batch size", "pytorch/xla #896, Oneflow #6838"),
        row("N05", "RED", "gradOutput is ignored", _gradient_ignored, "gradients other than one",
            "pytorch #94226, kulinseth/pytorch #289"),
        row("N06", "RED", "sum is divided by totalWeight too", _sum_divided, "sum with a totalWeight other than one",
            "aprender #2182"),
        row("N07", "RED", "reduction none returns zeros", lambda k, a: k.out if k.reduction == EACH else None,
            "reduction none", "DirectML #739, #740"),
        row("N08", "SPEC", "mean with totalWeight <= 0 returns zeros", _total_not_positive,
            "mean with a negative or zero totalWeight", "pytorch #64572, #31491, pytorch/xla #3141"),
        row("N09", "SPEC", "the output is not cleared: other classes and ignored rows keep garbage", _not_cleared,
            "more than one class, or an ignored row", "pytorch #20406"),
        row("N10", "BIG", f"writes at flat offsets from {BEYOND} on are lost (2^31 in the original)",
            partial(beyond, wraps=False), f"more than {BEYOND} cells", "pytorch #190139, torch-xpu-ops #4725"),
        row("N10/wraps", "BIG", f"writes at flat offsets from {BEYOND} on wrap around (2^31 in the original)",
            partial(beyond, wraps=True), f"more than {BEYOND} cells", "pytorch #190139"),
        row("N11", "NUM", "16-bit inputs are computed in 16 bits", _in_input_type,
            "mean in float16 or bfloat16 whose quotient is inexact or underflows", "pytorch #61523"),
        published_defect(op, "N12", "LAY", "a strided target is read contiguously", None, "a target with stride 2",
                         "class of Torch-FL #171, pytorch #175084", read=reading("target", packed)),
    ]  # fmt: skip


# The published defects of aclnnNLLLoss2dBackward, and the defects of aclnnNLLLossBackward that its kernel can share.

RIGHT_2D = Formula(nll_loss2d_backward.OPERATOR)


def _classes_last(k: Samples, a: Arguments) -> Any:
    """Return the result in the layout (N, H, W, C): the host's layout before its final transpose."""
    batch, classes, *image = a["self"].shape
    last = RIGHT_2D(k).reshape(batch, *image, classes)
    return np.moveaxis(last.reshape(batch, classes, *image), 1, -1).reshape(-1, classes).astype(F)


def of_nll_loss2d_backward() -> list[Defect]:
    """Return the defects 2D01 to 2D04."""
    row = partial(_changed, nll_loss2d_backward.OPERATOR)
    return [
        row("2D01", "IDX", "ignoreIndex is cut to its low 32 bits", _low_bits,
            "an ignoreIndex beyond int32 whose low bits are a class that occurs", "ops-nn eb818ca68"),
        row("2D02", "LAY", "the result is not transposed back from (N, H, W, C)", _classes_last,
            "an image of several pixels and several classes", "class of hicann/ops-nn nll_loss_grad (TBE route)"),
        row("2D03", "IDX", "an ignoreIndex inside [0, C) is never honoured", _never_ignored,
            "an ignoreIndex that is a class and occurs in the target", "pytorch/xla #896, pytorch #109574"),
        row("2D04", "SPEC", "the output is not cleared: other classes and ignored pixels keep garbage", _not_cleared,
            "more than one class, or an ignored pixel", "pytorch #20406"),
    ]  # fmt: skip


# Operator -> a function that yields its published entries.
ROWS: Mapping[str, Callable[[], Iterable[Defect | Right]]] = {
    "nll_loss_backward": of_nll_loss_backward,
    "nll_loss2d_backward": of_nll_loss2d_backward,
}
