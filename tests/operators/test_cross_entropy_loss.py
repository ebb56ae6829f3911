"""aclnnCrossEntropyLoss and its gradient against MPFR, and against their partners."""

from __future__ import annotations

from typing import Any

import gmpy2
import numpy as np
import pytest
from calls import broken, call_of
from gmpy2 import mpfr, mpq
from truth import TYPES, rationals, rounded, wrong

import oracle

CLASSES, SAMPLES, IGNORED = 13, 160, 4  # 2,080 elements
WORDS = ("none", "mean", "sum")
Given = dict[str, Any]


def data(dtype: str, samples: int = SAMPLES, classes: int = CLASSES) -> Given:
    """Samples of several sizes, some with one class far above the others."""
    r = np.random.default_rng([samples, *dtype.encode()])
    x = r.normal(size=(samples, classes)) * r.choice([1, 1, 4, 30, 1e-3], (samples, 1))
    return {
        "input": x.astype(TYPES[dtype]),
        "target": r.integers(0, classes, samples),
        "weightOptional": r.uniform(0.25, 3, classes).astype(np.float32),
    }


def asked(word: str, smoothing: float) -> Given:
    return {
        "reductionOptional": word,
        "ignoreIndex": IGNORED,
        "labelSmoothing": smoothing,
        "lseSquareScaleForZloss": 0.0,
    }


def log_probabilities(x: list[list[Any]]) -> list[list[Any]]:
    result = []
    for p in x:
        total = gmpy2.log(sum(gmpy2.exp(mpfr(v)) for v in p))
        result.append([v - total for v in p])
    return result


def losses(lp: list[list[Any]], given: Given, s: Any) -> list[tuple[Any, Any]]:
    """Return the loss and the weight of each sample."""
    w, result = rationals(given["weightOptional"]), []
    for row, t in zip(lp, given["target"], strict=True):
        every = -sum(a * b for a, b in zip(row, w, strict=True))
        loss = (1 - s) * -row[t] * w[t] + s / len(w) * every
        result.append((mpq(0), mpq(0)) if t == IGNORED else (loss, w[t]))
    return result


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("dtype", TYPES)
def test_losses_are_what_mpfr_says(dtype: str, smoothing: float) -> None:
    given, s = data(dtype), mpq(float(np.float32(smoothing)))
    with gmpy2.context(precision=300):
        lp = log_probabilities([rationals(row) for row in given["input"]])
        each = losses(lp, given, s)
        for count in (1, 2, 7, SAMPLES):
            few = {**given, "input": given["input"][:count], "target": given["target"][:count]}
            total, weight = (sum(v[k] for v in each[:count]) for k in (0, 1))
            wanted = {"none": [v for v, _ in each[:count]], "sum": [total]}
            wanted |= {"mean": [total / weight]} if weight else {}
            for word, values in wanted.items():
                result = oracle.golden("aclnnCrossEntropyLoss", **few, **asked(word, smoothing), returnZloss=False)
                assert wrong(result["lossOut"], np.array([rounded(v, dtype) for v in values])) == 0, (count, word)
        right = np.array([[rounded(v, dtype) for v in row] for row in lp])
        assert wrong(result["logProbOut"], right) == 0


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("word", WORDS)
def test_the_loss_of_one_class_is_zero_for_many_samples(word: str, smoothing: float) -> None:
    """Every loss is exactly 0, which no margin can show: no sample may need an exact computation of its own."""
    given = {"input": np.linspace(-9, 9, 20_000, dtype=np.float32)[:, None], "target": np.zeros(20_000, np.int64)}
    given["weightOptional"] = np.array([3], np.float32)
    result = oracle.golden("aclnnCrossEntropyLoss", **given, **asked(word, smoothing), returnZloss=False)
    assert not result["lossOut"].any()


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("dtype", TYPES)
def test_gradients_are_what_mpfr_says(dtype: str, smoothing: float) -> None:
    given, s = data(dtype), mpq(float(np.float32(smoothing)))
    x = oracle.golden("aclnnLogSoftmax", self=given.pop("input"), dim=-1)["out"]
    w, r = rationals(given["weightOptional"]), np.random.default_rng(7)
    with gmpy2.context(precision=300):
        rows = [(rationals(row), t) for row, t in zip(x, given["target"], strict=True)]
        for word in WORDS:
            g = r.normal(size=SAMPLES if word == "none" else 1).astype(TYPES[dtype])
            total = sum(w[t] for _, t in rows if t != IGNORED) if word == "mean" else 1
            values = []
            for gradient, (row, t) in zip(np.broadcast_to(g, SAMPLES), rows, strict=True):
                k = mpq(float(gradient)) * (1 - s) / total * w[t] * (t != IGNORED)
                q = mpq(float(gradient)) / total * s / CLASSES * (t != IGNORED)
                values.append(
                    [gmpy2.exp(mpfr(v)) * (k + q * sum(w)) - k * (c == t) - q * w[c] for c, v in enumerate(row)]
                )
            result = oracle.golden(
                "aclnnCrossEntropyLossGrad", soc="ascend950", gradLoss=g, logProb=x, **given, **asked(word, smoothing)
            )["out"]
            assert wrong(result, np.array([[rounded(v, dtype) for v in row] for row in values])) == 0, word


