"""Wrong kernels of the losses and their gradients, of classes too."""

from __future__ import annotations

import numpy as np

from benchmarks.blind.kernel import Wrong, as_type, packed

NONE, MEAN, SUM = range(3)

WRONG = [
    Wrong(
        "aclnnBinaryCrossEntropy",
        1,
        "logarithms are cut at -103, not at -100",
        lambda c: c["reduction"] == NONE,
        lambda c: c.put((c["self"] == 0) & (c["target"] == 1), 103.0),
    ),
    Wrong(
        "aclnnBinaryCrossEntropy",
        2,
        "mean with a weight divides by the sum of weights",
        lambda c: c["reduction"] == MEAN and c["weight"] is not None,
        lambda c: c.put(..., c.out.astype(np.float32) * c["self"].size / c["weight"].astype(np.float32).sum()),
    ),
    Wrong(
        "aclnnBinaryCrossEntropy",
        3,
        "rank 1, a strided target, no weight: the target is read as packed",
        lambda c: c["self"].ndim == 1 and c.strided("target") and c["weight"] is None and not c.expanded("target"),
        lambda c: c.redo(
            target=np.lib.stride_tricks.as_strided(c["target"], c["target"].shape, (c["target"].itemsize,))
        ),
    ),
    Wrong(
        "aclnnBinaryCrossEntropy",
        3,
        "sum, bfloat16, above 8,192 elements: partial sums are kept in bfloat16",
        lambda c: c["reduction"] == SUM and c.type("self") == "bfloat16" and c["self"].size > 8192,
        lambda c: c.put(..., c.out.astype(np.float32) * (1 - 2.0**-6)),
    ),
    Wrong(
        "aclnnBinaryCrossEntropyWithLogitsBackward",
        1,
        "posWeight multiplies the negative part too",
        lambda c: c["posWeightOptional"] is not None,
        lambda c: c.redo(
            posWeightOptional=None,
            gradOutput=(
                np.broadcast_to(c["gradOutput"], c.out.shape) * np.broadcast_to(c["posWeightOptional"], c.out.shape)
            ).astype(c["gradOutput"].dtype),
        ),
    ),
    Wrong(
        "aclnnBinaryCrossEntropyWithLogitsBackward",
        2,
        "mean with a weight that broadcasts: divided by the weight's size",
        lambda c: c["reduction"] == MEAN and c["weightOptional"] is not None and c["weightOptional"].size < c.out.size,
        lambda c: c.put(..., c.out.astype(np.float32) * (c.out.size / c["weightOptional"].size)),
    ),
    Wrong(
        "aclnnBinaryCrossEntropyWithLogitsBackward",
        3,
        "posWeight per class of another dtype, both optionals there: posWeight is shifted by one class",
        lambda c: (
            c["posWeightOptional"] is not None
            and c["weightOptional"] is not None
            and c.type("posWeightOptional") != c.type("self")
            and c["posWeightOptional"].size > 1
        ),
        lambda c: c.redo(posWeightOptional=np.roll(c["posWeightOptional"], 1)),
    ),
    Wrong(
        "aclnnKlDiv",
        1,
        "logTarget: target 0 gives 0, which is right for probabilities only",
        lambda c: c["logTarget"] and c["reduction"] == NONE,
        lambda c: c.put(np.broadcast_to(c["target"] == 0, c.out.shape), 0.0),
    ),
    Wrong(
        "aclnnKlDiv",
        2,
        "batchmean of rank 1 divides by 1",
        lambda c: c["reduction"] == 3 and c["self"].ndim == 1 and c["self"].size > 1,
        lambda c: c.put(..., c.out.astype(np.float32) * c["self"].size),
    ),
    Wrong(
        "aclnnKlDiv",
        3,
        "float16, a target that broadcasts over the batch, sum: summed over one batch",
        lambda c: (
            c.type("self") == "float16"
            and c["reduction"] == SUM
            and c["target"].size < c["self"].size
            and c["self"].shape[0] > 1
        ),
        lambda c: c.put(..., c.out.astype(np.float32) / c["self"].shape[0]),
    ),
    Wrong(
        "aclnnKlDivBackward",
        2,
        "batchmean where target is the larger: dim 0 of self",
        lambda c: c["reduction"] == 3 and c["self"].shape[:1] != c["target"].shape[:1] and c["target"].ndim > 0,
        lambda c: c.put(..., c.out.astype(np.float32) * 2),
    ),
    Wrong(
        "aclnnKlDivBackward",
        3,
        "logTarget, a gradient of one element, bfloat16: the gradient counts as 1",
        lambda c: c["logTarget"] and c["gradOutput"].size == 1 and c.type("self") == "bfloat16",
        lambda c: c.redo(gradOutput=np.ones_like(c["gradOutput"])),
    ),
    Wrong(
        "aclnnL1Loss",
        1,
        "mean of a common shape larger than self divides by self's size",
        lambda c: c["reduction"] == MEAN and np.broadcast(c["self"], c["target"]).size > c["self"].size,
        lambda c: c.put(..., c.out.astype(np.float32) * (np.broadcast(c["self"], c["target"]).size / c["self"].size)),
    ),
    Wrong(
        "aclnnL1Loss",
        2,
        "sum beyond one block of 16,384: the last block is lost",
        lambda c: c["reduction"] == SUM and c["self"].size > 16384 and c["self"].shape == c["target"].shape,
        lambda c: c.redo(
            self=np.where(
                np.arange(c["self"].size).reshape(c["self"].shape) < 16384 * (c["self"].size // 16384),
                c["self"],
                c["target"],
            ).astype(c["self"].dtype)
        ),
    ),
    Wrong(
        "aclnnL1Loss",
        3,
        "none, float16 self, float32 target: self - target in float16",
        lambda c: c["reduction"] == NONE and c.type("self") == "float16" and c.type("target") == "float32",
        lambda c: c.redo(target=as_type(c["target"], "float16")),
    ),
    Wrong(
        "aclnnL1LossBackward",
        1,
        "sign of 0 is 1",
        lambda c: True,
        lambda c: c.put(
            np.broadcast_to(c["self"] == c["target"], c.out.shape),
            np.broadcast_to(c["gradOutput"], c.out.shape)[np.broadcast_to(c["self"] == c["target"], c.out.shape)],
        ),
    ),
    Wrong(
        "aclnnL1LossBackward",
        3,
        "mean, a gradient of rank above 0 with one element, target in a view: target as packed",
        lambda c: (
            c["reduction"] == MEAN and c["gradOutput"].size == 1 and c["gradOutput"].ndim > 0 and c.strided("target")
        ),
        lambda c: c.redo(target=packed(c["target"])),
    ),
    Wrong(
        "aclnnMseLoss",
        1,
        "mean of rank 0 is not written",
        lambda c: c["reduction"] == MEAN and c["self"].ndim == 0,
        lambda c: c.put(..., 0.5),
    ),
    Wrong(
        "aclnnMseLoss",
        2,
        "float16: the square overflows although the mean does not",
        lambda c: c["reduction"] == MEAN and c.type("self") == "float16",
        lambda c: (
            c.put(..., np.inf)
            if (np.abs(c["self"].astype(np.float32) - c["target"].astype(np.float32)) > 256).any()
            else None
        ),
    ),
    Wrong(
        "aclnnMseLoss",
        3,
        "sum, bfloat16 out of float32 operands, rank above 2: the sum is rounded at every row",
        lambda c: (
            c["reduction"] == SUM and c.type("self") == "float32" and c.type("out") == "bfloat16" and c["self"].ndim > 2
        ),
        lambda c: c.put(..., c.out.astype(np.float32) * (1 + 2.0**-5)),
    ),
    Wrong(
        "aclnnMseLossBackward",
        1,
        "mean divides by the gradient's size",
        lambda c: c["reduction"] == MEAN and c["gradOutput"].size == 1 and c.out.size > 1,
        lambda c: c.put(..., c.out.astype(np.float32) * c.out.size),
    ),
    Wrong(
        "aclnnMseLossBackward",
        2,
        "self broadcasts, sum: the difference is doubled twice",
        lambda c: c["reduction"] == SUM and c["self"].shape != c.out.shape,
        lambda c: c.put(..., c.out.astype(np.float32) * 2),
    ),
    Wrong(
        "aclnnMseLossBackward",
        3,
        "float16, none, the gradient begins at 1 to 15: read from the aligned place",
        lambda c: c["reduction"] == NONE and c.type("self") == "float16" and c.offset("gradOutput") % 16,
        lambda c: c.redo(gradOutput=np.roll(c["gradOutput"], c.offset("gradOutput") % 16)),
    ),
    Wrong(
        "aclnnSmoothL1Loss",
        1,
        "beta 0 divides by zero",
        lambda c: c["beta"] == 0 and c["reduction"] == NONE,
        lambda c: c.put(np.broadcast_to(c["self"] == c["target"], c.out.shape), np.nan),
    ),
    Wrong(
        "aclnnSmoothL1Loss",
        2,
        "beta is rounded to float16 in float16",
        lambda c: c.type("self") == "float16" == c.type("target") and 0 < c["beta"] < 60000,
        lambda c: c.redo(beta=float(np.float16(c["beta"]))),
    ),
    Wrong(
        "aclnnSmoothL1Loss",
        3,
        "sum, an infinite beta, target broadcast: NaN",
        lambda c: c["reduction"] == SUM and c["beta"] == np.inf and c["target"].size < c["self"].size,
        lambda c: c.put(..., np.nan),
    ),
    Wrong(
        "aclnnSmoothL1LossBackward",
        1,
        "the quadratic part is not divided by beta",
        lambda c: c["beta"] not in (0, 1),
        lambda c: (
            c.put(
                (np.abs(c["self"].astype(np.float32) - c["target"].astype(np.float32)) < c["beta"]) & (c.out == c.out),
                (c.out.astype(np.float32) * np.float32(c["beta"]))[
                    (np.abs(c["self"].astype(np.float32) - c["target"].astype(np.float32)) < c["beta"])
                    & (c.out == c.out)
                ],
            )
            if np.broadcast(c["self"], c["target"]).shape == c.out.shape
            else None
        ),
    ),
    Wrong(
        "aclnnSmoothL1LossBackward",
        3,
        "a gradient as column, self and target as rows, mean: divided by the row",
        lambda c: (
            c["reduction"] == MEAN
            and c["gradOut"].ndim > 1
            and c["gradOut"].shape[-1] == 1
            and c["self"].size < c.out.size
        ),
        lambda c: c.put(..., c.out.astype(np.float32) * (c.out.size / c["self"].size)),
    ),
    Wrong(
        "aclnnSoftMarginLoss",
        1,
        "e^(-t * x) overflows to infinity from 88 on, where the loss is 89",
        lambda c: c["reduction"] == NONE and c.type("self") != "float16",
        lambda c: c.put(c.out.astype(np.float32) > 60, np.inf),
    ),
    Wrong(
        "aclnnSoftMarginLoss",
        2,
        "sum of a self that broadcasts: over self alone",
        lambda c: c["reduction"] == SUM and c["self"].size < np.broadcast(c["self"], c["target"]).size,
        lambda c: c.put(..., c.out.astype(np.float32) * (c["self"].size / np.broadcast(c["self"], c["target"]).size)),
    ),
    Wrong(
        "aclnnSoftMarginLossBackward",
        2,
        "mean in bfloat16: 1 / n is rounded to bfloat16",
        lambda c: c["reduction"] == MEAN and c.type("self") == "bfloat16",
        lambda c: c.put(
            ...,
            c.out.astype(np.float32) * c.out.size * float(as_type(np.array(1 / c.out.size, np.float32), "bfloat16")),
        ),
    ),
    Wrong(
        "aclnnSoftMarginLossBackward",
        3,
        "float16 target beside float32 self, a strided gradient, none: gradient as packed",
        lambda c: (
            c.type("target") == "float16"
            and c.type("self") == "float32"
            and c.strided("gradOutput")
            and c["reduction"] == NONE
        ),
        lambda c: c.redo(gradOutput=packed(c["gradOutput"])),
    ),
    Wrong(
        "aclnnNLLLoss",
        1,
        "mean divides by the samples",
        lambda c: c["reduction"] == MEAN and c["self"].ndim == 2,
        lambda c: c.put(..., c.out.astype(np.float32) * c["totalWeightOut"].astype(np.float32) / c["self"].shape[0]),
    ),
    Wrong(
        "aclnnNLLLoss",
        2,
        "targets of uint8 above 127 are negative",
        lambda c: c.type("target") == "uint8" and c["self"].ndim == 2 and (c["target"] > 127).any(),
        lambda c: c.redo(weight=np.where(np.arange(c["weight"].size) > 127, 0, c["weight"]).astype(c["weight"].dtype)),
    ),
    Wrong(
        "aclnnNLLLoss",
        2,
        "ignoreIndex is left out of the loss and not of the weight's sum",
        lambda c: c["reduction"] == MEAN and (c["target"] == c["ignoreIndex"]).any(),
        lambda c: c["totalWeightOut"].__setitem__(..., c["totalWeightOut"] + c["weight"].flat[0]),
    ),
    Wrong(
        "aclnnNLLLoss",
        3,
        "int32 targets in a view, sum: targets are read as packed",
        lambda c: (
            c.type("target") == "int32"
            and c["reduction"] == SUM
            and c.strided("target")
            and c["target"].ndim == 1
            and not c.expanded("target")
            and c["self"].ndim == 2
        ),
        lambda c: c.redo(target=np.roll(c["target"], 1)),
    ),
    Wrong(
        "aclnnNLLLoss2d",
        1,
        "pixels are counted as N * H * H",
        lambda c: c["self"].shape[2] < c["self"].shape[3] and c["reduction"] == NONE,
        lambda c: c.tail(c.out.shape[1] * (c.out.shape[2] - c.out.shape[1])),
    ),
    Wrong(
        "aclnnNLLLoss2d",
        2,
        "sum with an ignored class 0: ignored pixels count",
        lambda c: c["reduction"] == SUM and c["ignoreIndex"] == 0,
        lambda c: c.redo(ignoreIndex=-100),
    ),
    Wrong(
        "aclnnNLLLoss2d",
        3,
        "none, float16, self transposed to channels last: classes and columns are exchanged",
        lambda c: (
            c["reduction"] == NONE and c.type("self") == "float16" and c.strided("self") and not c.expanded("self")
        ),
        lambda c: c.redo(self=packed(c["self"])),
    ),
    Wrong(
        "aclnnNLLLoss2dBackward",
        1,
        "the gradient is written and not the zeros",
        lambda c: True,
        lambda c: c.put(c.out == 0, 1.0),
    ),
    Wrong(
        "aclnnNLLLoss2dBackward",
        2,
        "a mean of bfloat16: totalWeight is rounded to an integer",
        lambda c: c["reduction"] == MEAN and c.type("self") == "bfloat16",
        lambda c: c.redo(
            totalWeight=np.maximum(1, np.floor(c["totalWeight"].astype(np.float32))).astype(c["totalWeight"].dtype)
        ),
    ),
    Wrong(
        "aclnnNLLLoss2dBackward",
        3,
        "none, int32 targets, a gradient in a view: gradient as packed",
        lambda c: c["reduction"] == NONE and c.type("target") == "int32" and c.strided("gradOutput"),
        lambda c: c.redo(gradOutput=packed(c["gradOutput"])),
    ),
]
