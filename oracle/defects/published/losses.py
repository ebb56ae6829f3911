"""Published defects of losses, right kernels of their own, and arguments about mutants."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from ...model.aclnn import Platform
from ...model.call import Array
from ...numerics.expressions import ZERO, Expression, exp, maximum, minimum, symbol
from ...numerics.traversal import names_of
from ...operators import (
    binary_cross_entropy_backward,
    binary_cross_entropy_with_logits_backward,
    cross_entropy_loss,
    cross_entropy_loss_grad,
    kl_div,
    kl_div_backward,
    mse_loss,
    nll_loss2d_backward,
    nll_loss_backward,
    soft_margin_loss_backward,
)
from ...operators.definition.operator import Operator
from ...operators.definition.parameters import MEAN, NONE, SUM
from ..base import elementwise, rows as staged, samples
from ..base.device import BEFORE_950, WITH_INFINITIES, Argument, Defect, Right, plain, published_defect, reading
from ..base.elementwise import Arguments, F, Formula, Kernel, Operands, Where, changing, computing, gather, gathered
from ..one_change import formula, numbers, refusals
from ..one_change.layouts import packed
from ..one_change.mutations import changes, settled
from ..one_change.numerics import half_away, saturated, truncated


def of_cross_entropy(op: Operator, evidence: str) -> list[Defect]:
    """Return the published defects that aclnnCrossEntropyLoss and its gradient share."""
    row = partial(published_defect, op)
    return [
        row(f"{op.slug}/negative ignoreIndex", "IDX", "a mean counts the samples of a negative ignoreIndex too",
            partial(_counting_ignored, op), "a mean, and a negative ignoreIndex that occurs", evidence),
        row(f"{op.slug}/low bits", "IDX", "ignoreIndex is cut to its low 32 bits", partial(_cut, op),
            "an ignoreIndex beyond int32 whose low bits are a class that occurs", "the kernel of ascend950"),
    ]  # fmt: skip


def _counting_ignored(op: Operator, a: Arguments, target: Platform) -> Array:
    result, ignored = plain(op)(a, target), a["target"] == a["ignoreIndex"]
    is_mean = (a["reductionOptional"] or cross_entropy_loss.MEAN) == cross_entropy_loss.MEAN
    if not is_mean or a["ignoreIndex"] >= 0 or ignored.all():
        return result
    weights = a["weightOptional"]
    counted = a["target"][~ignored]
    total = F(counted.size) if weights is None else weights[counted].sum(dtype=F)
    return np.asarray(result * (total / (total + F(np.count_nonzero(ignored)))))


def _cut(op: Operator, a: Arguments, target: Platform) -> Array:
    return plain(op)({**a, "ignoreIndex": int(np.int64(a["ignoreIndex"]).astype(np.int32))}, target)


def of_cross_entropy_loss_grad() -> Iterator[Defect | Argument]:
    """Yield the published defects, and arguments for mutants that differ only at a labelSmoothing other than 0."""
    op = cross_entropy_loss_grad.OPERATOR
    yield from of_cross_entropy(op, "the official golden, and a kernel of ascend950")
    for name in (*_smoothed(op), f"pair/{op.slug}/*labelSmoothing positive*"):
        yield Argument(name, "before ascend950 a labelSmoothing other than 0 is unspecified", BEFORE_950)


def _smoothed(op: Operator) -> Iterator[str]:
    """Yield the ids of mutants that give the right answers at a labelSmoothing of 0."""
    graph = staged.graph_of(op)
    every = list(changes(graph.outer))
    right, *changed = (settled(root, symbol("s"), ZERO) for root in (graph.outer, *(c.graph for c in every)))
    same = {change.name for change, root in zip(every, changed, strict=True) if root is right}
    unused = tuple(f"{stage.name}: " for stage in graph.stages if stage.name not in names_of(right))
    for defect in formula.mutants(op):
        name = defect.id.removeprefix(f"formula/{op.slug}/")
        if name in same or name.startswith(unused):
            yield defect.id
    for defect in (*numbers.of_numbers(op), *refusals.mutants(op)):
        if re.search(r"/labelSmoothing |fractional labelSmoothing", defect.id):
            yield defect.id


# Published differences of aclnnKlDivBackward.


def by_self(reduction: int, a: Arguments, target: Platform) -> Array:
    """Compute a mean over self's own count in place of the common shape's count."""
    result = plain(kl_div_backward.OPERATOR)(a, target)
    if a["reduction"] != reduction:
        return result
    shapes = [shape if reduction == MEAN else (shape or (1,))[:1] for shape in (kl_div.COMMON(a), a["self"].shape)]
    whole, own = map(math.prod, shapes)
    return np.asarray(result * F(whole / max(1, own)))


def of_kl_div_backward() -> list[Defect]:
    """Return the means with the divisors of the official golden and of PyTorch."""
    row = partial(published_defect, kl_div_backward.OPERATOR)
    return [
        row("kl_div/mean of self", "RED", "a mean divides by what self counts", partial(by_self, MEAN),
            "a mean of a self that broadcasts", "ops-nn golden.py"),
        row("kl_div/batch mean of self", "RED", "a batch mean divides by what self counts",
            partial(by_self, kl_div.BATCH_MEAN), "a batch mean of a self that broadcasts", "PyTorch's kl_div"),
    ]  # fmt: skip


# Published defects of aclnnMseLoss.

CORES = 48


def _last_core() -> Kernel:
    op = mse_loss.OPERATOR
    right = Formula(op, elementwise.own_order(op))

    def wrong(a: Arguments, target: Platform) -> Array:
        terms = np.array(np.broadcast_to(right(elementwise.operands_of(op, a)), op.terms_shape(a)))
        terms.reshape(-1)[: terms.size - -(-terms.size // CORES)] = 0
        return gathered(op, terms, a)

    return Where(plain(op), lambda a: a["reduction"] == SUM and op.terms_shape(a) != (), wrong)


# The published defect of aclnnSoftMarginLossBackward.


def factor_last(g: Expression, x: Expression, t: Expression, n: Expression) -> Expression:
    e = exp(-(x * t))
    return -t * e / (1 + e) * g * (1 / n)


# The published defects of aclnnBinaryCrossEntropyBackward, B01 to B08.

RIGHT = Formula(binary_cross_entropy_backward.OPERATOR)


def in_float16(k: Operands, a: Arguments) -> Any:
    """Compute float16 inputs in float16; in float16, 1e-12 is zero."""
    return RIGHT(k, np.float16).astype(F) if a["self"].dtype == np.float16 else None


def clamp_first(g: Expression, x: Expression, y: Expression, w: Expression) -> Expression:
    clamp = binary_cross_entropy_backward.CLAMP
    return binary_cross_entropy_backward.formula(g, minimum(maximum(x, clamp), 1 - clamp), y, w)


def summed(k: Operands, a: Arguments) -> Any:
    return np.sum(RIGHT(k), dtype=F) if a["reduction"] == SUM else None


def by_batch(k: Operands, a: Arguments) -> None:
    if "n" in k:
        k["n"] = a["self"].shape[0] if a["self"].ndim else 1


def null_weight_is_zero(k: Operands, a: Arguments) -> None:
    k.setdefault("w", 0.0)


def of_binary_cross_entropy_backward() -> list[Defect]:
    """Return B01 to B08."""
    op = binary_cross_entropy_backward.OPERATOR
    row = partial(published_defect, op)
    return [
        row("B01", "NUM", "float16 is computed in float16, where the clamp is zero", changing(op, in_float16),
            "float16 with self at 0 or 1", "Oneflow #7476"),
        row("B02", "NUM", "the divisor is not clamped",
            computing(op, lambda g, x, y, w: g * (x - y) / ((1 - x) * x) * w), "self at 0, at 1 or outside [0, 1]",
            "torch/nn #730, tiny-dnn #410"),
        row("B03", "NUM", "self is clamped before the numerator too", computing(op, clamp_first),
            "self and target both near 0, or self outside [0, 1]", "pytorch #187557"),
        row("B04", "RED", "sum adds all elements up", changing(op, summed), "sum with more than one element",
            "pytorch #59477, #77852"),
        row("B05", "RED", "mean divides by the first dim", changing(op, by_batch), "mean of rank 2 or more",
            "class of aprender #2182"),
        row("B06", "RED", "a missing weight is read as zeros", changing(op, null_weight_is_zero), "no weight",
            "ops-nn !2958/#1486"),
        row("B07", "SPEC", "float16 overflow gives 65504 and NaN gives 0", None,
            "float16 results that overflow, or NaN", "DIPU #684, DIOPI #644", store=saturated, socs=WITH_INFINITIES),
        row("B08", "NUM", "16-bit stores round ties away from zero", None,
            "results that lie exactly halfway between two 16-bit numbers", "ops-nn !8521/#4692", store=half_away),
        row("B08/truncates", "NUM", "16-bit stores cut the digits off", None, "any inexact 16-bit result",
            "ops-nn !8521/#4692", store=truncated),
    ]  # fmt: skip


def of_binary_cross_entropy_with_logits_backward() -> list[Right]:
    """Return a right kernel in addition to the public ones: the page's own formula."""
    op = binary_cross_entropy_with_logits_backward.OPERATOR
    return [
        Right("right/two sigmoids", op.name, "1 - s as a sigmoid of its own, in float32", computing(op, Formula(op)))
    ]


