"""Strides, addresses and owners of memory, for any view."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from oracle.model.call import TensorSpec, address, memory_of, owner_of, row_major, strides_of
from oracle.model.errors import OracleError

VIEWS = {
    "itself": lambda a: a,
    "slice": lambda a: a[1:, ::2],
    "transposed": lambda a: a.T,
    "reversed": lambda a: a[::-1, ::-1],
    "expanded": lambda a: np.broadcast_to(a[:, :1], a.shape),
    "strided": lambda a: np.lib.stride_tricks.as_strided(a, (2, 2), (0, 8)),
    "other type": lambda a: a.view(np.int16)[:, 1::2],
}


@given(st.lists(st.integers(1, 4), max_size=5).map(tuple))
def test_row_major_strides_are_those_of_a_fresh_array(shape):
    fresh = np.empty(shape, np.float32)
    assert row_major(shape) == strides_of(fresh) or 1 in shape
    assert np.lib.stride_tricks.as_strided(fresh, shape, [4 * s for s in row_major(shape)]).flags.c_contiguous


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_the_owner_of_every_view_is_the_array_it_was_made_of(view):
    base = np.arange(12, dtype=np.float32).reshape(3, 4).copy()
    assert owner_of(view(base)) is base
    memory = memory_of(view(base))
    assert (memory.dtype, memory.size, address(memory)) == (np.uint8, base.nbytes, address(base))


@pytest.mark.parametrize("impossible", [True, 2**63, -(2**63) - 1, 1.0, "2"], ids=repr)
def test_a_number_that_no_tensor_can_have_is_refused(impossible):
    for given_as in ({"shape": (impossible, 2)}, {"shape": (3, 2), "strides": (2, impossible)}):
        with pytest.raises(OracleError, match=r"(shape|strides) must be integers of int64"):
            TensorSpec(**{"dtype": "float32", **given_as})
    with pytest.raises(OracleError, match="offset must be integers of int64"):
        TensorSpec((3, 2), "float32", offset=impossible)
    assert TensorSpec((-3, np.int64(2**62)), "float32").shape == (-3, 2**62)
