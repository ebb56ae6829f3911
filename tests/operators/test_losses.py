"""Forward losses: every golden agrees with MPFR, also reduced ones; gradients are the derivatives of their forwards."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from derivative import slopes
from elementwise_truth import Row, hard
from gmpy2 import mpq
from truth import TYPES, rationals, rounded, wrong

import oracle
from oracle.operators import OPERATORS

# Elements per loss and dtype; `.ci/full` takes more.
SIZE = int(os.environ.get("ACLNN_TEST_ELEMENTS", "300"))
SUMMED = 15  # terms of each reduced golden
Term = Callable[[mpq, mpq], mpq]
LOSSES: dict[str, Term] = {"aclnnMseLoss": lambda x, t: (x - t) ** 2, "aclnnL1Loss": lambda x, t: abs(x - t)}


def pair(name: str, dtype: str, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return self and target: ordinary, extreme and neighbouring values, some equal."""
    row = Row(lambda *a: None, ("", "self", "target"), near=(1, 0), largest=1e18)  # sums stay within float32's range
    _, x, t = hard(row, dtype, size, [*name.encode()])
    return x, t


def terms(name: str, x: np.ndarray, t: np.ndarray) -> list[mpq]:
    return [LOSSES[name](a, b) for a, b in zip(rationals(x), rationals(t), strict=True)]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", LOSSES)
def test_golden_is_correctly_rounded(name: str, dtype: str) -> None:
    x, t = pair(name, dtype, SIZE)
    exact = terms(name, x, t)
    result = oracle.golden(name, self=x, target=t, reduction=0)["out"]
    assert wrong(result, np.array([rounded(v, dtype) for v in exact])) == 0
    for start in range(0, SIZE, SUMMED):
        few = slice(start, start + SUMMED)
        total = sum(exact[few], mpq(0))
        for reduction, value in ((1, total / len(exact[few])), (2, total)):
            out = oracle.golden(name, self=x[few], target=t[few], reduction=reduction)["out"]
            assert wrong(out, np.array(rounded(value, dtype))) == 0, (start, reduction)


@pytest.mark.parametrize("dtype", TYPES)
def test_mse_loss_out_adds_along_the_first_axis(dtype: str) -> None:
    x, t = pair("aclnnMseLossOut", dtype, SIZE)
    exact = terms("aclnnMseLoss", x, t)
    result = oracle.golden("aclnnMseLossOut", self=x, target=t, reduction=0)["out"]
    assert wrong(result, np.array([rounded(v, dtype) for v in exact])) == 0
    columns = SIZE // SUMMED
    x, t = (v.reshape(SUMMED, columns) for v in (x, t))
    for rows in (1, 3, 7, SUMMED):
        totals = [sum(exact[k : rows * columns : columns], mpq(0)) for k in range(columns)]
        for reduction, divisor in ((1, rows), (2, 1)):
            out = oracle.golden("aclnnMseLossOut", self=x[:rows], target=t[:rows], reduction=reduction)["out"]
            assert wrong(out, np.array([rounded(v / divisor, dtype) for v in totals])) == 0, (rows, reduction)


@pytest.mark.parametrize("name", LOSSES)
def test_the_host_rounds_to_the_common_type_before_the_cast_to_out(name: str) -> None:
    x, t = (v.astype(np.float16) for v in (np.array([1.0, 3.125]), np.array([0.0009765625, 2.0])))
    out = oracle.TensorSpec((2,), "float32")
    result = oracle.golden(name, self=x, target=t, reduction=0, out=out)["out"]
    assert (result == result.astype(np.float16)).all()


@pytest.mark.parametrize("name", LOSSES)
def test_the_mean_of_nothing_is_nan_and_its_sum_0(name: str) -> None:
    none = np.empty((0, 3), np.float32)
    result = [oracle.golden(name, self=none, target=none, reduction=r)["out"] for r in (0, 1, 2)]
    assert result[0].shape == (0, 3)
    assert np.isnan(result[1])
    assert result[2] == 0


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    ("forward", "backward", "output"),
    [("mse_loss", "aclnnMseLossBackward", "out"), ("l1_loss", "aclnnL1LossBackward", "gradInput")],
)
def test_a_gradient_is_the_derivative_of_its_forward(forward: str, backward: str, output: str, dtype: str) -> None:
    x, t = pair(backward, dtype, 100)
    g = np.random.default_rng(7).normal(size=100).astype(TYPES[dtype])
    inner = slopes(forward, "self", self=x, target=t, reduction=0)
    given: dict[str, Any] = {"gradOutput": g, "self": x, "target": t}
    for reduction, count in ((0, 1), (1, 100)):
        result = oracle.golden(backward, **given, reduction=reduction)[output]
        exact = [a * b / count for a, b in zip(rationals(g), inner, strict=True)]
        assert wrong(result, np.array([rounded(v, dtype) for v in exact])) == 0


# From the sources: elements of self (4), or of the common shape of all operands (4 x 32).
DIVISORS = {"L1Loss": 128, "MseLoss": 4, "SmoothL1Loss": 4, "SoftMarginLoss": 128}


@pytest.mark.parametrize("name", DIVISORS)
def test_the_mean_of_a_gradient_has_its_own_divisor_if_self_is_broadcast(name: str) -> None:
    draw = np.random.default_rng(3)
    op = OPERATORS[f"aclnn{name}Backward"]
    gradient = op.operands[0].name
    given: dict[str, Any] = {"self": draw.standard_normal((4, 1)), "target": draw.standard_normal((4, 32))}
    given = {key: value.astype(np.float32) for key, value in {**given, gradient: np.ones((1, 32))}.items()}
    given |= {"beta": 1.0} if op.by_name.get("beta") else {}
    mean, total = (oracle.golden(op.name, **given, reduction=word)[op.output] for word in (1, 2))
    assert np.array_equal(mean * np.float32(DIVISORS[name]), total), "a power of two divides exactly"


@pytest.mark.parametrize("dtype", TYPES)
def test_the_limit_of_a_logarithm_of_0_leaves_no_tie_to_float64(dtype: str) -> None:
    """At self 1 the loss is 100 * (1 - target) * weight, at self 0 it is 100 * target * weight. With a target of 2^-60
    float64 takes the first for 100 * weight, of which many are halfway between two numbers of 16 bits."""
    name, r = "aclnnBinaryCrossEntropy", np.random.default_rng(8)
    x = r.integers(0, 2, SIZE).astype(TYPES[dtype])
    y = (2.0 ** -r.integers(10, 100, SIZE)).astype(TYPES[dtype])
    w = (r.integers(-255, 256, SIZE) * 2.0**-8).astype(TYPES[dtype])
    exact = [100 * c * (1 - b if a else b) for a, b, c in zip(*map(rationals, (x, y, w)), strict=True)]
    result = oracle.golden(name, self=x, target=y, weight=w, reduction=0)["out"]
    assert wrong(result, np.array([rounded(v, dtype) for v in exact])) == 0
    for start in range(0, SIZE, 2):
        few = slice(start, start + 2)
        out = oracle.golden(name, self=x[few], target=y[few], weight=w[few], reduction=2)["out"]
        assert wrong(out, np.array(rounded(sum(exact[few], mpq(0)), dtype))) == 0, start
