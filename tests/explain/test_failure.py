"""A failure's detail: the worst elements, the error map."""

from __future__ import annotations

import json

import numpy as np
import pytest

from oracle.explain.detail import elements, error_map
from oracle.operators import Reference
from oracle.record.codec import to_json
from oracle.record.writer import dumps_object


def detail_of(value, actual, bound=0.1, bad=None):
    value = np.asarray(value, np.float64)
    golden = value.astype(np.float32)
    ref = Reference(golden, value, np.full(value.shape, bound))
    return elements("out", "a rule", ref, np.asarray(actual, np.float32), bad)


def test_the_worst_five_come_first_and_specials_before_all():
    value = np.zeros(20)
    actual = np.arange(20.0)
    actual[3] = np.nan
    result = detail_of(value, actual)
    assert [row.index for row in result.worst] == [(3,), (19,), (18,), (17,), (16,)]
    assert result.worst[0].ulp is None
    assert json.loads(dumps_object(to_json(result)))["worst"][0]["actual"] == "nan"


def test_the_worst_of_very_many_are_found():
    value = np.zeros(100_000)
    actual = np.full(100_000, 0.2)
    actual[[70_000, 5, 99_999]] = 3.0, 2.0, 1.0
    result = detail_of(value, actual, bad=actual > 0.1)
    assert [row.index[0] for row in result.worst][:3] == [70_000, 5, 99_999]
    assert len(result.worst) == 5
    assert (result.bad, result.pattern) == (100_000, "all")


def test_index_and_bits_are_those_of_the_element():
    actual = np.zeros((2, 3, 4), np.float32)
    actual[1, 2, 3] = -1.5
    (row,) = detail_of(np.zeros((2, 3, 4)), actual).worst
    assert (row.index, row.expected_hex, row.actual_hex) == ((1, 2, 3), "0x00000000", "0xbfc00000")


@pytest.mark.parametrize("size", [1, 63, 64, 65, 1000])
def test_the_error_map_shows_every_element(size):
    for place in {0, size // 2, size - 1}:
        score = np.zeros(size)
        score[place] = 7.0
        shown = error_map(score)
        assert len(shown) == min(size, 64)
        assert max(shown) == 7.0
        assert shown.index(7.0) == place * len(shown) // size or size > 64
