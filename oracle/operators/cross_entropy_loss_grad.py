"""aclnnCrossEntropyLossGrad: the gradient of aclnnCrossEntropyLoss by its input, of logProb. W is the sum of weight[t]
over the samples for a mean, else 1; g is the gradient of a sample. With k = g * (1 - labelSmoothing) / W * weight[t], q
= g / W * labelSmoothing / C: out = exp(logProb) * (k + q * sum(weight)) - (k at its class t) - q * weight.

Sources: document aclnnCrossEntropyLossGrad; loss/cross_entropy_loss_grad/op_host (definition, tiling; the interface
itself is generated); the kernels of ascend910b and ascend950; official golden, PyTorch's gradient.

Document and source differ, and the source wins: target is int64, on ascend950 int32 too. gradZlossOptional,
lseForZlossOptional and lseSquareScaleForZloss have no effect. The official golden and one kernel of ascend950 mask no
negative ignoreIndex, and so divide a mean by too much; this page follows the document's rule. The document's example
passes float vectors as bfloat16: its numbers cannot be right.

Unspecified: labelSmoothing other than 0 before ascend950 (the kernel then writes no output); an ignoreIndex beyond
int32 on ascend950, where the kernel cuts it; a target outside [0, C) that is not ignoreIndex (the golden refuses it).
Special values follow the formula in IEEE float64: a mean of no sample is NaN.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..page import (
    CLASS_INDEX, MAIN, PER_CLASS, PER_SAMPLE, REDUCTIONS, UNREAD, Args, Arguments, Aten, Check, Checks, Expression,
    Formula, Forward, KernelName, Operator, Platform, choice, ends_if_all_empty, equal, exp, format_of_a_row,
    ignore_index, length, not_null, number, output, place, sum_of_rows, sum_over, tensor, tiled, unconfigured, where,
)  # fmt: skip
from .cross_entropy_loss import (
    MEAN, NONE, WORDS, beyond_int32, known_reduction, smoothing, tiling, type_of_weight, types_of_a_row, unshaped,
    weight_of,
)  # fmt: skip

E = Expression


def formula(g: E, x: E, t: E, w: E, ignore: E, s: E, r: E) -> E:
    """The document's formula."""
    own = weight_of(t, w, ignore)
    total = where(equal(r, WORDS.index(MEAN)), sum_of_rows(own), 1)
    k = g * (1 - s) / total * own
    q = where(equal(t, ignore), 0, g / total * s / length())
    at = where(equal(place(), t), k, 0)
    return where(equal(s, 0), exp(x) * k - at, exp(x) * (k + q * sum_over(w)) - at - q * w)


def smoothed(s: E) -> E:
    """Elements that the kernel of ascend910b never writes."""
    return ~equal(s, 0)


def checks(a: Args, platform: Platform) -> Checks:
    """The generated interface, then the tiling in its order."""
    yield not_null(a, "gradLoss", "logProb", "target", "out")
    yield unconfigured(platform, "ascend910", "ascend310p")
    yield types_of_a_row(a, platform, ("gradLoss", "logProb", "out"))
    for name in ("gradLoss", "logProb", "target", "out"):
        yield format_of_a_row(a, name)
    yield type_of_weight(a)
    yield ends_if_all_empty(a, "out")
    yield known_reduction(a)
    yield from tiling(a, platform, "logProb")
    if platform.regbase:
        yield shape_of_gradient(a)
        yield smoothing(a)


def shape_of_gradient(a: Args) -> Check:
    grad, each = a["gradLoss"], a["reductionOptional"] == NONE
    samples = a["target"].shape
    text = f"gradLoss has shape {grad.shape}; it must {f'be {samples}' if each else 'have one element'}"
    fits = grad.shape == samples if each else grad.rank <= 1 and grad.size == 1
    return tiled("shape of gradLoss", None if fits else text)


def undefined(a: Arguments) -> str | None:
    """Unspecified calls that no check refuses, or no check before ascend950."""
    problem = unshaped(a, "logProb")
    if problem is None and tuple(a["out"].shape) != tuple(a["logProb"].shape):
        problem = f"out has shape {tuple(a['out'].shape)}, logProb has {tuple(a['logProb'].shape)}"
    grad = tuple(a["gradLoss"].shape)
    wanted = [tuple(a["target"].shape)] if a["reductionOptional"] == NONE else [(), (1,)]
    if problem is None and grad not in wanted:
        problem = f"gradLoss has shape {grad}; kernels read {wanted[-1]}"
    return problem


def pytorch(aten: Any, t: Mapping[str, Any]) -> Any:
    """PyTorch's gradients of the two functions that the loss consists of, in float32 like the weights."""
    x, target, g = t["logProb"].float(), t["target"].long(), t["gradLoss"].float().reshape(-1)
    w = x.new_ones(x.shape[1]) if t["weightOptional"] is None else t["weightOptional"]
    each, counts = REDUCTIONS.index(NONE), target != t["ignoreIndex"]
    own, _ = aten.nll_loss_forward(-w.expand(x.shape), target, None, each, t["ignoreIndex"])
    g = g / own.sum() if (t["reductionOptional"] or MEAN) == MEAN else g
    at = g * (1 - t["labelSmoothing"]) * own  # 0 or NaN for an ignored sample, which nll_loss_backward would not write
    inner = aten.nll_loss_backward(at, x, target * counts, None, each, -1, own.sum())
    if t["labelSmoothing"]:
        inner = inner - (g * (t["labelSmoothing"] / x.shape[1])).reshape(-1, 1) * w * counts.reshape(-1, 1)
    return aten._log_softmax_backward_data(inner, x, -1, x.dtype).to(t["logProb"].dtype)


OPERATOR = Operator(
    name="aclnnCrossEntropyLossGrad",
    parameters=(
        tensor("gradLoss", "g", PER_SAMPLE),
        tensor("logProb", "x", MAIN),
        tensor("target", "t", CLASS_INDEX),
        tensor("weightOptional", "w", PER_CLASS, optional=True, dtype="float32"),
        tensor("gradZlossOptional", "", UNREAD, optional=True),
        tensor("lseForZlossOptional", "", UNREAD, optional=True),
        choice("reductionOptional", WORDS, "r"),
        ignore_index("ignoreIndex", symbol="ignore"),
        number("labelSmoothing", "s", c="double", plain=0.0),
        number("lseSquareScaleForZloss", "", c="double", plain=0.0),
        output("out"),
    ),
    documented=("ascend950", "ascend910_93", "ascend910b"),
    source="loss/cross_entropy_loss_grad/op_host/cross_entropy_loss_grad_tiling.cpp",
    checks=checks,
    undefined=undefined,
    empty=("logProb",),
    computes=Formula(formula, over="all but target", unspecified={"950": beyond_int32, "tbe": smoothed}),
    points={"x": (-87.34, -103.97)},
    forwards=(Forward("aclnnCrossEntropyLoss", {"logProb": "logProbOut"}),),
    kernel=KernelName(
        "cross_entropy_loss_grad",
        ("gradLoss", "logProb", "target", "weightOptional"),
        {
            "reduction": ("reductionOptional", MEAN),
            "ignore_index": ("ignoreIndex", -100),
            "label_smoothing": ("labelSmoothing", 0.0),
            "lse_square_scale_for_zloss": ("lseSquareScaleForZloss", 0.0),
        },
        optional=("grad_zloss", "lse_for_zloss"),
    ),
    aten=Aten(pytorch, index_types=("int64", "int32"), mixed=True),
)
