"""One value per row in a compiled pass: the bits of the NumPy engine, and its refusals."""

from __future__ import annotations

from unittest import mock

import ml_dtypes
import numpy as np
import pytest
from ordinary import FULL
from truth import TYPES

import oracle
from oracle.model.errors import OracleError

pytest.importorskip("numba", reason="the extra `fast` (numba) is not installed")
from oracle.numerics.compiled import loops

pytestmark = pytest.mark.slow

COMPILED = TYPES if FULL else ["float16"]  # compiling one formula of one type takes seconds
ROWS, CLASSES = 4000, 24


def call(dtype: str, reduction: int, **changed) -> dict:
    r = np.random.default_rng(7)
    grad = r.normal(size=ROWS if reduction == 0 else ()).astype(TYPES[dtype])
    target = r.integers(0, CLASSES, ROWS)
    target[::9] = -100
    weight = np.round(r.normal(size=CLASSES) * 64).astype(TYPES[dtype])
    given = {
        "gradOutput": grad, "self": np.zeros((ROWS, CLASSES), TYPES[dtype]), "target": target, "weight": weight,
        "reduction": reduction, "ignoreIndex": -100, "totalWeight": np.array([3], TYPES[dtype]),
    }  # fmt: skip
    return {**given, **changed}


def both(op: str, monkeypatch, *, asked: bool = True, **params) -> None:
    answers = []
    for engine in ("numpy", "compiled"):
        monkeypatch.setenv("ACLNN_ORACLE_ENGINE", engine)
        with mock.patch.object(loops, "scattered", wraps=loops.scattered) as scatter:
            (out,) = oracle.golden(op, soc="ascend950", **params).values()
        answers.append(out)
    assert scatter.called == asked
    assert answers[0].tobytes() == answers[1].tobytes()


@pytest.mark.parametrize("reduction", [0, 1, 2])
@pytest.mark.parametrize("dtype", COMPILED)
def test_every_reduction_has_the_bits_of_the_numpy_road(dtype, reduction, monkeypatch):
    both("aclnnNLLLossBackward", monkeypatch, **call(dtype, reduction))


@pytest.mark.parametrize("dtype", COMPILED)
def test_ties_zeros_and_special_values_too(dtype, monkeypatch):
    params = call(dtype, 0)
    half = 2.0 ** -(ml_dtypes.finfo(TYPES[dtype]).nmant // 2 + 1)
    ties = np.tile([1 + half, -1 - half, 0.0, -0.0, np.nan, np.inf, -np.inf, 1e-7, 3e4, 1.5], ROWS // 10)
    weight = np.resize([1 + half, 1 - half, 0.0, -1.0, 3e4, 1e-7, np.inf], CLASSES)
    params |= {"gradOutput": ties.astype(TYPES[dtype]), "weight": weight.astype(TYPES[dtype])}
    both("aclnnNLLLossBackward", monkeypatch, **params)
    both("aclnnNLLLossBackward", monkeypatch, **{**params, "gradOutput": params["gradOutput"][5], "reduction": 2})


def test_large_outputs_one_sample_and_maps_of_samples(monkeypatch):
    r = np.random.default_rng(1)
    wide = call("float32", 0, self=np.zeros((ROWS, 1024), np.float32), weight=r.normal(size=1024).astype(np.float32))
    both("aclnnNLLLossBackward", monkeypatch, **wide)
    one = call("float32", 2, self=np.zeros(CLASSES, np.float32), target=np.full(CLASSES, 5))
    both("aclnnNLLLossBackward", monkeypatch, **one)
    maps = call("float32", 0, self=np.zeros((2, CLASSES, 30, 20), np.float32))
    shape = (2, 30, 20)
    maps |= {"target": r.integers(0, CLASSES, shape), "gradOutput": r.normal(size=shape).astype(np.float32)}
    both("aclnnNLLLoss2dBackward", monkeypatch, asked=False, **maps)  # their classes are not on the last axis


@pytest.mark.parametrize("shape", [(300, CLASSES, 1, 1), (1, CLASSES, 1, 1), (3, 1, 4, 5), (1, 1, 1, 7)])
def test_maps_whose_classes_lie_side_by_side_because_other_axes_have_length_1(shape, monkeypatch):
    r = np.random.default_rng(3)
    samples = (shape[0], *shape[2:])
    both(
        "aclnnNLLLoss2dBackward", monkeypatch, gradOutput=r.normal(size=samples).astype(np.float32),
        self=np.zeros(shape, np.float32), target=r.integers(0, shape[1], samples), reduction=0, ignoreIndex=-100,
        weight=r.normal(size=shape[1]).astype(np.float32), totalWeight=np.array([3], np.float32),
    )  # fmt: skip


@pytest.mark.parametrize("wrong", [CLASSES, -1, 2**31])
def test_a_target_that_is_no_class_is_refused_in_the_same_words(wrong, monkeypatch):
    params, text = call("float32", 0), []
    params["target"][77] = wrong
    for engine in ("numpy", "compiled"):
        monkeypatch.setenv("ACLNN_ORACLE_ENGINE", engine)
        with pytest.raises(OracleError, match=r"target\[77\]") as error:
            oracle.golden("aclnnNLLLossBackward", **params)
        text.append(str(error.value))
    assert text[0] == text[1]
