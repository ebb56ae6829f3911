"""The words for where bad elements lie, over a table of masks."""

from __future__ import annotations

import numpy as np
import pytest

from oracle.explain.findings import pattern


def mask(shape, *index):
    bad = np.zeros(shape, bool)
    for where in index:
        bad[where] = True
    return bad


IGNORED = np.isin(np.arange(10), (2, 3, 7))
TABLE = [
    (np.ones((3, 4), bool), "all"),
    (np.ones((), bool), "the only element"),
    (mask((3, 4), (1, 2)), "one element, [1, 2]"),
    (mask(100, slice(64, None)), "tail from element 64 of 100"),
    (mask((4, 100), (slice(None), slice(96, None))), "tail of every row from 96 of 100 along axis 1"),
    (mask((50, 6), (slice(32, None),)), "tail from element 192 of 300"),
    (mask((2, 50, 6), (slice(None), slice(32, None))), "tail of every row from 32 of 50 along axis 1"),
    (mask((9, 5), 3), "one row: 3 of 9"),
    (mask((4, 9, 5), (slice(None), slice(2, 5))), "one contiguous block of indices of axis 1: 2 to 4 of 9"),
    (mask((9, 5), (slice(None), 2)), "one index of axis 1: 2 of 5"),
    (mask((12, 5), slice(1, None, 3)), "every 3rd row from 1"),
    (mask((12, 5), slice(0, None, 4)), "every 4th row from 0"),
    (mask((12, 5), slice(2, 6)), "one contiguous block of rows: 2 to 5 of 12"),
    (mask(256, slice(5, None, 16)), "one lane: element 5 of every 16"),
    (mask(4096, slice(63, None, 64)), "one lane: element 63 of every 64"),
    (mask(60, slice(1, None, 7)), "every 7th element from 1"),
    (mask(60, slice(10, 20)), "one contiguous block of elements: 10 to 19 of 60"),
    (mask((9, 5), 1, 2, 6), "whole rows: 3 of 9"),
    (mask((4, 5), (0, 1), (1, 3), (3, 1)), "scattered: 3 of 20"),
]


@pytest.mark.parametrize(("bad", "message"), TABLE, ids=[message for _, message in TABLE])
def test_pattern(bad, message):
    assert pattern(bad) == message


def test_ignored_rows_are_named_before_anything_else():
    bad = mask((10, 4), (2, 1), (7, 3))
    assert pattern(bad, IGNORED) == "ignored rows (2 of 3)"
    bad[5, 0] = True
    assert "ignored" not in pattern(bad, IGNORED)


@pytest.mark.parametrize("bad", [b for b, _ in TABLE])
def test_a_pattern_never_names_an_element_that_is_right(bad):
    """Adding one far-away bad element to a regular pattern must change the words."""
    free = np.argwhere(~bad)
    if bad.ndim and len(free) > 1:
        more = bad.copy()
        more[tuple(free[len(free) // 2])] = True
        assert pattern(more) != pattern(bad)
