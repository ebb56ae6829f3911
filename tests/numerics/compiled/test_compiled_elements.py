"""Elements of compiled loops: undoubted values are right, operands are found, and e^x keeps its bounds (MPFR)."""

from __future__ import annotations

import gmpy2
import ml_dtypes
import numpy as np
import pytest
from gmpy2 import mpq
from hypothesis import example, given, settings, strategies as st
from truth import TYPES

from oracle.model.dtypes import FORMATS
from oracle.numerics.bounds.windows import EXPONENT
from oracle.numerics.floats import codes as bits
from oracle.numerics.floats.rounding import round_rational

pytest.importorskip("numba", reason="the extra `fast` (numba) is not installed")
from oracle.numerics.compiled import elements


@given(*[st.floats(width=32, allow_nan=False, allow_infinity=False)] * 2, st.booleans())
@example(2.0**-149, 2.0**-149, True)
def test_what_is_taken_for_exact_is(a, b, few):
    if few:  # few digits, so that quotients and sums are exact too
        a, b = (float(np.float32(x).astype(ml_dtypes.bfloat16)) for x in (a, b))
        a, b = (x if np.isfinite(x) else 1.0 for x in (a, b))
    assert not elements.sum_is_exact(a, b) or mpq(a + b) == mpq(a) + mpq(b)
    assert not elements.product_is_exact(a, b) or mpq(a * b) == mpq(a) * mpq(b)
    if b:
        assert not elements.quotient_is_exact(a, b) or mpq(a / b) * mpq(b) == mpq(a)
    assert elements.product_is_exact(a, b) or abs(a * b) < 2.0**-250  # two float32 numbers


def quick(name: str, held: bool = False):
    """Return the quick test of a value that is exact (``held``), or need not be."""

    def encode(value, slack):
        code, doubt = elements.quick(name)(value, value - slack, value + slack, held)
        return code, doubt or (abs(value) < slack and not held)

    return encode


@settings(max_examples=300, deadline=None)
@given(st.floats(width=32, allow_nan=False, allow_infinity=False), st.sampled_from(["float16", "bfloat16"]))
@example(1 + 2.0**-8, "bfloat16")
@example(1 + 3 * 2.0**-8, "bfloat16")
@example(2.0**-25 * 3, "float16")
@example(1 + 2.0**-11 + 2.0**-40, "float16")  # a double rounding through float32 makes this a tie
def test_a_tie_of_a_value_that_is_exact_goes_to_even(value, name):
    shortened = np.uint32(
        np.float32(value).view(np.uint32) & np.uint32(0xFFFF8000 if name == "bfloat16" else 0xFFFFF000)
    )
    for exact in (value, float(shortened.view(np.float32))):
        code, doubt = quick(name, held=True)(exact, abs(exact) * 2.0**-50)
        got = np.asarray(code).astype(np.uint16).view(TYPES[name])
        assert doubt or float(got) == round_rational(mpq(exact), FORMATS[name])
    assert not quick(name, held=True)(1 + 2.0 ** -(FORMATS[name].mant + 1), 2.0**-50)[1]


@settings(max_examples=300, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(0, 1e-6), st.sampled_from(list(TYPES)))
@example(1.0, 5.4377604581636665e-08, "float32")  # the midpoint below a power of two is half as far away
@example(1 + 2.0**-8, 2.0**-50, "bfloat16")
@example(2.0**-25 * 3, 2.0**-50, "float16")
def test_what_a_test_does_not_doubt_is_right_in_the_whole_interval(value, share, name):
    for encode, least in ((elements.encoder(name), 0.0), (quick(name), 2.0**-52)):
        slack = abs(value) * (share + least)
        code, doubt = encode(value, slack)
        if doubt:
            continue
        got = np.asarray(code).astype(np.uint32 if name == "float32" else np.uint16).view(TYPES[name])
        for end in (mpq(value) - mpq(slack), mpq(value), mpq(value) + mpq(slack)):
            assert float(got) == round_rational(end, FORMATS[name])


