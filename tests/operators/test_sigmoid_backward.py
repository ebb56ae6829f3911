"""aclnnSigmoidBackward, the model page: its types, its checks, its special values."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from oracle import OracleError, TensorSpec, golden, validate

NAME = "aclnnSigmoidBackward"
BF16 = np.dtype(ml_dtypes.bfloat16)


def test_inputs_broadcast_with_each_other_and_the_result_has_the_common_type():
    g, y = np.float16([[1], [2]]), np.array([0.25, 0.5, 0.75], BF16)
    out = golden(NAME, gradOutput=g, output=y)["gradInput"]
    assert (out.shape, out.dtype) == ((2, 3), np.float32)
    np.testing.assert_array_equal(out, np.float32([[1], [2]]) * [0.1875, 0.25, 0.1875])


def test_the_result_is_rounded_to_the_common_type_before_the_cast():
    g, y = np.float16([1]), np.float16([1 / 3])
    wide = golden(NAME, gradOutput=g, output=y, gradInput="float32")["gradInput"]
    narrow = golden(NAME, gradOutput=g, output=y)["gradInput"]
    assert wide.dtype == np.float32
    assert wide[0] == narrow[0]


@pytest.mark.parametrize(
    ("g", "y", "expected"),
    [
        (1.0, np.inf, -np.inf), (-1.0, np.inf, np.inf), (1.0, -np.inf, -np.inf), (0.0, np.inf, np.nan),
        (np.inf, 1.0, np.nan), (np.inf, 0.0, np.nan), (np.nan, 0.5, np.nan), (1.0, np.nan, np.nan),
        (-1.0, 0.0, -0.0), (-1.0, 1.0, -0.0), (1.0e30, 1.0e30, -np.inf), (1.0e-30, 1.0e20, -1.0e10),
    ],
)  # fmt: skip
def test_special_values_follow_the_formula(g, y, expected):
    got = golden(NAME, gradOutput=np.float32([g]), output=np.float32([y]))["gradInput"][0]
    if np.isfinite(expected) and expected:
        assert got == pytest.approx(expected, rel=1e-6)  # the operands are rounded to float32
    else:
        np.testing.assert_array_equal(got, np.float32(expected))
        assert np.isnan(got) or np.signbit(got) == np.signbit(expected)


@pytest.mark.parametrize("kind", ["float64", "complex64"])
def test_what_the_ai_cpu_computes_is_accepted_and_not_served(kind):
    y = np.ones(3, kind)
    assert validate(NAME, gradOutput=y, output=y, gradInput=y).ok
    with pytest.raises(OracleError, match="does not serve"):
        golden(NAME, gradOutput=y, output=y)


def status(soc="ascend910b", **changes):
    spec = TensorSpec((2, 3), "float32")
    return validate(NAME, soc=soc, **{"gradOutput": spec, "output": spec, "gradInput": spec, **changes})


@pytest.mark.parametrize(
    ("changes", "code", "said"),
    [
        ({"output": None}, 161001, "output is a null pointer"),
        ({"gradInput": TensorSpec((2, 3), "int32")}, 161002, "gradInput has dtype int32"),
        ({"output": TensorSpec((1,) * 9, "float32")}, 161002, "rank 9"),
        ({"gradOutput": TensorSpec((2, 3), "complex64")}, 161002, "cannot be cast"),
        ({"gradOutput": TensorSpec((2, 2), "float32")}, 161002, "do not broadcast"),
        ({"gradInput": TensorSpec((1, 2, 3), "float32")}, 161002, "common shape"),
        ({"gradOutput": TensorSpec((3,), "float16")}, 0, ""),
        ({"gradOutput": TensorSpec((), "float64"), "gradInput": TensorSpec((2, 3), "complex128")}, 0, ""),
        ({n: TensorSpec((0, 3), "float32") for n in ("gradOutput", "output", "gradInput")}, 0, ""),
    ],
)
def test_the_checks_answer_as_the_source(changes, code, said):
    result = status(**changes)
    assert result.code == code
    assert said in result.reason


def test_bfloat16_is_refused_by_the_older_products_for_the_gradient_alone():
    for soc, code in (("ascend910", 161002), ("ascend310p", 161002), ("ascend910b", 0), ("ascend950", 0)):
        assert status(soc, gradOutput=TensorSpec((2, 3), "bfloat16")).code == code
        assert status(soc, output=TensorSpec((2, 3), "bfloat16")).code == 0
