"""Laws of the comparison: blocks, special values, saturation, and that a larger error never turns fail into pass."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from truth import TYPES

import oracle
from oracle import verdict
from oracle.operators import Reference
from oracle.verdict import BLOCK, compare, overflow_threshold, strict, uninformative, values_structure

NAN, INF = math.nan, math.inf


def reference(value, bound=0.5, dtype=np.float32, **masks):
    value = np.asarray(value, np.float64)
    with np.errstate(over="ignore"):
        golden = value.astype(np.float32).astype(dtype)
    masks = {name: np.asarray(mask, bool) for name, mask in masks.items()}
    return Reference(golden, value, np.broadcast_to(np.float64(bound), value.shape).copy(), **masks)


def judged(ref, actual, **options):
    """Return (structure passed, strict passed, budget used)."""
    actual = np.asarray(actual, ref.golden.dtype)
    result = compare(ref, actual, **options)
    return values_structure(result, actual.shape).passed, strict(result, actual.shape).passed, result.budget_used


ONE = [
    # value, actual, saturates, (structure, strict)
    (1.0, 1.0, False, (True, True)),
    (1.0, 1.5, False, (True, True)),
    (1.0, 1.75, False, (True, False)),
    (0.0, -0.0, False, (True, True)),
    (NAN, NAN, False, (True, True)),
    (NAN, 1.0, False, (False, False)),
    (NAN, INF, False, (False, False)),
    (1.0, NAN, False, (False, False)),
    (INF, INF, False, (True, True)),
    (INF, -INF, False, (False, False)),
    (-INF, -INF, False, (True, True)),
    (INF, NAN, False, (False, False)),
    (INF, 65504.0, False, (False, False)),
    (1.0, INF, False, (False, False)),
    (1e6, INF, False, (True, True)),  # overflows float16
    (1e6, 65504.0, False, (False, False)),
    (1e6, 65504.0, True, (True, True)),
    (1e6, INF, True, (True, True)),
    (1e6, -65504.0, True, (False, False)),
    (1e6, 65472.0, True, (False, False)),
    (-INF, -65504.0, True, (True, True)),
    (NAN, 0.0, True, (True, True)),
    (NAN, 1.0, True, (False, False)),
    (1.0, 65504.0, True, (True, False)),
]


@pytest.mark.parametrize(("value", "actual", "saturates", "expected"), ONE)
def test_one_element(value, actual, saturates, expected):
    assert judged(reference([value], dtype=np.float16), [actual], saturates=saturates)[:2] == expected


@pytest.mark.parametrize(("saturates", "expected"), [(True, (True, True)), (False, (False, False))])
def test_what_the_last_cast_clips_need_not_be_a_number_of_the_type_before_it(saturates, expected):
    of_bfloat16 = replace(reference([1e6], dtype=np.float16), coarser="bfloat16")
    assert judged(of_bfloat16, [65504.0], saturates=saturates)[:2] == expected


@pytest.mark.parametrize(("value", "actual", "expected"), [(v, a, e) for v, a, s, e in ONE if not s])
@pytest.mark.parametrize("place", [0, BLOCK - 1, BLOCK, 2 * BLOCK + 6])
def test_the_place_in_a_large_tensor_does_not_matter(value, actual, expected, place):
    values = np.linspace(1, 2, 2 * BLOCK + 7)
    values[place] = value
    ref = reference(values, 0.5, np.float16)
    got = ref.golden.copy()
    got[place] = actual
    result = compare(ref, got)
    assert (result.codes is None, result.strict_bad is None) == expected
    if not expected[1]:
        assert np.flatnonzero(result.strict_bad).tolist() == [place]


@pytest.mark.parametrize("name", TYPES)
def test_the_threshold_is_where_rounding_turns_to_infinity(name):
    limit = overflow_threshold(np.dtype(TYPES[name]))
    with np.errstate(over="ignore"):
        assert np.isinf(np.float64(limit).astype(np.float32).astype(TYPES[name]))
        below = np.nextafter(np.float32(limit), np.float32(0)) if name != "float32" else np.nextafter(limit, 0.0)
        assert np.isfinite(below.astype(TYPES[name]))


def test_a_rounding_of_the_host_is_no_reason_to_overflow():
    """Half an ULP beyond 65504 is 65520, but every right kernel returns 65504; and 65536 is infinite for each."""
    largest = oracle.reference("aclnnRelu", self=np.array([65504.0, 1.0], np.float16))["out"]
    assert judged(largest, [INF, 1.0])[:2] == (False, False)
    ones, zeros = np.ones(2, np.float16), np.zeros(2, np.float16)
    call = {"gradOutput": ones, "self": np.array([32768.0, 1.0], np.float16), "target": zeros, "reduction": 2}
    beyond = oracle.reference("aclnnMseLossBackward", **call)["out"]
    assert not beyond.unspecified.any()
    assert [judged(beyond, [v, 2.0])[:2] == (True, True) for v in (INF, 65504.0, 1.0)] == [True, False, False]
    assert judged(beyond, [65504.0, 2.0], saturates=True)[:2] == (True, True)


def test_an_overflow_of_the_hosts_first_type_is_infinite_in_a_type_of_larger_range_too():
    """4.9e9 is rounded to float16 before the cast to bfloat16, which has this number."""
    x, scalars = np.array([48672.0, 0.25], np.float16), {"alpha": 1.0, "scale": 1e5, "inputScale": 1.0}
    ref = oracle.reference("aclnnElu", self=x, out="bfloat16", **scalars)["out"]
    assert [judged(ref, [v, 25000.0])[:2] for v in (INF, 4.9e9)] == [(True, True), (False, False)]


def test_an_overflow_may_begin_with_a_rounding_to_the_hosts_first_type():
    """bfloat16 makes 65536 of 65408, and 65280 of what is smaller. float32 makes 65408 of 1.0078125 * scale."""
    x, scale = np.array([1.0078125, 1.0], TYPES["bfloat16"]), float(np.float32(65408 / 1.0078125))
    ref = oracle.reference("aclnnElu", self=x, alpha=1.0, scale=scale, inputScale=1.0, out="float16")["out"]
    assert (ref.golden[0], ref.unspecified.tolist()) == (65280, [True, False])


def test_unspecified_elements_are_judged_by_no_layer():
    ref = reference([1.0, NAN, INF], unspecified=[False, True, True])
    result = compare(ref, np.asarray([1.0, 5.0, NAN], np.float32))
    assert (result.codes, result.strict_bad, result.unspecified) == (None, None, 2)
    assert verdict.standard("mixed", ref, np.asarray([1.0, 5.0, NAN], np.float32), result).passed


def test_exact_zeros_are_structure_even_within_the_bound():
    ref = reference([0.0, 1.0], 0.5, zeros=[True, False])
    assert judged(ref, [-0.0, 1.0])[:2] == (True, True)
    assert judged(ref, [1e-30, 1.0])[:2] == (False, True)


def test_a_saturated_overflow_passes_the_standard_too():
    ref = reference([1e6, 1.0], 0.5, np.float16)
    actual = np.asarray([65504.0, 1.0], np.float16)
    for saturates in (True, False):
        result = compare(ref, actual, saturates=saturates)
        assert verdict.standard("mixed", ref, actual, result).passed is saturates


def test_an_overflow_of_the_hosts_first_type_is_infinite_for_the_standard_too():
    """aclnnEluBackward from float16 into bfloat16: 4.9e9 is rounded to float16 before the cast."""
    grad, scalars = np.array([48672.0, 0.25], np.float16), {"alpha": 1.0, "scale": 1e5, "inputScale": 1.0}
    call = {"gradOutput": grad, "selfOrResult": np.ones_like(grad), "isResult": False, "gradInput": "bfloat16"}
    ref = oracle.reference("aclnnEluBackward", **call, **scalars)["gradInput"]
    assert np.isinf(ref.golden[0])
    assert verdict.standard("mixed", ref, ref.golden, compare(ref, ref.golden)).passed


def test_a_bound_of_zero_allows_nothing_and_an_infinite_one_every_finite_number():
    assert judged(reference([1.0], 0.0), [1.0]) == (True, True, 0.0)
    assert judged(reference([1.0], 0.0), [np.nextafter(np.float32(1), np.float32(2))])[1:] == (False, INF)
    assert judged(reference([1.0], INF), [3e38])[:2] == (True, True)
    assert judged(reference([1.0], INF), [NAN])[:2] == (False, False)


def test_complex_outputs_are_judged_by_their_real_part_and_need_a_zero_imaginary_one():
    ref = reference([1.0, 2.0], dtype=np.complex64)
    assert judged(ref, [1.0, 2.0])[:2] == (True, True)
    assert judged(ref, [1.0, 2.0 + 1e-3j])[:2] == (False, False)
    assert judged(ref, [1.0, 9.0])[:2] == (True, False)


finite = st.floats(-1e4, 1e4, width=32)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(finite, finite), min_size=1, max_size=20), st.floats(1.0, 8.0), st.floats(0.0, 100.0))
def test_a_larger_error_never_turns_fail_into_pass(pairs, factor, bound):
    value, error = np.asarray(pairs, np.float64).T
    ref = reference(value, bound)
    ref.golden, actual = value, value + error
    worse = value + factor * error
    small, large = compare(ref, actual), compare(ref, worse)
    assert small.budget_used <= large.budget_used * (1 + 1e-9)
    assert small.strict_bad is None or large.strict_bad is not None


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(finite, finite, st.sampled_from([0.0, 1.0, NAN, INF])), min_size=1, max_size=20), st.randoms()
)
def test_the_order_of_elements_does_not_matter(rows, random):
    shuffled = rows[:]
    random.shuffle(shuffled)
    answers = []
    for table in (rows, shuffled):
        value, error, special = np.asarray(table, np.float64).T
        actual = np.where(special == 1.0, value + error, np.where(special == 0.0, value, special)).astype(np.float32)
        result = compare(reference(value, 10.0), actual)
        bad = 0 if result.strict_bad is None else int(result.strict_bad.sum())
        codes = [] if result.codes is None else sorted(result.codes.tolist())
        answers.append((result.budget_used, bad, codes))
    assert answers[0] == answers[1]


@pytest.mark.parametrize(
    ("golden", "message"),
    [
        ([], ""), ([1.0], ""), ([0.0], "only element is 0"), ([NAN], "not finite"), ([1.0, 1.0], "all 2 elements"),
        ([0.0, -0.0], "all 2 elements"), ([1.0, 2.0], ""), ([1.0, 1.0, NAN], ""), ([1.0, NAN, INF], "2 of 3"),
        ([1.0, 2.0, NAN, NAN], ""),
    ],
)  # fmt: skip
def test_what_proves_nothing(golden, message):
    result = uninformative(reference(golden))
    assert message in result
    assert bool(message) == bool(result)


def test_unspecified_elements_do_not_make_a_golden_informative():
    assert uninformative(reference([1.0, 1.0, 5.0], unspecified=[False, False, True]))
    assert "may disagree about every element" in uninformative(reference([1.0, 2.0], unspecified=[True, True]))


def test_strided_outputs_are_judged_where_they_lie():
    ref = reference(np.arange(12.0).reshape(3, 4))
    base = np.zeros((3, 8), np.float32)
    base[:, ::2] = ref.golden
    assert judged(ref, base[:, ::2]) == (True, True, 0.0)
    base[2, 2] = 99
    result = compare(ref, base[:, ::2])
    assert np.argwhere(strict(result, (3, 4)).bad).tolist() == [[2, 1]]
