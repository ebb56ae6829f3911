"""Wrong arguments of judge: one message that names the standard, the parameter, the value and the rule."""

from pathlib import Path

import numpy as np
import pytest

from oracle.model.errors import OracleError
from oracle.standards import STANDARDS, judge
from oracle.standards.base import OUTPUT_TYPES

ONE = np.ones(1)
HALF = np.ones(1, np.float16)


@pytest.mark.parametrize(
    ("standard", "changes", "words"),
    [
        ("mixd", {}, ["mixd", "mixed-strictest"]),
        (["mixed"], {}, ["standard", "mixed"]),
        ("mixed", {"dtype": "float15"}, ["mixed", "float15", "bfloat16"]),
        ("mixed", {"dtype": None}, ["None"]),
        ("mixed", {"dtype": "complex64"}, ["complex64"]),
        ("mixed", {"dtype": "int32"}, ["mixed", "int32", "integer"]),
        ("mixed", {"level": "L0"}, ["mixed", "level", "anchor"]),
        ("binary", {"anchor": "g_low"}, ["binary", "anchor", "nan_equal"]),
        ("integer", {"dtype": "int8", "limit": 3}, ["integer", "limit"]),
        ("mixed", {"anchor": "ulp"}, ["mixed", "anchor", "'ulp'", "g_low"]),
        ("mixed", {"inf_narrow": "maybe"}, ["inf_narrow", "'maybe'", "true or false"]),
        ("ttk-close", {"rtol": -1}, ["ttk-close", "rtol", "-1", "not below 0"]),
        ("ttk-close", {"rtol": float("nan")}, ["rtol", "nan"]),
        ("ttk-close", {"rtol": True}, ["rtol", "True"]),
        ("single-bm", {"fp16_error": "2**x"}, ["single-bm", "fp16_error", "2**x"]),
        ("single-bm", {"operations": 1.5}, ["operations", "1.5", "integer"]),
        ("single-bm", {"type": "fast"}, ["type", "fast", "vector_fused"]),
        ("mixed", {"third": HALF}, ["mixed", "no third party"]),
        ("dual-L0", {}, ["dual-L0", "third=", "float16"]),
        ("dual-L0", {"third": ONE}, ["third", "float64", "float16"]),
        ("dual-L0", {"third": np.ones(2, np.float16)}, ["third", "[2]", "[1]"]),
        ("mixed", {"golden": np.array(["a"])}, ["golden", "numbers"]),
        ("mixed", {"golden": np.array([None])}, ["golden", "numbers", "object"]),
        ("mixed", {"golden": np.ma.masked_array(ONE, [True])}, ["golden", "mask"]),
        ("mixed", {"golden": None}, ["golden", "NoneType"]),
        ("mixed", {"golden": [[1], [1, 2]]}, ["golden"]),
        ("mixed", {"golden": np.ones(1, np.complex128)}, ["golden", "complex128", "float64"]),
        ("mixed", {"golden": np.ones(1, np.longdouble)}, ["golden", "float64"]),
        ("mixed", {"actual": object()}, ["actual", "numbers"]),
    ],
)
def test_one_message_that_names_what_is_wrong(standard, changes, words):
    arguments = {"golden": ONE, "actual": HALF, "dtype": "float16", **changes}
    with pytest.raises(OracleError) as raised:
        judge(standard, **arguments)
    message = str(raised.value)
    assert "\n" not in message
    for word in words:
        assert word in message


@pytest.mark.parametrize("standard", STANDARDS)
@pytest.mark.parametrize(
    ("actual", "word"),
    [(np.ones(2, np.int8), "shape (2,)"), (np.ones((1, 1), np.int8), "shape (1, 1)"), (np.ones(1), "float64")],
)
def test_output_of_another_shape_or_dtype_fails(standard, actual, word):
    dtype = "int8" if "int" in STANDARDS[standard].kinds else "float16"
    kind = np.dtype(dtype)
    third = np.ones(1, kind) if STANDARDS[standard].third else None
    actual = actual if actual.dtype == np.float64 else actual.astype(kind)
    verdict = judge(standard, golden=np.ones(1, kind), actual=actual, dtype=dtype, third=third)
    assert not verdict.passed
    assert word in verdict.reason
    assert judge(standard, golden=np.ones(1, kind), actual=np.ones(1, kind), dtype=kind, third=third).passed


@pytest.mark.parametrize("standard", STANDARDS)
@pytest.mark.parametrize("dtype", sorted(OUTPUT_TYPES))
def test_every_dtype_is_judged_or_refused_by_name(standard, dtype):
    kind = OUTPUT_TYPES[dtype]
    values = np.ones(3, kind.numpy)
    arguments = {"actual": values, "dtype": dtype, "third": values if STANDARDS[standard].third else None}
    golden = np.ones(3, np.int64 if kind.is_whole else np.float64)
    rule = STANDARDS[standard]
    if kind.kind in rule.kinds and dtype in (rule.dtypes or OUTPUT_TYPES):
        assert judge(standard, golden=golden, **arguments).passed
    else:
        with pytest.raises(OracleError, match=f"'{dtype}' is outside its rule"):
            judge(standard, golden=golden, **arguments)


def test_hifloat32_travels_in_float32():
    assert judge("mixed", golden=ONE, actual=np.ones(1, np.float32), dtype="hifloat32").passed
    other = judge("mixed", golden=ONE, actual=HALF, dtype="hifloat32")
    assert "in float32 arrays" in other.reason


@pytest.mark.parametrize("value", [True, "true", "1", "TRUE", np.True_])
def test_flags_may_come_from_a_command_line(value):
    assert judge("mixed", golden=ONE, actual=HALF, dtype="float16", inf_narrow=value).passed


def test_document_names_every_standard_and_option():
    text = (Path(__file__).resolve().parents[2] / "docs/standards.md").read_text()
    headings = " ".join(line for line in text.splitlines() if line.startswith("## "))
    for name, standard in STANDARDS.items():
        assert name in headings
        for option in standard.options:
            assert f"`{option}`" in text
