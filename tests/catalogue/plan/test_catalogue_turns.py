"""Taking turns: every value of every axis, once the longest axis is through."""

from __future__ import annotations

from itertools import islice

import pytest
from test_catalogue_covering import SIZES

from oracle.catalogue.plan.families import turns


@pytest.mark.parametrize("sizes", [sizes for sizes in SIZES if sizes])
def test_in_turn_every_value_occurs_once_the_longest_axis_is_through(sizes: tuple[int, ...]) -> None:
    rows = list(islice(turns(sizes), max(sizes)))
    assert [set(column) for column in zip(*rows, strict=True)] == [set(range(n)) for n in sizes]


def test_axes_of_one_length_do_not_stay_in_step() -> None:
    assert len(set(islice(turns((3, 3)), 9))) >= 6
    assert len(set(islice(turns((3, 6)), 18))) >= 12