# The published defects of aclnnNLLLossBackward, N01 to N12.

RIGHT_NLL = samples.Formula(nll_loss_backward.OPERATOR)
BEYOND = 4096  # the "2^31" of N10; a catalogue can reach it


def _negative_targets_wrap(k: samples.Samples, a: Arguments) -> None:
    """Do not honour a negative ignoreIndex; count a negative class from the end."""
    k.ignore = k.ignore if k.ignore >= 0 else samples.NEVER
    k.classes = np.where(k.classes < 0, k.classes % k.count, k.classes)


def _low_bits(k: samples.Samples, a: Arguments) -> None:
    k.ignore = int(np.int64(k.ignore).astype(np.int32))


def _never_ignored(k: samples.Samples, a: Arguments) -> None:
    if 0 <= k.ignore < k.count:
        k.ignore = samples.NEVER


def _divided_by_batch(k: samples.Samples, a: Arguments) -> None:
    k.single["total"] = np.full(k.classes.size, k.classes.size, F)


def _gradient_ignored(k: samples.Samples, a: Arguments) -> None:
    k.per_sample["g"] = np.ones_like(k.per_sample["g"])


def _sum_divided(k: samples.Samples, a: Arguments) -> None:
    k.reduction = MEAN if k.reduction == SUM else k.reduction


