"""Wrong kernels of the activations' gradients."""

from __future__ import annotations

import numpy as np

from benchmarks.blind.kernel import Wrong, as_type, packed

WRONG = [
    Wrong(
        "aclnnEluBackward",
        1,
        "isResult is ignored",
        lambda c: c["isResult"],
        lambda c: c.redo(isResult=False),
    ),
    Wrong(
        "aclnnEluBackward",
        2,
        "isResult: scale is left out of alpha * scale",
        lambda c: c["isResult"] and c["scale"] not in (0, 1),
        lambda c: c.redo(c["selfOrResult"] <= 0, alpha=c["alpha"] / c["scale"]),
    ),
    Wrong(
        "aclnnEluBackward",
        3,
        "bfloat16, isResult, a gradient in a view: the gradient is read as packed",
        lambda c: c.type("gradOutput") == "bfloat16" and c["isResult"] and c.strided("gradOutput"),
        lambda c: c.redo(gradOutput=packed(c["gradOutput"])),
    ),
    Wrong(
        "aclnnFastGeluBackward",
        2,
        "float32 below -20: zero",
        lambda c: c.type("self") == "float32",
        lambda c: c.put(c["self"] < -20, 0.0),
    ),
    Wrong(
        "aclnnFastGeluBackward",
        3,
        "bfloat16, both operands transposed, above 1,024 elements: self is read as packed",
        lambda c: c.type("self") == "bfloat16" and c.strided("self") and c.strided("gradOutput") and c.out.size > 1024,
        lambda c: c.redo(self=packed(c["self"])),
    ),
    Wrong(
        "aclnnGeluBackward",
        1,
        "a gradient that broadcasts along the first axis is read as the last",
        lambda c: c["gradOutput"].ndim == 2 and c["gradOutput"].shape[0] == 1 and c.out.shape[0] == c.out.shape[1] > 1,
        lambda c: c.redo(gradOutput=np.broadcast_to(c["gradOutput"].T, c.out.shape)),
    ),
    Wrong(
        "aclnnGeluBackward",
        2,
        "a self that is broadcast, in float16: only its first element is used",
        lambda c: c.type("self") == "float16" and c["self"].shape != c.out.shape and c["self"].size > 1,
        lambda c: c.redo(self=np.broadcast_to(c["self"].flat[0], c["self"].shape)),
    ),
    Wrong(
        "aclnnGeluBackwardV2",
        1,
        "none is computed as tanh",
        lambda c: c["approximate"] == "none",
        lambda c: c.redo(approximate="tanh"),
    ),
    Wrong(
        "aclnnGeluBackwardV2",
        3,
        "tanh, float16 gradient beside a float32 self: the result is rounded to float16",
        lambda c: c["approximate"] == "tanh" and c.type("gradOutput") == "float16" and c.type("self") == "float32",
        lambda c: c.put(..., as_type(c.out, "float16")),
    ),
    Wrong(
        "aclnnGeluBackwardV2",
        3,
        "a gradient of one element, none, above a block of 4,096: the second block has gradient 1",
        lambda c: c["approximate"] == "none" and c["gradOutput"].size == 1 and c.out.size > 4096,
        lambda c: c.redo(c.span(4096, c.out.size), gradOutput=np.ones_like(c["gradOutput"])),
    ),
    Wrong(
        "aclnnHardshrinkBackward",
        1,
        "lambd 0 lets zero through",
        lambda c: c["lambd"] == 0,
        lambda c: c.put(np.broadcast_to(c["self"] == 0, c.out.shape), 1.0),
    ),
    Wrong(
        "aclnnHardshrinkBackward",
        2,
        "a tiny self in float32 beside a float16 gradient is rounded to zero first",
        lambda c: c.type("self") == "float32" and c.type("gradOutput") == "float16",
        lambda c: c.redo(self=as_type(c["self"], "float16")),
    ),
    Wrong(
        "aclnnHardsigmoidBackward",
        1,
        "the edges let the gradient through",
        lambda c: True,
        lambda c: c.redo(np.abs(c["self"].astype(np.float32)) == 3, self=np.zeros_like(c["self"])),
    ),
    Wrong(
        "aclnnHardsigmoidBackward",
        3,
        "bfloat16, out of float32, a size that is no multiple of 16: the tail is of the bits",
        lambda c: c.type("self") == "bfloat16" and c.type("out") == "float32" and c.out.size % 16,
        lambda c: c.tail(min(c.out.size, c.out.size % 16), 1e-30),
    ),
    Wrong(
        "aclnnHardswishBackward",
        1,
        "self = 3 gives the gradient, as the second version does",
        lambda c: True,
        lambda c: c.put(c["self"].astype(np.float32) == 3, c["gradOutput"][c["self"].astype(np.float32) == 3]),
    ),
    Wrong(
        "aclnnHardswishBackwardV2",
        1,
        "self = -3 gives -gradient / 2, as the first version does",
        lambda c: True,
        lambda c: c.put(c["self"].astype(np.float32) == -3, -c["gradOutput"][c["self"].astype(np.float32) == -3] / 2),
    ),
    Wrong(
        "aclnnHardswishBackwardV2",
        3,
        "float32, rank 2, a gradient with stride 0: every row has the next row's gradient",
        lambda c: c.type("self") == "float32" and c["self"].ndim == 2 and c.expanded("gradOutput"),
        lambda c: c.redo(gradOutput=np.roll(c["gradOutput"], 1, -1)),
    ),
    Wrong(
        "aclnnHardtanhBackward",
        1,
        "the lower limit lets the gradient through",
        lambda c: c["min"] < c["max"],
        lambda c: c.put(
            c["self"].astype(np.float32) == np.float32(c["min"]),
            c["gradOutput"][c["self"].astype(np.float32) == np.float32(c["min"])],
        ),
    ),
    Wrong(
        "aclnnHardtanhBackward",
        2,
        "limits of infinity in float16 become the largest number, which is masked",
        lambda c: c.type("self") == "float16" and c["max"] == np.inf,
        lambda c: c.redo(max=65504.0),
    ),
    Wrong(
        "aclnnLeakyReluBackward",
        1,
        "selfIsResult takes the sign of the gradient",
        lambda c: c["selfIsResult"],
        lambda c: c.redo(self=np.where(c["gradOutput"] > 0, 1, -1).astype(c["self"].dtype)),
    ),
    Wrong(
        "aclnnLeakyReluBackward",
        2,
        "self = 0 with a negative slope: the sign is dropped",
        lambda c: c["negativeSlope"] < 0,
        lambda c: c.redo(np.broadcast_to(c["self"] == 0, c.out.shape), negativeSlope=-c["negativeSlope"]),
    ),
    Wrong(
        "aclnnLeakyReluBackward",
        3,
        "float16, a slope beyond 65,504, self broadcast: the slope saturates",
        lambda c: c.type("self") == "float16" and abs(c["negativeSlope"]) > 65504 and c["self"].shape != c.out.shape,
        lambda c: c.redo(negativeSlope=float(np.sign(c["negativeSlope"]) * 1024.0)),
    ),
    Wrong(
        "aclnnLogSigmoidBackward",
        2,
        "bfloat16 above 20: zero",
        lambda c: c.type("self") == "bfloat16",
        lambda c: c.put(c["self"].astype(np.float32) > 20, 0.0),
    ),
    Wrong(
        "aclnnMishBackward",
        1,
        "tanh's square is left out",
        lambda c: True,
        lambda c: c.put(
            ...,
            c["gradOutput"].astype(np.float32)
            * (lambda x: np.tanh(np.logaddexp(0, x)) + x / (1 + np.exp(-x)))(c["self"].astype(np.float32)),
        ),
    ),
    Wrong(
        "aclnnMishBackward",
        3,
        "outer product with the gradient as column, float32, a row above 64: the first 64 repeat",
        lambda c: (
            c.type("self") == "float32"
            and c["gradOutput"].ndim > 1
            and c["gradOutput"].shape[-1] == 1
            and c.out.shape[-1] > 64
            and c["self"].size < c.out.size
        ),
        lambda c: c.put((..., slice(64, 128)), c.out[..., : c.out[..., 64:128].shape[-1]]),
    ),
    Wrong(
        "aclnnPreluBackward",
        1,
        "gradWeight counts positive selfs too",
        lambda c: True,
        lambda c: c["gradWeight"].__setitem__(..., c["gradWeight"] * 2 + 1),
    ),
    Wrong(
        "aclnnPreluBackward",
        2,
        "one weight and rank 1: gradWeight is that of the first element",
        lambda c: c["weight"].size == 1 and c["self"].ndim == 1,
        lambda c: c["gradWeight"].__setitem__(
            ..., (np.minimum(c["self"].astype(np.float32), 0) * c["gradOutput"].astype(np.float32)).flat[0]
        ),
    ),
    Wrong(
        "aclnnPreluBackward",
        3,
        "float16, several channels, a gradient that broadcasts over the batch: counted once",
        lambda c: (
            c.type("self") == "float16"
            and c["weight"].size > 1
            and c["self"].shape[0] > 1
            and (c["gradOutput"].ndim < c["self"].ndim or c["gradOutput"].shape[0] == 1)
        ),
        lambda c: c["gradWeight"].__setitem__(
            ..., c["gradWeight"] / np.array(c["self"].shape[0], c["gradWeight"].dtype)
        ),
    ),
    Wrong(
        "aclnnSeluBackward",
        2,
        "float32 at scale * -alpha: the difference is not zero",
        lambda c: c.type("result") == "float32",
        lambda c: c.put(c["result"] < -1.75, c["gradOutput"][c["result"] < -1.75] * 1e-3),
    ),
    Wrong(
        "aclnnSeluBackward",
        3,
        "bfloat16, result alone in a view, rank above 1: the view is ignored",
        lambda c: (
            c.type("result") == "bfloat16" and c.strided("result") and not c.strided("gradOutput") and c.out.ndim > 1
        ),
        lambda c: c.redo(result=packed(c["result"])),
    ),
    Wrong(
        "aclnnSigmoidBackward",
        1,
        "y - y * y is taken for 0 beyond 0.999",
        lambda c: True,
        lambda c: c.put(np.broadcast_to(c["output"].astype(np.float32) > 0.999, c.out.shape), 0.0),
    ),
    Wrong(
        "aclnnSiluBackward",
        2,
        "the gradient begins at an odd place, float16: read one place before",
        lambda c: c.type("self") == "float16" and c.offset("gradOutput") % 2,
        lambda c: c.redo(gradOutput=np.roll(c["gradOutput"], 1)),
    ),
    Wrong(
        "aclnnSoftplusBackward",
        1,
        "e^b overflows below the threshold: NaN",
        lambda c: c["threshold"] > 88,
        lambda c: c.put(
            (c["self"].astype(np.float64) * c["beta"] > 88.8)
            & (c["self"].astype(np.float64) * c["beta"] <= c["threshold"]),
            np.nan,
        ),
    ),
    Wrong(
        "aclnnSoftplusBackward",
        2,
        "a negative beta: the branches are exchanged",
        lambda c: c["beta"] < 0,
        lambda c: c.redo(beta=-c["beta"]),
    ),
    Wrong(
        "aclnnSoftplusBackward",
        3,
        "float16 gradient, float32 self, beta not 1: beta is applied twice",
        lambda c: c.type("gradOutput") == "float16" and c.type("self") == "float32" and c["beta"] != 1,
        lambda c: c.redo(beta=c["beta"] ** 2),
    ),
    Wrong(
        "aclnnSoftshrinkBackward",
        2,
        "lambda 0 and self -0 or 0: the gradient passes",
        lambda c: c["lambda"] == 0,
        lambda c: c.put(np.broadcast_to(c["self"] == 0, c.out.shape), 1.0),
    ),
    Wrong(
        "aclnnSwishBackward",
        1,
        "beta multiplies the result once more",
        lambda c: c["betaOptional"] not in (None, 0, 1),
        lambda c: c.put(..., c.out.astype(np.float32) * np.float32(c["betaOptional"])),
    ),
    Wrong(
        "aclnnSwishBackward",
        3,
        "float16, beta above 100, rank 1: beta * self saturates at 65,504",
        lambda c: c.type("self") == "float16" and abs(c["betaOptional"] or 1) > 100 and c["self"].ndim == 1,
        lambda c: c.put(np.abs(c["self"].astype(np.float32) * np.float32(c["betaOptional"])) > 65504, np.nan),
    ),
    Wrong(
        "aclnnTanhBackward",
        2,
        "float16: the square is rounded, so that nothing is left beside 1",
        lambda c: c.type("output") == "float16",
        lambda c: c.put(np.broadcast_to(np.abs(c["output"].astype(np.float32)) > 0.998, c.out.shape), 0.0),
    ),
    Wrong(
        "aclnnTanhBackward",
        3,
        "float32, output broadcasts, more than 40 rows: rows from 40 on have the first row's",
        lambda c: (
            c.type("output") == "float32"
            and c["output"].shape != c.out.shape
            and c.out.ndim > 1
            and c.out.shape[0] > 40
        ),
        lambda c: c.put(slice(40, None), c.out[:1]),
    ),
    Wrong(
        "aclnnThresholdBackward",
        1,
        "the edge keeps the gradient",
        lambda c: True,
        lambda c: c.redo(
            np.broadcast_to(c["self"].astype(np.float32) == np.float32(c["threshold"]), c.out.shape), threshold=-3e38
        ),
    ),
    Wrong(
        "aclnnThresholdBackward",
        2,
        "bfloat16 and a negative threshold: its size is taken",
        lambda c: c.type("self") == "bfloat16" and c["threshold"] < 0,
        lambda c: c.redo(threshold=-c["threshold"]),
    ),
    Wrong(
        "aclnnGluBackward",
        1,
        "the halves of out are exchanged",
        lambda c: True,
        lambda c: c.put(..., np.roll(c.out, c.out.shape[c["dim"]] // 2, c["dim"])),
    ),
    Wrong(
        "aclnnGluBackward",
        3,
        "bfloat16, the first of three axes, an odd half: the second half's last row is zero",
        lambda c: c.type("self") == "bfloat16" and c.out.ndim == 3 and c["dim"] in (0, -3) and c.out.shape[0] // 2 % 2,
        lambda c: c.put(-1, 0.0),
    ),
]
