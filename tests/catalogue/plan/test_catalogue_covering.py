"""Covering arrays: the values of every two or three axes meet, in few rows, always the same; and taking turns."""

from __future__ import annotations

from itertools import combinations, islice, product

import pytest

from oracle.catalogue.plan.covering import covering, covering_accepted
from oracle.catalogue.plan.families import turns

SIZES = [(), (1,), (5,), (2, 3), (1, 1, 4), (3, 3, 3, 3), (2,) * 10, (18, 3, 3, 6, 4, 6, 8, 3), (3, 24, 2, 7)]


@pytest.mark.parametrize("strength", [2, 3])
@pytest.mark.parametrize("sizes", SIZES)
def test_all_values_of_so_many_axes_meet(sizes: tuple[int, ...], strength: int) -> None:
    rows = covering(sizes, strength)
    assert all(0 <= k < n for row in rows for k, n in zip(row, sizes, strict=True))
    for axes in combinations(range(len(sizes)), min(strength, len(sizes))):
        assert {tuple(row[i] for i in axes) for row in rows} == set(product(*(range(sizes[i]) for i in axes)))


def test_few_rows() -> None:
    """No array has fewer rows than its longest axes have combinations; ten axes of two values need at least six."""
    sizes = (18, 3, 3, 6, 4, 6, 8, 3)
    assert 18 * 8 <= len(covering(sizes, 2)) <= 1.5 * 18 * 8
    assert 18 * 8 * 6 <= len(covering(sizes, 3)) <= 1.5 * 18 * 8 * 6
    assert len(covering((2,) * 10, 2)) <= 16


def test_the_same_rows_every_time() -> None:
    assert covering((4, 3, 3), 3) == covering((4, 3, 3), 3)


def pairs(rows: list[tuple[int, ...]]) -> set[object]:
    return {pair for row in rows for pair in combinations(enumerate(row), 2)}


def test_what_is_refused_takes_no_meeting_of_others_with_it() -> None:
    sizes = (8, 3, 3, 4, 2)

    def accepted(row: tuple[int, ...]) -> bool:
        a, b, c, d, e = row
        return d != 3 and not (b == 2 and e == 1) and not (a == 0 and c == 2)

    rows = covering_accepted(sizes, accepted)
    assert all(map(accepted, rows))
    assert pairs(rows) == pairs([row for row in product(*map(range, sizes)) if accepted(row)])
    assert len(rows) <= 1.5 * 8 * 3
    assert rows == covering_accepted(sizes, accepted)


def test_the_first_wish_holds_for_every_meeting_that_it_lets_be() -> None:
    sizes = (6, 4, 3)
    rows = covering_accepted(sizes, lambda row: row[1] < 2, lambda row: True)
    assert pairs([row for row in rows if row[1] < 2]) == pairs([r for r in product(*map(range, sizes)) if r[1] < 2])
    assert pairs(rows) == pairs(list(product(*map(range, sizes))))


def test_an_empty_axis_or_nothing_accepted_leaves_nothing() -> None:
    assert covering((3, 0), 2) == ()
    assert covering_accepted((3, 2), lambda row: False) == []
    assert covering_accepted((3, 0), lambda row: (1, 2)[row[1]] > 0) == []  # with an empty axis it is not called


@pytest.mark.parametrize("sizes", [sizes for sizes in SIZES if sizes])
def test_in_turn_every_value_occurs_once_the_longest_axis_is_through(sizes: tuple[int, ...]) -> None:
    rows = list(islice(turns(sizes), max(sizes)))
    assert [set(column) for column in zip(*rows, strict=True)] == [set(range(n)) for n in sizes]


def test_axes_of_one_length_do_not_stay_in_step() -> None:
    assert len(set(islice(turns((3, 3)), 9))) >= 6
    assert len(set(islice(turns((3, 6)), 18))) >= 12
