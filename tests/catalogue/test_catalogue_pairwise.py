"""Covering arrays: every pair of values occurs, in few rows, the same ones every time."""

from __future__ import annotations

from itertools import combinations, islice, product

import pytest

from oracle.catalogue.pairwise import pairs, turns

SIZES = [(), (1,), (5,), (2, 3), (1, 1, 4), (3, 3, 3, 3), (2,) * 10, (18, 3, 3, 6, 4, 6, 8, 3), (3, 24, 2, 7)]


@pytest.mark.parametrize("sizes", SIZES)
def test_every_pair_occurs(sizes: tuple[int, ...]) -> None:
    rows = pairs(sizes)
    assert all(0 <= k < n for row in rows for k, n in zip(row, sizes, strict=True))
    for i, j in combinations(range(len(sizes)), 2):
        assert {(row[i], row[j]) for row in rows} == set(product(range(sizes[i]), range(sizes[j])))
    for i, n in enumerate(sizes):
        assert {row[i] for row in rows} == set(range(n))


def test_few_rows() -> None:
    """No array has fewer rows than its two longest axes have pairs, and none of ten axes of two fewer than six."""
    assert 18 * 8 <= len(pairs((18, 3, 3, 6, 4, 6, 8, 3))) <= 1.5 * 18 * 8
    assert len(pairs((2,) * 10)) <= 16


def test_an_empty_axis_leaves_nothing() -> None:
    assert pairs((3, 0)) == []


def test_the_same_rows_every_time() -> None:
    assert pairs((4, 3, 3)) == pairs((4, 3, 3))


@pytest.mark.parametrize("sizes", [sizes for sizes in SIZES if sizes])
def test_in_turn_every_value_occurs_once_the_longest_axis_is_through(sizes: tuple[int, ...]) -> None:
    rows = list(islice(turns(sizes), max(sizes)))
    assert [set(column) for column in zip(*rows, strict=True)] == [set(range(n)) for n in sizes]


def test_axes_of_one_length_do_not_stay_in_step() -> None:
    assert len(set(islice(turns((3, 3)), 9))) >= 6
    assert len(set(islice(turns((3, 6)), 18))) >= 12