@pytest.mark.parametrize("name", TYPES)
def test_midpoints_overflow_and_special_values_are_doubted(name):
    fmt = FORMATS[name]
    middle = 1 + 2.0 ** -(fmt.mant + 1)
    for encode in (elements.encoder(name), quick(name)):
        for value in (middle, -middle, fmt.quantum / 2, 3 * fmt.quantum / 2, fmt.overflow, np.inf, -np.inf, np.nan):
            assert encode(value, abs(value) * 1e-15)[1]
        assert encode(1e-300, 2e-300)[1]  # the sign of the zero is not known
        assert not encode(0.0, 0.0)[1]
        assert not encode(-0.0, 0.0)[1]
        assert encode(-0.0, 0.0)[0] & 0xFFFF == (0 if name == "float32" else 0x8000)
    assert not elements.encoder(name)(np.nextafter(middle, 2), 0.0)[1]


def test_without_the_processors_own_conversion_float16_has_the_same_bits():
    codes = np.arange(1 << 16, dtype=np.uint16)
    finite = codes[np.isfinite(codes.view(np.float16))].view(np.int16)
    by_bits = elements.njit(elements._load_float16_by_bits)
    assert all(by_bits(finite, i) == finite[i].view(np.float16) for i in range(0, finite.size, 7))
    near = codes[::5].view(np.float16).astype(np.float32).view(np.uint32)
    beside = np.concatenate([near + np.uint32(step) for step in (0, 1, 0x1000, 0xFFF, 0x1001, 0x1800)])
    for single in beside.view(np.float32):
        code, *doubts = elements._narrow_float16_by_bits(single)
        other, *others = elements._narrow_float16(single)
        doubt, also = any(doubts), any(others)
        assert doubt or int(code) & 0xFFFF == int(np.float16(single).view(np.uint16)), single
        assert also or int(other) & 0xFFFF == int(np.float16(single).view(np.uint16)), single
        assert also >= doubt  # a doubt for too much is the quick one's


@settings(max_examples=300, deadline=None)
@given(
    st.floats(2.0**-120, 2.0**126, width=32),
    st.booleans(),
    st.integers(1, 200),
    st.sampled_from(["float16", "bfloat16"]),
)
@example(1 + 2.0**-8, False, 1, "bfloat16")
@example(1 + 3 * 2.0**-8, True, 1, "bfloat16")
@example(2.0**-25 * 3, False, 1, "float16")
@example(65519.0, False, 1, "float16")
def test_what_ends_in_float32_do_not_doubt_is_right_between_them(value, negative, steps, name):
    v = np.float32(-value if negative else value)
    low, high = sorted([v, v])
    for _ in range(steps):
        low, high = np.nextafter(low, np.float32(-np.inf)), np.nextafter(high, np.float32(np.inf))
    code, doubt = elements.quick_single(name)(low, high)
    if not doubt:
        got = float(np.asarray(code).astype(np.uint16).view(TYPES[name]))
        inside = (mpq(float(low)) + mpq(float(v))) / 2, mpq(float(v)), (mpq(float(high)) + mpq(float(v))) / 2
        nearer = [mpq(float(end)) + (mpq(float(v)) - mpq(float(end))) / 2**40 for end in (low, high)]
        assert {round_rational(each, FORMATS[name]) for each in (*inside, *nearer)} == {got}


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_ends_in_float32_leave_midpoints_and_the_sign_of_zero_in_doubt(name):
    encode = elements.quick_single(name)
    middle = np.float32(1 + 2.0 ** -(FORMATS[name].mant + 1))
    assert encode(np.nextafter(middle, np.float32(0)), np.nextafter(middle, np.float32(2)))[1]
    assert encode(np.float32(-1e-30), np.float32(1e-30))[1]
    for zero, code in ((np.float32(0.0), 0), (np.float32(-0.0), 0x8000)):
        result, doubt = encode(zero, zero)
        assert (int(result) & 0xFFFF, doubt) == (code, False)


