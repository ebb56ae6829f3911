"""The arguments of aclCreateTensor for an array: an aligned address, and strides and offset of the same elements."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from views import VIEWS as FOREIGN

from oracle.cann.device import ALIGNMENT, Placed, unsupported
from oracle.catalogue.data.layout import VIEWS, allocate, describe
from oracle.model.call import TensorSpec

SHAPE = (3, 4, 5)
DTYPES = (np.float16, ml_dtypes.bfloat16, np.float32, np.int64, np.uint8)
BASE = np.arange(2 * 7 * 11, dtype=np.float32).reshape(2, 7, 11)


def read_back(placed: Placed, dtype) -> np.ndarray:
    """Read a tensor as a device does: from an address, with offset and strides in elements."""
    spec, item = placed.spec, np.dtype(dtype).itemsize
    block = np.zeros(max(placed.end, placed.memory.nbytes), np.uint8)
    block[: placed.memory.nbytes] = placed.memory
    storage = block[placed.start : placed.end].view(dtype)
    strides = tuple(s * item for s in spec.strides)
    return np.lib.stride_tricks.as_strided(storage[spec.offset :], spec.shape, strides)


def obeys_the_documents(placed: Placed) -> bool:
    spec = placed.spec
    last = spec.offset + sum((n - 1) * s for n, s in zip(spec.shape, spec.strides, strict=True))
    fits = spec.size == 0 or 0 <= spec.offset <= last < np.prod(spec.storage_shape)
    return placed.start % ALIGNMENT == 0 and fits


@pytest.mark.parametrize("view", FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize("dtype", DTYPES)
def test_any_view_is_described_by_what_it_is(view, dtype):
    array = view(BASE.astype(dtype))
    placed = Placed(array, None)
    assert obeys_the_documents(placed)
    if array.size:
        assert np.array_equal(read_back(placed, dtype), array)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int64", "uint8"])
def test_a_case_s_tensor_is_described_as_the_case_says(view, dtype):
    buffer, described = allocate(SHAPE, dtype, view), describe(SHAPE, dtype, view, "ND", None)
    buffer.base[...] = np.arange(buffer.base.size).astype(buffer.base.dtype)
    placed = Placed(buffer.view, described)
    assert placed.spec is described
    assert placed.start % ALIGNMENT == 0
    assert np.shares_memory(placed.memory, buffer.base)
    assert placed.memory.nbytes == buffer.base.nbytes


def test_a_storage_larger_than_the_host_s_memory_gets_a_block_as_large():
    buffer = allocate((2, 3), "float32")
    described = TensorSpec((2, 3), "float32", format="NC1HWC0", storage_shape=(2, 1, 1, 3, 16))
    assert Placed(buffer.view, described).end >= 2 * 3 * 16 * 4


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (BASE[::-1], "no negative strides"),
        (BASE.astype(">f4"), "byte order"),
        (np.zeros(3, "datetime64[s]"), "no aclDataType"),
        (np.zeros(3, [("a", "u1"), ("b", "<f4")])["b"], "multiples of 4 bytes"),
    ],
)
def test_what_has_no_form_is_told(array, message):
    assert message in (unsupported("self", array) or "")


@pytest.mark.parametrize("view", FOREIGN.values(), ids=FOREIGN)
def test_what_has_a_form_is_supported(view):
    assert unsupported("self", view(BASE)) is None
