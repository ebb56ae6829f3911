"""The mixed tolerance against its text, element by element in exact arithmetic, and at its limits."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from judged_numbers import judged

from oracle.model.dtypes import FORMATS
from oracle.standards.base import ulp
from oracle.standards.ecosystem import TABLES

INF, NAN = math.inf, math.nan


def mixed(dtype, golden, actual, standard="mixed", **options):
    return judged(standard, golden, actual, dtype, **options)


def row(dtype, table):
    return TABLES[table]["float32" if dtype == "float64" else dtype]


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize(("standard", "table"), [("mixed", "v2"), ("mixed-v1", "v1")])
def test_an_error_of_exactly_the_tolerance_passes_and_one_more_bit_fails(dtype, standard, table):
    form, limits = FORMATS[dtype], row(dtype, table)
    edge = Fraction(limits.atol) + Fraction(limits.rtol)  # golden 1
    assert mixed(dtype, [1.0], [float(1 + edge)], standard).passed
    beyond = float(1 + edge) + ulp(float(1 + edge), form)
    assert mixed(dtype, [1.0], [beyond], standard).metrics["matched_ratio"] == 0


@pytest.mark.parametrize(
    ("n", "bad", "passed"), [(100, 1, True), (100, 2, False), (99, 1, False), (1000, 10, True), (1000, 11, False)]
)
def test_ratio_is_compared_in_integers(n, bad, passed):
    actual = np.ones(n, np.float32)
    actual[:bad] = 1.005  # within the absolute limit, outside the tolerance
    verdict = mixed("float32", np.ones(n), actual)
    assert verdict.passed is passed
    assert verdict.metrics["matched_ratio"] == (n - bad) / n


@pytest.mark.parametrize(
    ("dtype", "golden", "limit"),
    [
        ("float16", 3.9, 0.1),
        ("float16", 4.0, 0.125),
        ("float16", 3.9999, 0.125),  # narrows to 4
        ("float16", 65504.0, 1024.0),  # the largest value has its own binade's width
        ("bfloat16", 0.49, 0.1),
        ("bfloat16", 0.5, 0.125),
        ("bfloat16", 1.999, 0.5),  # narrows to 2
        ("bfloat16", 1.0, 0.25),
        ("float32", 4095.0, 0.01),
        ("float32", 4096.0, 0.015625),
        ("hifloat32", 7.0, 0.1),
        ("hifloat32", 8.0, 0.125),
        ("float8_e4m3fn", 0.25, 1.0),
        ("float8_e4m3fn", 0.5, 2.0),
        ("float8_e5m2", 0.125, 1.0),
        ("float8_e5m2", 0.25, 2.0),
        ("float32", 0.0, 0.01),
        ("float64", 4096.0, 0.01),  # the float32 row with float64's own ULP
        ("float64", 2.0**45, 0.25),
    ],
)
def test_limit_is_the_larger_of_a_and_32_ulp_of_the_narrowed_golden(dtype, golden, limit):
    assert mixed(dtype, [golden], [golden]).metrics["max_abs_error_limit"] == limit


@pytest.mark.parametrize("anchor", ["g_low", "per_element"])
def test_an_error_of_exactly_the_limit_passes(anchor):
    golden, actual = np.full(100, 1e6), np.full(100, 1e6)
    for error, passed in ((2.0, True), (2.0625, False)):  # 32 ULP of 1e6 is 2
        actual[0] = 1e6 + error
        assert mixed("float32", golden, actual, anchor=anchor).passed is passed
    small = np.ones(100)
    small[0] = 1.15  # between A and 2 A
    assert not mixed("float16", np.ones(100), small, anchor=anchor).passed


def test_limit_is_anchored_at_the_first_largest_error():
    golden, actual = [1.0, 1000.0, 1000.0, 1.0], [1.0, 1010.0, 1000.0, 1.5]
    verdict = mixed("float16", golden, actual)
    assert verdict.metrics["max_abs_error_limit"] == 16
    assert "0.5" in verdict.reason
    ties = mixed("float16", [1.0, 1024.0], [0.0, 1025.0])  # two errors of 1: the first counts
    assert ties.metrics["max_abs_error_limit"] == 0.1


@pytest.mark.parametrize(
    ("anchor", "limit", "passed"),
    [
        ("g_low", 16, True),
        ("per_element", 16, False),
        ("one", 0.1, False),
        ("fixed", 0.1, False),
        ("max_golden", 64, True),
    ],
)
def test_other_anchors(anchor, limit, passed):
    golden, actual = np.ones(400), np.ones(400)
    golden[:2], actual[:2] = (1000.0, 2048.0), (1010.0, 2048.0)
    actual[2] = 1.15
    verdict = mixed("float16", golden, actual, anchor=anchor)
    assert verdict.metrics["max_abs_error_limit"] == limit
    assert verdict.passed is passed
    assert verdict.metrics["per_element_passed"] == 0
    explicit = mixed("float16", golden, actual, anchor=anchor, max_abs_error_limit=9.5)
    assert not explicit.passed
    assert explicit.metrics["max_abs_error_limit"] == 9.5


@pytest.mark.parametrize(
    ("dtype", "golden", "actual", "agrees"),
    [
        ("float32", NAN, NAN, True),
        ("float32", INF, INF, True),
        ("float32", INF, -INF, False),
        ("float32", NAN, INF, False),
        ("float32", 1.0, NAN, False),
        ("float32", NAN, 1.0, False),
        ("float16", 65519.99, 65504.0, True),
        ("float16", 65519.99, INF, False),
        ("float16", 65520.0, INF, True),
        ("float16", -65520.0, -INF, True),
        ("float16", 65520.0, 65504.0, False),
        ("bfloat16", 3.3962e38, INF, True),
        ("float32", 3.4028235677973366e38, INF, True),
        ("float32", 3.4028235677973362e38, INF, False),
        ("hifloat32", 3.4025e38, INF, True),
        ("float8_e5m2", 61440.0, INF, True),
        ("float8_e4m3fn", 464.0, 448.0, True),  # the tie goes to the even 448
        ("float8_e4m3fn", 464.5, NAN, True),  # no infinity in this format
        ("float8_e4m3fn", INF, NAN, True),
        ("float8_e4m3fn", -INF, NAN, True),
        ("float8_e4m3fn", INF, 448.0, False),
        ("float64", 1e308, 1e308, True),
    ],
)
def test_special_values_agree_after_narrowing_or_fail_the_case(dtype, golden, actual, agrees):
    n = 1000  # the ratio alone would allow one position
    verdict = mixed(dtype, [golden] + [1.0] * (n - 1), [actual] + [1.0] * (n - 1))
    assert verdict.passed is agrees
    assert verdict.metrics["special_mismatch"] == (not agrees)
    assert verdict.metrics["special_count_passed"] == 1
    assert mixed(dtype, [golden, *[1.0] * 999], [actual, *[1.0] * 999], special_mismatch="count").passed


def test_without_narrowing_an_overflow_is_a_mismatch():
    assert mixed("float16", [70000.0], [INF]).passed
    assert not mixed("float16", [70000.0], [INF], inf_narrow=False).passed


def test_error_against_the_narrowed_golden_is_an_option():
    golden, actual = [1.0 + 2**-11], [1.0 + 2**-10 + 2**-9]  # narrows to 1
    assert mixed("float16", golden, actual).metrics["max_abs_error"] == 2**-9 + 2**-11
    assert mixed("float16", golden, actual, narrowed_error=True).metrics["max_abs_error"] == 2**-10 + 2**-9


def test_large_reduction_doubles_both_tolerances():
    golden, actual = [1.0], [1.0 + 2**-11]
    assert not mixed("float32", golden, actual).passed
    assert mixed("float32", golden, actual, large_reduction=True).passed


def test_strictest_needs_both_tables():
    near_zero = ([0.0], [2.0**-14])  # v2 passes, v1's atol does not
    at_one = ([1.0], [1.0 + 2**-11])  # v1 passes, v2 does not
    for golden, actual in (near_zero, at_one):
        assert not mixed("float32", golden, actual, "mixed-strictest").passed
    assert mixed("float32", *near_zero).passed
    assert mixed("float32", *near_zero).metrics["v1_passed"] == 0
    assert mixed("float32", *at_one, "mixed-v1").passed
    assert "table v1" in mixed("float32", *near_zero, "mixed-strictest").reason
    assert mixed("float32", [1.0], [1.0], "mixed-strictest").passed


@pytest.mark.parametrize("shape", [(0,), (3, 0), (), (1,), (2, 3)])
def test_every_shape(shape):
    golden = np.full(shape, 2.0)
    verdict = mixed("float32", golden, golden)
    assert verdict.passed
    assert verdict.metrics["matched_ratio"] == 1
    assert verdict.metrics["max_abs_error"] == 0


def text(golden, actual, dtype, table):
    """Return the standard's text in exact arithmetic: passed, matched, largest error, special mismatches."""
    form, limits = FORMATS[dtype], row(dtype, table)
    edge = form.overflow
    state = [NAN if math.isnan(g) else math.copysign(INF, g) if abs(g) >= edge else 0 for g in golden]
    seen = [a if not math.isfinite(a) else 0 for a in actual]
    matched, special, errors = 0, 0, []
    for g, a, s, t in zip(golden, actual, state, seen, strict=True):
        if s == 0 and t == 0:
            error = abs(Fraction(a) - Fraction(g))
            errors.append((error, -len(errors), g))
            matched += error <= Fraction(limits.atol) + Fraction(limits.rtol) * abs(Fraction(g))
        else:
            same = s == t or (s != s and t != t)
            matched += same
            special += not same
    limit, largest = Fraction(limits.limit), Fraction(0)
    if errors:
        largest, _, g = max(errors)
        low = float(np.float64(g).astype(dtype))
        limit = max(limit, 32 * Fraction(ulp(low, form)))
    passed = 100 * matched >= 99 * len(golden) and largest <= limit and not special
    return passed, matched, largest, special


