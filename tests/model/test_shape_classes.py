"""Classes of shapes: their words are what they say, and small shapes are of every class that meets another."""

from __future__ import annotations

import math
from itertools import combinations, product

import pytest

from oracle.model.shape_classes import FACTORS, OTHER, classes, small_shapes

KINDS = tuple(FACTORS)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((1, 1), ("2", "1", "1", "below 32", "equal")),
        ((49, 17), ("2", "1 mod 16", "above 48", "1 mod 64", "different")),
        ((3, 5, 64), ("3", "a multiple of 64", "odd", "a multiple of 64", "different")),
        ((2, 3, 4, 24), ("4", "8 mod 16", OTHER, "a multiple of 64", "different")),
        ((2, 2, 4, 48), ("4", "a multiple of 16", OTHER, "a multiple of 64", "equal")),
        ((3, 8193), ("2", "above 8192", "odd", "above 4096", "different")),
    ],
)
def test_a_shape_has_one_class_of_every_kind(shape, expected):
    assert classes(shape) == expected


@pytest.mark.parametrize(("rank", "most"), [(2, 2), (4, 8)])
def test_every_two_classes_of_a_shape_meet_in_a_small_one(rank, most):
    lengths = (1, 2, 3, 7, 15, 16, 17, 49, 64, 128, 1025, 8193)
    shapes = [s for axes in range(2, rank + 1) for s in product(lengths, repeat=axes) if 1 < math.prod(s) <= 1 << 16]

    def twos(found):
        return {two for shape in found for two in combinations(zip(KINDS, classes(shape), strict=True), 2)}

    expected = {two for two in twos(shapes) if OTHER not in dict(two).values()}
    assert len(expected) > {2: 60, 4: 130}[rank]
    assert expected - twos(small_shapes(2, most)) == set()


def test_small_shapes_are_small_and_each_of_its_own():
    shapes = small_shapes(3, 8)
    assert len({classes(shape) for shape in shapes}) == len(shapes) > 300
    assert all(1 < math.prod(shape) <= 1 << 16 and 3 <= len(shape) <= 8 for shape in shapes)
