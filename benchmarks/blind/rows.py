"""Wrong kernels that work on rows: softmax, norms, gates."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.blind.kernel import Seen, Wrong, as_type, packed


def row(c: Seen, name: str) -> int:
    """Return the length of the axis that the operator works on."""
    a = c[name]
    return int(a.shape[c["dim"]]) if a.ndim else 1


def last(c: Seen, name: str) -> bool:
    a = c[name]
    return bool(a.ndim and c["dim"] % a.ndim == a.ndim - 1)


def rounded(c: Seen, name: str, dtype: str) -> None:
    c.redo(**{name: as_type(c[name], dtype)})


WRONG = [
    Wrong(
        "aclnnSoftmax",
        1,
        "no maximum is subtracted: NaN beyond 88",
        lambda c: True,
        lambda c: (
            c.put(np.broadcast_to(c["self"].astype(np.float32).max(c["dim"], keepdims=True) > 88, c.out.shape), np.nan)
            if c["self"].ndim
            else None
        ),
    ),
    Wrong(
        "aclnnSoftmax",
        2,
        "a row above 4,096 in float32: the second part has the first part's maximum",
        lambda c: c.type("self") == "float32" and last(c, "self") and row(c, "self") > 4096,
        lambda c: c.put((..., slice(4096, None)), c.out[..., 4096:] * np.float32(1.0009765625)),
    ),
    Wrong(
        "aclnnSoftmax",
        3,
        "bfloat16, the first axis, an inner size that is no multiple of 16: the last column is not written",
        lambda c: (
            c.type("self") == "bfloat16"
            and c["self"].ndim > 1
            and c["dim"] in (0, -c["self"].ndim)
            and math.prod(c["self"].shape[1:]) % 16
        ),
        lambda c: c.put((..., -1), 0.0),
    ),
    Wrong(
        "aclnnSoftmax",
        3,
        "a middle axis of 1, float16, rank 3: the axis after it is normalised",
        lambda c: (
            c.type("self") == "float16" and c["self"].ndim == 3 and c["dim"] in (1, -2) and c["self"].shape[1] == 1
        ),
        lambda c: c.redo(dim=2),
    ),
    Wrong(
        "aclnnLogSoftmax",
        1,
        "a row that is -inf but for one gives NaN",
        lambda c: True,
        lambda c: c.put(np.isneginf(c["self"].astype(np.float32)), np.nan),
    ),
    Wrong(
        "aclnnLogSoftmax",
        2,
        "float16 self and float32 out: self is not cast first but out rounded to float16",
        lambda c: c.type("self") == "float16" and c.type("out") == "float32",
        lambda c: c.put(..., as_type(c.out, "float16")),
    ),
    Wrong(
        "aclnnLogSoftmax",
        3,
        "float32, a negative dim that is not -1, self in a view: self as packed",
        lambda c: c.type("self") == "float32" and c["dim"] < -1 and c.strided("self"),
        lambda c: c.redo(self=packed(c["self"])),
    ),
    Wrong(
        "aclnnLogSoftmaxBackward",
        1,
        "e^output is taken of output minus its maximum",
        lambda c: True,
        lambda c: c.redo(output=(c["output"] - c["output"].max(c["dim"], keepdims=True))) if c["output"].ndim else None,
    ),
    Wrong(
        "aclnnLogSoftmaxBackward",
        2,
        "float16: the sum of the gradient is kept in float16",
        lambda c: c.type("gradOutput") == "float16" and row(c, "gradOutput") > 1,
        lambda c: c.put(
            ...,
            c["gradOutput"].astype(np.float32)
            - np.exp(c["output"].astype(np.float32))
            * np.sum(c["gradOutput"], axis=c["dim"], keepdims=True, dtype=np.float16).astype(np.float32),
        ),
    ),
    Wrong(
        "aclnnLogSoftmaxBackward",
        3,
        "bfloat16, both operands in views, the last axis: output as packed",
        lambda c: (
            c.type("output") == "bfloat16" and c.strided("output") and c.strided("gradOutput") and last(c, "output")
        ),
        lambda c: c.redo(output=packed(c["output"])),
    ),
    Wrong(
        "aclnnSoftmaxBackward",
        3,
        "float16, a middle axis of rank 4, an output at an odd place: the last row repeats",
        lambda c: (
            c.type("output") == "float16"
            and c["output"].ndim == 4
            and c["dim"] % 4 in (1, 2)
            and c.offset("output") % 16
            and c.out.shape[0] > 1
        ),
        lambda c: c.put(-1, c.out[0]),
    ),
    Wrong(
        "aclnnRmsNorm",
        1,
        "epsilon is added after the root",
        lambda c: c["epsilon"] > 0,
        lambda c: c.put(..., c.out.astype(np.float32) * (np.sqrt(1 + c["epsilon"]) - np.sqrt(c["epsilon"]) / 2)),
    ),
    Wrong(
        "aclnnRmsNorm",
        2,
        "float16 x beside a float32 gamma: gamma is rounded to float16",
        lambda c: c.type("x") == "float16" and c.type("gamma") == "float32",
        lambda c: rounded(c, "gamma", "float16"),
    ),
    Wrong(
        "aclnnRmsNorm",
        3,
        "bfloat16, gamma of two axes, an odd last axis: gamma is read with a padded row",
        lambda c: (
            c.type("x") == "bfloat16" and c["gamma"].ndim == 2 and c["gamma"].shape[-1] % 2 and c["gamma"].shape[0] > 1
        ),
        lambda c: c.redo(gamma=np.concatenate([c["gamma"][:1], np.roll(c["gamma"][1:], 1, -1)])),
    ),
    Wrong(
        "aclnnRmsNorm",
        2,
        "rstdOut of more than 64 rows: every 65th is that before",
        lambda c: c["rstdOut"].size > 64 and c.type("x") == "float32",
        lambda c: c["rstdOut"].flat.__setitem__(64, c["rstdOut"].flat[63]),
    ),
    Wrong(
        "aclnnRmsNormGrad",
        1,
        "dgamma is that of the last row alone",
        lambda c: c["rstd"].size > 1,
        lambda c: c["dgammaOut"].__setitem__(..., c["dgammaOut"] / c["rstd"].size),
    ),
    Wrong(
        "aclnnRmsNormGrad",
        2,
        "more rows than 40 cores in float16: dgamma lacks the rows that are left",
        lambda c: c.type("x") == "float16" and c["rstd"].size > 40 and c["rstd"].size % 40,
        lambda c: c["dgammaOut"].__setitem__(..., c["dgammaOut"] * np.float32(0.9)),
    ),
    Wrong(
        "aclnnRmsNormGrad",
        3,
        "float32, gamma of 1 element, x in a view: h is taken for x",
        lambda c: c.type("x") == "float32" and c["gamma"].size == 1 and c.strided("x"),
        lambda c: c.put(..., c["dy"].astype(np.float32) * c["gamma"].astype(np.float32)),
    ),
    Wrong(
        "aclnnAddRmsNorm",
        1,
        "xOut is x1",
        lambda c: True,
        lambda c: c["xOut"].__setitem__(..., c["x1"]),
    ),
    Wrong(
        "aclnnAddRmsNorm",
        2,
        "float16 with cancelling operands: the sum is made in float32 and y not of the rounded x",
        lambda c: c.type("x1") == "float16",
        lambda c: c.put(np.abs(c["xOut"].astype(np.float32)) < 1e-6 * np.abs(c["x1"].astype(np.float32)), 1.0),
    ),
    Wrong(
        "aclnnAddRmsNorm",
        3,
        "bfloat16, x2 in a view, above 2,048 elements: x2 as packed",
        lambda c: c.type("x1") == "bfloat16" and c.strided("x2") and c["x2"].size > 2048,
        lambda c: c.redo(x2=packed(c["x2"])),
    ),
    Wrong(
        "aclnnLayerNorm",
        1,
        "the variance is divided by n - 1",
        lambda c: math.prod(c["normalizedShape"]) > 1,
        lambda c: c["rstdOutOptional"].__setitem__(
            ...,
            (c["rstdOutOptional"].astype(np.float32) * np.sqrt(1 - 1 / math.prod(c["normalizedShape"]))).astype(
                c["rstdOutOptional"].dtype
            ),
        ),
    ),
    Wrong(
        "aclnnLayerNorm",
        2,
        "a bias without a weight is left out",
        lambda c: c["weightOptional"] is None and c["biasOptional"] is not None,
        lambda c: c.redo(biasOptional=None),
    ),
    Wrong(
        "aclnnLayerNorm",
        2,
        "one pass in float32: mean(x^2) - mean^2, wrong where the mean is large",
        lambda c: c.type("input") == "float32" and c.type("out") == "float32",
        lambda c: onepass(c),
    ),
    Wrong(
        "aclnnLayerNorm",
        3,
        "float16, two normalised axes, no weight: the last axis alone is normalised",
        lambda c: (
            c.type("input") == "float16"
            and len(c["normalizedShape"]) == 2
            and c["weightOptional"] is None
            and c["normalizedShape"][0] > 1
        ),
        lambda c: c.put(..., c.out.astype(np.float32) * np.float32(1.02)),
    ),
    Wrong(
        "aclnnGlu",
        1,
        "the halves are exchanged",
        lambda c: True,
        lambda c: c.redo(self=np.roll(c["self"], c["self"].shape[c["dim"]] // 2, c["dim"])),
    ),
    Wrong(
        "aclnnGlu",
        2,
        "dim 0 of rank 3: the last axis is halved instead, where the shape allows it",
        lambda c: c["self"].ndim == 3 and c["dim"] in (0, -3) and c["self"].shape[0] == 2,
        lambda c: c.put(..., c["self"][:1]),
    ),
    Wrong(
        "aclnnGlu",
        3,
        "float16 self, float32 out, half of a row below 16: the result is not rounded to float16",
        lambda c: c.type("self") == "float16" and c.type("out") == "float32" and row(c, "self") < 32,
        lambda c: c.redo(self=c["self"].astype(np.float32)),
    ),
    Wrong(
        "aclnnSwiGlu",
        1,
        "the gate is that of the second half",
        lambda c: True,
        lambda c: c.redo(x=np.roll(c["x"], c["x"].shape[c["dim"]] // 2, c["dim"])),
    ),
    Wrong(
        "aclnnSwiGlu",
        3,
        "bfloat16, the last axis, a half that is no multiple of 16: the tail of each row is its last value",
        lambda c: c.type("x") == "bfloat16" and last(c, "x") and row(c, "x") // 2 % 16 > 1 and row(c, "x") > 32,
        lambda c: c.put((..., slice(-(row(c, "x") // 2 % 16), None)), c.out[..., -1:]),
    ),
    Wrong(
        "aclnnSwiGluGrad",
        1,
        "the factor 1 + a * (1 - s) is left out",
        lambda c: True,
        lambda c: (
            c.put(slice(0, 0), 0.0)
            if not c.out.ndim
            else c.put(
                np.indices(c.out.shape)[c["dim"]] < c.out.shape[c["dim"]] // 2,
                1.01 * c.out[np.indices(c.out.shape)[c["dim"]] < c.out.shape[c["dim"]] // 2].astype(np.float32),
            )
        ),
    ),
    Wrong(
        "aclnnSwiGluGrad",
        2,
        "yGrad in a view, float32: read as packed",
        lambda c: c.type("x") == "float32" and c.strided("yGrad"),
        lambda c: c.redo(yGrad=packed(c["yGrad"])),
    ),
    Wrong(
        "aclnnSwiGluGrad",
        3,
        "float16, a middle axis, more than 1,024 elements: the second half's gradient is rounded twice",
        lambda c: (
            c.type("x") == "float16"
            and c.out.ndim > 2
            and 0 < c["dim"] % c.out.ndim < c.out.ndim - 1
            and c.out.size > 1024
        ),
        lambda c: c.put(np.indices(c.out.shape)[c["dim"]] >= c.out.shape[c["dim"]] // 2, 0.0),
    ),
]


def onepass(c: Seen) -> None:
    count = math.prod(c["normalizedShape"])
    x = c["input"].reshape(-1, count)
    mean = x.mean(1, keepdims=True, dtype=np.float32)
    var = (x * x).mean(1, keepdims=True, dtype=np.float32) - mean * mean
    r = 1 / np.sqrt(np.maximum(var, 0) + np.float32(c["eps"]))
    y = ((x - mean) * r).reshape(c.out.shape)
    y = y if c["weightOptional"] is None else y * c["weightOptional"].astype(np.float32)
    c.put(..., y if c["biasOptional"] is None else y + c["biasOptional"].astype(np.float32))
