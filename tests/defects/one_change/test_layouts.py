"""Misread memory: the values of a view that is read with other strides."""

from __future__ import annotations

import numpy as np
import pytest

from oracle.catalogue.data.layout import allocate
from oracle.defects.one_change.layouts import MISTAKES, packed, reread, storage_of
from oracle.model.call import strides_of

VIEWS = ("contiguous", "offset:3", "strided", "padded", "transposed", "permuted", "expanded:0")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64"])
@pytest.mark.parametrize("view", VIEWS)
def test_own_strides_read_what_is_there(view, dtype):
    array = allocate((3, 4, 5), dtype, view).view
    array[...] = np.arange(60).reshape(3, 4, 5)
    assert (reread(array, strides_of(array), 0) == array).all()


@pytest.mark.parametrize("view", VIEWS)
def test_the_storage_holds_the_view_at_its_start(view):
    array = allocate((3, 4), "float32", view).view
    array[...] = 7
    memory, start = storage_of(array)
    memory[start] = 9
    assert array[0, 0] == 9


def test_packed_is_right_for_contiguous_views_only():
    for view, same in (("contiguous", True), ("offset:3", True), ("strided", False), ("transposed", False)):
        array = allocate((3, 4), "float32", view).view
        array[...] = np.arange(12).reshape(3, 4)
        assert (packed(array) == array).all() == same, view


@pytest.mark.parametrize(("mistake", "view"), [
    ("strides", "padded"), ("last stride", "strided"), ("row strides", "padded"), ("stride 0", "expanded:0"),
    ("axis order", "transposed"),
])  # fmt: skip
def test_a_mistake_shows_on_its_view_and_not_on_a_contiguous_one(mistake, view):
    _, change, _ = MISTAKES[mistake]
    plain, other = allocate((4, 6), "float32").view, allocate((4, 6), "float32", view).view
    assert change(strides_of(plain), (4, 6)) == strides_of(plain)
    assert change(strides_of(other), (4, 6)) != strides_of(other)
