"""aclnnSoftmaxBackward and aclnnLogSoftmaxBackward: every element of the golden, its strict bound, special values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import truth
from calls import broken, broken_by_torch, call_of
from truth import TYPES, patterns

import oracle
from oracle.model.call import Call
from oracle.operators.answers.api import reference

SOFTMAX, LOG_SOFTMAX = "aclnnSoftmaxBackward", "aclnnLogSoftmaxBackward"
TRUTHS: dict[str, Any] = {SOFTMAX: truth.softmax, LOG_SOFTMAX: truth.log_softmax}
INF, NAN = np.inf, np.nan


def golden(name: str, g: Any, y: Any, dim: int = -1) -> np.ndarray:
    return oracle.golden(name, gradOutput=g, output=y, dim=dim)["out"]


def data(name: str, dtype: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return gradients and outputs of rows: ordinary and hard ones."""
    r = np.random.default_rng([*name.encode(), *dtype.encode()])
    logits = r.normal(size=(20, 50)) * 3
    tiny = 2.0**-24 if dtype == "float16" else 2.0**-133
    y = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    g, hot = r.normal(size=y.shape), np.arange(50) == 7
    any_y = patterns(dtype, (20, 40), r)
    if name == SOFTMAX:
        y = np.exp(y)
        own = {
            "ties": np.full(y.shape, 1 / 64),
            "one-hot output": np.where(hot, 1.0, 2.0**-40) * np.ones((20, 1)),
            "common offset": y,
            "any output": np.abs(any_y),
            "longer than a chunk": r.uniform(size=(1, 17000)) / 8000,
        }
    else:
        own = {
            "ties": np.zeros(y.shape),
            "far below": y - 600,
            "around every threshold": r.uniform(-110, 110, y.shape),
            "longer than a chunk": r.normal(size=(1, 17000)) - 9,
        }
    gradients = {
        "ties": r.integers(-64, 65, y.shape) / 16,
        "common offset": np.float32(1000) + g * 2.0**-6,
        "any output": patterns(dtype, (20, 40), r),
        "far below": g * (60 if dtype == "float16" else 1e34),
        "longer than a chunk": r.normal(size=(1, 17000)),
    }
    result = {kind: (gradients.get(kind, g), output) for kind, output in own.items()} | {
        "ordinary": (g, y),
        "sum cancels": (np.concatenate([g[:, :25], -g[:, :25]], axis=1), y),
        "sum nearly cancels": (np.concatenate([g[:, :25], -g[:, :25] * (1 + 2.0**-7)], axis=1), y),
        "one-hot gradient": (np.where(hot, -1.0, 0.0) * np.ones((20, 1)), y * 4),
        "subnormal": (r.integers(-40, 41, y.shape) * tiny, y),
        "many binades": (g * 2.0 ** r.integers(-14, 10, y.shape), y),
    }
    with np.errstate(over="ignore"):
        return {kind: tuple(t.astype(TYPES[dtype]) for t in pair) for kind, pair in result.items()}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", TRUTHS)
def test_golden_is_correctly_rounded(name: str, dtype: str) -> None:
    for kind, (g, y) in data(name, dtype).items():
        step = 97 if y.size > 5000 else 1  # only some elements of a long row
        result, expected = golden(name, g, y), TRUTHS[name](g, y, dtype, step)
        assert truth.wrong(result[:, ::step], expected) == 0, kind


def test_axes_views_and_ranks_give_the_same() -> None:
    for name in TRUTHS:
        g, y = (t[:12, :10].reshape(3, 4, 10) for t in data(name, "float32")["ordinary"])
        for dim in (0, 1, -1):
            moved = golden(name, np.moveaxis(g, dim, -1), np.moveaxis(y, dim, -1))
            np.testing.assert_array_equal(golden(name, g, y, dim), np.moveaxis(moved, -1, dim))
        assert golden(name, np.float32(3), np.float32(name == SOFTMAX)) == 0


def test_real_cancellation_is_bounded_by_what_is_subtracted() -> None:
    """The gradients of a row cancel: the golden keeps every digit, and a right float32 kernel may lose many."""
    g, y = np.float32([[1, -1 + 2.0**-22, 2.0**-40]]), np.float32([[0.5, 0.25, 0.125]])
    judged = reference(call_of(LOG_SOFTMAX, "ascend950", gradOutput=g, output=y, dim=-1))
    assert truth.wrong(judged.golden, truth.log_softmax(g, y, "float32")) == 0
    value, bound = np.abs(judged.value[0, 2]), judged.bound[0, 2]
    assert 100 * np.spacing(np.float32(value)) < bound < 1e-6  # the sum's error is that of terms of size 1


def spoiled(g: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the same arrays with NaN, infinities and zeros at some places."""
    g, y = g.copy(), y.copy()
    g[1::5, 3], y[2::5, 4] = np.resize([NAN, INF], g[1::5, 3].shape), -INF
    g[3::5], y[3::5, 5] = 0, INF
    return g, y


def calls(name: str, soc: str) -> Iterator[Call]:
    for dtype in TYPES:
        for pair in data(name, dtype).values():
            for g, y in (pair, spoiled(*pair)):
                yield call_of(name, soc, gradOutput=g, output=y, dim=-1)


@pytest.mark.parametrize("soc", ["ascend910b", "ascend950"])
@pytest.mark.parametrize("name", TRUTHS)
def test_kernels_stay_within_the_bound_of_their_soc(name: str, soc: str) -> None:
    assert [wrong for call in calls(name, soc) if (wrong := broken(call))] == []


@pytest.mark.parametrize("soc", ["ascend910b", "ascend950"])
@pytest.mark.parametrize("name", TRUTHS)
def test_pytorch_in_float32_stays_within_the_bound(name: str, soc: str) -> None:
    for call in calls(name, soc):
        bad = broken_by_torch(call)
        assert not bad.size, f"{call.inputs}: {bad.size} elements, first {bad[0]}"


def test_special_values_follow_the_formula() -> None:
    g = np.float32([[1, 2, 3], [1, INF, 3], [NAN, 1, 1], [1, -1, 0], [1, 2, 3]])
    y = np.float32([[-INF, 0, 0], [0, 0, 0], [0, 0, 0], [INF, INF, 100], [INF, 0, NAN]])
    expected = [[1, -4, -3], [-INF, NAN, -INF], [NAN, NAN, NAN], [NAN, NAN, 0], [-INF, -4, NAN]]
    np.testing.assert_array_equal(golden(LOG_SOFTMAX, g, y), np.float32(expected))


def test_a_power_that_float64_does_not_hold_times_zero_is_zero():
    """e^720 is a finite number, although it is beyond float64."""
    g, y = np.array([[1, -1]], np.float32), np.array([[720, 1]], np.float32)
    assert oracle.golden("aclnnLogSoftmaxBackward", gradOutput=g, output=y, dim=1)["out"].tolist() == [[1, -1]]