def test_ends_in_float64_that_differ_as_float32_are_in_doubt():
    for low, high, doubted in ((1.0, 1.0, False), (1 + 2.0**-25, 1 + 2.0**-23, True), (-1e-300, 1e-300, True)):
        code, doubt = elements.quick_near(low, high)
        assert doubt == doubted
        assert doubt or np.asarray(code).astype(np.uint32).view(np.float32) == np.float32(low)


# Chunks of operands: the elements inside a window, in doubt, and selected.


@elements.njit
def beyond(codes, window):
    return np.array([elements.is_beyond(codes, i, window) for i in range(codes.size)])


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_a_window_holds_zeros_and_magnitudes_between_its_ends(dtype):
    least = 0.25 if dtype == np.float16 else 0.0  # float32's windows begin at 0
    window = bits.code(np.dtype(dtype), least), bits.code(np.dtype(dtype), 4.0)
    inside = [0.0, -0.0, 4.0, -4.0, 1.5, 0.25]
    outside = [4.01, -5, np.inf, -np.inf, np.nan, *([0.2, -6e-8] if least else [])]
    kind = np.int16 if dtype == np.float16 else np.uint32
    for values, wrong in ((inside, 0), (outside, len(outside)), (inside * 9 + outside, len(outside))):
        codes = np.array(values, dtype).view(kind)
        assert list(np.flatnonzero(beyond(codes, window))) == list(range(len(values) - wrong, len(values)))


@pytest.mark.parametrize("size", [1, 7, 100, 128, 1024])
def test_the_places_in_doubt_are_listed_behind_those_before(size):
    r = np.random.default_rng(size)
    doubt = np.zeros(1024, np.bool_)
    doubt[:size] = r.random(size) < 0.1
    doubt[size:] = True  # left by an earlier, longer chunk
    places = np.full(2048, -1)
    places[0] = 77
    count = elements.listed(doubt, doubt.view(np.uint64), size, 5000, places, 1)
    assert list(places[:count]) == [77, *(5000 + np.flatnonzero(doubt[:size]))]


def test_elements_are_picked_and_numbers_stand_for_themselves():
    @elements.njit
    def gather(array, number, places):
        rooms = elements.room(array, 8), elements.room(number, 8)
        return elements.picked(array, places, rooms[0]), elements.picked(number, places, rooms[1])

    array = np.arange(100, dtype=np.uint16)
    result, number = gather(array, 2.5, np.array([3, 99, 3]))
    assert (list(result), number) == ([3, 99, 3], 2.5)


# e^x stays within its bounds.


def test_exp_is_within_its_bound():
    r = np.random.default_rng(5)
    edges = np.arange(-1000, 1000) * (np.log(2) / 2)
    x = np.concatenate([r.uniform(-1, 1, 5000), r.uniform(-700, 700, 5000), edges, np.nextafter(edges, 0), [-700, 700]])
    with gmpy2.context(precision=120):
        worst = max(abs(gmpy2.mpfr(elements.exp(v)) / gmpy2.exp(gmpy2.mpfr(v)) - 1) for v in x.clip(-700, 700).tolist())
    assert worst < elements.EXP_RELATIVE
    assert np.isnan(elements.exp(np.nan))


def test_exp_in_float32_is_within_its_bound():
    r = np.random.default_rng(6)
    edges = np.arange(-231, 232) * (np.log(2) / 2)
    spread = [r.uniform(-1, 1, 5000), r.uniform(-EXPONENT, EXPONENT, 10000), r.normal(size=2000) * 1e-3, edges]
    x = np.concatenate([*spread, np.nextafter(edges, 0), [-EXPONENT, EXPONENT, 0.0]]).clip(-EXPONENT, EXPONENT)
    with gmpy2.context(precision=80):
        errors = [
            abs(gmpy2.mpfr(float(elements.exp_single(v))) / gmpy2.exp(gmpy2.mpfr(float(v))) - 1)
            for v in x.astype(np.float32)
        ]
    assert max(errors) < elements.EXP_SINGLE
