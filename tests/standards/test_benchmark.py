"""The dual benchmark and TTK's cross-check: limits of each ratio, small values, and every triple of states."""

import itertools
import math

import numpy as np
import pytest
from judged_numbers import judged

INF, NAN = math.inf, math.nan
LEVELS = {"L0": (10, 2, 2), "L1": (5, 1.5, 1.5), "L2": (2, 1.2, 1.2)}
# dtype: threshold and error limit of the small-value domain
SMALL = {
    "float16": (2**-11, 2**-16),
    "bfloat16": (2**-8, 2**-16),
    "float32": (2**-14, 2**-30),
    "float64": (2**-14, 2**-30),  # same as float32
    "hifloat32": (2**-12, 2**-28),
    "float8_e4m3fn": (2**-4, 2**-6),
    "float8_e5m2": (2**-3, 2**-5),
}


def against(standard, golden, actual, third, dtype="float32", **options):
    return judged(standard, golden, actual, dtype, third, **options)


UNIT = 2.0**-8
# metric: errors of the device and of the third party that make only this ratio large, and the resulting ratio
SHAPES = {
    "mare": ([1.0] + [0.0] * 4095, [1.0] * 4096, 1.0),
    "mere": ([1.0] * 4, [2.0, 0.0, 2.0, 0.0], 1.0),
    "rmse": ([2.0, 0.0, 2.0, 0.0], [1.0] * 4, math.sqrt(2)),
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("metric", SHAPES)
@pytest.mark.parametrize("standard", ["dual", "ttk-cross-check"])
def test_limit_of_every_ratio(level, metric, standard):
    limit = LEVELS[level][list(SHAPES).index(metric)]
    ours, theirs, ratio = SHAPES[metric]
    golden = np.ones(len(ours))
    if standard == "dual":
        standard, options, dtype, slack = f"dual-{level}", {}, "float64", 1e-9
    else:
        options, dtype, slack = {"level": level}, "float32", 1e-3  # float32 represents 2^-8 errors only to 2^-15
    for factor, passed in ((limit * (1 - slack), True), (limit * (1 + slack), False)):
        actual = golden + np.array(ours) * UNIT * factor / ratio
        verdict = against(standard, golden, actual, golden + np.array(theirs) * UNIT, dtype, **options)
        assert verdict.metrics[f"{metric}_ratio"] == pytest.approx(factor, rel=slack)
        assert verdict.passed is passed
        assert verdict.reason.count("ratio") == (not passed)


@pytest.mark.parametrize(("standard", "metrics"), [("dual-L0", ["mere", "rmse"]), ("dual-L2", ["mare"])])
def test_a_limit_belongs_to_the_passing_side(standard, metrics):
    golden = np.ones(4)  # powers of two can be met exactly
    for metric in metrics:
        ours, theirs, _ = SHAPES["mare" if metric == "mare" else "mere"]
        verdict = against(standard, np.ones(len(ours)), 1 + 2 * UNIT * np.array(ours), 1 + UNIT * np.array(theirs))
        assert verdict.passed
    assert against("dual-L0", golden, golden + 2 * UNIT, golden + UNIT).metrics["rmse_ratio"] == 2


@pytest.mark.parametrize("dtype", SMALL)
def test_small_values_are_counted_and_the_border_is_normal(dtype):
    threshold, error = SMALL[dtype]
    below = threshold / 2
    exact = against("dual-L2", [below] * 4, [below + error] * 4, [below] * 4, dtype)
    assert exact.passed  # an error of exactly the limit is accepted
    assert exact.metrics["err_npu"] == 0
    for ours, theirs, passed in ((2, 0, True), (3, 0, False), (4, 2, True), (5, 2, False), (2, 1, True)):
        actual, third = np.full(8, below), np.full(8, below)
        actual[:ours] += 2 * error
        third[:theirs] += 2 * error
        verdict = against("dual-L0", [below] * 8, actual, third, dtype)
        assert verdict.passed is passed
        assert (verdict.metrics["err_npu"], verdict.metrics["err_third"]) == (ours, theirs)
        assert verdict.metrics["mare_ratio"] == 0
    border = against("dual-L0", [threshold], [threshold + 2 * error], [threshold], dtype)
    assert border.metrics["err_npu"] == 0
    closed = against("dual-L0", [threshold], [threshold + 2 * error], [threshold], dtype, small_boundary="<=")
    assert closed.metrics["err_npu"] == 1


def test_denominators_are_floored_or_literal():
    golden, actual = [1.0], [1.0 + 2**-15]
    floored = against("dual-L0", golden, actual, golden)
    assert floored.passed
    assert floored.metrics["rmse_ratio"] == 0.5  # 2^-15 over the floor 2^-14
    assert floored.metrics["literal_rmse_ratio"] == INF
    literal = against("dual-L0", golden, actual, golden, denominator_floor=False)
    assert not literal.passed
    same = against("dual-L0", golden, golden, golden, denominator_floor=False)
    assert same.metrics["mare_ratio"] == 1


def test_relative_error_of_the_other_reading():
    golden, actual, third = [2.0**-14], [2.0**-13], [2.0**-14]
    plain = against("dual-L0", golden, actual, third).metrics["mare"]
    largest = against("dual-L0", golden, actual, third, relative_error="max").metrics["mare"]
    assert plain == pytest.approx(2**-14 / (2**-14 + 1e-7), rel=1e-15)
    assert largest == 1


VALUES = (1.0, 1.5, INF, -INF, NAN)


def same(x, y):
    return x == y or (x != x and y != y)


def special(x):
    return not math.isfinite(x)


TRIPLES = [triple for triple in itertools.product(VALUES, repeat=3) if any(map(special, triple))]


@pytest.mark.parametrize(("golden", "actual", "third"), TRIPLES)
def test_every_triple_of_states(golden, actual, third):
    commercial = against("dual-L0", [golden, 1], [actual, 1], [third, 1])
    cross = against("ttk-cross-check", [golden, 1], [actual, 1], [third, 1])
    right = same(actual, third) or (special(golden) and same(actual, golden))
    assert cross.passed is right
    assert cross.metrics["special_ok"] == right
    right = right or (not special(golden) and not special(actual))  # only the third party is special
    assert commercial.passed is right
    agree = same(golden, third) or (not special(golden) and not special(third))
    assert commercial.metrics["special_fail"] == (not right and agree)
    assert commercial.metrics["special_investigate"] == (not right and not agree)
    assert ("INVESTIGATE" in commercial.reason) is (not right and not agree)
    assert commercial.metrics["mare_ratio"] == 0  # the statistics omit the position
    strict = against("dual-L0", [golden, 1], [actual, 1], [third, 1], third_special="fail")
    assert strict.passed is cross.passed


def test_products_without_infinities_leave_them_out():
    assert not against("dual-L0", [INF], [65504.0], [INF]).passed
    assert against("dual-L0", [INF], [65504.0], [INF], inf_nan_mode=False).passed
    assert not against("dual-L0", [NAN], [65504.0], [NAN], inf_nan_mode=False).passed


def test_dual_compares_with_the_golden_of_high_precision():
    triple = ([70000.0], [INF], [65504.0])
    assert not against("dual-L0", *triple, "float16").passed
    assert against("dual-L0", *triple, "float16", inf_narrow=True).passed


@pytest.mark.parametrize("standard", ["dual-L0", "dual-L1", "dual-L2", "ttk-cross-check", "msprobe-benchmark"])
def test_empty_passes(standard):
    assert against(standard, [], [], []).passed


def test_cross_check_floors_and_counts_nothing_over_nothing_as_one():
    nothing = against("ttk-cross-check", [1.0], [1.0], [1.0])
    assert nothing.metrics["mare_ratio"] == 1
    assert against("ttk-cross-check", [1.0], [1.0 + 2**-15], [1.0]).metrics["rmse_ratio"] == 0.5
    golden, third = np.ones(8), np.full(8, 1 + 2**-8)
    actual = np.full(8, 1 + 1.75 * 2**-8)
    assert not against("ttk-cross-check", golden, actual, third).passed
    assert against("ttk-cross-check", golden, actual, third, level="L0").passed


def test_cross_check_has_numbers_for_three_types():
    with pytest.raises(ValueError, match=r"hifloat32.*defined for float16, bfloat16, float32"):
        against("ttk-cross-check", [1.0], [1.0], [1.0], "hifloat32")
