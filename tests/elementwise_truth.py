"""The elementwise operators' formulas again, in MPFR and written from the fact sheets alone, and hard data.

This file uses nothing of ``oracle.numerics``: its formula and that of an operator's page are two separate readings.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import gmpy2
import numpy as np
from gmpy2 import mpfr, mpq
from truth import TYPES, rounded

PRECISION = 420  # bits: a result may be as close to a tie as 1 + e^-200 is to 1
SIXTH, THIRD = mpq(1, 6), mpq(1, 3)
CLAMP = mpq(float(np.float32(1e-12)))  # of the denominator of the cross entropy
SELU = mpq("10507009873554804934193349852946/10000000000000000000000000000000")
SELU_ALPHA = SELU * mpq("16732632423543772848170429916717/10000000000000000000000000000000")


def sigmoid(b: Any) -> Any:
    return 1 / (1 + gmpy2.exp(mpfr(-b)))


def log_sigmoid_of(b: Any) -> Any:
    return -gmpy2.log1p(gmpy2.exp(mpfr(-abs(b)))) + min(b, mpq(0))


def silu(b: Any) -> Any:
    s = sigmoid(b)
    return s * (1 + b * (1 - s))


def gelu_tanh(x: Any) -> Any:
    root = gmpy2.sqrt(2 / gmpy2.const_pi())
    u = root * (x + mpq(44715, 1000000) * x**3)
    s = 1 / (1 + gmpy2.exp(-2 * u))
    return s + x * 2 * root * (1 + 3 * mpq(44715, 1000000) * x**2) * s * (1 - s)


def gelu_erf(x: Any) -> Any:
    phi = gmpy2.exp(mpfr(-x * x / 2)) / gmpy2.sqrt(2 * gmpy2.const_pi())
    return gmpy2.erfc(-mpfr(x) / gmpy2.sqrt(mpfr(2))) / 2 + x * phi


def mish(x: Any) -> Any:
    t = gmpy2.tanh(gmpy2.log1p(gmpy2.exp(mpfr(x))))
    return t + x * sigmoid(x) * (1 - t * t)


def fast_gelu(x: Any) -> Any:
    b = -mpq(1702, 1000) * x
    s = 1 / (gmpy2.exp(mpfr(b)) + 1)
    return ((s - 1) * b + 1) * s


def elu(x: Any, a: dict[str, Any]) -> Any:
    scale, inner = (mpq(float(np.float32(a[k]))) for k in ("scale", "inputScale"))
    n = mpq(float(np.float32(np.float32(a["alpha"]) * np.float32(a["scale"]))))
    if x > 0:
        return scale
    return inner * (x + n) if a["isResult"] else inner * n * gmpy2.exp(mpfr(x * inner))


def softplus(x: Any, a: dict[str, Any]) -> Any:
    b = mpq(float(np.float32(a["beta"]))) * x
    return mpq(1) if b > mpq(float(np.float32(a["threshold"]))) else sigmoid(b)


def threshold(x: Any, a: dict[str, Any]) -> Any:
    t = mpq(float(np.float32(a["threshold"])))
    return mpq(int(x > (0 if abs(t) <= mpq(1, 2**23) else t)))


def smooth_l1(x: Any, t: Any, a: dict[str, Any]) -> Any:
    d, beta = x - t, mpq(float(np.float32(a["beta"])))
    return d / beta if abs(d) < beta else mpq((d > 0) - (d < 0))


def smooth_l1_of(x: Any, t: Any, a: dict[str, Any]) -> Any:
    d, beta = abs(x - t), mpq(float(np.float32(a["beta"])))
    return d * d / (2 * beta) if d < beta else d - beta / 2


def logits(x: Any, t: Any, w: Any, p: Any) -> Any:
    q = p * t
    return ((q + 1 - t) * sigmoid(x) - q) * w


def kl_div(t: Any, a: dict[str, Any]) -> Any:
    return -(gmpy2.exp(mpfr(t)) if a["logTarget"] else t)


def f32(a: dict[str, Any], name: str) -> Any:
    return mpq(float(np.float32(a[name])))


def between(x: Any, low: Any, high: Any) -> Any:
    return min(max(x, mpq(low)), mpq(high))


def gelu_inner(x: Any) -> Any:
    return gmpy2.sqrt(2 / gmpy2.const_pi()) * (x + mpq(44715, 1000000) * x**3)


def raised(x: Any, alpha: Any, inner: Any) -> Any:
    return x if x > 0 else alpha * gmpy2.expm1(mpfr(x * inner))


def softplus_of(x: Any, beta: Any, limit: Any) -> Any:
    return x if x * beta > limit else gmpy2.log1p(gmpy2.exp(mpfr(x * beta))) / beta


@dataclasses.dataclass(frozen=True)
class Row:
    """An operator in MPFR. ``factor``: the factor of the gradient, from the other inputs (rationals) and the
    attributes; for a forward operator, the result. ``inputs``: their names, the gradient's first. ``attributes``: the
    sets to try. ``near``: hard values of the first input. ``unread``: inputs without influence. ``through``: dtypes
    with a result that the host rounds to float32 first."""

    factor: Callable[..., Any]
    inputs: tuple[str, ...] = ("gradOutput", "self")
    attributes: tuple[dict[str, Any], ...] = ({},)
    near: tuple[float, ...] = ()
    largest: float = 3e38  # of the other inputs
    unread: tuple[str, ...] = ()
    through: tuple[str, ...] = ()

    @property
    def is_forward(self) -> bool:
        return not self.inputs[0].startswith("grad")

    def given(self, arrays: list[np.ndarray]) -> dict[str, np.ndarray]:
        """Return the arguments of a call: the inputs, and the first one for those without influence."""
        return dict(zip(self.inputs, arrays, strict=True)) | dict.fromkeys(self.unread, arrays[0])


REDUCTIONS = ({"reduction": 0}, {"reduction": 1}, {"reduction": 2})
KL_REDUCTIONS = tuple({"reduction": r, "logTarget": log} for r in (0, 1, 3, -1) for log in (False, True))
SELF = ("self",)
PAIRED = ("gradOutput", "self", "target")
ROWS: dict[str, Row] = {
    "sigmoid_backward": Row(lambda y, a: (1 - y) * y, ("gradOutput", "output"), near=(0, 1, 0.5)),
    "log_sigmoid_backward": Row(
        lambda x, a: mpq(1, 2) if x == 0 else sigmoid(-x),
        near=(0, 16.6, 88.72, 103.9, -17),
        largest=1e4,
        unread=("buffer",),
    ),
    "binary_cross_entropy_backward": Row(
        lambda x, t, w, a: (x - t) / max((1 - x) * x, CLAMP) * w,
        (*PAIRED, "weightOptional"),
        REDUCTIONS,
        near=(0, 1, 1e-12, 1e-6, 0.5),
    ),
    "tanh_backward": Row(lambda y, a: 1 - y * y, ("gradOutput", "output"), near=(1, -1, 0)),
    "gelu_backward": Row(lambda x, a: gelu_tanh(x), near=(-0.75246142, -1.4185, 0, -10.06), largest=1e6),
    "gelu_backward_v2": Row(
        lambda x, a: gelu_tanh(x) if a["approximate"] == "tanh" else gelu_erf(x),
        attributes=({"approximate": "none"}, {"approximate": "tanh"}),
        near=(-0.75179152, -1.4142, 0, -5.543, -13.2),
        largest=1e4,
    ),
    "fast_gelu_backward": Row(lambda x, a: fast_gelu(x), near=(-0.75115426, -1.40973, 0, -52.13), largest=1e8),
    "silu_backward": Row(lambda x, a: silu(x), near=(-1.27846454, -2.39936, 0, -88.73, 8.7), largest=1e8),
    "swish_backward": Row(
        lambda x, a: silu(x * f32(a, "betaOptional")),
        attributes=({"betaOptional": 1.1}, {"betaOptional": -0.5}, {"betaOptional": 0.0}, {"betaOptional": 100.0}),
        near=(-1.16224, 2.55692909, 0),
        largest=1e6,
    ),
    "mish_backward": Row(lambda x, a: mish(x), near=(-1.19243121, -2.2564, 1.49057, 0, -88.73), largest=200.0),
    "softplus_backward": Row(
        softplus,
        attributes=({"beta": 1.0, "threshold": 20.0}, {"beta": 0.5, "threshold": 2.0}, {"beta": -1.0, "threshold": 0}),
        near=(4, 20, 0),
        largest=1e8,
    ),
    "elu_backward": Row(
        elu,
        ("gradOutput", "selfOrResult"),
        (
            {"alpha": 1.0, "scale": 1.0, "inputScale": 1.0, "isResult": False},
            {"alpha": 1.67, "scale": 1.05, "inputScale": 0.7, "isResult": True},
            {"alpha": -0.3, "scale": 1.1, "inputScale": 2.0, "isResult": False},
        ),
        near=(0, -1.7535, -88, -1),
        largest=1e6,
    ),
    "selu_backward": Row(
        lambda y, a: y + SELU_ALPHA if y <= 0 else SELU, ("gradOutput", "result"), near=(0, -1.7580993)
    ),
    "leaky_relu_backward": Row(
        lambda x, a: mpq(1) if x > 0 else f32(a, "negativeSlope"),
        attributes=({"negativeSlope": 0.01, "selfIsResult": False}, {"negativeSlope": -3.7, "selfIsResult": False}),
        near=(0,),
    ),
    "threshold_backward": Row(
        threshold, attributes=tuple({"threshold": t} for t in (0.0, 0.3, 1.0, -0.1, 1e-7, 1.2e-7)), near=(0, 0.3, 1)
    ),
    "hardtanh_backward": Row(
        lambda x, a: mpq(int(f32(a, "min") < x < f32(a, "max"))),
        attributes=({"min": -1.0, "max": 1.0}, {"min": 0.1, "max": 0.3}, {"min": 1.0, "max": -1.0}),
        near=(-1, 1, 0.1, 0.3),
    ),
    "hardshrink_backward": Row(
        lambda x, a: mpq(int(abs(x) > max(0, f32(a, "lambd")))),
        attributes=({"lambd": 0.5}, {"lambd": 0.3}, {"lambd": -1.0}),
        near=(0.5, -0.5, 0.3, 0),
    ),
    "softshrink_backward": Row(
        lambda x, a: mpq(int(abs(x) > f32(a, "lambda"))),
        attributes=({"lambda": 0.5}, {"lambda": 0.3}, {"lambda": 0.0}),
        near=(0.5, -0.5, 0.3, 0),
    ),
    "hardsigmoid_backward": Row(lambda x, a: SIXTH if abs(x) < 3 else mpq(0), near=(3, -3)),
    "hardswish_backward": Row(
        lambda x, a: mpq(0) if x < -3 else mpq(1) if x > 3 else x * THIRD + mpq(1, 2), near=(3, -3, -1.5)
    ),
    "hardswish_backward_v2": Row(
        lambda x, a: mpq(0) if x <= -3 else mpq(1) if x >= 3 else x * THIRD + mpq(1, 2), near=(3, -3, -1.5)
    ),
    "mse_loss_backward": Row(lambda x, t, a: (x - t) * 2, PAIRED, REDUCTIONS, near=(1, 0)),
    "l1_loss_backward": Row(lambda x, t, a: mpq((x > t) - (x < t)), PAIRED, REDUCTIONS, near=(1, 0)),
    "smooth_l1_loss_backward": Row(
        smooth_l1,
        ("gradOut", "self", "target"),
        tuple({"beta": b, "reduction": r} for b in (1.0, 0.7, 1e-3) for r in (0, 1)),
        near=(1, 0.7),
    ),
    "soft_margin_loss_backward": Row(
        lambda x, t, a: -t * sigmoid(-x * t), PAIRED, REDUCTIONS, near=(0, 10), largest=16.0
    ),
    "binary_cross_entropy_with_logits_backward": Row(
        lambda x, t, w, p, a: logits(x, t, w, p),
        (*PAIRED, "weightOptional", "posWeightOptional"),
        REDUCTIONS,
        near=(0, 20, -80),
        largest=200.0,
    ),
    "kl_div_backward": Row(
        kl_div,
        ("gradOutput", "target"),
        KL_REDUCTIONS,
        near=(0, -17, 11, -104),
        largest=200.0,
        unread=("self",),
        through=("bfloat16",),
    ),
    "binary_cross_entropy_with_logits": Row(
        lambda x, t, w, p, a: w * ((1 - t) * x + ((p - 1) * t + 1) * -log_sigmoid_of(x)),
        ("self", "target", "weightOptional", "posWeightOptional"),
        ({"reduction": 0},),
        near=(0, 20, -80),
        largest=200.0,
        through=("float16", "bfloat16"),
    ),
    "smooth_l1_loss": Row(
        smooth_l1_of,
        ("self", "target"),
        tuple({"beta": b, "reduction": 0} for b in (1.0, 0.7, 1e-3)),
        near=(0, 1, 0.7),
        largest=1e18,
    ),
    "soft_margin_loss": Row(
        lambda x, t, a: gmpy2.log1p(gmpy2.exp(mpfr(-x * t))),
        ("self", "target"),
        ({"reduction": 0},),
        near=(0, 1, -9),
        largest=9.0,
    ),
    "relu": Row(lambda x, a: max(x, mpq(0)), SELF, near=(0,)),
    "leaky_relu": Row(
        lambda x, a: x if x > 0 else x * f32(a, "negativeSlope"),
        SELF,
        ({"negativeSlope": 0.01}, {"negativeSlope": -3.7}),
        near=(0,),
    ),
    "hardtanh": Row(
        lambda x, a: between(x, f32(a, "clipValueMin"), f32(a, "clipValueMax")),
        SELF,
        ({"clipValueMin": -1.0, "clipValueMax": 1.0}, {"clipValueMin": 0.5, "clipValueMax": 0.75}),
        near=(-1, 1, 0.5, 0.75),
    ),
    "threshold": Row(
        lambda x, a: f32(a, "value") if x <= f32(a, "threshold") else x,
        SELF,
        ({"threshold": 0.5, "value": 10.0}, {"threshold": -1.0, "value": -0.25}),
        near=(0.5, -1),
    ),
    "hardshrink": Row(
        lambda x, a: x if abs(x) > max(0, f32(a, "lambd")) else mpq(0),
        SELF,
        ({"lambd": 0.5}, {"lambd": 0.3}, {"lambd": -1.0}),
        near=(0.5, -0.5, 0.3, 0),
    ),
    "softshrink": Row(
        lambda x, a: mpq((x > 0) - (x < 0)) * max(abs(x) - f32(a, "lambd"), mpq(0)),
        SELF,
        ({"lambd": 0.5}, {"lambd": 0.3}, {"lambd": 0.0}),
        near=(0.5, -0.5, 0.3, 0),
    ),
    "hardsigmoid": Row(lambda x, a: between(x * SIXTH + mpq(1, 2), 0, 1), SELF, near=(3, -3)),
    "hardswish": Row(lambda x, a: x * between(x + 3, 0, 6) * SIXTH, SELF, near=(3, -3, 0), largest=1e37),
    "sigmoid": Row(lambda x, a: sigmoid(x), SELF, near=(0, 16.6355, -88.7228), largest=200.0),
    "tanh": Row(lambda x, a: gmpy2.tanh(mpfr(x)), SELF, near=(0, 0.55, 0.6, 9.01)),
    "silu": Row(lambda x, a: x * sigmoid(x), SELF, near=(0, -88.73, 17), largest=200.0),
    "swish": Row(
        lambda x, a: x * sigmoid(x * f32(a, "betaOptional")),
        SELF,
        ({"betaOptional": 1.1}, {"betaOptional": -0.5}, {"betaOptional": 0.0}),
        near=(0, 17),
        largest=150.0,
    ),
    "mish": Row(
        lambda x, a: x * gmpy2.tanh(gmpy2.log1p(gmpy2.exp(mpfr(x)))), SELF, near=(0, -1.19243121, -88.73), largest=200.0
    ),
    "gelu": Row(lambda x, a: x * sigmoid(2 * gelu_inner(x)), SELF, near=(0, -0.7525, -10.06), largest=1e4),
    "gelu_v2": Row(
        lambda x, a: (
            x * sigmoid(2 * gelu_inner(x))
            if a["approximate"] == 1
            else x * gmpy2.erfc(-mpfr(x) / gmpy2.sqrt(mpfr(2))) / 2
        ),
        ("x",),
        ({"approximate": 0}, {"approximate": 1}),
        near=(0, -0.75179152, -5.543, -13.2),
        largest=1e4,
    ),
    "fast_gelu": Row(lambda x, a: x * sigmoid(mpq(1702, 1000) * x), SELF, near=(0, -0.75, -52.13), largest=200.0),
    "log_sigmoid": Row(
        lambda x, a: -gmpy2.log1p(gmpy2.exp(mpfr(-x))), SELF, near=(0, 16.636, 87.34, 103.9), largest=1e4
    ),
    "softplus": Row(
        lambda x, a: softplus_of(x, f32(a, "beta"), f32(a, "threshold")),
        SELF,
        ({"beta": 1.0, "threshold": 20.0}, {"beta": 0.5, "threshold": 2.0}, {"beta": -1.0, "threshold": 0.0}),
        near=(4, 20, 0),
        largest=200.0,
    ),
    "elu": Row(
        lambda x, a: f32(a, "scale") * raised(x, f32(a, "alpha"), f32(a, "inputScale")),
        SELF,
        (
            {"alpha": 1.0, "scale": 1.0, "inputScale": 1.0},
            {"alpha": 1.67, "scale": 1.05, "inputScale": 0.7},
            {"alpha": -0.3, "scale": 1.1, "inputScale": 2.0},
        ),
        near=(0, -0.1, -88),
        largest=1e4,
    ),
    "selu": Row(
        lambda x, a: SELU * x if x > 0 else SELU_ALPHA * gmpy2.expm1(mpfr(x)), SELF, near=(0, -88), largest=1e6
    ),
    "celu": Row(
        lambda x, a: max(x, mpq(0)) + min(f32(a, "alpha") * gmpy2.expm1(mpfr(x / f32(a, "alpha"))), mpq(0)),
        SELF,
        ({"alpha": 1.0}, {"alpha": 0.3}, {"alpha": -2.0}),
        near=(0, -0.5),
        largest=1e4,
    ),
}


def expected(
    row: Row, inputs: list[np.ndarray], attributes: dict[str, Any], dtype: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return the correctly rounded results by element, and which are exactly zero (or beyond MPFR's exponents)."""
    count = inputs[0].size if attributes.get("reduction") in (1, 3) else 1  # dim 0 of a batch mean is the only axis
    columns = [[mpq(v) for v in array.astype(np.float64).ravel().tolist()] for array in inputs]
    result = []
    with gmpy2.context(precision=PRECISION, emax=gmpy2.get_emax_max(), emin=gmpy2.get_emin_min()):
        for g, *others in zip(*columns, strict=True):
            result.append(row.factor(g, *others, attributes) if row.is_forward else g * row.factor(*others, attributes))
        result = [value / count for value in result]
    zero = np.array([value == 0 for value in result])
    if dtype in row.through:
        result = [mpq(v) if np.isfinite(v) else mpfr(v) for v in (rounded(value, "float32") for value in result)]
    return np.array([rounded(value, dtype) for value in result]), zero


