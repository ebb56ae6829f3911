"""Classes of layouts: what every view is, and that an axis of length 1 says nothing."""

from __future__ import annotations

import pytest

from oracle.catalogue.data.layout import arrange
from oracle.model.classes import OFFSETS, OTHER, STRIDES, offset_class, stride_class

VIEWS = {
    "contiguous": "in order",
    "offset:16": "in order",
    "strided:3": "a strided last axis",
    "padded": "gaps between rows",
    "transposed": "axes out of order",
    "permuted": "axes out of order",
    "expanded:0": "stride 0 outside",
    "expanded:1": OTHER,
    "expanded:-1": "stride 0 inside",
    "repeated": "stride 0 everywhere",
}


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