# float16 and float32: NumPy's own narrowing is correct, so it can serve as the reference.
numbers = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, 2.0**-24, 65504.0, 65519.0, 65520.0, 70000.0, INF, -INF, NAN, 1e39]),
    st.integers(-4096, 4096).map(lambda k: k / 256),
)
errors = st.sampled_from([0.0, 0.0, 2.0**-14, -(2.0**-11), 2.0**-9, 0.0625, -0.25, 4.0, INF, NAN])


@settings(derandomize=True, max_examples=300, deadline=None)
@given(st.lists(st.tuples(numbers, errors), max_size=40), st.sampled_from(["float16", "float32"]))
def test_verdict_is_the_text_in_exact_arithmetic(pairs, dtype):
    golden = np.array([g for g, _ in pairs])
    with np.errstate(over="ignore", invalid="ignore"):
        actual = np.array([g + e for g, e in pairs]).astype(dtype)
    verdict = mixed(dtype, golden, actual)
    passed, matched, largest, special = text(golden.tolist(), actual.astype(float).tolist(), dtype, "v2")
    assert verdict.passed is passed
    assert verdict.metrics["special_mismatch"] == special
    assert verdict.metrics["matched_ratio"] == (matched / len(pairs) if pairs else 1)
    assert verdict.metrics["max_abs_error"] == float(largest)
    assert verdict.metrics["v1_passed"] == text(golden.tolist(), actual.astype(float).tolist(), dtype, "v1")[0]
