"""aclnnGluBackward: the strict bounds of one kernel and of a chain of operators that rounds intermediate steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from calls import broken, broken_by_torch, call_of, violations
from truth import TYPES

import oracle
from oracle import Call
from oracle.operators.answers.api import compute, reference

NAME = "aclnnGluBackward"


def data(dtype: str, size: int = 1500) -> dict[str, np.ndarray]:
    """Return operands a, b and g: ordinary and saturated gates, every binade, cancelling and tiny values."""
    r = np.random.default_rng(list(dtype.encode()))
    kind = TYPES[dtype]
    gates = [r.normal(size=size) * 3, r.uniform(-20, 20, size), r.uniform(-110, 110, size), np.zeros(size)]
    values = [r.normal(size=size), r.normal(size=size) * 2.0 ** r.integers(-30, 12, size)]

    def chosen(choices: list[np.ndarray]) -> Any:
        with np.errstate(over="ignore", under="ignore"):
            return np.choose(r.integers(0, len(choices), size), choices).astype(kind)

    return {"g": chosen(values), "a": chosen(values), "b": chosen(gates)}


def call(given: dict[str, np.ndarray], soc: str) -> Call:
    return call_of(NAME, soc, gradOut=given["g"], self=np.concatenate([given["a"], given["b"]]), dim=0)


def test_every_axis_gives_the_same() -> None:
    asked = call(data("float32"), "ascend950")
    g, whole = asked.inputs["gradOut"].reshape(1, 15, 10, 10), asked.inputs["self"].reshape(2, 15, 10, 10)
    result = oracle.golden(NAME, gradOut=g, self=whole, dim=0)["out"]
    for dim in (1, 2, -1):
        turned = oracle.golden(NAME, gradOut=np.moveaxis(g, 0, dim), self=np.moveaxis(whole, 0, dim), dim=dim)["out"]
        np.testing.assert_array_equal(turned, np.moveaxis(result, 0, dim))


def calls(dtype: str) -> Iterator[Call]:
    for special in (False, True):
        given = data(dtype)
        for k, array in enumerate(given.values()):
            if special:
                array[k::11] = np.resize([np.nan, np.inf, -np.inf, 0.0, -0.0], array[k::11].shape).astype(array.dtype)
        for soc in ("ascend910b", "ascend950"):
            yield call(given, soc)


@pytest.mark.parametrize("dtype", TYPES)
def test_kernels_stay_within_the_bound_of_their_soc(dtype: str) -> None:
    assert [broken(asked) for asked in calls(dtype)] == [{}] * 4


@pytest.mark.parametrize("dtype", TYPES)
def test_pytorch_in_float32_stays_within_the_bound(dtype: str) -> None:
    for asked in calls(dtype):
        bad = broken_by_torch(asked)
        assert not bad.size, f"{asked.soc}: {bad.size}, first at {bad[0]}"


def test_a_chain_in_bfloat16_may_lose_the_gate_and_one_kernel_may_not() -> None:
    """a = 2, b = 8: s rounds to 1 in bfloat16 and gb to 0. This is right if the host chains operators."""
    given = {"g": np.ones(1), "a": np.full(1, 2.0), "b": np.full(1, 8.0)}
    given = {n: v.astype(TYPES["bfloat16"]) for n, v in given.items()}
    lost = np.array([1, 0], TYPES["bfloat16"])
    assert compute(call(given, "ascend910b"))[1] == 0
    assert not violations(reference(call(given, "ascend910b")), lost).size
    assert violations(reference(call(given, "ascend950")), lost).tolist() == [1]


@pytest.mark.parametrize("soc", ["ascend910b", "ascend950"])
@pytest.mark.parametrize(("g", "a", "b"), [(9.487e-42, 1e30, 2.7436466), (-3e-45, 16.6, 1.5), (3e-45, 69, 1.209)])
def test_the_order_of_the_document_is_right_where_it_underflows(g: float, a: float, b: float, soc: str) -> None:
    given = {n: np.full(1, v, np.float32) for n, v in {"g": g, "a": a, "b": b}.items()}
    s = 1 / (1 + np.exp(-given["b"]))
    result = np.concatenate([given["g"] * s, given["g"] * s * (1 - s) * given["a"]])
    assert result.dtype == np.float32
    assert not violations(reference(call(given, soc)), result).size
