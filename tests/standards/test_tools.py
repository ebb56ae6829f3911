"""The tools' own rules: ATK's single benchmark, TTK's close, msprobe's two stages."""

import math

import numpy as np
import pytest
from judged_numbers import judged
from truth import TYPES

from oracle.model.errors import OracleError

INF, NAN = math.inf, math.nan

# single-bm ------------------------------------------------------------------------------------------------------------

SINGLE_BM = [
    ("high_performance", "float16", 2**-8, 2**-10),
    ("high_performance", "bfloat16", 2**-7, 2**-7),
    ("high_performance", "float32", 2**-11, 2**-14),
    ("high_precision", "float16", 2**-11, 2**-10),
    ("high_precision", "bfloat16", 2**-8, 2**-7),
    ("high_precision", "float32", 2**-14, 2**-14),
    ("vector_fused", "float16", 2**-9, 2**-10),
    ("vector_fused", "bfloat16", 2**-8, 2**-7),
    ("vector_fused", "float32", 2**-12, 2**-14),
]


@pytest.mark.parametrize(("type", "dtype", "err", "eb"), SINGLE_BM)
def test_single_bm_limits_are_inclusive(type, dtype, err, eb):
    for golden in (0.25, 4.0):  # below 1 the error is absolute, above it relative
        step = err * max(1, golden)
        if np.float64(golden + step).astype(TYPES[dtype]).astype(float) != golden + step:
            continue  # the dtype does not represent the value
        pair = [golden - step, golden + step]  # balanced
        assert judged("single-bm", [golden] * 2, pair, dtype, type=type).passed
        beyond = [golden - 2 * step, golden + 2 * step]
        assert judged("single-bm", [golden] * 2, beyond, dtype, type=type).metrics["matched_ratio"] == 0
    n = 64
    actual = np.zeros(n)
    count = int(eb / err * n)
    if count <= n:
        actual[:count] = err
        verdict = judged("single-bm", np.zeros(n), actual, dtype, type=type)
        assert verdict.metrics["eb"] == eb
        assert verdict.passed
        actual[count : count + 1] = err
        assert judged("single-bm", np.zeros(n), actual, dtype, type=type).passed is (count == n)


def test_single_bm_special_values_become_zero_unless_compared():
    pair = ([INF, 1.0], [NAN, 1.0])
    assert judged("single-bm", *pair).passed
    assert judged("single-bm", *pair).metrics["special_mismatch"] == 1
    assert not judged("single-bm", *pair, specials="compare").passed
    assert not judged("single-bm", [1.0], [INF]).passed  # 0 against 1
    assert judged("single-bm", [70000.0], [INF], "float16", specials="compare").passed
    assert not judged("single-bm", [70000.0], [INF], "float16", inf_narrow=False).passed


@pytest.mark.parametrize(
    ("dtype", "operations", "err", "eb"),
    [
        ("float16", 2047, 2**-8, 2**-10),
        ("float16", 2048, 2**-7, 2**-10),
        ("bfloat16", 2048, 2**-6, 2**-6),
        ("float32", 2047, 2**-11, 2**-14),
        ("float32", 2048, 2**-10, 2**-14),
        ("float32", 16384, 2**-9, 2**-14),
    ],
)
def test_single_bm_with_a_compute_count(dtype, operations, err, eb):
    verdict = judged("single-bm", [1.0], [1.0], dtype, type="high_performance", operations=operations)
    assert (verdict.metrics["max_error_limit"], verdict.metrics["eb_limit"]) == (err, eb)
    with pytest.raises(OracleError, match="operations"):
        judged("single-bm", [1.0], [1.0], dtype, operations=operations)


def test_single_bm_takes_atk_overrides_and_defaults_to_high_precision_as_atk_does():
    assert judged("single-bm", [1.0], [1.0]).metrics["max_error_limit"] == 2**-14
    options = {"type": "high_performance", "fp16_error": "2**-3", "fp16_eb": 0.5, "fp32_error": 0}
    half = judged("single-bm", [1.0], [1.125], "float16", **options)
    assert half.passed
    assert half.metrics["eb_limit"] == 0.5
    single = judged("single-bm", [1.0], [1.0 + 2**-20], "float32", **options)
    assert single.metrics["max_error_limit"] == 0
    assert not single.passed


