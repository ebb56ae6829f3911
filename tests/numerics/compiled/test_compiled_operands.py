"""Chunks of operands: the elements inside a window, in doubt, and selected."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("numba", reason="the extra `fast` (numba) is not installed")
from oracle.numerics.compiled import elements
from oracle.numerics.floats.codes import code


@elements.njit
def beyond(codes, window):
    return np.array([elements.is_beyond(codes, i, window) for i in range(codes.size)])


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_a_window_holds_zeros_and_magnitudes_between_its_ends(dtype):
    least = 0.25 if dtype == np.float16 else 0.0  # float32's windows begin at 0
    window = code(np.dtype(dtype), least), code(np.dtype(dtype), 4.0)
    inside = [0.0, -0.0, 4.0, -4.0, 1.5, 0.25]
    outside = [4.01, -5, np.inf, -np.inf, np.nan, *([0.2, -6e-8] if least else [])]
    kind = np.int16 if dtype == np.float16 else np.uint32
    for values, wrong in ((inside, 0), (outside, len(outside)), (inside * 9 + outside, len(outside))):
        codes = np.array(values, dtype).view(kind)
        assert list(np.flatnonzero(beyond(codes, window))) == list(range(len(values) - wrong, len(values)))


@pytest.mark.parametrize("size", [1, 7, 100, 128, 1024])
def test_the_places_in_doubt_are_listed_behind_those_before(size):
    r = np.random.default_rng(size)
    doubt = np.zeros(1024, np.bool_)
    doubt[:size] = r.random(size) < 0.1
    doubt[size:] = True  # left by an earlier, longer chunk
    places = np.full(2048, -1)
    places[0] = 77
    count = elements.listed(doubt, doubt.view(np.uint64), size, 5000, places, 1)
    assert list(places[:count]) == [77, *(5000 + np.flatnonzero(doubt[:size]))]


def test_elements_are_picked_and_numbers_stand_for_themselves():
    @elements.njit
    def gather(array, number, places):
        rooms = elements.room(array, 8), elements.room(number, 8)
        return elements.picked(array, places, rooms[0]), elements.picked(number, places, rooms[1])

    array = np.arange(100, dtype=np.uint16)
    result, number = gather(array, 2.5, np.array([3, 99, 3]))
    assert (list(result), number) == ([3, 99, 3], 2.5)
