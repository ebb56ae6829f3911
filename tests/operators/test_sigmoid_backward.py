"""aclnnSigmoidBackward, the model page: its types, its checks, its special values."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from oracle import TensorSpec, golden, validate

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


def test_bfloat16_is_refused_by_the_older_products_for_the_gradient_alone():
    given = dict.fromkeys(("gradOutput", "output", "gradInput"), TensorSpec((2, 3), "float32"))
    narrow = TensorSpec((2, 3), "bfloat16")
    for soc, code in (("ascend910", 161002), ("ascend310p", 161002), ("ascend910b", 0), ("ascend950", 0)):
        assert validate(NAME, soc=soc, **{**given, "gradOutput": narrow}).code == code
        assert validate(NAME, soc=soc, **{**given, "output": narrow}).code == 0
