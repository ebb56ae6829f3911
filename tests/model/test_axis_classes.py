"""Classes of a reduced axis: their words are what they say, and small shapes are of every class that meets another."""

from __future__ import annotations

import math
from itertools import product

import pytest

from oracle.model.classes import PLACES, axis_classes, place, reduced_shapes


@pytest.mark.parametrize(
    ("shape", "axis", "expected"),
    [
        ((3, 1), 1, ("of one element", "nothing", "last")),
        ((7, 16), 0, ("up to 16", "otherwise", "first")),
        ((2, 33, 5, 13), 1, ("odd", "above 64 and no multiple of it", "middle")),
        ((2, 128, 3), 1, ("a multiple of 64", "below 16", "middle")),
        ((100, 64), 0, ("65 to 128", "otherwise", "first")),
        ((2049, 1), 0, ("above 2048", "nothing", "first")),
        ((16385,), 0, ("above 16384", "nothing", "last")),
    ],
)
def test_an_axis_has_one_class_of_every_kind(shape, axis, expected):
    assert (*axis_classes(shape, axis), place(shape, axis)) == expected


def test_every_three_of_length_columns_and_place_that_meet_do_so_in_a_small_shape():
    lengths, behind = (1, 2, 15, 33, 99, 100, 128, 640, 2049, 4096, 20001), (1, 2, 15, 65, 100)
    shapes = [(leading, n, b) for leading, n, b in product((1, 2), lengths, behind) if leading * n * b > 1]
    shapes += [shape[1:] for shape in shapes if shape[0] == 1] + [shape[:-1] for shape in shapes if shape[-1] == 1]
    result = {(*axis_classes(s, axis), place(s, axis)) for s in shapes for axis in range(len(s))}
    result = {each for each in result if "otherwise" not in each}
    own = {(*axis_classes(s, axis), place(s, axis)) for s, axis in reduced_shapes()}
    assert {each[2] for each in own} == {*PLACES}
    assert result - {each for each in result if each[:2] == ("of one element", "nothing")} <= own
    assert all(1 < math.prod(shape) < 1 << 21 for shape, _ in reduced_shapes())
