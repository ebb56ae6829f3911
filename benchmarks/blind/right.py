"""Right kernels in orders that no page names: float32 arithmetic, as exact as with one rounded operand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy import exp, expm1, log1p, sqrt, where

from benchmarks.blind.kernel import F32, Right, Seen

LOG2E = F32(1.4426950408889634)
LAMBDA = F32(1.0507009873554805)
LAMBDA_ALPHA = F32(1.0507009873554805 * 1.6732632423543772)
ERFC = np.vectorize(math.erfc, otypes=[F32])
THIRD, SIXTH = F32(1 / 3), F32(1 / 6)


def f(c: Seen, name: str) -> Any:
    """Return an operand in float32."""
    return c[name].astype(F32)


def n(c: Seen, name: str) -> Any:
    """Return a scalar in float32."""
    return F32(c[name])


def sig(x: Any) -> Any:
    """Return the sigmoid, computed without overflow."""
    z = exp(-abs(x))
    return where(x < 0, z, F32(1)) / (1 + z)


def softplus(x: Any) -> Any:
    return np.maximum(x, 0) + log1p(exp(-abs(x)))


def tree(a: Any, axis: int = -1) -> Any:
    """Return a sum by halves: the first half and the second half are added, again and again."""
    a = np.moveaxis(a, axis, -1)
    while a.shape[-1] > 1:
        half = -(-a.shape[-1] // 2)
        rest = np.concatenate([a[..., half:], np.zeros((*a.shape[:-1], 2 * half - a.shape[-1]), F32)], -1)
        a = a[..., :half] + rest
    return np.moveaxis(a, -1, axis)


def by_lanes(a: Any, lanes: int = 64) -> Any:
    """Return the sum of all elements: one running sum per vector lane, then the sum of these in turn."""
    flat = a.ravel()
    flat = np.concatenate([flat, np.zeros(-flat.size % lanes, F32)]).reshape(-1, lanes)
    total = np.add.accumulate(flat, 0)[-1] if len(flat) else np.zeros(lanes, F32)
    return np.add.accumulate(total)[-1]


def reduced(c: Seen, loss: Any, total: Any = by_lanes) -> Any:
    """Return the loss, its mean or its sum."""
    if c["reduction"] == 0:
        return loss
    return (total(loss) / F32(loss.size) if c["reduction"] == 1 else total(loss)) + np.zeros(c.out.shape, F32)


def whole(a: Any) -> Any:
    return tree(a.reshape(1, -1))[0, 0] if a.size else F32(0)


def rows(c: Seen, name: str) -> Any:
    a = f(c, name)
    return (a, c["dim"]) if a.ndim else (a.reshape(1), 0)


def softmax_online(c: Seen) -> Any:
    """Compute softmax over blocks of 16 along the axis; the sum is rescaled to each new maximum."""
    x, dim = rows(c, "self")
    x = np.moveaxis(x, dim, -1)
    m, s = np.full(x.shape[:-1], -np.inf, F32), np.zeros(x.shape[:-1], F32)
    for k in range(0, x.shape[-1], 16):
        new = np.maximum(m, x[..., k : k + 16].max(-1))
        s = s * where(m == -np.inf, F32(0), exp(m - new)) + exp(x[..., k : k + 16] - new[..., None]).sum(-1)
        m = new
    return np.moveaxis(exp(x - m[..., None]) / s[..., None], -1, dim).reshape(c.out.shape)


def softmax_exp2(c: Seen) -> Any:
    x, dim = rows(c, "self")
    e = np.exp2((x - x.max(dim, keepdims=True)) * LOG2E)
    return (e * (1 / tree(e, dim))).reshape(c.out.shape)


def log_softmax(c: Seen) -> Any:
    x, dim = rows(c, "self")
    m = x.max(dim, keepdims=True)
    return (x - (m + np.log(tree(exp(x - m), dim)))).reshape(c.out.shape)


def softmax_backward(c: Seen) -> Any:
    (g, dim), (y, _) = rows(c, "gradOutput"), rows(c, "output")
    return (y * (g - tree(g * y, dim))).reshape(c.out.shape)


def log_softmax_backward(c: Seen) -> Any:
    (g, dim), (y, _) = rows(c, "gradOutput"), rows(c, "output")
    return (g - exp(y) * tree(g, dim)).reshape(c.out.shape)


def rms_norm(c: Seen) -> Any:
    x, w = f(c, "x"), f(c, "gamma")
    flat = x.reshape(-1, w.size)
    r = 1 / sqrt(tree(flat * flat / F32(w.size)) + n(c, "epsilon"))
    return (flat * (w.ravel() * r)).reshape(x.shape)


def layer_norm(c: Seen) -> Any:
    x, count = f(c, "input"), math.prod(c["normalizedShape"])
    flat = x.reshape(-1, count)
    d = flat - tree(flat) / F32(count)
    y = (d / sqrt(tree(d * d) / F32(count) + n(c, "eps"))).reshape(x.shape)
    y = y if c["weightOptional"] is None else y * f(c, "weightOptional")
    return y if c["biasOptional"] is None else y + f(c, "biasOptional")


def halves(c: Seen, name: str) -> Any:
    return np.split(f(c, name), 2, c["dim"])


def mish(c: Seen) -> Any:
    x = f(c, "self")
    e = exp(np.minimum(x, 30))
    k = e * (e + 2)
    return where(x > 30, x, x * (k / (k + 2)))


def gelu_gate(x: Any) -> Any:
    return F32(2 * math.sqrt(2 / math.pi)) * x * (1 + F32(0.044715) * x * x)


def smooth_l1(c: Seen) -> Any:
    d, beta = abs(f(c, "self") - f(c, "target")), n(c, "beta")
    return reduced(c, where(d < beta, d * d * (F32(0.5) / beta), d - F32(0.5) * beta), whole)


def kl_div(c: Seen) -> Any:
    x, t = f(c, "self"), f(c, "target")
    loss = exp(t) * (t - x) if c["logTarget"] else where(t > 0, t * np.log(where(t > 0, t, 1)) - t * x, F32(0))
    if c["reduction"] == 3:
        return whole(loss) / F32(loss.shape[0] if loss.ndim else 1) + np.zeros(c.out.shape, F32)
    return reduced(c, loss)


def bce(c: Seen) -> Any:
    x, t = f(c, "self"), f(c, "target")
    loss = -(t * np.maximum(np.log(x), -100) + (1 - t) * np.maximum(log1p(-x), -100))
    return reduced(c, loss if c["weight"] is None else loss * f(c, "weight"), whole)


def logits(c: Seen) -> Any:
    x, t, g = f(c, "self"), f(c, "target"), f(c, "gradOutput")
    q = t if c["posWeightOptional"] is None else t * f(c, "posWeightOptional")
    v = ((1 - t) * sig(x) - q * sig(-x)) * g
    v = v if c["weightOptional"] is None else v * f(c, "weightOptional")
    return v / F32(c.out.size) if c["reduction"] == 1 else v


RIGHT = [
    Right("aclnnSigmoid", "e^x by 2^x", lambda c: 1 / (1 + np.exp2(-f(c, "self") * LOG2E))),
    Right("aclnnSigmoid", "a branch for each sign", lambda c: sig(f(c, "self"))),
    Right("aclnnSilu", "self * sigmoid, a branch for each sign", lambda c: f(c, "self") * sig(f(c, "self"))),
    Right(
        "aclnnSwish",
        "self * sigmoid",
        lambda c: f(c, "self") * sig(f(c, "self") * n(c, "betaOptional")),
        lambda c: c["betaOptional"] is not None,
    ),
    Right(
        "aclnnTanh",
        "by expm1",
        lambda c: (lambda x, e: np.copysign(-e / (2 + e), x))(f(c, "self"), expm1(-2 * abs(f(c, "self")))),
    ),
    Right("aclnnMish", "the quotient of polynomials of e^x", mish),
    Right("aclnnGelu", "x * sigmoid(2u)", lambda c: f(c, "self") * sig(gelu_gate(f(c, "self")))),
    Right(
        "aclnnGeluV2",
        "by erfc",
        lambda c: F32(0.5) * f(c, "x") * ERFC(-f(c, "x") * F32(math.sqrt(0.5))),
        lambda c: c["approximate"] != 1,
    ),
    Right("aclnnFastGelu", "x * sigmoid(1.702x)", lambda c: f(c, "self") * sig(F32(1.702) * f(c, "self"))),
    Right(
        "aclnnElu",
        "by expm1",
        lambda c: where(
            f(c, "self") > 0,
            f(c, "self") * n(c, "scale"),
            n(c, "scale") * (n(c, "alpha") * expm1(f(c, "self") * n(c, "inputScale"))),
        ),
        lambda c: np.isfinite([c["alpha"], c["inputScale"]]).all(),
    ),
    Right(
        "aclnnEluBackward",
        "the scalars are multiplied first",
        lambda c: where(
            f(c, "selfOrResult") > 0,
            f(c, "gradOutput") * n(c, "scale"),
            f(c, "gradOutput")
            * (n(c, "inputScale") * n(c, "alpha") * n(c, "scale") * exp(f(c, "selfOrResult") * n(c, "inputScale"))),
        ),
        lambda c: not c["isResult"] and max(map(abs, (c["alpha"], c["scale"], c["inputScale"]))) < 1e6,
    ),
    Right(
        "aclnnSelu",
        "by expm1",
        lambda c: where(f(c, "self") > 0, f(c, "self") * LAMBDA, LAMBDA_ALPHA * expm1(f(c, "self"))),
    ),
    Right(
        "aclnnSeluBackward",
        "g * y + g * S * A",
        lambda c: where(
            f(c, "result") > 0,
            f(c, "gradOutput") * LAMBDA,
            f(c, "gradOutput") * f(c, "result") + f(c, "gradOutput") * LAMBDA_ALPHA,
        ),
    ),
    Right(
        "aclnnCelu",
        "by expm1",
        lambda c: (
            where(f(c, "self") > 0, f(c, "self"), F32(0))
            + np.minimum(n(c, "alpha") * expm1(f(c, "self") / n(c, "alpha")), 0)
            if c["alpha"] > 0
            else f(c, "self")
        ),
        lambda c: 0 < c["alpha"] < np.inf,
    ),
    Right(
        "aclnnSoftplus",
        "max(x, 0) + log1p(e^-|x|)",
        lambda c: where(
            f(c, "self") * n(c, "beta") > n(c, "threshold"),
            f(c, "self"),
            softplus(f(c, "self") * n(c, "beta")) / n(c, "beta"),
        ),
    ),
    Right(
        "aclnnSoftplusBackward",
        "g * sigmoid, a branch for each sign",
        lambda c: where(
            f(c, "self") * n(c, "beta") > n(c, "threshold"),
            f(c, "gradOutput"),
            f(c, "gradOutput") * sig(f(c, "self") * n(c, "beta")),
        ),
    ),
    Right("aclnnLogSigmoid", "min(x, 0) - log1p(e^-|x|)", lambda c: -softplus(-f(c, "self"))),
    Right("aclnnLogSigmoidBackward", "a branch for each sign", lambda c: f(c, "gradOutput") * sig(-f(c, "self"))),
    Right(
        "aclnnSigmoidBackward",
        "g * y - (g * y) * y",
        lambda c: (lambda p: p - p * f(c, "output"))(f(c, "gradOutput") * f(c, "output")),
    ),
    Right(
        "aclnnTanhBackward",
        "g - (g * y) * y",
        lambda c: f(c, "gradOutput") - f(c, "gradOutput") * f(c, "output") * f(c, "output"),
    ),
    Right(
        "aclnnTanhBackward",
        "g * (1 - y) * (1 + y)",
        lambda c: f(c, "gradOutput") * (1 - f(c, "output")) * (1 + f(c, "output")),
    ),
    Right(
        "aclnnSiluBackward",
        "g * (s + x * s * (1 - s))",
        lambda c: (lambda s, x: f(c, "gradOutput") * (s + x * s * sig(-x)))(sig(f(c, "self")), f(c, "self")),
    ),
    Right("aclnnHardswish", "self / 6 first", lambda c: f(c, "self") * SIXTH * np.clip(f(c, "self") + 3, 0, 6)),
    Right("aclnnHardsigmoid", "(self + 3) / 6", lambda c: np.clip((f(c, "self") + 3) / 6, 0, 1)),
    Right(
        "aclnnHardswishBackward",
        "g * ((2x + 3) / 6)",
        lambda c: where(
            abs(f(c, "self")) <= 3,
            f(c, "gradOutput") * ((2 * f(c, "self") + 3) / 6),
            f(c, "gradOutput") * (f(c, "self") > 0),
        ),
    ),
    Right(
        "aclnnLeakyRelu",
        "both branches are added",
        lambda c: np.maximum(f(c, "self"), 0) + n(c, "negativeSlope") * np.minimum(f(c, "self"), 0),
        lambda c: np.isfinite(c["negativeSlope"]),
    ),
    Right("aclnnSoftmax", "one pass over blocks", softmax_online),
    Right("aclnnSoftmax", "e^x by 2^x, times the inverse", softmax_exp2),
    Right("aclnnLogSoftmax", "x - (m + log s)", log_softmax),
    Right("aclnnSoftmaxBackward", "y * (g - sum), by halves", softmax_backward),
    Right("aclnnLogSoftmaxBackward", "the sum by halves", log_softmax_backward),
    Right("aclnnRmsNorm", "x * (gamma * r), terms divided first", rms_norm),
    Right("aclnnLayerNorm", "two passes, a division by the root", layer_norm),
    Right(
        "aclnnGlu", "a * sigmoid(b), a branch for each sign", lambda c: (lambda a, b: a * sig(b))(*halves(c, "self"))
    ),
    Right("aclnnSwiGlu", "(a * sigmoid(a)) * b", lambda c: (lambda a, b: a * sig(a) * b)(*halves(c, "x"))),
    Right("aclnnL1Loss", "a sum by 64 lanes", lambda c: reduced(c, abs(f(c, "self") - f(c, "target")))),
    Right("aclnnMseLoss", "a sum by halves", lambda c: reduced(c, (f(c, "self") - f(c, "target")) ** 2, whole)),
    Right(
        "aclnnMseLossBackward",
        "the factor times the gradient first",
        lambda c: (
            (f(c, "self") - f(c, "target")) * (f(c, "gradOutput") * F32(2 / c.out.size if c["reduction"] == 1 else 2))
        ),
    ),
    Right("aclnnSmoothL1Loss", "d^2 * (0.5 / beta)", smooth_l1, lambda c: 1e-6 < c["beta"] < 1e6),
    Right("aclnnKlDiv", "t * log t - t * x", kl_div),
    Right("aclnnBinaryCrossEntropy", "by log1p", bce),
    Right(
        "aclnnBinaryCrossEntropyWithLogitsBackward",
        "(1 - t) * s - q * (1 - s)",
        logits,
        # the page: an infinite posWeight gives NaN, as the document's order does; this order gives an infinity
        lambda c: c["posWeightOptional"] is None or np.isfinite(c["posWeightOptional"].astype(F32)).all(),
    ),
    Right(
        "aclnnSoftMarginLoss",
        "max(x, 0) + log1p(e^-|x|)",
        lambda c: reduced(c, softplus(-f(c, "target") * f(c, "self")), whole),
    ),
    Right(
        "aclnnPrelu",
        "both branches are added",
        lambda c: (
            np.maximum(f(c, "self"), 0)
            + np.minimum(f(c, "self"), 0)
            * f(c, "weight").reshape((1, -1, *(1,) * (c["self"].ndim - 2)) if c["self"].ndim > 1 else -1)
        ),
        lambda c: c["self"].ndim > 0 and np.isfinite(c["weight"].astype(F32)).all(),
    ),
]
