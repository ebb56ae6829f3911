"""Arrays reach a framework with their values, dtype and layout; results come back as the host casts them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from numpy.lib.stride_tricks import as_strided
from views import BASE, VIEWS

from oracle.adapter import bits, from_bits, sent, store, strided
from oracle.model.call import Call


def view(tensor, shape, strides, offset):
    return as_strided(tensor[offset:], shape, [s * tensor.itemsize for s in strides])


def test_a_view_arrives_as_the_same_view_of_a_copy_of_its_memory():
    for dtype in (np.float32, np.float16, ml_dtypes.bfloat16, np.uint8):
        base = BASE.astype(dtype)
        for array in (made(base) for made in VIEWS.values()):
            result = sent(array, np.copy, view)
            assert not np.shares_memory(result, base)
            assert (result.dtype, result.shape, result.strides) == (array.dtype, array.shape, array.strides)
            assert np.array_equal(result, array)


def test_a_view_that_no_framework_has_arrives_contiguous():
    unaligned = np.zeros(13, np.uint8)[1:].view(np.float32)
    for array in (BASE[::-1], unaligned):
        assert strided(array) is None
        result = sent(array, np.copy, view)
        assert result.flags.c_contiguous
        assert np.array_equal(result, array)


def test_bfloat16_travels_as_its_bits_on_the_same_memory():
    array = BASE.astype(ml_dtypes.bfloat16)[:, ::2]
    carried = bits(array)
    assert (carried.dtype, carried.strides) == (np.int16, array.strides)
    assert np.shares_memory(carried, array)
    assert np.array_equal(from_bits(carried, "bfloat16"), array)
    assert bits(BASE) is BASE
    assert from_bits(BASE, "float32") is BASE


def test_a_result_is_cast_to_the_output_in_place_and_one_of_another_shape_takes_its_place():
    out = np.zeros((6, 4), ml_dtypes.bfloat16).T
    call = Call("aclnnSoftmaxBackward", "ascend910b", {}, {}, {"out": out})
    result = BASE / 3
    result[0, 0] = 3.4e38  # finite in float32, infinite in bfloat16: without a warning
    store(call, result)
    assert call.outputs["out"] is out
    assert np.isinf(out[0, 0])
    assert np.array_equal(out[1:], result[1:].astype(ml_dtypes.bfloat16))
    store(call, BASE[:2])
    assert call.outputs["out"].shape == (2, 6)