@pytest.mark.parametrize("soc", ["ascend910b", "ascend950"])
@pytest.mark.parametrize("dtype", TYPES)
def test_kernels_keep_the_bound_of_their_soc(dtype: str, soc: str) -> None:
    given = data(dtype)
    x = oracle.golden("aclnnLogSoftmax", self=given["input"], dim=-1)["out"]
    classes = {name: given[name] for name in ("target", "weightOptional")}
    for word in WORDS:
        ones = np.ones(SAMPLES if word == "none" else 1, TYPES[dtype])
        backward = {"gradLoss": ones, "logProb": x, **classes}
        attributes = asked(word, 0.1 if soc == "ascend950" else 0.0)
        for name, inputs, more in (
            ("aclnnCrossEntropyLoss", given, {"returnZloss": False}),
            ("aclnnCrossEntropyLossGrad", backward, {}),
        ):
            assert broken(call_of(name, soc, **inputs, **attributes, **more)) == {}, word


def test_a_loss_is_that_of_the_logarithms_of_the_softmax() -> None:
    given = data("float32")
    lp = oracle.golden("aclnnLogSoftmax", self=given["input"], dim=-1)["out"]
    common = {"target": given["target"], "weight": given["weightOptional"], "ignoreIndex": IGNORED}
    for reduction, word in enumerate(WORDS):
        result = oracle.golden("aclnnCrossEntropyLoss", **given, **asked(word, 0.0), returnZloss=False)["lossOut"]
        other = oracle.golden("aclnnNLLLoss", self=lp, **common, reduction=reduction)["out"]
        # Each result is rounded once, and so is each logarithm, by at most 2^-24 of itself. All terms are positive.
        assert (np.abs(result - other) <= 2.0**-22 * np.abs(result)).all(), word


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("word", ["mean", "sum"])
def test_the_gradient_is_the_derivative_of_the_loss(word: str, smoothing: float) -> None:
    given = data("float32", 12, 5)
    x = oracle.golden("aclnnLogSoftmax", self=given["input"], dim=-1)["out"]
    classes = {name: given[name] for name in ("target", "weightOptional")}
    one = np.ones(1, np.float32)
    result = oracle.golden(
        "aclnnCrossEntropyLossGrad", soc="ascend950", gradLoss=one, logProb=x, **classes, **asked(word, smoothing)
    )["out"]
    slopes = slopes_of(given, word, mpq(float(np.float32(smoothing))))
    # The gradient's logarithms are rounded, by at most 2^-24 of themselves, and so is the result; k and q * sum(w)
    # together are below 16.
    room = 2.0**-24 * (16 * np.exp(x.astype(float)) * np.abs(x) + 2 * np.abs(result)) + 2.0**-149
    assert (np.abs(result - slopes) <= room).all()


def slopes_of(given: Given, word: str, s: Any) -> np.ndarray:
    """Return the derivative of a scalar loss by its input, from two losses in MPFR that differ by a tiny step."""
    rows, step = [rationals(row) for row in given["input"]], mpq(1, 2**100)

    def loss() -> Any:
        total, weight = (sum(column) for column in zip(*losses(log_probabilities(rows), given, s), strict=True))
        return total / weight if word == "mean" else total

    result = np.empty(given["input"].shape)
    with gmpy2.context(precision=300):
        plain = loss()
        for row, column in np.ndindex(result.shape):
            rows[row][column] += step
            result[row, column] = (loss() - plain) / step
            rows[row][column] -= step
    return result
