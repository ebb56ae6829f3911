"""The possible error of a float32 sum: its bound covers every order of additions, and is too small to hide a term."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from ordinary import some

from oracle.numerics.bounds.additions import RUN, SHORT, lost
from oracle.numerics.floats.rounding import UNIT

LENGTHS = some([1000, 65_537, 1 << 20], 2)


def few(random: np.random.Generator, n: int) -> np.ndarray:
    return random.choice(random.uniform(1, 4, 5), n)


def clusters(random: np.random.Generator, n: int) -> np.ndarray:
    return random.choice([1.3, 4.1], n) * (1 + 1e-5 * random.normal(size=n))


def in_turn(random: np.random.Generator, n: int, period: int) -> np.ndarray:
    """Return whole numbers with a sum of 2^24 to 2^25. There odd numbers are halfway between float32 numbers."""
    least = 2 ** math.ceil(24 - math.log2(1.5 * n))
    return np.resize(random.integers(least, 2 * least, period), n)


TERMS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "spread evenly": lambda random, n: random.uniform(0, 1, n),
    "of a softmax, most below the sum's last bit": lambda random, n: np.exp(3 * random.normal(size=n)),
    "of both signs": lambda random, n: random.normal(size=n),
    "all equal": lambda random, n: np.full(n, 0.1),
    "of five values": few,
    "of five values, sorted": lambda random, n: np.sort(few(random, n)),
    "of five values of either sign": lambda random, n: few(random, n) * random.choice([-1, 1], n),
    "in two clusters": clusters,
    "equal or zero": lambda random, n: random.choice([0, 0.7], n),
    "falling": lambda random, n: np.linspace(1, 0, n),
    "of few bits": lambda random, n: random.integers(16, 64, n) / 16.0,
    "three in turn, halfway in the sum": lambda random, n: in_turn(random, n, 3),
    "eight in turn, halfway in the sum": lambda random, n: in_turn(random, n, 8),
    "two in turn, of two signs": lambda random, n: np.resize([1, -1] * random.uniform(0, 1, 2), n),
    "sixteen in turn, of many sizes": lambda random, n: np.resize(np.exp(4 * random.normal(size=16)), n),
    "one large, then small ones": lambda random, n: np.r_[1.0, np.full(n - 1, 2.0**-25)],
}


def in_sequence(terms: np.ndarray) -> np.float32:
    return np.add.accumulate(terms, dtype=np.float32)[-1]


def by_lanes(terms: np.ndarray, lanes: int) -> np.float32:
    whole = terms.size - terms.size % lanes
    ends = np.add.accumulate(terms[:whole].reshape(-1, lanes), axis=0, dtype=np.float32)[-1]
    return in_sequence(np.r_[ends, terms[whole:]])


ORDERS: dict[str, Callable[[np.ndarray], np.float32]] = {
    "in sequence": in_sequence,
    "backwards": lambda terms: in_sequence(terms[::-1]),
    "shuffled": lambda terms: in_sequence(np.random.default_rng(1).permutation(terms)),
    "by 2 lanes": lambda terms: by_lanes(terms, 2),
    "by 4 lanes": lambda terms: by_lanes(terms, 4),
    "by 8 lanes": lambda terms: by_lanes(terms, 8),
    "by 64 lanes": lambda terms: by_lanes(terms, 64),
    "pairwise": lambda terms: terms.sum(dtype=np.float32),
}


def bound(terms: np.ndarray) -> float:
    wide = terms.astype(np.float64)
    return float(lost([wide], np.abs(wide).sum(keepdims=True), wide.size)[0])


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("made", TERMS.values(), ids=TERMS)
def test_no_order_of_additions_loses_more(made, length):
    """float64's own error in the sum is below 2^-52 length |terms|, far below any bound here."""
    for seed in range(6 if length < 1 << 20 else 3):
        terms = made(np.random.default_rng(seed), length).astype(np.float32)
        allowed, exact = bound(terms), float(terms.sum(dtype=np.float64))
        worst = {name: abs(float(add(terms)) - exact) / allowed for name, add in ORDERS.items()}
        assert max(worst.values()) <= 1, worst


@pytest.mark.parametrize("length", [2, 17, SHORT])
def test_a_short_sum_may_lose_what_the_worst_order_does(length):
    terms = np.full((1, length), 0.1)
    size = terms.sum(axis=-1, keepdims=True)
    assert lost([terms], size, length) == UNIT * (length - 1) * size


@pytest.mark.parametrize("length", [SHORT, SHORT + 1, 1000, 20_000])
def test_no_bound_hides_a_term_of_average_size(length):
    """This holds for terms that differ; if many are equal, or close together, a right sum may lose one."""
    terms = np.random.default_rng(0).uniform(1, 2, length).astype(np.float32)
    assert bound(terms) < np.mean(terms)


def test_partial_sums_that_are_exact_leave_the_share_of_other_orders():
    """Whole numbers with a sum below 2^24 lose nothing; no number occurs twice."""
    terms = np.random.default_rng(0).permutation(np.arange(1, 4000))[:2000].astype(np.float32)
    assert bound(terms) == pytest.approx(UNIT * np.sqrt(terms.size) * terms.sum(dtype=np.float64), rel=1e-12)


@pytest.mark.parametrize("made", [few, lambda random, n: random.choice([0, 0.7], n)], ids=["five values", "or zero"])
def test_values_that_repeat_may_lose_what_the_worst_order_does(made):
    terms = made(np.random.default_rng(0), 10_000).astype(np.float32)
    assert bound(terms) == UNIT * 9_999 * terms.sum(dtype=np.float64)


@pytest.mark.parametrize("made", [few, lambda random, n: random.uniform(1, 4, n)], ids=["few values", "many"])
def test_a_row_may_come_in_parts(made):
    random, length = np.random.default_rng(0), 40 * RUN + 5
    terms = np.array([made(random, length), in_turn(random, length, 3), made(random, length)])
    size = terms.sum(axis=-1, keepdims=True)
    parts = np.split(terms, [8 * RUN, 24 * RUN], axis=-1)
    assert np.array_equal(lost(parts, size, length), lost([terms], size, length))


def test_what_is_below_float32_is_no_term():
    terms = np.full((1, 2 * SHORT), 2.0**-149)
    size = terms.sum(axis=-1, keepdims=True)
    assert lost([terms], size, 2 * SHORT) < 2.0**-149
