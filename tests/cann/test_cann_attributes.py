"""Attributes of every C type, several outputs, and operators of any library: the values that reach the C function."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from oracle import Call, OracleError
from oracle.cann import CannError, abi
from oracle.cann.calls import attributes_of, by_value, scalar
from oracle.operators import OPERATORS


def parameter(name, kind="attr", c="int64", optional=False):
    return SimpleNamespace(name=name, kind=kind, c=c, optional=optional)


def tensors(*names, kind="input"):
    return tuple(parameter(name, kind) for name in names)


ADDS = (*tensors("self"), parameter("other", c="aclScalar"), parameter("alpha", c="aclScalar"))
ADDS += tensors("out", kind="output")
NLL = (*tensors("self", "target", "weight"), parameter("reduction"), parameter("ignoreIndex"))
NLL += tensors("out", "totalWeightOut", kind="output")


def page(name, parameters):
    return SimpleNamespace(name=name, parameters=parameters, is_built_in=False)


@pytest.fixture(autouse=True)
def _operators(monkeypatch):
    """Two more operators: one with aclScalars in libopapi_math.so, one with two outputs."""
    for name, parameters in (("aclnnAdds", ADDS), ("aclnnNLLLoss", NLL)):
        monkeypatch.setitem(OPERATORS._all(), name, page(name, parameters))


def add(other, alpha=1):
    x = np.arange(6, dtype=np.float32)
    return Call("aclnnAdds", "ascend910b", {"self": x}, {"other": other, "alpha": alpha}, {"out": np.empty_like(x)})


@pytest.mark.parametrize(
    ("other", "wanted"),
    [
        (2, 2.0), (0.1, np.float32(0.1)), (True, 1.0), (np.float32(1.1), np.float32(1.1)),
        (np.float16(0.1), np.float16(0.1)), (ml_dtypes.bfloat16(0.1), np.float32(ml_dtypes.bfloat16(0.1))),
        (np.int8(-3), -3.0), (float("-inf"), -np.inf),
    ],
)  # fmt: skip
def test_a_scalar_of_any_type_arrives(emulator, device, other, wanted):
    call = add(other)
    before = emulator.count("scalars")
    assert device.run(call).ok
    np.testing.assert_array_equal(call.outputs["out"], np.arange(6, dtype=np.float32) + np.float32(wanted))
    assert emulator.count("scalars") == before
    assert emulator.misuses() == 0, emulator.last_misuse()


def test_a_null_scalar_is_a_null_pointer(device):
    status = device.run(add(None))
    assert status.code == 161001
    assert "other is a null pointer" in status.reason


def test_a_scalar_that_cannot_be_made_or_destroyed_is_told_and_the_rest_is_given_back(emulator, device):
    before = emulator.count("scalars")
    emulator.inject("aclCreateScalar#2=1")
    with pytest.raises(CannError, match="aclCreateScalar returned a null pointer: for alpha=1"):
        device.run(add(2))
    assert emulator.count("scalars") == before
    emulator.inject("aclDestroyScalar#1=561000")
    with pytest.raises(CannError, match="aclDestroyScalar returned 561000"):
        device.run(add(2))
    emulator.clear()
    assert device.run(add(2)).ok
    assert emulator.count("scalars") == before + 1


def test_several_outputs_come_back(device):
    x = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    inputs = {"self": x, "target": np.array([2, 0]), "weight": np.array([1, 2, 4], np.float32)}
    outputs = {"out": np.empty((), np.float32), "totalWeightOut": np.empty((), np.float32)}
    call = Call("aclnnNLLLoss", "ascend910b", inputs, {"reduction": 2, "ignoreIndex": -100}, outputs)
    assert device.run(call).ok
    assert outputs["out"] == -16
    assert outputs["totalWeightOut"] == 5


def test_an_operator_that_no_library_has_is_told_with_where_it_was_looked_for(device, monkeypatch):
    monkeypatch.setattr("oracle.cann.library.add_missing", lambda *_: None)  # as a CANN that is not emulated
    monkeypatch.setitem(OPERATORS._all(), "aclnnNowhere", page("aclnnNowhere", ADDS))
    call = add(1)
    call.op = "aclnnNowhere"
    with pytest.raises(OracleError, match=r"no aclnnNowhere.*libopapi_nn.so.*libopapi_math.so"):
        device.run(call)


def test_every_c_type_is_declared_and_passed_as_itself():
    parameters = tuple(parameter(c, c=c) for c in abi.ATTRIBUTES)
    restype, arguments = abi.first_phase(parameters)
    seen = []
    function = ctypes.CFUNCTYPE(restype, *arguments)(lambda *given: (seen.append(given), 0)[1])
    given = {"int64": -(2**63), "float": 0.1, "double": 0.1, "bool": True, "char*": "tanh"}
    given |= {"aclScalar": None, "aclIntArray": None, "aclBoolArray": None}
    with attributes_of(None, parameters, given) as attributes:
        function(*attributes.values(), None, None)
    passed = dict(zip(given, seen[0][:-2], strict=True))
    assert passed == {**given, "float": float(np.float32(0.1)), "char*": b"tanh"}


@pytest.mark.parametrize(
    ("c", "value", "rule"),
    [
        ("int64", 2**63, "an int64"), ("int64", 1.5, "an int64"), ("int64", None, "an int64"),
        ("float", "1", "a number"), ("double", None, "a number"), ("bool", 1, "True or False"),
        ("char*", 3, "a string"),
    ],
)  # fmt: skip
def test_a_value_that_the_c_type_cannot_hold_is_told(c, value, rule):
    with pytest.raises(OracleError, match=f"mode is .*; it must be {rule}"):
        by_value("mode", c, value)
    assert by_value("mode", "char*", None) is None


@pytest.mark.parametrize("value", ["1", [1], 2**63, np.datetime64(0, "s")])
def test_what_no_scalar_holds_is_told(value):
    with pytest.raises(OracleError, match="beta is "):
        scalar("beta", value)


def test_an_unknown_c_type_is_told_with_the_known_ones():
    with pytest.raises(OracleError, match=r"C type of the attribute mode 'int32' .*; known: int64, float"):
        abi.first_phase((parameter("mode", c="int32"),))
