"""Wrong kernels of the activations."""

from __future__ import annotations

import numpy as np

from benchmarks.blind.kernel import Wrong, as_type, packed

WRONG = [
    Wrong(
        "aclnnCelu",
        1,
        "a negative alpha is taken as its size",
        lambda c: c["alpha"] < 0,
        lambda c: c.redo(alpha=-c["alpha"]),
    ),
    Wrong(
        "aclnnCelu",
        2,
        "alpha is rounded to bfloat16 with a bfloat16 self",
        lambda c: c.type("self") == "bfloat16" and np.isfinite(c["alpha"]),
        lambda c: c.redo(alpha=float(as_type(np.array(c["alpha"], np.float32), "bfloat16"))),
    ),
    Wrong(
        "aclnnCelu",
        3,
        "float32, strided self, more than a block of 2,048: what follows is read as packed",
        lambda c: c.type("self") == "float32" and c.strided("self") and c["self"].size > 2048,
        lambda c: c.redo(c.span(2048, c["self"].size), self=packed(c["self"])),
    ),
    Wrong(
        "aclnnElu",
        1,
        "both branches are computed and added: NaN where e^x overflows",
        lambda c: True,
        lambda c: c.put(c["self"].astype(np.float64) * c["inputScale"] > 89, np.nan),
    ),
    Wrong(
        "aclnnElu",
        2,
        "scale is left out of the upper branch where alpha is 1",
        lambda c: c["alpha"] == 1 and c["scale"] != 1,
        lambda c: c.redo(c["self"] > 0, scale=1.0),
    ),
    Wrong(
        "aclnnElu",
        3,
        "float16 with scale and inputScale both not 1: inputScale is left out",
        lambda c: c.type("self") == "float16" and c["scale"] != 1 and c["inputScale"] != 1,
        lambda c: c.redo(inputScale=1.0),
    ),
    Wrong(
        "aclnnFastGelu",
        1,
        "the factor is 1.7, not 1.702",
        lambda c: True,
        lambda c: c.put(..., c["self"].astype(np.float32) / (1 + np.exp(-1.7 * c["self"].astype(np.float32)))),
    ),
    Wrong(
        "aclnnFastGelu",
        2,
        "bfloat16 and a tail below 16 elements: the tail is not written",
        lambda c: c.type("self") == "bfloat16" and c.out.size > 16 and c.out.size % 16,
        lambda c: c.tail(c.out.size % 16),
    ),
    Wrong(
        "aclnnGelu",
        2,
        "float32 below -4 gives zero",
        lambda c: c.type("self") == "float32",
        lambda c: c.put(c["self"] < -4, 0.0),
    ),
    Wrong(
        "aclnnGelu",
        3,
        "float16, rank above 4, a permuted self: the axes' order is that of memory",
        lambda c: c.type("self") == "float16" and c["self"].ndim > 4 and c.strided("self") and not c.expanded("self"),
        lambda c: c.redo(self=packed(c["self"])),
    ),
    Wrong(
        "aclnnGeluV2",
        1,
        "approximate 1 is ignored",
        lambda c: c["approximate"] == 1,
        lambda c: c.redo(approximate=0),
    ),
    Wrong(
        "aclnnGeluV2",
        2,
        "the error function is cut off at 2.9 in float32",
        lambda c: c["approximate"] != 1 and c.type("x") == "float32",
        lambda c: c.put(c["x"] < -2.9 * np.sqrt(2), 0.0),
    ),
    Wrong(
        "aclnnGeluV2",
        3,
        "tanh, bfloat16, an offset that is no multiple of 32 bytes: the first element is lost",
        lambda c: c["approximate"] == 1 and c.type("x") == "bfloat16" and c.offset("x") % 16,
        lambda c: c.put(c.span(0, 1), 0.0),
    ),
    Wrong(
        "aclnnHardshrink",
        1,
        "the edge itself is kept",
        lambda c: True,
        lambda c: c.redo(np.abs(c["self"].astype(np.float32)) == np.float32(c["lambd"]), lambd=0.0),
    ),
    Wrong(
        "aclnnHardshrink",
        1,
        "a negative lambd keeps nothing near zero: its size is taken",
        lambda c: c["lambd"] < 0,
        lambda c: c.redo(lambd=-c["lambd"]),
    ),
    Wrong(
        "aclnnHardshrink",
        2,
        "out of another dtype than self, in a view: strides are counted in self's bytes",
        lambda c: c.type("self") != c.type("out") and c.strided("out"),
        lambda c: c.tail(max(1, c.out.size // 2)),
    ),
    Wrong(
        "aclnnHardsigmoid",
        1,
        "the slope is 0.2",
        lambda c: True,
        lambda c: c.put(..., np.clip(c["self"].astype(np.float32) * np.float32(0.2) + np.float32(0.5), 0, 1)),
    ),
    Wrong(
        "aclnnHardsigmoid",
        3,
        "float32, rank 1, above 8,192 elements: the last vector of 64 is that of the block before",
        lambda c: c.type("self") == "float32" and c["self"].ndim == 1 and c["self"].size > 8192,
        lambda c: c.put(c.span(c.out.size - 64, c.out.size), c.out[-128:-64]),
    ),
    Wrong(
        "aclnnHardswish",
        1,
        "clamped at 5.99",
        lambda c: True,
        lambda c: c.put(
            c["self"].astype(np.float32) > 2.99,
            c["self"].astype(np.float32)[c["self"].astype(np.float32) > 2.99] * 0.998,
        ),
    ),
    Wrong(
        "aclnnHardswish",
        2,
        "float16 self with a float32 out: the result is not rounded to float16",
        lambda c: c.type("self") == "float16" and c.type("out") == "float32",
        lambda c: c.redo(self=c["self"].astype(np.float32)),
    ),
    Wrong(
        "aclnnHardtanh",
        1,
        "min above max: the smaller limit wins last",
        lambda c: c["clipValueMin"] > c["clipValueMax"],
        lambda c: c.put(
            ..., np.maximum(np.minimum(c["self"].astype(np.float32), c["clipValueMax"]), c["clipValueMin"])
        ),
    ),
    Wrong(
        "aclnnHardtanh",
        2,
        "bfloat16: the limits go through float16 and saturate",
        lambda c: c.type("self") == "bfloat16" and abs(c["clipValueMax"]) > 65504 and np.isfinite(c["clipValueMax"]),
        lambda c: c.redo(clipValueMax=float(np.sign(c["clipValueMax"]) * 65504.0)),
    ),
    Wrong(
        "aclnnHardtanh",
        3,
        "float16, a maximum of zero and a strided out: the maximum counts as absent",
        lambda c: c.type("self") == "float16" and c["clipValueMax"] == 0 and c.strided("out"),
        lambda c: c.redo(clipValueMax=65504.0),
    ),
    Wrong(
        "aclnnLeakyRelu",
        1,
        "max(x, slope * x), which is another thing for a slope above 1",
        lambda c: c["negativeSlope"] > 1,
        lambda c: c.put(
            ..., np.maximum(c["self"].astype(np.float32), c["self"].astype(np.float32) * np.float32(c["negativeSlope"]))
        ),
    ),
    Wrong(
        "aclnnLeakyRelu",
        2,
        "a self with stride 0 and a negative slope: the sign is lost",
        lambda c: c.expanded("self") and c["negativeSlope"] < 0,
        lambda c: c.redo(negativeSlope=-c["negativeSlope"]),
    ),
    Wrong(
        "aclnnLogSigmoid",
        1,
        "stays at -88 below",
        lambda c: True,
        lambda c: c.put(c["self"].astype(np.float32) < -88, -88.0),
    ),
    Wrong(
        "aclnnLogSigmoid",
        2,
        "rank 1 and a strided self: stride is taken as 1",
        lambda c: c["self"].ndim == 1 and c.strided("self") and c["self"].size > 1 and not c.expanded("self"),
        lambda c: c.redo(self=np.lib.stride_tricks.as_strided(c["self"], c["self"].shape, (c["self"].itemsize,))),
    ),
    Wrong(
        "aclnnLogSigmoidForward",
        2,
        "float32 above 17: minus e^-x is dropped",
        lambda c: c.type("self") == "float32",
        lambda c: c.put(c["self"] > 17, 0.0),
    ),
    Wrong(
        "aclnnLogSigmoidForward",
        2,
        "a buffer of self's shape and dtype is written",
        lambda c: c.type("buffer") == c.type("self") and c["buffer"].shape == c["self"].shape,
        lambda c: c["buffer"].__setitem__(..., 1),
    ),
    Wrong(
        "aclnnMish",
        2,
        "float32 above 8 gives x",
        lambda c: c.type("self") == "float32",
        lambda c: c.put((c["self"] > 6) & (c["self"] < 9), c["self"][(c["self"] > 6) & (c["self"] < 9)]),
    ),
    Wrong(
        "aclnnPrelu",
        2,
        "float16 self beside a float32 weight: the weight is rounded to float16",
        lambda c: c.type("self") == "float16" and c.type("weight") == "float32",
        lambda c: c.redo(weight=as_type(c["weight"], "float16")),
    ),
    Wrong(
        "aclnnPrelu",
        3,
        "rank 3, several weights, a last axis of 1: the channel is the row",
        lambda c: c["self"].ndim == 3 and c["weight"].size > 1 and c["self"].shape[-1] == 1,
        lambda c: c.redo(weight=np.roll(c["weight"], 1)),
    ),
    Wrong(
        "aclnnRelu",
        1,
        "rank 0 is not written",
        lambda c: c["self"].ndim == 0,
        lambda c: c.put(..., -7.0),
    ),
    Wrong(
        "aclnnRelu",
        2,
        "bfloat16 subnormals become zero",
        lambda c: c.type("self") == "bfloat16",
        lambda c: c.put(np.abs(c["self"].astype(np.float32)) < 2.0**-126, 0.0),
    ),
    Wrong(
        "aclnnSelu",
        1,
        "alpha is 1.67",
        lambda c: True,
        lambda c: c.put(
            c["self"] < 0, 1.0507009873554805 * 1.67 * np.expm1(c["self"].astype(np.float32))[c["self"] < 0]
        ),
    ),
    Wrong(
        "aclnnSelu",
        2,
        "out of 16 bits beside a float32 self: cut off, not rounded",
        lambda c: c.type("self") == "float32" and c.type("out") == "bfloat16",
        lambda c: c.put(
            ...,
            (
                np.where(c["self"] > 0, 1.0507009873554805 * c["self"], 1.7580993408473766 * np.expm1(c["self"]))
                .astype(np.float32)
                .view(np.uint32)
                & 0xFFFF0000
            ).view(np.float32),
        ),
    ),
    Wrong(
        "aclnnSigmoid",
        1,
        "saturates beyond 8",
        lambda c: True,
        lambda c: c.put(c["self"].astype(np.float32) < -8, 1 / (1 + np.exp(8.0))),
    ),
    Wrong(
        "aclnnSigmoid",
        3,
        "float16, a transposed self, both axes above 16: tiles of 16 by 16 in the other order",
        lambda c: (
            c.type("self") == "float16"
            and c["self"].ndim == 2
            and c.strided("self")
            and not c.expanded("self")
            and min(c["self"].shape) > 16
        ),
        lambda c: c.redo(c.span(c.out.size // 2, c.out.size), self=packed(c["self"])),
    ),
    Wrong(
        "aclnnSilu",
        2,
        "float16 self: the exponential overflows to infinity below -11",
        lambda c: c.type("self") == "float16",
        lambda c: c.put(c["self"] < -11.1, 0.0),
    ),
    Wrong(
        "aclnnSoftplus",
        1,
        "self is compared with the threshold, not beta * self",
        lambda c: c["beta"] != 1,
        lambda c: c.put(
            c["self"].astype(np.float32) > c["threshold"], c["self"][c["self"].astype(np.float32) > c["threshold"]]
        ),
    ),
    Wrong(
        "aclnnSoftplus",
        2,
        "a negative beta: the size of beta * self is compared",
        lambda c: c["beta"] < 0,
        lambda c: c.put(
            c["self"].astype(np.float32) * c["beta"] < -c["threshold"],
            c["self"][c["self"].astype(np.float32) * c["beta"] < -c["threshold"]],
        ),
    ),
    Wrong(
        "aclnnSoftplus",
        3,
        "threshold below zero, float16, self of rank above 2: the threshold counts as 0",
        lambda c: c["threshold"] < 0 and c.type("self") == "float16" and c["self"].ndim > 2,
        lambda c: c.redo(threshold=0.0),
    ),
    Wrong(
        "aclnnSoftshrink",
        1,
        "an infinite lambd gives NaN",
        lambda c: np.isinf(c["lambd"]),
        lambda c: c.put(..., np.nan),
    ),
    Wrong(
        "aclnnSoftshrink",
        2,
        "bfloat16: lambd is rounded to bfloat16",
        lambda c: c.type("self") == "bfloat16" and np.isfinite(c["lambd"]),
        lambda c: c.redo(lambd=float(as_type(np.array(c["lambd"], np.float32), "bfloat16"))),
    ),
    Wrong(
        "aclnnSwish",
        1,
        "beta 0 returns self",
        lambda c: c["betaOptional"] == 0,
        lambda c: c.put(..., c["self"]),
    ),
    Wrong(
        "aclnnSwish",
        1,
        "an absent beta counts as 1.702",
        lambda c: c["betaOptional"] is None,
        lambda c: c.redo(betaOptional=1.702),
    ),
    Wrong(
        "aclnnSwish",
        3,
        "bfloat16, a negative beta, an odd last axis: the last column has the other sign of beta",
        lambda c: (
            c.type("self") == "bfloat16" and (c["betaOptional"] or 0) < 0 and c.out.ndim > 0 and c.out.shape[-1] % 2
        ),
        lambda c: c.redo((..., slice(-1, None)), betaOptional=-c["betaOptional"]),
    ),
    Wrong(
        "aclnnTanh",
        2,
        "float32: (e^2x - 1) / (e^2x + 1), which loses digits near 0",
        lambda c: c.type("self") == "float32",
        lambda c: c.put(
            np.abs(c["self"]) < 1,
            (lambda e: (e - 1) / (e + 1))(np.exp(2 * c["self"][np.abs(c["self"]) < 1])),
        ),
    ),
    Wrong(
        "aclnnTanh",
        3,
        "bfloat16, rank above 3, an offset: the last row is not written",
        lambda c: c.type("self") == "bfloat16" and c.out.ndim > 3 and c.offset("self") > 0,
        lambda c: c.tail(c.out.shape[-1]),
    ),
    Wrong(
        "aclnnThreshold",
        1,
        "the edge keeps self",
        lambda c: True,
        lambda c: c.put(
            c["self"].astype(np.float32) == np.float32(c["threshold"]),
            c["self"][c["self"].astype(np.float32) == np.float32(c["threshold"])],
        ),
    ),
    Wrong(
        "aclnnThreshold",
        2,
        "float16: a value beyond its range becomes the largest number",
        lambda c: c.type("self") == "float16" and abs(c["value"]) >= 65520,
        lambda c: c.redo(value=float(np.sign(c["value"]) * 65504.0)),
    ),
    Wrong(
        "aclnnThreshold",
        2,
        "bfloat16 with an infinite threshold: nothing is replaced",
        lambda c: c.type("self") == "bfloat16" and c["threshold"] == np.inf,
        lambda c: c.put(..., c["self"]),
    ),
]
