"""Classes of shapes, of a reduced axis and of layouts match their words; small shapes cover all that can meet."""

from __future__ import annotations

import math
from itertools import combinations, product

import pytest

from oracle.catalogue.data.layout import arrange
from oracle.model.classes import (
    LARGE,
    OFFSETS,
    OTHER,
    PLACES,
    SHAPE_FACTORS,
    STRIDES,
    axis_classes,
    combinations_only_in_large,
    few_shapes,
    offset_class,
    place,
    reduced_shapes,
    shape_classes,
    small_shapes,
    stride_class,
)

# shapes ---------------------------------------------------------------------------------------------------------------


KINDS = tuple(SHAPE_FACTORS)


def twos(shapes):
    """Return every two classes, with their kinds, that meet in one of the shapes."""
    return {two for shape in shapes for two in combinations(zip(KINDS, shape_classes(shape), strict=True), 2)}


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((1, 1), ("2", "1", "1", "below 32", "equal")),
        ((49, 17), ("2", "1 mod 16", "above 48", "1 mod 64", "different")),
        ((3, 5, 64), ("3", "a multiple of 64", "odd", "a multiple of 64", "different")),
        ((2, 3, 4, 24), ("4", "8 mod 16", OTHER, "a multiple of 64", "different")),
        ((2, 2, 4, 48), ("4", "a multiple of 16", OTHER, "a multiple of 64", "equal")),
        ((3, 8193), ("2", "above 8192", "odd", "above 4096", "different")),
        ((256, 256), ("2", "a multiple of 64", "above 48", "above 4096", "equal")),
        ((65537, 1), ("2", "1", "above 48", "above 65536", "different")),
        ((1, 1024, 1024), ("3", "a multiple of 64", "1", "above 65536", "equal")),
        ((1025, 1025), ("2", "above 1024", "above 48", "above 2^20", "equal")),
    ],
)
def test_a_shape_has_one_class_of_every_kind(shape, expected):
    assert shape_classes(shape) == expected


@pytest.mark.parametrize(("rank", "most"), [(2, 2), (4, 8)])
def test_every_two_classes_of_a_shape_meet_in_a_small_one(rank, most):
    lengths = (1, 2, 3, 7, 15, 16, 17, 49, 64, 128, 1025, 8193)
    shapes = [s for axes in range(2, rank + 1) for s in product(lengths, repeat=axes) if 1 < math.prod(s) <= 1 << 16]
    expected = {two for two in twos(shapes) if OTHER not in dict(two).values()}
    assert len(expected) > {2: 60, 4: 130}[rank]
    assert expected - twos(small_shapes(2, most)) == set()


def test_small_shapes_are_small_and_each_of_its_own():
    shapes = small_shapes(3, 8)
    assert len({shape_classes(shape) for shape in shapes}) == len(shapes) > 300
    assert all(1 < math.prod(shape) <= 1 << 16 and 3 <= len(shape) <= 8 for shape in shapes)


@pytest.mark.parametrize("most", [2, 8])
@pytest.mark.parametrize("count", LARGE)
def test_every_two_classes_of_a_large_shape_meet_in_one_of_few_elements(count, most):
    own, end = small_shapes(2, most, count), max(1 << 20, 2 * LARGE[count])
    assert len(own) < 300
    assert all(shape_classes(shape)[3] == count and math.prod(shape) <= end for shape in own)
    lengths = (1, 2, 3, 17, 24, 31, 16, 64, 257, 1025, 1600, 8193, 22000, 65537, (1 << 20) + 1)
    result = [s for rank in (2, 3) for s in product(lengths, repeat=rank) if rank <= most]
    large = [s for s in result if LARGE[count] < math.prod(s) <= end and OTHER not in shape_classes(s)]
    assert len(twos(large)) > 25
    assert twos(large) - twos(own) == set()


def test_large_shapes_have_classes_together_that_no_smaller_shape_has():
    long_rows = (("last axis", "above 8192"), ("leading axis", "above 48"))
    assert long_rows in combinations_only_in_large(small_shapes(2, 4, "above 65536"))
    assert long_rows not in combinations_only_in_large(small_shapes(2, 4, "above 2^20"))
    assert combinations_only_in_large(small_shapes(2, 4)) == ()


@pytest.mark.parametrize("most", [2, 8])
def test_few_shapes_have_every_two_classes_that_small_shapes_have(most):
    few = few_shapes(2, most)
    assert twos(few) == twos(shape for shape in small_shapes(2, most) if OTHER not in shape_classes(shape))
    assert len(few) < 70
    assert OTHER not in {name for shape in few for name in shape_classes(shape)}


# a reduced axis -------------------------------------------------------------------------------------------------------


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


# layouts --------------------------------------------------------------------------------------------------------------


VIEWS = {
    "contiguous": "in order", "offset:16": "in order", "strided:3": "a strided last axis",
    "padded": "gaps between rows", "transposed": "axes out of order", "permuted": "axes out of order",
    "expanded:0": "stride 0 outside", "expanded:1": OTHER, "expanded:-1": "stride 0 inside",
    "repeated": "stride 0 everywhere",
}  # fmt: skip


@pytest.mark.parametrize(("view", "expected"), VIEWS.items())
def test_every_view_has_a_class_that_no_axis_of_length_1_changes(view: str, expected: str) -> None:
    assert expected in (*STRIDES, OTHER)
    strides = arrange((2, 3, 4), view).strides
    assert stride_class((2, 3, 4), strides) == expected
    assert stride_class((1, 2, 1, 3, 4, 1), (7, strides[0], 0, *strides[1:], 99)) == expected


def test_a_vector_is_in_order_strided_or_one_element() -> None:
    assert [stride_class((5,), (stride,)) for stride in (1, 2, 0)] == [STRIDES[0], STRIDES[1], STRIDES[-1]]
    assert stride_class((), ()) == stride_class((1, 1), (0, 5)) == STRIDES[0]


def test_every_offset_that_is_asked_for_has_a_class_of_its_own() -> None:
    assert [offset_class(k) for k in (0, 1, 2, 3, 4, 5, 8, 16, 65536)] == list(OFFSETS)
    assert {offset_class(k) for k in (6, 7, 15, 17, 65535)} == {OTHER}
