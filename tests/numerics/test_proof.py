"""Ziv's test accepts only proved results: every number in an accepted interval rounds to the stored one."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import ml_dtypes
import numpy as np
import pytest
from gmpy2 import mpq
from hypothesis import given, settings, strategies as st
from truth import TYPES

from oracle.model.dtypes import DTYPES, FLOATS, FORMATS
from oracle.numerics.exact.enclosures import Ends
from oracle.numerics.exact.rationals import Fraction64, refined, two_product, two_sum
from oracle.numerics.floats.rounding import round_rational, round_to, widen
from oracle.numerics.proof import round_enclosures, settle, store, store_close
from oracle.numerics.sink import Sink

FINITE = st.floats(allow_nan=False, allow_infinity=False, width=64)


def midpoints(name: str) -> np.ndarray:
    """Return midpoints of a type around interesting places: ones, subnormals, the overflow threshold."""
    fmt = FORMATS[name]
    k = np.arange(1, 200, 2)
    near_tiny = fmt.tiny - k * fmt.quantum / 2
    return np.concatenate([k * fmt.quantum / 2, 1 + k * 2.0 ** -(fmt.mant + 1), near_tiny, [fmt.overflow]])


def stored(value, low, high, name):
    target = np.empty(value.shape, TYPES[name])
    left = store(value, low, high, target)
    doubtful = np.zeros(value.shape, bool)
    doubtful[left] = True
    return target, doubtful


@pytest.mark.parametrize("name", TYPES)
class TestStore:
    def test_an_interval_with_a_midpoint_inside_is_doubtful(self, name):
        m = midpoints(name)
        for low, high in ((m * (1 - 1e-15), m * (1 + 1e-15)), (m * (1 + 1e-9), m * (1 - 1e-9))):
            for sign in (1, -1):
                _, doubtful = stored(sign * m, sign * low, sign * high, name)
                assert doubtful.all()

    def test_an_interval_that_ends_at_a_midpoint_is_proved_only_where_the_tie_goes_inward(self, name):
        m = midpoints(name)
        for end in (np.nextafter(m, np.inf), np.nextafter(m, -np.inf)):
            target, doubtful = stored(m, m, end, name)
            inward = round_to(m, name) == round_to(end, name)
            assert np.array_equal(~doubtful, inward)
            assert np.array_equal(target[inward], round_to(m, name)[inward])

    def test_a_tie_that_is_certain_goes_to_even(self, name):
        m = midpoints(name)
        target, doubtful = stored(m, m, m, name)
        assert not doubtful.any()
        assert np.array_equal(target, round_to(m, name))

    def test_an_interval_beside_a_midpoint_is_proved(self, name):
        m = midpoints(name)
        for direction in (np.inf, -np.inf):
            near = np.nextafter(np.nextafter(m, direction), direction)
            target, doubtful = stored(near, near, np.nextafter(near, direction), name)
            assert not doubtful.any()
            assert np.array_equal(target, round_to(near, name))

    def test_special_values_and_zeros_are_stored_as_they_are(self, name):
        v = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0])
        for low, high in ((v, v), (v * (1 - 1e-15), v * (1 + 1e-15)), (v - 0.0, v + 0.0)):
            target, doubtful = stored(v, low, high, name)
            assert not doubtful.any()
            assert np.array_equal(target.astype(np.float64), v, equal_nan=True)
            assert np.array_equal(np.signbit(target[3:]), [False, True])

    def test_an_interval_around_zero_is_doubtful(self, name):
        v = np.array([1e-320, 1e-60])
        _, doubtful = stored(v, -v, v, name)
        assert doubtful.all()


@settings(max_examples=300)
@given(FINITE, st.floats(0, 1e-6), st.floats(0, 1), st.sampled_from(list(TYPES)))
def test_every_number_of_an_accepted_interval_rounds_to_what_was_stored(centre, width, share, name):
    low, high = sorted((centre * (1 - width), centre * (1 + width)))
    inside = min(max(low + share * (high - low), low), high)
    with np.errstate(over="ignore"):
        target, doubtful = stored(np.array([centre]), np.array([low]), np.array([high]), name)
    if not doubtful.any() and np.isfinite([low, high]).all():
        for number in (low, inside, high):
            assert float(target[0]) == round_rational(mpq(number), FORMATS[name])


@given(st.fractions(), st.sampled_from(list(FORMATS)))
def test_round_rational_is_nearest_even(number, name):
    fmt = FORMATS[name]
    got = round_rational(mpq(number.numerator, number.denominator), fmt)
    if np.isinf(got):
        assert abs(number) >= Fraction(fmt.max)
        return
    step = Fraction(2) ** (max(int(np.frexp(abs(got))[1]) - 1, fmt.emin) - fmt.mant)
    distance = abs(Fraction(got) - number)
    assert distance <= step / 2
    if distance == step / 2:
        assert (Fraction(got) / step) % 2 == 0


def test_enclosures_are_asked_until_both_ends_round_alike():
    asked = []

    def shrink():
        for bits in (8, 20, 60, 200):
            asked.append(bits)
            yield Ends(mpq(1) + mpq(1, 2**12) - mpq(1, 2**bits), mpq(1) + mpq(1, 2**12))

    assert round_enclosures(shrink(), FORMATS["float16"]) == 1.0
    assert asked == [8, 20] or asked == [8, 20, 60]


@pytest.mark.parametrize("name", TYPES)
def test_settle_takes_rationals_zeros_and_enclosures(name):
    target = np.ones(4, TYPES[name])
    answers = {0: mpq(1, 3), 1: -0.0, 2: iter([Ends(mpq(0), mpq(1)), Ends(mpq(1, 5), mpq(1, 5))]), 3: mpq(-1, 10**60)}
    unknown = (np.zeros(4), -np.ones(4), np.ones(4))
    settle(np.arange(4), unknown, target, lambda i: answers[i[0]])
    expected = round_to(np.array([1 / 3, -0.0, 0.2, -0.0]), name)
    assert target.tobytes() == expected.tobytes()


@pytest.mark.parametrize("value", [2.0**-1074, -(2.0**-151), 2.0**-1022, -3e-60])
def test_a_number_that_rounds_to_zero_is_known_all_the_same(value):
    target = np.ones(1, np.float32)
    around = ((mpq(value) - width, mpq(value) + width) for width in (mpq(1, 2**k) for k in range(100, 2000, 100)))
    _, values = settle(
        np.arange(1), (np.zeros(1), -np.ones(1), np.ones(1)), target, lambda _: (Ends(*e) for e in around)
    )
    assert (target[0], np.signbit(target[0]), values[0]) == (0, value < 0, value)


SAFE = st.floats(-1e30, 1e30, allow_subnormal=False).filter(lambda v: v == 0 or abs(v) > 1e-30)


@given(SAFE, SAFE)
def test_sum_and_product_lose_nothing(a, b):
    total, lost = two_sum(np.float64(a), np.float64(b))
    assert Fraction(float(total)) + Fraction(float(lost)) == Fraction(a) + Fraction(b)
    product, lost = two_product(np.float64(a), np.float64(b))
    assert Fraction(float(product)) + Fraction(float(lost)) == Fraction(a) * Fraction(b)


@given(st.integers(-255, 255), st.integers(1, 255), st.integers(1, 8))
def test_exact_fractions_recognise_ties_and_only_ties(a, b, count):
    """a / (b count): an exact tie of bfloat16 is reported as certain; every other value keeps its interval."""
    value = np.array([a / (b * count)])
    exact = Fraction64(np.array([float(a)])) / Fraction64(np.array([float(b)])) / Fraction64(np.array([float(count)]))
    got, low, high = refined(value, exact, ml_dtypes.bfloat16, np.abs(value) * 1e-15)
    number = Fraction(a, b * count)
    if low[0] == high[0] and a:
        assert Fraction(float(got[0])) == number
    else:
        assert low[0] <= number <= high[0] or high[0] <= number <= low[0]


def zero_of(a: float, b: float) -> tuple[np.ndarray, Fraction64]:
    """Return a b - b a in float64 and as a fraction."""
    one, other = Fraction64(np.array([a])), Fraction64(np.array([b]))
    return np.array([a]) * b - np.array([b]) * a, one * other - other * one


def test_zeros_are_told_with_the_sign_that_float64_gave_them():
    for sign in (1.0, -1.0):
        got, low, high = refined(sign * zero_of(3.0, 0.7)[0], zero_of(3.0, 0.5)[1], np.float32, np.array([1e-16]))
        assert got[0] == low[0] == high[0] == 0
        assert np.signbit(got[0]) == (sign < 0)


@pytest.mark.parametrize(("value", "a"), [(1e-17, 3.0), (0.0, 1e-200)])
def test_a_zero_that_float64_did_not_give_or_whose_parts_nearly_underflow_is_not_told(value, a):
    _, low, high = refined(np.array([value]), zero_of(a, a)[1], np.float32, np.array([1e-16]))
    assert low[0] < 0 < high[0]


def test_what_rounds_up_to_the_smallest_normal_number_may_be_a_tie():
    """2^-126 - 2^-150 and its neighbours: among subnormals more digits are dropped."""
    tie = 2.0**-126 - 2.0**-150
    value = np.array([tie, np.nextafter(tie, 0), -tie, 2.0**-126, 1.0, 0.0])
    target = np.empty(value.size, np.float32)
    assert {0, 1, 2} <= set(store_close(value, 2.0**-50, target)) <= {0, 1, 2, 3}
    assert {4, 5}.isdisjoint(store_close(value, 2.0**-50, target))


def test_equal_elements_are_settled_once() -> None:
    """Signed zeros are not equal; the result of ``alike`` changes no element."""
    values = np.tile([0.0, -0.0, 1.5, 1 + 2**-11], 50).astype(np.float64)
    asked: list[int] = []

    def exact(index: tuple[int, ...]) -> mpq | float:
        asked.append(index[0])
        value = float(values[index])
        return mpq(value) if value else value

    def alike(where: tuple[np.ndarray, ...]) -> tuple[np.ndarray, np.ndarray]:
        _, first, like = np.unique(values[where].view(np.uint64), return_index=True, return_inverse=True)
        return first, like.reshape(-1)

    result = []
    for finder in (None, alike):
        asked.clear()
        target, far = np.empty(values.size, np.float16), np.full(values.size, np.inf)
        settle(np.arange(values.size), (values, -far, far), target, exact, alike=finder)
        result.append(target.tobytes())
        assert len(asked) == (values.size if finder is None else 4)
    assert result[0] == result[1]


# the strict bound's roundings -----------------------------------------------------------------------------------------


KERNEL_AND_OUT = list(product(FLOATS, (*FLOATS, "float64")))


def twice(values: np.ndarray, kernel: str, out: str) -> np.ndarray:
    """Return the values rounded to the kernel type, then to the output's, as float64."""
    rounded = widen(round_to(values, kernel))
    return rounded if out == "float64" else widen(round_to(rounded, out))


@pytest.mark.parametrize(("kernel", "out"), KERNEL_AND_OUT)
def test_two_roundings_of_a_right_value_are_within_the_bound(kernel: str, out: str) -> None:
    """Values around the midpoints of either type in every binade from float16's subnormals to 2^6, and random ones."""
    r = np.random.default_rng(7)
    few = np.ldexp(r.integers(1 << 9, 1 << 10, 4000) + r.choice([0, 0.25, 0.5, 0.75], 4000), r.integers(-36, -4, 4000))
    value = np.concatenate([few, np.exp2(r.uniform(-26, 6, 4000))])
    error = value * 2.0**-22
    sink = Sink(np.empty(value.shape, DTYPES[out].numpy), kernel, judged=True)
    sink.put_bound((slice(None),), value, error, np.zeros(value.shape, bool))
    given = twice(value, kernel, out) if sink.rounded_value else value
    worst = np.zeros(value.shape)
    for shift in (-1, -0.5, 0, 0.5, 1):
        worst = np.maximum(worst, np.abs(twice(value + shift * error, kernel, out) - given))
    assert (worst <= sink.bound).all()
    assert (worst > 0.4 * sink.bound).any(), "a bound much too wide would be noticed"
