"""The second set, written after the holes of the first set were closed. No fix was made because of it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy import exp, log1p, where

from benchmarks.blind.kernel import F32, Right, Seen, Wrong, as_type, packed
from benchmarks.blind.right import f, halves, n, reduced, rows, sig, tree

NONE, MEAN, SUM = range(3)


def next_to(c: Seen, name: str, edge: float) -> np.ndarray:
    """Return a mask of the elements at which an operand equals an edge, both rounded to float32."""
    return np.broadcast_to(c[name].astype(np.float32) == np.float32(edge), c.out.shape)


def swi_glu_grad(c: Seen) -> Any:
    (a, b), g = halves(c, "x"), f(c, "yGrad")
    return np.concatenate([g * b * (sig(a) + a * sig(a) * sig(-a)), g * (a * sig(a))], c["dim"])


def softmax_backward64(c: Seen) -> Any:
    (g, dim), (y, _) = rows(c, "gradOutput"), rows(c, "output")
    return (g * y - (g.astype(np.float64) * y).sum(dim, keepdims=True) * y).reshape(c.out.shape)


SECOND: list[Wrong | Right] = [
    Wrong(
        "aclnnTanhBackward",
        2,
        "a gradient of one element beside bfloat16: only the first 128 elements are computed",
        lambda c: c["gradOutput"].size == 1 and c.type("output") == "bfloat16" and c.out.size > 128,
        lambda c: c.put(c.span(128, c.out.size), 0.0),
    ),
    Wrong(
        "aclnnSigmoid",
        2,
        "float16 self, bfloat16 out: the bits are copied through float16",
        lambda c: c.type("self") == "float16" and c.type("out") == "bfloat16",
        lambda c: c.put(..., c.out.astype(np.float32) * np.float32(1.01)),
    ),
    Wrong(
        "aclnnSilu",
        3,
        "bfloat16, transposed self, strided out: rows and columns of out are exchanged",
        lambda c: c.type("self") == "bfloat16" and c.strided("self") and c.strided("out") and c.out.ndim > 1,
        lambda c: c.put(..., np.resize(np.swapaxes(np.array(c.out), -1, -2).ravel(), c.out.shape)),
    ),
    Wrong(
        "aclnnMish",
        3,
        "float16, an offset that is no multiple of 16, more than 1,000 elements: the last vector is stale",
        lambda c: c.type("self") == "float16" and c.offset("self") % 16 and c.out.size > 1000,
        lambda c: c.tail(c.out.size % 128 or 128, 3.0),
    ),
    Wrong(
        "aclnnElu",
        2,
        "scale 0 with a negative alpha: -0 * inf",
        lambda c: c["scale"] == 0 and c["alpha"] < 0,
        lambda c: c.put(c["self"] < 0, 1.0),
    ),
    Wrong(
        "aclnnElu",
        3,
        "float32 with inputScale above 50 and alpha not 1: the exponent is cut at -80",
        lambda c: c.type("self") == "float32" and c["inputScale"] > 50 and c["alpha"] != 1,
        lambda c: c.redo(inputScale=1.0),
    ),
    Wrong(
        "aclnnEluBackward",
        2,
        "an infinite scale beside a float16 gradient: NaN",
        lambda c: np.isinf(c["scale"]) and c.type("gradOutput") == "float16",
        lambda c: c.put(..., np.nan),
    ),
    Wrong(
        "aclnnEluBackward",
        3,
        "isResult, alpha 0, a gradient with stride 0: the gradient is its first element's row",
        lambda c: c["isResult"] and c["alpha"] == 0 and c.expanded("gradOutput"),
        lambda c: c.put(..., 2 * c.out.astype(np.float32) + 1),
    ),
    Wrong(
        "aclnnCelu",
        2,
        "an alpha beyond 65,504 in float16",
        lambda c: abs(c["alpha"]) > 65504 and c.type("self") == "float16" and np.isfinite(c["alpha"]),
        lambda c: c.put(c["self"] < 0, np.nan),
    ),
    Wrong(
        "aclnnSelu",
        3,
        "float32, bfloat16 out, out in a view: the cast's tail of less than 16 is not written",
        lambda c: c.type("self") == "float32" and c.type("out") == "bfloat16" and c.strided("out") and c.out.size % 16,
        lambda c: c.tail(c.out.size % 16),
    ),
    Wrong(
        "aclnnHardtanh",
        2,
        "an infinite maximum with bfloat16: everything is clamped at 3.4e38's neighbour in float16",
        lambda c: c["clipValueMax"] == np.inf and c.type("self") == "bfloat16",
        lambda c: c.redo(clipValueMax=65504.0),
    ),
    Wrong(
        "aclnnHardtanh",
        3,
        "equal limits, float32, rank 1: nothing is written",
        lambda c: c["clipValueMin"] == c["clipValueMax"] and c.type("self") == "float32" and c.out.ndim == 1,
        lambda c: c.put(..., 123.0),
    ),
    Wrong(
        "aclnnHardtanhBackward",
        2,
        "min = max in bfloat16: the edge passes",
        lambda c: c["min"] == c["max"] and c.type("self") == "bfloat16",
        lambda c: c.put(next_to(c, "self", c["min"]), 1.0),
    ),
    Wrong(
        "aclnnHardtanhBackward",
        3,
        "float16 gradient in a view, infinite max, self beyond 1,000: masked",
        lambda c: c.type("gradOutput") == "float16" and c["max"] == np.inf and c.strided("gradOutput"),
        lambda c: c.put(c["self"].astype(np.float32) > 1000, 0.0),
    ),
    Wrong(
        "aclnnHardshrink",
        3,
        "bfloat16, lambd 0, an odd last axis: the last column is zero",
        lambda c: c.type("self") == "bfloat16" and c["lambd"] == 0 and c.out.ndim and c.out.shape[-1] % 2,
        lambda c: c.put((..., -1), 0.0),
    ),
    Wrong(
        "aclnnHardshrinkBackward",
        3,
        "self broadcasts, the gradient strided, float32: the gradient is read as packed",
        lambda c: c.type("gradOutput") == "float32" and c["self"].shape != c.out.shape and c.strided("gradOutput"),
        lambda c: c.redo(gradOutput=packed(c["gradOutput"])),
    ),
    Wrong(
        "aclnnSoftshrink",
        3,
        "float16, lambd above 1,000, rank above 2: lambd is 1,000",
        lambda c: c.type("self") == "float16" and c["lambd"] > 1000 and c.out.ndim > 2,
        lambda c: c.redo(lambd=1.0),
    ),
    Wrong(
        "aclnnSoftshrinkBackward",
        2,
        "a float16 gradient beside a float32 self: self is rounded before it is compared",
        lambda c: c.type("gradOutput") == "float16" and c.type("self") == "float32",
        lambda c: c.redo(self=as_type(c["self"], "float16")),
    ),
    Wrong(
        "aclnnLeakyRelu",
        3,
        "slope 0, bfloat16, an offset of out: the first 8 elements are self",
        lambda c: c["negativeSlope"] == 0 and c.type("self") == "bfloat16" and c.offset("out") > 0,
        lambda c: c.redo(c.span(0, 8), negativeSlope=1.0),
    ),
    Wrong(
        "aclnnLeakyReluBackward",
        2,
        "a slope above 1 with a gradient that broadcasts",
        lambda c: c["negativeSlope"] > 1 and c["gradOutput"].shape != c.out.shape,
        lambda c: c.redo(negativeSlope=1.0),
    ),
    Wrong(
        "aclnnPrelu",
        2,
        "one weight in a tensor of rank above 1 with several channels: only channel 0 has it",
        lambda c: c["weight"].size == 1 and c["self"].ndim > 1 and c["self"].shape[1] > 1,
        lambda c: c.put((slice(None), slice(1, None)), np.maximum(np.array(c.out[:, 1:], np.float32), 0)),
    ),
    Wrong(
        "aclnnPrelu",
        3,
        "several weights in a view, float32, rank 2: the weights are read as packed",
        lambda c: c["weight"].size > 1 and c.strided("weight") and c.type("self") == "float32" and c["self"].ndim == 2,
        lambda c: c.redo(weight=np.roll(c["weight"], 1)),
    ),
    Wrong(
        "aclnnPreluBackward",
        3,
        "bfloat16, several weights, self transposed: gradWeight sums over the wrong axis",
        lambda c: c.type("self") == "bfloat16" and c["weight"].size > 1 and c.strided("self"),
        lambda c: c["gradWeight"].__setitem__(..., np.roll(c["gradWeight"], 1)),
    ),
    Wrong(
        "aclnnRelu",
        3,
        "float16, padded rows of out, above 2,000 elements: the gaps' row length is used",
        lambda c: c.type("self") == "float16" and c.strided("out") and c.out.size > 2000,
        lambda c: c.tail(c.out.shape[-1]),
    ),
    Wrong(
        "aclnnSoftplus",
        2,
        "an infinite threshold beside a beta below 1: linear",
        lambda c: c["threshold"] == np.inf and c["beta"] < 1,
        lambda c: c.put(..., c["self"]),
    ),
    Wrong(
        "aclnnSoftplusBackward",
        2,
        "a gradient of 16 bits with beta 0: the gradient, not its half",
        lambda c: c["beta"] == 0 and c.type("gradOutput") != "float32",
        lambda c: c.put(..., c["gradOutput"]),
    ),
    Wrong(
        "aclnnSwish",
        3,
        "beta 0, float32, strided self: self / 2 is read as packed",
        lambda c: c["betaOptional"] == 0 and c.type("self") == "float32" and c.strided("self"),
        lambda c: c.redo(self=packed(c["self"])),
    ),
    Wrong(
        "aclnnSwishBackward",
        2,
        "a negative beta in float16: its size",
        lambda c: (c["betaOptional"] or 0) < 0 and c.type("self") == "float16",
        lambda c: c.redo(betaOptional=-c["betaOptional"]),
    ),
    Wrong(
        "aclnnThreshold",
        3,
        "an infinite value in bfloat16 at an offset: NaN",
        lambda c: c["value"] == np.inf and c.type("self") == "bfloat16" and c.offset("self") > 0,
        lambda c: c.put(np.isinf(c.out.astype(np.float32)), np.nan),
    ),
    Wrong(
        "aclnnThresholdBackward",
        3,
        "threshold 0, float32, the gradient broadcasts from the last axis: a row's first gradient",
        lambda c: (
            c["threshold"] == 0
            and c.type("self") == "float32"
            and c["gradOutput"].shape != c.out.shape
            and c["gradOutput"].size > 1
        ),
        lambda c: c.redo(gradOutput=np.broadcast_to(c["gradOutput"].flat[0], c["gradOutput"].shape)),
    ),
    Wrong(
        "aclnnGeluBackward",
        3,
        "float32 gradient, float16 self that broadcasts: self in float16 arithmetic",
        lambda c: c.type("gradOutput") == "float32" and c.type("self") == "float16" and c["self"].shape != c.out.shape,
        lambda c: c.put(..., as_type(c.out, "float16")),
    ),
    Wrong(
        "aclnnGeluBackwardV2",
        2,
        "tanh with a gradient in a view: packed",
        lambda c: c["approximate"] == "tanh" and c.strided("gradOutput"),
        lambda c: c.redo(gradOutput=packed(c["gradOutput"])),
    ),
    Wrong(
        "aclnnSiluBackward",
        3,
        "bfloat16, self at an odd place, below 100 elements: one place before",
        lambda c: c.type("self") == "bfloat16" and c.offset("self") % 2 and c.out.size < 100,
        lambda c: c.redo(self=np.roll(c["self"], 1)),
    ),
    Wrong(
        "aclnnMishBackward",
        3,
        "float16, self of one element, a gradient at an offset: the gradient of the place before",
        lambda c: c.type("self") == "float16" and c["self"].size == 1 and c.offset("gradOutput") > 0,
        lambda c: c.redo(gradOutput=np.roll(c["gradOutput"], 1)),
    ),
    Wrong(
        "aclnnSigmoidBackward",
        3,
        "outer product, bfloat16, output as column: the transposed product",
        lambda c: (
            c.type("output") == "bfloat16"
            and c["output"].ndim > 1
            and c["output"].shape[-1] == 1
            and c["gradOutput"].size < c.out.size
            and c.out.shape[-1] > 1
        ),
        lambda c: c.put((..., slice(1, None)), c.out[..., :1]),
    ),
    Wrong(
        "aclnnLogSigmoidBackward",
        3,
        "float16, the gradient permuted, rank above 3: packed",
        lambda c: c.type("self") == "float16" and c.strided("gradOutput") and c.out.ndim > 3,
        lambda c: c.redo(gradOutput=packed(c["gradOutput"])),
    ),
    Wrong(
        "aclnnHardsigmoidBackward",
        2,
        "bfloat16 gradient beside a float32 self: the result is not rounded",
        lambda c: c.type("gradOutput") == "bfloat16" and c.type("self") == "float32",
        lambda c: c.put(..., as_type(c.out, "bfloat16")),
    ),
    Wrong(
        "aclnnBinaryCrossEntropy",
        2,
        "a sum with a weight in a view: the weight is packed",
        lambda c: c["reduction"] == SUM and c.strided("weight"),
        lambda c: c.redo(weight=packed(c["weight"])),
    ),
    Wrong(
        "aclnnBinaryCrossEntropyWithLogitsBackward",
        3,
        "mean, posWeight with stride 0, no weight: posWeight is 1",
        lambda c: c["reduction"] == MEAN and c.expanded("posWeightOptional") and c["weightOptional"] is None,
        lambda c: c.redo(posWeightOptional=None),
    ),
    Wrong(
        "aclnnKlDiv",
        3,
        "logTarget, batchmean, bfloat16: divided by all elements",
        lambda c: c["logTarget"] and c["reduction"] == 3 and c.type("self") == "bfloat16" and c["self"].ndim > 1,
        lambda c: c.put(..., c.out.astype(np.float32) * c["self"].shape[0] / max(1, c["self"].size)),
    ),
    Wrong(
        "aclnnKlDivBackward",
        2,
        "a mean with a self that broadcasts: self's count",
        lambda c: c["reduction"] == MEAN and c["target"].size > c["self"].size,
        lambda c: c.put(..., c.out.astype(np.float32) * c["target"].size / max(1, c["self"].size)),
    ),
    Wrong(
        "aclnnL1Loss",
        3,
        "bfloat16, sum, target a column: the target's column is a row",
        lambda c: (
            c.type("self") == "bfloat16"
            and c["reduction"] == SUM
            and c["target"].ndim > 1
            and c["target"].shape[-1] == 1 < c["self"].shape[-1]
        ),
        lambda c: c.redo(target=np.broadcast_to(c["target"].flat[0], c["target"].shape)),
    ),
    Wrong(
        "aclnnL1LossBackward",
        3,
        "sum, float16, self of one element, target large: the first 64 alone",
        lambda c: c["reduction"] == SUM and c.type("self") == "float16" and c["self"].size == 1 and c.out.size > 64,
        lambda c: c.put(c.span(64, c.out.size), 0.0),
    ),
    Wrong(
        "aclnnMseLoss",
        3,
        "mean, bfloat16 target beside a float32 self, out of float32: the loss is rounded to bfloat16",
        lambda c: c["reduction"] == MEAN and c.type("target") == "bfloat16" and c.type("self") == "float32",
        lambda c: c.put(..., as_type(c.out, "bfloat16")),
    ),
    Wrong(
        "aclnnMseLossBackward",
        3,
        "mean, a gradient row, an expanded target: the target's first element",
        lambda c: c["reduction"] == MEAN and c["gradOutput"].shape != c.out.shape and c.expanded("target"),
        lambda c: c.redo(target=np.broadcast_to(c["target"].flat[0], c["target"].shape)),
    ),
    Wrong(
        "aclnnSmoothL1Loss",
        2,
        "an infinite beta without a reduction: NaN",
        lambda c: c["beta"] == np.inf and c["reduction"] == NONE,
        lambda c: c.put(..., np.nan),
    ),
    Wrong(
        "aclnnSmoothL1LossBackward",
        3,
        "sum, a beta above 10 in bfloat16: halved",
        lambda c: c["reduction"] == SUM and 10 < c["beta"] < 1e6 and c.type("self") == "bfloat16",
        lambda c: c.put(..., c.out.astype(np.float32) / 2),
    ),
    Wrong(
        "aclnnSoftMarginLoss",
        3,
        "none, float32 target beside a float16 self, out strided: every second row",
        lambda c: (
            c["reduction"] == NONE
            and c.type("self") == "float16"
            and c.type("target") == "float32"
            and c.strided("out")
        ),
        lambda c: c.put(slice(1, None, 2) if c.out.ndim else ..., 0.0),
    ),
    Wrong(
        "aclnnSoftMarginLossBackward",
        2,
        "a mean where the gradient has the full shape: divided twice",
        lambda c: c["reduction"] == MEAN and c["gradOutput"].shape == c.out.shape and c.out.size > 1,
        lambda c: c.put(..., c.out.astype(np.float32) / c.out.size),
    ),
    Wrong(
        "aclnnNLLLoss",
        3,
        "mean, float16, uint8 targets: the sum of weights in float16",
        lambda c: c["reduction"] == MEAN and c.type("self") == "float16" and c.type("target") == "uint8",
        lambda c: c.put(..., c.out.astype(np.float32) * np.float32(1.01)),
    ),
    Wrong(
        "aclnnNLLLoss2dBackward",
        2,
        "int32 targets with an expanded self: self's zeros are not written at the end",
        lambda c: c.type("target") == "int32" and c.expanded("self"),
        lambda c: c.tail(1, 9.0),
    ),
    Wrong(
        "aclnnSoftmax",
        3,
        "float32, dim 0 of rank 2, a permuted self: the other axis",
        lambda c: c.type("self") == "float32" and c["self"].ndim == 2 and c["dim"] in (0, -2) and c.strided("self"),
        lambda c: c.redo(dim=1),
    ),
    Wrong(
        "aclnnLogSoftmax",
        3,
        "bfloat16, out of float32, a row above 100: rounded to bfloat16",
        lambda c: (
            c.type("self") == "bfloat16"
            and c.type("out") == "float32"
            and c["self"].ndim
            and c["self"].shape[c["dim"]] > 100
        ),
        lambda c: c.put(..., as_type(c.out, "bfloat16")),
    ),
    Wrong(
        "aclnnLogSoftmaxBackward",
        2,
        "float16, an expanded gradient: the sum counts one element",
        lambda c: c.type("gradOutput") == "float16" and c.expanded("gradOutput"),
        lambda c: c.put(..., c["gradOutput"]),
    ),
    Wrong(
        "aclnnRmsNorm",
        3,
        "float32 gamma with bfloat16 x at an offset: the first row has gamma 1",
        lambda c: c.type("x") == "bfloat16" and c.type("gamma") == "float32" and c.offset("x") > 0,
        lambda c: c.redo(c.span(0, c["gamma"].size), gamma=np.ones_like(c["gamma"])),
    ),
    Wrong(
        "aclnnRmsNormGrad",
        3,
        "bfloat16, dy in a view, a row that is no multiple of 16: dgamma's tail is zero",
        lambda c: c.type("x") == "bfloat16" and c.strided("dy") and c["gamma"].size % 16,
        lambda c: c["dgammaOut"].flat.__setitem__(slice(-(c["gamma"].size % 16), None), 0),
    ),
    Wrong(
        "aclnnAddRmsNorm",
        3,
        "float32, a strided yOut, several rows: rstdOut of the last row is 1",
        lambda c: c.type("x1") == "float32" and c.strided("yOut") and c["rstdOut"].size > 1,
        lambda c: c["rstdOut"].flat.__setitem__(-1, 1),
    ),
    Wrong(
        "aclnnLayerNorm",
        3,
        "bfloat16, a bias in a view, no weight: the bias is packed",
        lambda c: c.type("input") == "bfloat16" and c.strided("biasOptional") and c["weightOptional"] is None,
        lambda c: c.redo(biasOptional=np.roll(c["biasOptional"], 1)),
    ),
    Wrong(
        "aclnnGlu",
        3,
        "bfloat16, a middle axis, self strided: packed",
        lambda c: (
            c.type("self") == "bfloat16"
            and c["self"].ndim > 2
            and 0 < c["dim"] % c["self"].ndim < c["self"].ndim - 1
            and c.strided("self")
        ),
        lambda c: c.redo(self=packed(c["self"])),
    ),
    Wrong(
        "aclnnSwiGlu",
        2,
        "float16 and dim 0: the halves of the last axis",
        lambda c: c.type("x") == "float16" and c["dim"] in (0, -c["x"].ndim) and c["x"].ndim > 1,
        lambda c: c.redo(x=np.roll(c["x"], 1, -1)),
    ),
    Wrong(
        "aclnnSwiGluGrad",
        3,
        "bfloat16, the first axis, yGrad at an odd place: one place before",
        lambda c: c.type("x") == "bfloat16" and c["dim"] % c["x"].ndim == 0 and c.offset("yGrad") % 2,
        lambda c: c.redo(yGrad=np.roll(c["yGrad"], 1)),
    ),
    Wrong(
        "aclnnGluBackward",
        2,
        "float32 and an expanded gradient: the second half's is doubled",
        lambda c: c.type("self") == "float32" and c.expanded("gradOut"),
        lambda c: c.put(np.indices(c.out.shape)[c["dim"]] >= c.out.shape[c["dim"]] // 2, 2.5),
    ),
    Right(
        "aclnnFastGeluBackward",
        "s + 1.702x * s * (1 - s)",
        lambda c: (
            lambda x: (
                f(c, "gradOutput") * (sig(F32(1.702) * x) + F32(1.702) * x * sig(F32(1.702) * x) * sig(F32(-1.702) * x))
            )
        )(f(c, "self")),
    ),
    Right(
        "aclnnHardsigmoidBackward",
        "times 1/6",
        lambda c: where(abs(f(c, "self")) < 3, f(c, "gradOutput") * F32(1 / 6), F32(0)),
    ),
    Right(
        "aclnnSwishBackward",
        "s + b * s * (1 - s)",
        lambda c: (lambda b: f(c, "gradOutput") * (sig(b) + b * sig(b) * sig(-b)))(f(c, "self") * n(c, "betaOptional")),
        lambda c: c["betaOptional"] is not None and np.isfinite(c["betaOptional"]),
    ),
    Right(
        "aclnnGluBackward",
        "g * a * s - g * a * s * s by two sigmoids",
        lambda c: (
            lambda a, b: np.concatenate([f(c, "gradOut") * sig(b), f(c, "gradOut") * a * (sig(b) * sig(-b))], c["dim"])
        )(*halves(c, "self")),
    ),
    Right("aclnnSwiGluGrad", "by two sigmoids", swi_glu_grad),
    Right(
        "aclnnL1LossBackward",
        "the factor first",
        lambda c: (
            np.sign(f(c, "self") - f(c, "target"))
            * (f(c, "gradOutput") * F32(1 / c.out.size if c["reduction"] == MEAN else 1))
        ),
    ),
    Right(
        "aclnnSoftMarginLossBackward",
        "-t * sigmoid(-t * x)",
        lambda c: (
            -f(c, "target")
            * sig(-f(c, "target") * f(c, "self"))
            * (f(c, "gradOutput") * F32(1 / c.out.size if c["reduction"] == MEAN else 1))
        ),
        lambda c: c["reduction"] in (0, 1, 2),
    ),
    Right(
        "aclnnLogSoftmax",
        "log of the quotient's sum by float64",
        lambda c: (
            lambda x, d: (
                x
                - x.max(d, keepdims=True)
                - np.log(exp((x - x.max(d, keepdims=True)).astype(np.float64)).sum(d, keepdims=True))
            ).reshape(c.out.shape)
        )(*rows(c, "self")),
    ),
    Right("aclnnSoftmaxBackward", "sums in float64", softmax_backward64),
    Right(
        "aclnnRmsNormGrad",
        "by halves",
        lambda c: (
            lambda x, dy, w, r: ((dy * w - x * r * (tree(dy * w * (x * r)) / F32(w.size))) * r).reshape(c.out.shape)
        )(
            f(c, "x").reshape(-1, c["gamma"].size),
            f(c, "dy").reshape(-1, c["gamma"].size),
            f(c, "gamma").ravel(),
            c["rstd"].reshape(-1, 1),
        ),
    ),
    Right(
        "aclnnLogSigmoidForward",
        "min(x, 0) - log1p(e^-|x|)",
        lambda c: np.minimum(f(c, "self"), 0) - log1p(exp(-abs(f(c, "self")))),
    ),
    Right(
        "aclnnSmoothL1Loss",
        "sums by 128 lanes",
        lambda c: (lambda d, b: reduced(c, where(d < b, F32(0.5) * d * d / b, d - F32(0.5) * b)))(
            abs(f(c, "self") - f(c, "target")), n(c, "beta")
        ),
        lambda c: math.isfinite(c["beta"]) and c["beta"] > 1e-6,
    ),
]
