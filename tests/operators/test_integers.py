"""Integer operands: cast to the kernel's type if that is a float type, otherwise computed as integers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gmpy2
import ml_dtypes
import numpy as np
import pytest

import oracle
from oracle.backends import load
from oracle.model.call import Call
from oracle.model.errors import OracleError, Unserved
from oracle.operators import operator
from oracle.operators.answers import api
from oracle.verdict import compare

I32, I64 = np.iinfo(np.int32), np.iinfo(np.int64)

# Operator, operands and attributes, and the answer, computed by hand or with Python's integers.
WHOLE: list[tuple[str, dict[str, Any], list[int]]] = [
    ("Relu", {"self": np.array([-128, 0, 127], np.int8)}, [0, 0, 127]),
    ("Relu", {"self": np.array([2**53 + 1, I64.min], np.int64)}, [2**53 + 1, 0]),
    ("Threshold", {"self": np.array([1, 2, 3], np.int32), "threshold": 1.9, "value": -7.5}, [-7, 2, 3]),
    ("Threshold", {"self": np.array([1, 255], np.uint8), "threshold": 1, "value": 9}, [9, 255]),
    ("Hardtanh", {"self": np.array([-3, 0, I32.max], np.int32), "clipValueMin": -1.5, "clipValueMax": 2.5}, [-1, 0, 2]),
    ("Hardsigmoid", {"self": np.array([-4, 0, 2, 3, 4], np.int32)}, [0, 0, 0, 1, 1]),
    ("L1Loss", {"self": np.array([2**60 + 1, 5]), "target": np.array([0, 7]), "reduction": 0}, [2**60 + 1, 2]),
    ("L1Loss", {"self": np.array([3, 5]), "target": np.array([0, 7], np.int32), "reduction": 2}, [5]),
]


@pytest.mark.parametrize(("name", "given", "wanted"), WHOLE)
def test_a_kernel_of_integers_rounds_nothing(name, given, wanted):
    out = oracle.golden(f"aclnn{name}", **given)["out"]
    assert out.dtype.kind in "iu"
    assert out.reshape(-1).tolist() == wanted
    result = oracle.reference(f"aclnn{name}", **given)["out"]
    assert result.golden.tolist() == out.tolist()
    assert not result.bound.any()


@pytest.mark.parametrize("name", ["Tanh", "Sigmoid"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "int32", "int64"])
def test_integers_beside_a_float_result_are_its_floats(name, dtype):
    whole = np.array([0, 1, 1, 0] if dtype == "bool" else [0, 1, 5, 100]).astype(dtype)
    for out in ("float16", "bfloat16", "float32"):
        one, other = (oracle.golden(f"aclnn{name}", self=x, out=out) for x in (whole, whole.astype(np.float32)))
        assert one["out"].tobytes() == other["out"].tobytes()
    assert oracle.golden(f"aclnn{name}", self=whole)["out"].dtype == np.float32


def test_integers_are_cast_to_the_common_type_first():
    """2049 lies halfway between two numbers of float16: it becomes 2048."""
    given = {"self": np.array([0, 0], np.float16), "target": np.array([2049, 1], np.int32), "reduction": 0}
    assert oracle.golden("aclnnL1Loss", **given)["out"].tolist() == [2048, 1]


def test_a_cast_of_integers_rounds_once():
    """Numbers next to midpoints of bfloat16, to which a rounding to float32 or float64 would move them."""
    whole = [((2 * k + 1) << s) + step for k in (128, 205, 255) for s in (8, 17, 28, 47, 54) for step in (-1, 0, 1)]
    given = {"self": np.zeros(len(whole), ml_dtypes.bfloat16), "target": np.array(whole), "reduction": 0}
    result = oracle.golden("aclnnL1Loss", **given)["out"]
    assert result.astype(float).tolist() == [float(gmpy2.mpfr(number, 8)) for number in whole]


@pytest.mark.parametrize(
    ("name", "given", "reason"),
    [
        ("Hardtanh", {"self": np.array([1], np.uint8), "clipValueMin": -1, "clipValueMax": 3}, "clipValueMin is -1"),
        ("Threshold", {"self": np.array([1], np.int8), "threshold": float("nan"), "value": 3}, "threshold is nan"),
        ("Selu", {"self": np.array([1], np.int8)}, "does not serve"),
    ],
)
def test_what_no_source_tells_is_refused(name, given, reason):
    with pytest.raises(OracleError, match=reason):
        oracle.golden(f"aclnn{name}", **given)


def test_before_ascend950_digits_beyond_float32_are_unspecified():
    given = {"self": np.array([2**24 + 1, 5], np.int32), "threshold": 1, "value": 0}
    result = {soc: oracle.reference("aclnnThreshold", soc=soc, **given)["out"] for soc in ("ascend910b", "ascend950")}
    assert result["ascend910b"].unspecified.tolist() == [True, False]
    assert not result["ascend950"].unspecified.any()


def test_one_wrong_digit_of_an_integer_fails_where_floats_hold_no_such_digit():
    result = oracle.reference("aclnnRelu", self=np.array([2**60 + 1, 1], np.int64))["out"]
    assert compare(result, result.golden.copy()).strict_bad is None
    wrong = compare(result, result.golden + np.array([1, 0]))
    assert wrong.strict_bad is not None
    assert wrong.strict_bad.tolist() == [True, False]


def test_the_cpu_backend_answers_integers():
    out = np.zeros(2, np.int64)
    load("cpu", {}).run(Call("aclnnRelu", "ascend910b", {"self": np.array([2**60 + 1, -1])}, {}, {"out": out}))
    assert out.tolist() == [2**60 + 1, 0]


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [("Relu", np.array([0.5, -2], np.float32), "self has dtype float32 and the kernel's type is int32"),
     ("Tanh", np.array([1, -2], np.int32), "only a formula of whole numbers has a golden")],
)  # fmt: skip
def test_whole_outputs_of_fractions_have_no_golden(monkeypatch, name, given, said):
    """A count or a comparison of floats: their fraction was lost before the formula."""
    page = replace(
        operator(f"aclnn{name}"), dtype="int32", kernel_type=lambda a, platform: "int32", checks=lambda *_: ()
    )
    monkeypatch.setattr(api, "operator", lambda _: page)
    monkeypatch.setattr(api, "served", api.served if name == "Relu" else lambda *_: None)
    monkeypatch.setattr(api, "_accepted", lambda *_: None)
    with pytest.raises(Unserved, match=said):
        api.golden(page.name, self=given, out="int32")
