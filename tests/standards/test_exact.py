"""binary, integer and quantized: bits, exact differences in every integer type, and no rounding through float64."""

import math

import ml_dtypes
import numpy as np
import pytest

from oracle import OracleError, judge
from oracle.model.dtypes import FORMATS
from oracle.standards.base import OUTPUT_TYPES
from oracle.standards.commercial import difference

KINDS = {name: kind.numpy for name, kind in OUTPUT_TYPES.items()}
INTEGERS = ["int4", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))]


def judged(standard, dtype, golden, actual, **options):
    return judge(standard, golden=golden, actual=actual, dtype=dtype, **options)


def ends(dtype):
    info = ml_dtypes.iinfo(KINDS[dtype])
    return int(info.min), int(info.max)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_differences_are_exact_over_the_whole_range(dtype):
    low, high = ends(dtype)
    values = [low, low + 1, -1 if low else 1, 0, 1, high - 1, high]
    golden = np.array(values, dtype=KINDS[dtype])[:, None] + np.zeros((1, 7), KINDS[dtype])
    actual = golden.T
    exact = [abs(int(a) - int(g)) for g, a in zip(golden.ravel(), actual.ravel(), strict=True)]
    assert difference(golden, actual).ravel().tolist() == exact
    verdict = judged("quantized", dtype, golden, actual)
    assert verdict.metrics["max_ae"] == float(high - low)
    assert not verdict.passed


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize(("standard", "allowed"), [("integer", 0), ("quantized", 1), ("binary", 0)])
def test_allowed_error(standard, allowed, dtype):
    low, high = ends(dtype)
    kind = KINDS[dtype]
    golden = np.array([low, 3, high], dtype=kind)
    for step in (0, 1, 2):
        actual = np.array([low + step, 3 - step, high - step], dtype=kind)
        assert judged(standard, dtype, golden, actual).passed is (step <= allowed)
    empty = np.zeros(0, kind)
    assert judged(standard, dtype, empty, empty).passed


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_neighbours_above_2_53_differ(dtype):
    golden, actual = np.array([2**53]).astype(dtype), np.array([2**53 + 1]).astype(dtype)
    for standard in ("integer", "binary", "msprobe-stage1"):
        assert not judged(standard, dtype, golden, actual).passed
    assert not judged("ttk-close", dtype, golden, actual, rtol=0, atol=0).passed
    assert judged("quantized", dtype, golden, actual).metrics["max_ae"] == 1


@pytest.mark.parametrize("standard", ["integer", "binary"])
def test_bool(standard):
    golden = np.array([True, False])
    assert judged(standard, "bool", golden, np.array([True, False])).passed
    assert not judged(standard, "bool", golden, np.array([True, True])).passed
    assert judged(standard, "bool", np.array([1, 0]), np.array([True, False])).passed


@pytest.mark.parametrize(
    ("dtype", "golden", "rule"),
    [
        ("int8", [300], r"holds 300, outside int8 \[-128, 127\]"),
        ("uint64", [-1], "holds -1, outside uint64"),
        ("int4", [8], "holds 8, outside int4"),
        ("bool", [2], "holds 2, outside bool"),
        ("int32", [0.5], "not integers"),
        ("int64", [2.0**60], "at most 2.53"),
        ("int32", [math.nan], "not integers"),
    ],
)
def test_golden_of_an_integer_output_must_fit_it(dtype, golden, rule):
    with pytest.raises(OracleError, match=rule):
        judged("integer", dtype, np.array(golden), np.zeros(1, KINDS[dtype]))
    assert judged("integer", "int32", np.array([1.0, -2.0]), np.array([1, -2], np.int32)).passed


@pytest.mark.parametrize("dtype", FORMATS)
def test_binary_sees_every_bit(dtype):
    kind = KINDS[dtype]
    values = np.array([1.0, -2.0, 0.0, 0.5], np.float64)
    assert judged("binary", dtype, values, values.astype(kind)).passed
    for at, other in ((2, -0.0), (0, 1.25)):
        actual = values.copy()
        actual[at] = other
        verdict = judged("binary", dtype, values, actual.astype(kind))
        assert not verdict.passed
        assert f"first [{at}]" in verdict.reason
    assert judged("binary", dtype, np.array([math.nan]), np.array([math.nan]).astype(kind)).passed


@pytest.mark.parametrize(
    ("dtype", "golden", "stored"),
    [
        ("bfloat16", 1 + 2**-8 + 2**-40, 1 + 2**-7),  # through float32 this would round to 1
        ("float16", 1 + 2**-11 + 2**-40, 1 + 2**-10),
        ("float32", 1 + 2**-24, 1.0),
        ("hifloat32", 1 + 3 * 2**-12, 1 + 2**-10),
        ("float8_e4m3fn", 464.0, 448.0),
        ("float16", 2.0**-25, 0.0),
        ("float16", -70000.0, -math.inf),
    ],
)
def test_binary_rounds_the_golden_once(dtype, golden, stored):
    assert judged("binary", dtype, np.array([golden]), np.array([stored]).astype(KINDS[dtype])).passed


def test_nan_payloads():
    golden = np.array([0x7FC00000, 0x7FC00001], np.uint32).view(np.float32)
    assert judged("binary", "float32", golden, golden.copy()).passed
    other = np.array([0xFFC00000, 0x7FC00002], np.uint32).view(np.float32)
    assert judged("binary", "float32", golden, other).metrics["mismatch"] == 2
    assert judged("binary", "float32", golden, other, nan_equal=True).passed
    assert not judged("binary", "float32", golden, np.ones(2, np.float32), nan_equal=True).passed
