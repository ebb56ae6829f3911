"""A golden needs at most 64 MiB beyond its inputs and its output, for any size, layout and values."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from ordinary import in_full_alone

import oracle

LIMIT = 64 * 2**20
SIZE = 1 << 22  # a float64 copy would be 32 MiB, so two of them, or one and its temporaries, are over the limit


def extra(op, **params) -> int:
    """Return the peak traced allocation (NumPy reports its own to tracemalloc) minus the output."""
    oracle.golden(op, **params)  # a compiler's own memory does not grow with the data
    tracemalloc.start()
    (out,) = oracle.golden(op, **params).values()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak - out.nbytes


@pytest.fixture(autouse=True, params=["numpy", pytest.param("compiled", marks=in_full_alone)])
def engine(request, monkeypatch):
    """The engine that answers. By default a process switches to the second one after some large calls."""
    monkeypatch.setenv("ACLNN_ORACLE_ENGINE", request.param)


@pytest.fixture(scope="module")
def data():
    return np.random.default_rng(0).uniform(size=2 * SIZE).astype(np.float32)


@pytest.mark.parametrize(
    "view",
    [
        pytest.param(lambda a: a, marks=in_full_alone),
        pytest.param(lambda a: a.reshape(1024, -1).T, marks=in_full_alone),
        lambda a: a.reshape(64, -1, 16)[:, ::2],
    ],
)
def test_elementwise(data, view):
    x = view(data)
    assert extra("aclnnLogSigmoidBackward", gradOutput=x, self=x, buffer=x[:0]) < LIMIT
    assert extra("aclnnBinaryCrossEntropyBackward", gradOutput=x, self=x, target=x[:1], reduction=1) < LIMIT


ROWS = [(2 * SIZE // 1024, 1024), *(pytest.param(shape, marks=in_full_alone) for shape in (
    (1, 2 * SIZE), (2 * SIZE // 4, 4), (3, 2 * SIZE // 4)))]  # fmt: skip


@pytest.mark.parametrize("shape", ROWS)
@pytest.mark.parametrize("dim", [pytest.param(0, marks=in_full_alone), 1])
def test_softmax(data, shape, dim):
    g = data[: shape[0] * shape[1]].reshape(shape)
    assert extra("aclnnSoftmaxBackward", gradOutput=g, output=g, dim=dim) < LIMIT


@in_full_alone
@pytest.mark.parametrize("length", [1024, 2 * SIZE])
def test_softmax_rows_that_all_need_a_second_look(data, length):
    y = np.full((2 * SIZE // length, length), 2.0**-60, np.float32)
    y[:, 3] = 1
    assert extra("aclnnSoftmaxBackward", gradOutput=data.reshape(y.shape), output=y, dim=1) < LIMIT


@pytest.mark.parametrize("classes", [1, 2, 1024])
@pytest.mark.parametrize("reduction", [0, 1])
def test_nll(data, classes, reduction):
    rows = SIZE // classes
    grad = data[:rows] if reduction == 0 else data[:1]
    assert extra(
        "aclnnNLLLossBackward", gradOutput=grad, self=np.empty((rows, classes), np.float32),
        target=np.zeros(rows, np.int64), weight=data[:classes], reduction=reduction, ignoreIndex=-1,
        totalWeight=data[:1],
    ) < LIMIT  # fmt: skip


@in_full_alone
def test_exact_ties_everywhere(data):
    """Every element is first in doubt, and then settled as an exact fraction."""
    g = data[:SIZE].astype(np.float16)
    x, y = np.full(SIZE, 0.5, np.float16), np.round(g)
    assert extra("aclnnBinaryCrossEntropyBackward", gradOutput=g, self=x, target=y, reduction=0) < LIMIT