def test_single_bm_of_int8_is_off_by_one_at_most():
    assert judged("single-bm", [10, -3], [11, -4], "int8").passed
    assert not judged("single-bm", [127], [-128], "int8").passed


# ttk-close ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "bad", "ptol", "passed"),
    [
        (1000, 1, None, False),  # 1 - 0.999 is above 0.001 in float64: TTK's artefact
        (2000, 1, None, True),
        (1000, 1, 0.0011, True),
        (10, 0, 0, True),
        (10, 1, 0, False),
        (10, 10, 1, True),
    ],
)
def test_close_has_ttk_float_ratio(n, bad, ptol, passed):
    actual = np.ones(n)
    actual[:bad] = 1.5
    verdict = judged("ttk-close", np.ones(n), actual, "float16", ptol=ptol)
    assert verdict.passed is passed
    assert verdict.metrics["mismatch"] == bad
    assert verdict.metrics["precision"] == (n - bad) / n


@pytest.mark.parametrize(
    ("dtype", "default"), [("float16", 1e-3), ("bfloat16", 1e-3), ("float32", 1e-4), ("int32", 1e-4)]
)
def test_close_defaults(dtype, default):
    metrics = judged("ttk-close", [1], [1], dtype).metrics
    assert (metrics["rtol"], metrics["ptol"], metrics["atol"]) == (default, default, 1e-8)


EXACT = {"rtol": 0, "atol": 0}


@pytest.mark.parametrize(
    ("golden", "actual", "close", "dtype", "options"),
    [
        (NAN, NAN, True, "float32", {}),
        (INF, INF, True, "float32", {}),
        (INF, -INF, False, "float32", {}),
        (NAN, 1.0, False, "float32", {}),
        (1.0, INF, False, "float32", {}),
        (INF, 1e38, False, "float32", {}),
        (0.0, -0.0, True, "float32", {}),
        (0.0, 2.0**-27, True, "float32", {}),
        (0.0, 2.0**-26, False, "float32", {}),
        (1.0, 1.0 + 2**-14, True, "float32", {}),
        (1.0, 1.0 + 2**-13, False, "float32", {}),
        (1.0, 1.0, True, "float32", EXACT),
        (NAN, NAN, True, "float32", EXACT),
        (1.0, 1 + 2**-23, False, "float32", EXACT),
        (10**6, 10**6 + 100, True, "int32", {}),
        (10**6, 10**6 + 101, False, "int32", {}),
        (255, 0, False, "uint8", {}),
    ],
)
def test_close_elements(golden, actual, close, dtype, options):
    assert judged("ttk-close", [golden], [actual], dtype, **options).passed is close


# msprobe --------------------------------------------------------------------------------------------------------------


def test_msprobe_levels():
    golden, third = np.array([1.0, 2.0, 4.0]), np.array([1.0, 2.0, 4.0]) * (1 + 2**-8)
    for factor, levels in ((1.15, "L0 L1 L2"), (1.45, "L0 L1"), (1.95, "L0"), (2.05, "")):
        actual = golden * (1 + factor * 2**-8)
        for level in ("L0", "L1", "L2"):
            passed = judged("msprobe-benchmark", golden, actual, third=third, level=level).passed
            assert passed is (level in levels)
            older = judged("msprobe-benchmark", golden, actual, third=third, level=level, version="99c2e0f")
            assert older.passed is ("L0" in levels)


def test_msprobe_small_values_include_the_border_and_differ_from_the_document():
    golden = [2.0**-10, 1.0]  # the border is small
    actual = [2.0**-10 + 2.0**-20, 1.0]
    code = judged("msprobe-benchmark", golden, actual, "float16", third=golden)
    assert code.metrics["small_ratio"] == 2048  # share 1 over the floor 2^-11
    assert not code.passed
    assert judged("msprobe-benchmark", golden, actual, "float16", third=golden, small_atol="document").passed