def _total_not_positive(k: samples.Samples, a: Arguments) -> Any:
    return k.out if k.reduction == MEAN and not (k.single["total"] > 0).all() else None


def _not_cleared(k: samples.Samples, a: Arguments) -> None:
    k.out.fill(np.nan)


def _in_input_type(k: samples.Samples, a: Arguments) -> Any:
    """Compute every intermediate in the input's type; for 16 bits, round the quotient before the product."""
    kind = a["self"].dtype
    rows = np.flatnonzero(k.classes != k.ignore)
    c = k.classes[rows]
    scale = k.per_sample["g"].astype(kind)
    if k.reduction == MEAN:
        scale = (scale / k.single["total"].astype(kind)).astype(kind)
    k.out[rows, c] = -(scale[rows] * gather(k.per_class["w"], c).astype(kind)).astype(F)
    return k.out


def beyond(k: samples.Samples, a: Arguments, *, wraps: bool) -> Any:
    """Lose flat offsets of at least BEYOND, or wrap them around."""
    right = RIGHT_NLL(k).reshape(-1)
    if right.size <= BEYOND:
        return right
    out = right.copy()
    if wraps:
        for start in range(BEYOND, right.size, BEYOND):
            part = right[start : start + BEYOND]
            np.copyto(out[: part.size], part, where=part != 0)
    out[BEYOND:] = 0
    return out


def _changed(op: Operator, id: str, kind: str, what: str, change: samples.Change, needs: str, evidence: str) -> Defect:
    return published_defect(op, id, kind, what, samples.changing(op, change), needs, evidence)


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
        row("N07", "RED", "reduction none returns zeros", lambda k, a: k.out if k.reduction == NONE else None,
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

RIGHT_2D = samples.Formula(nll_loss2d_backward.OPERATOR)


def _classes_last(k: samples.Samples, a: Arguments) -> Any:
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
ROWS: Mapping[str, Callable[[], Iterable[Argument | Defect | Right]]] = {
    "cross_entropy_loss": partial(of_cross_entropy, cross_entropy_loss.OPERATOR, "ops-nn 9829a66ef"),
    "cross_entropy_loss_grad": of_cross_entropy_loss_grad,
    "kl_div_backward": of_kl_div_backward,
    "mse_loss": lambda: [published_defect(
        mse_loss.OPERATOR, "mse_loss/last core alone", "DET",
        "cores do not wait for one another, so that the sum is the last one's: (192857467, April 2026)", _last_core(),
        "a sum over several cores", "ops-nn 192857467",
    )],
    "soft_margin_loss_backward": lambda: [published_defect(
        soft_margin_loss_backward.OPERATOR, "soft_margin/factor last", "RED",
        "a mean's factor is multiplied last, to an infinity",
        computing(soft_margin_loss_backward.OPERATOR, factor_last), "a mean of huge gradients with a target above 1",
        "ops-nn 8e6b992ef", socs=("ascend950",),  # before August 2026
    )],
    "binary_cross_entropy_backward": of_binary_cross_entropy_backward,
    "binary_cross_entropy_with_logits_backward": of_binary_cross_entropy_with_logits_backward,
    "nll_loss_backward": of_nll_loss_backward,
    "nll_loss2d_backward": of_nll_loss2d_backward,
}  # fmt: skip