def hard(row: Row, dtype: str, size: int, seed: list[int]) -> list[np.ndarray]:
    """Return one-dimensional inputs of a row: ordinary values, bit patterns, subnormals, neighbours of hard values."""
    rng = np.random.default_rng(seed)
    kind = TYPES[dtype]

    def patterns(largest: float) -> np.ndarray:
        width = np.uint32 if dtype == "float32" else np.uint16
        bits = rng.integers(0, 2 ** (8 * np.dtype(width).itemsize), size, dtype=np.uint64).astype(width)
        with np.errstate(invalid="ignore"):
            values = bits.view(kind).astype(np.float64)
        return np.where(np.abs(values) <= largest, values, rng.standard_normal(size)).astype(kind)

    def neighbours() -> np.ndarray:
        centre = np.array(rng.choice(row.near or (0.0,), size)).astype(kind)
        width = np.int32 if dtype == "float32" else np.int16
        return (centre.view(width) + rng.integers(-40, 41, size).astype(width)).view(kind)

    def one(largest: float) -> np.ndarray:
        choices = [
            (rng.standard_normal(size) * 2).astype(kind),
            np.clip(rng.uniform(-20, 20, size), -largest, largest).astype(kind),
            patterns(largest),
            neighbours(),
        ]
        result = np.choose(rng.integers(0, len(choices), size), [c.astype(np.float64) for c in choices])
        result = np.where(np.isfinite(result) & (np.abs(result) <= largest), result, 0.5)
        return result.astype(kind)

    finite = float(np.finfo(np.float16).max) if dtype == "float16" else 3e38
    first = min(row.largest, finite) if row.is_forward else finite
    arrays = [one(first), *(one(min(row.largest, finite)) for _ in row.inputs[1:])]
    if "target" in row.inputs[2:]:  # cancelling pairs
        close = rng.integers(0, 4, size) == 0
        arrays[2] = np.where(close, arrays[1], arrays[2]).astype(kind)
    return arrays
