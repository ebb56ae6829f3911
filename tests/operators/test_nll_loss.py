"""aclnnNLLLoss, aclnnNLLLoss2d and aclnnNLLLossBackward against MPFR, and their special properties."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from calls import call_of
from gmpy2 import mpq
from truth import TYPES, patterns, rationals, rounded, wrong as wrong_elements

import oracle
from oracle.model.errors import OracleError
from oracle.numerics.floats.rounding import round_to
from oracle.operators import reference

IGNORED = 3


def data(kind: str, dtype: str, n: int, classes: int = 7) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r = np.random.default_rng([n, *kind.encode(), *dtype.encode()])
    x, w, t = r.normal(size=(n, classes)), r.uniform(0.25, 3, classes), r.integers(0, classes, n)
    if kind == "magnitudes":
        x, w = np.ldexp(x, r.integers(-12, 10, x.shape)), np.ldexp(w, r.integers(-3, 4, classes))
    if kind == "cancelling":  # pairs that almost cancel
        x[n // 2 : 2 * (n // 2)] = -x[: n // 2] * (1 + 2.0**-9)
        t[n // 2 : 2 * (n // 2)] = t[: n // 2]
        w *= np.where(r.random(classes) < 0.4, -1, 1)
    if kind == "exact":
        x, w = r.integers(-2048, 2048, x.shape) / 8, r.choice([0.5, 1.0, 1.5], classes)
    if kind == "subnormal":
        x = np.ldexp(x, -24 if dtype == "float16" else -130)
    return x.astype(TYPES[dtype]), t, w.astype(TYPES[dtype])


def truth(x: np.ndarray, t: np.ndarray, w: np.ndarray, reduction: int, dtype: str) -> tuple[Any, float]:
    exact = [(mpq(float(w[c])), mpq(float(x[n, c]))) for n, c in enumerate(t) if c != IGNORED]
    weights = sum((a for a, _ in exact), mpq(0))
    total = -sum((a * b for a, b in exact), mpq(0))
    if reduction == 0:
        values = [
            0.0 if c == IGNORED else rounded(-mpq(float(w[c])) * mpq(float(x[n, c])), dtype) for n, c in enumerate(t)
        ]
        return np.array(values), np.nan
    return rounded(total / weights if reduction == 1 else total, dtype), rounded(weights, dtype)


@pytest.mark.parametrize("kind", ["normal", "magnitudes", "cancelling", "exact", "subnormal"])
@pytest.mark.parametrize("dtype", TYPES)
def test_goldens_are_right(dtype: str, kind: str) -> None:
    wrong = []
    for n in (1, 2, 3, 8, 63, 64, 129, 700):
        x, t, w = data(kind, dtype, n)
        if not any(c != IGNORED for c in t):
            continue
        images = {"self": x.T.reshape(1, 7, n, 1), "target": t.reshape(1, n, 1), "weight": w}
        for reduction in (0, 1, 2):
            loss, weights = truth(x, t, w, reduction, dtype)
            asked = {"reduction": reduction, "ignoreIndex": IGNORED, "soc": "ascend950"}
            for op, given in (("aclnnNLLLoss", {"self": x, "target": t, "weight": w}), ("aclnnNLLLoss2d", images)):
                result = oracle.golden(op, **given, **asked)
                if not np.array_equal(result["out"].astype(float).reshape(np.shape(loss)), loss):
                    wrong.append((op, n, reduction, "out"))
                if reduction and not np.array_equal(result["totalWeightOut"].astype(float), [weights]):
                    wrong.append((op, n, reduction, "totalWeightOut"))
    assert wrong == []


@pytest.mark.parametrize("kind", ["normal", "magnitudes", "cancelling", "subnormal"])
def test_float32_sums_in_any_order_keep_the_bound(kind: str) -> None:
    for n in (64, 700):
        x, t, w = data(kind, "float32", n)
        call = call_of("aclnnNLLLoss", self=x, target=t, weight=w, reduction=1, ignoreIndex=IGNORED)
        known, weights = reference(call), reference(call, "totalWeightOut")
        rows = np.flatnonzero(t != IGNORED)
        for order in (rows, rows[::-1], np.random.default_rng(1).permutation(rows)):
            total = weight = np.float32(0)
            for row in order:
                total, weight = total - w[t[row]] * x[row, t[row]], weight + w[t[row]]
            assert abs(float(total / weight) - known.value) <= known.bound
            assert abs(float(weight) - weights.value[0]) <= weights.bound[0]


def loss(**changed: Any) -> dict[str, np.ndarray]:
    x = np.array([[1, 2], [4, 8]], np.float32)
    given = {"self": x, "target": np.array([0, 1]), "weight": np.array([0.5, 2], np.float32)}
    return oracle.golden("aclnnNLLLoss", **{**given, "reduction": 1, "ignoreIndex": -100, **changed})


def test_the_mean_is_by_the_weights_that_count() -> None:
    assert loss()["out"] == np.float32(-16.5 / 2.5)
    assert loss(ignoreIndex=1)["out"] == -1
    assert loss(ignoreIndex=1)["totalWeightOut"] == [0.5]
    assert loss(reduction=2)["out"] == -16.5


def test_without_a_reduction_no_sum_of_weights_is_written() -> None:
    assert set(loss(reduction=0)) == {"out"}
    assert loss(reduction=0)["out"].tolist() == [-0.5, -16]


def test_no_sample_has_no_mean_and_its_sum_is_zero() -> None:
    ignored = {"target": np.array([-100, -100])}
    assert np.isnan(loss(**ignored)["out"])
    assert loss(**ignored)["totalWeightOut"] == [0]
    assert str(loss(**ignored, reduction=2)["out"]) == "0.0"
    empty = {"self": np.empty((0, 2), np.float32), "target": np.empty(0, np.int64)}
    assert np.isnan(loss(**empty)["out"])
    assert loss(**empty)["totalWeightOut"] == [0]


def test_ascend950_computes_the_mean_of_a_vector_without_its_weight() -> None:
    inputs = {"self": np.array([1, 2], np.float32), "target": np.array(1), "weight": np.array([1, 0], np.float32)}
    for soc, odd in (("ascend950", True), ("ascend910b", False)):
        known = reference(call_of("aclnnNLLLoss", soc, **inputs, reduction=1, ignoreIndex=-100))
        assert bool(known.unspecified) is odd


@pytest.mark.parametrize("wrong", [-1, 2, 2**40])
def test_a_target_that_is_no_class_has_no_golden(wrong: int) -> None:
    with pytest.raises(OracleError, match=rf"target\[1\] is {wrong}, outside \[0, 2\)"):
        loss(target=np.array([0, wrong]))


def gradient(soc: str = "ascend950", **given: Any) -> np.ndarray:
    given = {"reduction": 0, "ignoreIndex": -100, **given}
    return oracle.golden("aclnnNLLLossBackward", soc=soc, **given)["out"]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_gradients_are_exact_rationals_rounded_once(dtype: str, reduction: int) -> None:
    r, size, classes = np.random.default_rng([reduction, *dtype.encode()]), 3000, 11
    total, target = np.array([3.7]).astype(TYPES[dtype]), r.integers(0, classes, size)
    for make in (patterns, lambda dtype, n, r: r.normal(size=n).astype(TYPES[dtype])):
        grad, weight = make(dtype, 1 if reduction else size, r), make(dtype, classes, r)
        given = {"gradOutput": grad, "weight": weight, "target": target, "totalWeight": total}
        out = gradient(self=np.zeros((size, classes), TYPES[dtype]), reduction=reduction, ignoreIndex=IGNORED, **given)
        divisor = rationals(total)[0] if reduction == 1 else 1
        g, w = rationals(np.resize(grad, size)), rationals(weight)
        expected = np.zeros(out.shape)
        for row, c in enumerate(target):
            if c != IGNORED:
                expected[row, c] = rounded(-(g[row] * w[c]) / divisor, dtype)
        assert wrong_elements(out, expected) == 0


def test_float16_is_computed_in_float32_before_ascend950() -> None:
    """g * w = 1 + 2^-11 + 2^-25: a tie for float16 after float32 has dropped the last bit."""
    g, w = np.float16([1 + 2.0**-10]), np.float16([1 - 2.0**-11])
    given = {"gradOutput": g, "weight": w, "target": np.zeros(1, np.int64), "totalWeight": np.float16([1])}
    exact = -float(g[0]) * float(w[0])
    for soc, wanted in (("ascend910b", exact), ("ascend950", float(round_to(np.array(exact), "float16")))):
        assert gradient(soc, self=np.zeros((1, 1), np.float16), out="float32", **given) == wanted
