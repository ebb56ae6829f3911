"""aclnnGluBackward: both halves of the golden, the strict bounds of one kernel and of a chain that rounds steps."""

from __future__ import annotations

from typing import Any

import gmpy2
import numpy as np
import pytest
from gmpy2 import mpfr, mpq
from truth import TYPES, rounded, wrong

import oracle
from oracle import Call, TensorSpec
from oracle.operators.answers.api import compute, reference
from oracle.operators.answers.registry import operator

NAME = "aclnnGluBackward"


def data(dtype: str, size: int = 1500) -> dict[str, np.ndarray]:
    """Operands a, b and g: ordinary and saturated gates, every binade, cancelling and tiny values."""
    r = np.random.default_rng(list(dtype.encode()))
    kind = TYPES[dtype]
    gates = [r.normal(size=size) * 3, r.uniform(-20, 20, size), r.uniform(-110, 110, size), np.zeros(size)]
    values = [r.normal(size=size), r.normal(size=size) * 2.0 ** r.integers(-30, 12, size)]

    def chosen(choices: list[np.ndarray]) -> Any:
        with np.errstate(over="ignore", under="ignore"):
            return np.choose(r.integers(0, len(choices), size), choices).astype(kind)

    return {"g": chosen(values), "a": chosen(values), "b": chosen(gates)}


def truth(given: dict[str, np.ndarray], dtype: str) -> np.ndarray:
    """Both halves, one after the other."""
    first, second = [], []
    columns = [[mpq(v) for v in given[n].astype(np.float64).tolist()] for n in "gab"]
    with gmpy2.context(precision=500, emax=gmpy2.get_emax_max(), emin=gmpy2.get_emin_min()):
        for g, a, b in zip(*columns, strict=True):
            s = mpq(1, 2) if b == 0 else 1 / (1 + gmpy2.exp(mpfr(-b)))
            c = mpq(1, 2) if b == 0 else 1 / (1 + gmpy2.exp(mpfr(b)))
            first.append(rounded(g * s, dtype))
            second.append(rounded(g * a * s * c, dtype))
    return np.array([first, second])


@pytest.mark.parametrize("dtype", TYPES)
def test_golden_is_correctly_rounded_along_every_axis(dtype: str) -> None:
    given = data(dtype)
    expected = truth(given, dtype)
    whole = np.stack([given["a"], given["b"]])
    result = oracle.golden(NAME, gradOut=given["g"][None], self=whole, dim=0)["out"]
    assert wrong(result, expected) == 0
    g, whole, result = (t.reshape(-1, 15, 10, 10) for t in (given["g"], whole, result))
    for dim in (1, 2, -1):
        turned = oracle.golden(
            NAME, gradOut=np.moveaxis(g, 0, dim), self=np.moveaxis(whole, 0, dim), dim=dim, soc="ascend950"
        )
        np.testing.assert_array_equal(turned["out"], np.moveaxis(result, 0, dim))


def call(given: dict[str, np.ndarray], soc: str) -> Call:
    whole = np.concatenate([given["a"], given["b"]])
    inputs = {"gradOut": given["g"], "self": whole}
    return Call(op=NAME, soc=soc, inputs=inputs, attrs={"dim": 0}, outputs={"out": np.empty_like(whole)})


def violations(judged: Any, actual: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        result, golden = actual.astype(np.float64), judged.golden.astype(np.float64)
        same = (result == golden) | (np.isnan(result) & np.isnan(golden))
        close = np.isfinite(result) & np.isfinite(golden) & (np.abs(result - judged.value) <= judged.bound)
    return np.flatnonzero(~(same | close | judged.unspecified))


@pytest.mark.parametrize("dtype", TYPES)
def test_right_kernels_stay_within_the_bound(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    for special in (False, True):
        given = data(dtype)
        if special:
            for k, array in enumerate(given.values()):
                array[k::11] = np.resize([np.nan, np.inf, -np.inf, 0.0, -0.0], array[k::11].shape).astype(array.dtype)
        for soc in ("ascend910b", "ascend950"):
            asked = call(given, soc)
            judged = reference(asked)
            wide = [torch.from_numpy(asked.inputs[n].astype(np.float32)) for n in ("gradOut", "self")]
            aten = operator(NAME).aten
            assert aten is not None
            other = aten.call(torch.ops.aten, {"gradOut": wide[0], "self": wide[1], "dim": 0}).numpy()
            with np.errstate(all="ignore"):
                for name, actual in (("own", compute(asked)), ("torch", other.astype(TYPES[dtype]))):
                    bad = violations(judged, actual)
                    assert not bad.size, f"{soc} {name}: {bad.size}, first at {bad[0]} of {len(given['g'])}"


def test_a_chain_in_bfloat16_may_lose_the_gate_and_one_kernel_may_not() -> None:
    """a = 2, b = 8: s rounds to 1 in bfloat16 and gb to 0, which is right where the host chains operators."""
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


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"self": TensorSpec((), "float32")}, "self has rank 0"),
        ({"dim": 2}, "dim is 2"),
        ({"self": TensorSpec((4, 5), "float32"), "dim": 1}, "it must be even"),
        ({"gradOut": TensorSpec((4, 6), "float32")}, "gradOut has shape (4, 6)"),
        ({"out": TensorSpec((4, 6), "float16")}, "out has dtype float16"),
    ],
)
def test_refusals_name_the_rule(change: dict[str, Any], problem: str) -> None:
    given = {n: TensorSpec(s, "float32") for n, s in {"gradOut": (2, 6), "self": (4, 6), "out": (4, 6)}.items()}
    assert oracle.validate(NAME, dim=0, **given).ok
    status = oracle.validate(NAME, **{"dim": 0, **given, **change})
    assert status.name == "ACLNN_ERR_PARAM_INVALID"
    assert problem in status.reason


def test_double_is_accepted_and_not_served() -> None:
    whole = np.ones((4, 2))
    assert oracle.validate(NAME, gradOut=whole[:2], self=whole, dim=0, out=whole).ok
    with pytest.raises(oracle.OracleError, match="does not serve"):
        oracle.golden(NAME, gradOut=whole[:2], self=whole, dim=0)
