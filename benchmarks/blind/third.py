"""The third set, written after the family `drawn`, without a look at the catalogue or the registry.

It has kinds of holes that earlier sets left open, in other operators, and right kernels in orders that a float32
kernel may take.
"""

from __future__ import annotations

import numpy as np
from numpy import exp, log1p, tanh, where

from benchmarks.blind.kernel import F32, Right, Seen, Wrong, as_type, packed
from benchmarks.blind.right import f, n, reduced, rows, sig

NONE, MEAN, SUM = range(3)


def column(c: Seen, name: str) -> bool:
    """Return whether an operand has one element on the last axis, and the output has several."""
    a = c[name]
    return bool(a.ndim > 1 and a.shape[-1] == 1 < c.out.shape[-1])


def turned(a: np.ndarray) -> np.ndarray:
    """Return the elements moved by one place."""
    return np.roll(a.reshape(-1), 1).reshape(a.shape)


WRONG = [
    Wrong(
        "aclnnSigmoidBackward",
        2,
        "float32, output a column: its first element for every row",
        lambda c: c.type("output") == "float32" and column(c, "output") and c["output"].size > 1,
        lambda c: c.redo(output=np.broadcast_to(c["output"].flat[0], c["output"].shape)),
    ),
    Wrong(
        "aclnnTanhBackward",
        2,
        "bfloat16, an odd offset of output: one place before",
        lambda c: c.type("output") == "bfloat16" and c.offset("output") % 2,
        lambda c: c.redo(output=turned(c["output"])),
    ),
    Wrong(
        "aclnnSiluBackward",
        3,
        "float16, self broadcast, more than 64 elements: all beyond the first 64 are 0",
        lambda c: c.type("self") == "float16" and c["self"].size < c.out.size and c.out.size > 64,
        lambda c: c.put(c.span(64, c.out.size), 0.0),
    ),
    Wrong(
        "aclnnSeluBackward",
        1,
        "result of exactly 0 counts as positive, with the other factor",
        lambda c: True,
        lambda c: c.put((c["result"] == 0) & np.isfinite(c.out), 3.0),
    ),
    Wrong(
        "aclnnEluBackward",
        3,
        "isResult, bfloat16, a strided gradient: packed",
        lambda c: c["isResult"] and c.type("selfOrResult") == "bfloat16" and c.strided("gradOutput"),
        lambda c: c.redo(gradOutput=packed(c["gradOutput"])),
    ),
    Wrong(
        "aclnnEluBackward",
        2,
        "isResult, an alpha above 1: alpha is 1",
        lambda c: c["isResult"] and 1 < c["alpha"] < 1e6,
        lambda c: c.redo(alpha=1.0),
    ),
    Wrong(
        "aclnnHardtanhBackward",
        2,
        "a limit beyond 65,504 in float16 saturates and masks 65,504",
        lambda c: c.type("self") == "float16" and 65504 < c["max"] < 1e30,
        lambda c: c.put(c["self"] == 65504, 0.0),
    ),
    Wrong(
        "aclnnHardshrinkBackward",
        3,
        "lambd 0, float16, an offset of self: self of 0 passes",
        lambda c: c["lambd"] == 0 and c.type("self") == "float16" and c.offset("self") > 0,
        lambda c: c.put(np.broadcast_to(c["self"] == 0, c.out.shape), 1.0),
    ),
    Wrong(
        "aclnnSoftshrinkBackward",
        2,
        "lambda of 1, bfloat16: the edge itself passes",
        lambda c: c["lambda"] > 0 and c.type("self") == "bfloat16",
        lambda c: c.put(np.broadcast_to(np.abs(c["self"].astype(F32)) == F32(c["lambda"]), c.out.shape), 1.0),
    ),
    Wrong(
        "aclnnThresholdBackward",
        2,
        "a negative threshold, rank 1: compared with 0",
        lambda c: c["threshold"] < 0 and c["self"].ndim == 1,
        lambda c: c.redo(threshold=0.0),
    ),
    Wrong(
        "aclnnThreshold",
        3,
        "float16, an infinite threshold, a strided out: the value is 0",
        lambda c: c.type("self") == "float16" and c["threshold"] == np.inf and c.strided("out"),
        lambda c: c.put(..., 0.0),
    ),
    Wrong(
        "aclnnSoftplus",
        2,
        "beta above 10 in bfloat16: the quotient is not taken",
        lambda c: 10 < c["beta"] < 1e4 and c.type("self") == "bfloat16",
        lambda c: c.put(..., np.where(c.out.astype(F32) < 1, c.out.astype(F32) * F32(c["beta"]), c.out.astype(F32))),
    ),
    Wrong(
        "aclnnSoftplusBackward",
        2,
        "threshold 0: self of 0 takes the curve",
        lambda c: c["threshold"] == 0,
        lambda c: c.redo(where=np.broadcast_to(c["self"] > 0, c.out.shape), threshold=20.0),
    ),
    Wrong(
        "aclnnSwish",
        2,
        "a beta of 0: self, not its half",
        lambda c: c["betaOptional"] == 0,
        lambda c: c.put(..., c["self"]),
    ),
    Wrong(
        "aclnnSwishBackward",
        3,
        "no beta, bfloat16, the gradient strided: packed",
        lambda c: c["betaOptional"] is None and c.type("self") == "bfloat16" and c.strided("gradOutput"),
        lambda c: c.redo(gradOutput=packed(c["gradOutput"])),
    ),
    Wrong(
        "aclnnGeluBackwardV2",
        3,
        "tanh, float16, self a row: erf's curve",
        lambda c: c["approximate"] == "tanh" and c.type("self") == "float16" and c["self"].size < c.out.size,
        lambda c: c.redo(approximate="none"),
    ),
    Wrong(
        "aclnnMish",
        2,
        "float32 beyond 88: infinity over infinity",
        lambda c: c.type("self") == "float32",
        lambda c: c.put(c["self"] > 89, np.nan),
    ),
    Wrong(
        "aclnnLogSigmoidForward",
        2,
        "float16 below -16: the exponential is infinite",
        lambda c: c.type("self") == "float16",
        lambda c: c.put(c["self"].astype(F32) < -16, -np.inf),
    ),
    Wrong(
        "aclnnHardswishBackwardV2",
        2,
        "bfloat16, self expanded: one value for the whole row",
        lambda c: c.type("self") == "bfloat16" and c.expanded("self") and c["gradOutput"].size > 1,
        lambda c: c.redo(gradOutput=np.broadcast_to(c["gradOutput"].flat[0], c["gradOutput"].shape)),
    ),
    Wrong(
        "aclnnPreluBackward",
        2,
        "gradWeight of one weight, float16: added in float16",
        lambda c: c["weight"].size == 1 and c.type("self") == "float16" and c["self"].size > 4096,
        lambda c: c["gradWeight"].__setitem__(..., c["gradWeight"] * np.float16(0.97)),
    ),
    Wrong(
        "aclnnKlDivBackward",
        3,
        "float16, logTarget, none: e^target is rounded down",
        lambda c: c.type("self") == "float16" and c["logTarget"] and c["reduction"] == NONE,
        lambda c: c.put(..., c.out.astype(F32) * F32(1 - 2.0**-8)),
    ),
    Wrong(
        "aclnnL1LossBackward",
        3,
        "sum, bfloat16, target of one element: the gradient's first",
        lambda c: c["reduction"] == SUM and c.type("self") == "bfloat16" and c["target"].size == 1 < c.out.size,
        lambda c: c.redo(gradOutput=np.broadcast_to(c["gradOutput"].flat[0], c["gradOutput"].shape)),
    ),
    Wrong(
        "aclnnMseLossBackward",
        3,
        "mean, float16 gradient beside float32 self, out strided: not divided",
        lambda c: (
            c["reduction"] == MEAN
            and c.type("gradOutput") == "float16"
            and c.type("self") == "float32"
            and c.strided("out")
        ),
        lambda c: c.put(..., c.out.astype(F32) * c.out.size),
    ),
    Wrong(
        "aclnnSmoothL1LossBackward",
        3,
        "none, beta 0, bfloat16: 0.5 at the kink",
        lambda c: c["reduction"] == NONE and c["beta"] == 0 and c.type("self") == "bfloat16",
        lambda c: c.put(..., c.out.astype(F32) * F32(0.5)),
    ),
    Wrong(
        "aclnnSoftMarginLoss",
        3,
        "sum, float16, self and target cross: one row is counted",
        lambda c: (
            c["reduction"] == SUM
            and c.type("self") == "float16"
            and c["self"].size < np.broadcast(c["self"], c["target"]).size > c["target"].size
        ),
        lambda c: c.put(..., c.out.astype(F32) / 2),
    ),
    Wrong(
        "aclnnMseLoss",
        2,
        "rank 1, a target at an odd offset: one place before",
        lambda c: c["self"].ndim == 1 and c.offset("target") % 2,
        lambda c: c.redo(target=turned(c["target"])),
    ),
    Wrong(
        "aclnnSoftmax",
        2,
        "bfloat16, an axis behind which elements lie, more than 64: the rest in the row is lost",
        lambda c: (
            c.type("self") == "bfloat16"
            and c["self"].ndim > 1
            and c["dim"] % c["self"].ndim < c["self"].ndim - 1
            and c["self"].shape[c["dim"]] > 64
        ),
        lambda c: c.put(np.indices(c.out.shape, sparse=True)[c["dim"] % c.out.ndim] >= 64, 0.0),
    ),
    Wrong(
        "aclnnLogSoftmaxBackward",
        3,
        "float32 gradient, out float16, dim 0: rounded to bfloat16",
        lambda c: c["output"].ndim > 1 and c.type("output") == "float32" and c["dim"] in (0, -c["output"].ndim),
        lambda c: c.put(..., as_type(c.out.astype(F32), "bfloat16")),
    ),
    Wrong(
        "aclnnSoftmaxBackward",
        3,
        "float16, output permuted, the last axis: packed",
        lambda c: (
            c.type("output") == "float16"
            and c.strided("output")
            and c["output"].ndim > 2
            and c["dim"] % c["output"].ndim == c["output"].ndim - 1
        ),
        lambda c: c.redo(output=packed(c["output"])),
    ),
    Wrong(
        "aclnnRmsNorm",
        2,
        "an epsilon of 0 counts as 1e-6",
        lambda c: c["epsilon"] == 0,
        lambda c: c.redo(epsilon=1e-2),
    ),
    Wrong(
        "aclnnRmsNormGrad",
        2,
        "float32, gamma at an odd offset: one place before",
        lambda c: c.type("gamma") == "float32" and c.offset("gamma") % 2 and c["gamma"].size > 1,
        lambda c: c.redo(gamma=turned(c["gamma"])),
    ),
    Wrong(
        "aclnnGroupNorm",
        3,
        "bfloat16, no beta, several groups: gamma of the first group",
        lambda c: c.type("self") == "bfloat16" and c["beta"] is None and c["group"] > 1 and c["gamma"] is not None,
        lambda c: c.redo(gamma=np.resize(c["gamma"][: c["C"] // c["group"]], c["gamma"].shape)),
    ),
    Wrong(
        "aclnnGroupNormBackward",
        2,
        "gradBeta alone is asked for in float16: halved",
        lambda c: c["outputMask"][2] and not c["outputMask"][1] and c.type("input") == "float16",
        lambda c: c["gradBetaOut"].__setitem__(..., c["gradBetaOut"] / 2),
    ),
    Wrong(
        "aclnnNLLLossBackward",
        3,
        "sum, int32 targets, bfloat16: no weight",
        lambda c: c["reduction"] == SUM and c.type("target") == "int32" and c.type("self") == "bfloat16",
        lambda c: c.redo(weight=np.ones_like(c["weight"])),
    ),
    Wrong(
        "aclnnNLLLoss2d",
        2,
        "mean in float16 with a class ignored: the ignored weight counts",
        lambda c: c["reduction"] == MEAN and c.type("self") == "float16" and (c["target"] == c["ignoreIndex"]).any(),
        lambda c: c["totalWeightOut"].__setitem__(..., c["totalWeightOut"] * np.float16(1.1)),
    ),
    Wrong(
        "aclnnGlu",
        2,
        "float32, a half that is no multiple of 8: the last element of a part is 0",
        lambda c: c.type("self") == "float32" and c.out.size and c.out.shape[c["dim"]] % 8,
        lambda c: c.tail(1),
    ),
    Wrong(
        "aclnnSwiGluGrad",
        2,
        "float32 and x at an offset: the last element is lost",
        lambda c: c.type("x") == "float32" and c.offset("x") > 0,
        lambda c: c.tail(1),
    ),
    Wrong(
        "aclnnCelu",
        2,
        "a negative alpha in float16: its size",
        lambda c: c["alpha"] < 0 and c.type("self") == "float16",
        lambda c: c.redo(alpha=-c["alpha"]),
    ),
    Wrong(
        "aclnnLeakyRelu",
        3,
        "slope 0, float16, a strided out: the negative side is self",
        lambda c: c["negativeSlope"] == 0 and c.type("self") == "float16" and c.strided("out"),
        lambda c: c.redo(negativeSlope=1.0),
    ),
    Wrong(
        "aclnnBinaryCrossEntropyWithLogits",
        3,
        "none, posWeight per class without a weight, float16: shifted by a class",
        lambda c: (
            c["reduction"] == NONE
            and c["posWeightOptional"] is not None
            and c["weightOptional"] is None
            and c.type("self") == "float16"
        ),
        lambda c: c.redo(posWeightOptional=turned(c["posWeightOptional"])),
    ),
]

RIGHT = [
    Right(
        "aclnnSigmoid",
        "by tanh",
        lambda c: F32(0.5) * tanh(F32(0.5) * f(c, "self")) + F32(0.5),
        lambda c: c["self"].size and f(c, "self").min() > -2,
    ),
    Right(
        "aclnnSilu",
        "x / (1 + e^-x)",
        lambda c: f(c, "self") / (1 + exp(-f(c, "self"))),
        lambda c: abs(f(c, "self")).max(initial=0) < 80,
    ),
    Right(
        "aclnnSigmoidBackward",
        "g * (y * (1 - y))",
        lambda c: f(c, "gradOutput") * (f(c, "output") * (1 - f(c, "output"))),
        lambda c: abs(f(c, "output")).max(initial=0) <= 1,
    ),
    Right(
        "aclnnTanhBackward",
        "(1 - y) * (1 + y)",
        lambda c: f(c, "gradOutput") * ((1 - f(c, "output")) * (1 + f(c, "output"))),
    ),
    Right("aclnnHardsigmoid", "clip of the sum", lambda c: np.clip(f(c, "self") + 3, 0, 6) * F32(1 / 6)),
    Right(
        "aclnnHardswish",
        "x * clip / 6",
        lambda c: f(c, "self") * (np.clip(f(c, "self") + 3, 0, 6) / 6),
        lambda c: np.isfinite(f(c, "self")).all(),
    ),
    Right(
        "aclnnLeakyRelu",
        "by where",
        lambda c: where(f(c, "self") > 0, f(c, "self"), f(c, "self") * n(c, "negativeSlope")),
    ),
    Right(
        "aclnnSiluBackward",
        "s * (1 + x * (1 - s))",
        lambda c: f(c, "gradOutput") * (sig(f(c, "self")) * (1 + f(c, "self") * sig(-f(c, "self")))),
        lambda c: abs(f(c, "self")).max(initial=0) < 80,
    ),
    Right("aclnnMseLoss", "lanes of 128", lambda c: reduced(c, np.square(f(c, "self") - f(c, "target")))),
    Right("aclnnL1Loss", "lanes of 128", lambda c: reduced(c, abs(f(c, "self") - f(c, "target")))),
    Right(
        "aclnnMseLossBackward",
        "2 / n first",
        lambda c: (
            f(c, "gradOutput")
            * (F32(2 / (c.out.size if c["reduction"] == MEAN else 1)) * (f(c, "self") - f(c, "target")))
        ),
        lambda c: c["reduction"] != MEAN or c["self"].size == c["target"].size == c.out.size,
    ),
    Right(
        "aclnnSoftmax",
        "the reciprocal of the sum, in float64",
        lambda c: (
            lambda x, d: (lambda e: (e * (1 / e.sum(d, keepdims=True))).reshape(c.out.shape))(
                exp((x - x.max(d, keepdims=True)).astype(np.float64))
            )
        )(*rows(c, "self")),
    ),
    Right(
        "aclnnSoftplus",
        "max(x, 0) + log1p(e^-|x|)",
        lambda c: np.maximum(f(c, "self"), 0) + log1p(exp(-abs(f(c, "self")))),
        lambda c: c["beta"] == 1 and 16 < c["threshold"] < 1e30,
    ),
    Right(
        "aclnnThresholdBackward",
        "by a mask",
        lambda c: where(f(c, "self") > n(c, "threshold"), f(c, "gradOutput"), F32(0)),
        lambda c: abs(c["threshold"]) > 1e-6 and np.isfinite(f(c, "self")).all(),
    ),
    Right(
        "aclnnRelu",
        "by where",
        lambda c: where(f(c, "self") > 0, f(c, "self"), where(f(c, "self") != f(c, "self"), f(c, "self"), F32(0))),
    ),
]

THIRD = [*WRONG, *RIGHT]