def test_msprobe_masks_special_values_and_reports_the_balance():
    verdict = judged("msprobe-benchmark", [INF, NAN, 1.0], [1.0, 1.0, 1.0], third=[INF, NAN, 1.0])
    assert verdict.passed
    balance = judged("msprobe-benchmark", [1.0] * 4, [1.0 + 2**-23] * 4, third=[1.0] * 4)
    assert balance.passed
    assert balance.metrics["eb_ratio"] == 2**14


def test_msprobe_rmse_is_scaled_to_the_unmasked_positions():
    golden, actual = [INF, 1.0], [INF, 1.0 + 2**-8]
    ratio = judged("msprobe-benchmark", golden, actual, third=[INF, 1.0]).metrics["rmse_ratio"]
    assert ratio == pytest.approx(math.sqrt(2**-16 / 2 * (2 / (1 + 1e-4) + 1e-4)) / 2**-14, rel=1e-12)


@pytest.mark.parametrize("standard", ["msprobe-benchmark", "msprobe-stage1"])
def test_msprobe_skips_what_is_empty(standard):
    third = [] if standard == "msprobe-benchmark" else None
    skipped = judged(standard, [], [], third=third)
    assert (skipped.passed, skipped.reason[:4]) == (True, "SKIP")
    older = judged(standard, [], [], third=third, version="99c2e0f")
    assert (older.passed, older.reason[:5]) == (False, "error")
    assert judged("msprobe-benchmark", [1.0], [9.0], "float64", third=[1.0]).reason.startswith("SKIP")  # stage 2 alone


@pytest.mark.parametrize(
    ("dtype", "golden", "actual", "word"),
    [
        ("float32", [1.0, 2.0], [1.0 + 2**-11, 2.0], "pass"),  # max_abs 4.9e-4
        ("float32", [10.0] * 100, [10.005] + [10.0] * 99, "Warning"),  # share(1e-3) is 1, share(1e-4) 0.99
        ("float16", [10.0, 20.0], [10.015625, 20.0], "Warning"),
        ("float16", [10.0, 20.0], [10.25, 20.0], "error"),
        ("bfloat16", [16.0], [16.125], "Warning"),
        ("bfloat16", [1.0, 1.0], [1.0, -1.0], "error"),  # cosine
        ("float32", [1000.0, 1.0], [1000.0625, 1.0], "pass"),  # both shares 1
        ("float32", [0.0, 0.0], [0.0, 0.0], "pass"),
        ("float32", [0.0, 0.0], [0.0, 1e-5], "error"),  # one side all zero
        ("float16", [10.0] * 100, [10.125] + [10.0] * 99, "error"),  # share(1e-2) is 0.99, not above
        ("float16", [10.0] * 1000, [10.0625] + [10.0] * 999, "Warning"),  # share(1e-3) is 0.999, not above
        ("float16", [10.0] * 1001, [10.0625] + [10.0] * 1000, "pass"),
        ("float32", [7.0], [7.5], "error"),  # one element: no cosine, shares decide
        ("float32", [NAN, 1.0], [NAN, 1.0], "error"),  # special values count as errors
    ],
)
def test_stage1_status(dtype, golden, actual, word):
    verdict = judged("msprobe-stage1", golden, actual, dtype)
    assert verdict.passed is (word != "error")
    assert verdict.reason.startswith("" if word == "pass" else word)
    assert bool(verdict.reason) is (word != "pass")
    assert ("cosine" in verdict.metrics) is (len(golden) > 1 and any(golden + actual))


def test_stage1_may_leave_agreeing_specials_out():
    golden, actual = [NAN, INF, 10.0, 20.0], [NAN, INF, 10.0, 20.0]
    assert judged("msprobe-stage1", golden, actual, exclude_specials=True).passed
    assert judged("msprobe-stage1", [NAN], [NAN], exclude_specials=True).reason.startswith("SKIP")
    assert not judged("msprobe-stage1", [NAN, 1.0], [INF, 1.0], exclude_specials=True).passed


def test_stage1_of_integers_is_the_mismatch_rate():
    verdict = judged("msprobe-stage1", [1, 2, 3, 4], [1, 2, 3, 5], "int32")
    assert not verdict.passed
    assert verdict.metrics["mismatch_rate"] == 0.25
    assert judged("msprobe-stage1", [True], [True], "bool").passed
