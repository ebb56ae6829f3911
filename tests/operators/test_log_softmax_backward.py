"""aclnnLogSoftmaxBackward: every element of the golden, its strict bound, special values."""

from __future__ import annotations

import numpy as np
import pytest
import truth
from truth import TYPES

import oracle
from oracle import Call
from oracle.operators.answers.api import compute, reference

NAME = "aclnnLogSoftmaxBackward"
INF, NAN = np.inf, np.nan


def golden(g, y, dim=-1, **more):
    return oracle.golden(NAME, gradOutput=g, output=y, dim=dim, **more)["out"]


def data(dtype: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Gradients and outputs of rows: ordinary ones, and those that are hard."""
    r = np.random.default_rng(sum(map(ord, dtype)))
    logits = r.normal(size=(20, 50)) * 3
    y = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    g = r.normal(size=y.shape)
    largest = 60 if dtype == "float16" else 1e34
    result = {
        "ordinary": (g, y),
        "sum cancels": (np.concatenate([g[:, :25], -g[:, :25]], axis=1), y),
        "sum nearly cancels": (np.concatenate([g[:, :25], -g[:, :25] * (1 + 2.0**-7)], axis=1), y),
        "ties": (r.integers(-64, 65, y.shape) / 16, np.zeros(y.shape)),
        "far below": (g * largest, y - 600),
        "around every threshold": (g, r.uniform(-110, 110, y.shape)),
        "one-hot gradient": (np.where(np.arange(50) == 7, -1.0, 0.0) * np.ones((20, 1)), y * 4),
        "subnormal": (r.integers(-40, 41, y.shape) * (2.0**-24 if dtype == "float16" else 2.0**-133), y),
        "many binades": (g * 2.0 ** r.integers(-14, 10, y.shape), y),
        "longer than a chunk": (r.normal(size=(1, 17000)), r.normal(size=(1, 17000)) - 9),
    }
    with np.errstate(over="ignore"):
        return {name: tuple(t.astype(TYPES[dtype]) for t in pair) for name, pair in result.items()}


@pytest.mark.parametrize("dtype", TYPES)
def test_golden_is_correctly_rounded(dtype: str) -> None:
    for name, (g, y) in data(dtype).items():
        step = 97 if y.size > 5000 else 1  # of a long row some elements
        result, expected = golden(g, y), truth.log_softmax(g, y, dtype, step)
        assert truth.wrong(result[:, ::step], expected) == 0, name


def test_axes_views_and_ranks_give_the_same() -> None:
    g, y = (t[:12, :10].reshape(3, 4, 10) for t in data("float32")["ordinary"])
    for dim in (0, 1, -1):
        moved = golden(np.moveaxis(g, dim, -1), np.moveaxis(y, dim, -1))
        np.testing.assert_array_equal(golden(g, y, dim), np.moveaxis(moved, -1, dim))
    assert golden(np.float32(3), np.float32(0)) == 0


def test_real_cancellation_is_bounded_by_what_is_subtracted() -> None:
    """A row whose gradients cancel: the golden keeps every digit, and a right float32 kernel may lose many."""
    g, y = np.float32([[1, -1 + 2.0**-22, 2.0**-40]]), np.float32([[0.5, 0.25, 0.125]])
    call = Call(
        op=NAME, soc="ascend950", inputs={"gradOutput": g, "output": y}, attrs={"dim": -1},
        outputs={"out": np.empty_like(g)},
    )  # fmt: skip
    judged = reference(call)
    exact = truth.log_softmax(g, y, "float32")
    assert truth.wrong(judged.golden, exact) == 0
    value, bound = np.abs(judged.value[0, 2]), judged.bound[0, 2]
    assert 100 * np.spacing(np.float32(value)) < bound < 1e-6  # the sum's error is that of terms of size 1


@pytest.mark.parametrize("soc", ["ascend910b", "ascend950"])
def test_right_kernels_stay_within_the_bound(soc: str) -> None:
    torch = pytest.importorskip("torch")
    for dtype in TYPES:
        for name, (g, y) in data(dtype).items():
            for spoiled in (False, True):
                if spoiled:
                    g, y = g.copy(), y.copy()
                    g[1::5, 3], y[2::5, 4] = np.resize([NAN, INF], g[1::5, 3].shape), -INF
                    g[3::5], y[3::5, 5] = 0, INF
                inputs = {"gradOutput": g, "output": y}
                call = Call(op=NAME, soc=soc, inputs=inputs, attrs={"dim": -1}, outputs={"out": np.empty_like(g)})
                judged = reference(call)
                wide = [torch.from_numpy(t.astype(np.float32)) for t in (g, y)]
                actual = torch.ops.aten._log_softmax_backward_data(*wide, -1, torch.float32).numpy()
                with np.errstate(all="ignore"):
                    answers = {"own": compute(call), "torch": actual.astype(g.dtype)}
                for which, result in answers.items():
                    bad = _violations(judged, result)
                    assert not bad.size, f"{name} {dtype} {which}: {bad.size} elements, first {bad[0]}"


def _violations(judged, actual) -> np.ndarray:
    with np.errstate(all="ignore"):
        result, expected = actual.astype(np.float64), judged.golden.astype(np.float64)
        same = (result == expected) | (np.isnan(result) & np.isnan(expected))
        close = np.isfinite(result) & np.isfinite(expected) & (np.abs(result - judged.value) <= judged.bound)
    return np.argwhere(~(same | close | judged.unspecified))


def test_special_values_follow_the_formula() -> None:
    g = np.float32([[1, 2, 3], [1, INF, 3], [NAN, 1, 1], [1, -1, 0], [1, 2, 3]])
    y = np.float32([[-INF, 0, 0], [0, 0, 0], [0, 0, 0], [INF, INF, 100], [INF, 0, NAN]])
    result = golden(g, y)
    expected = [[1, -4, -3], [-INF, NAN, -INF], [NAN, NAN, NAN], [NAN, NAN, 0], [-INF, -4, NAN]]
    np.testing.assert_array_equal(result, np.float32(expected))
