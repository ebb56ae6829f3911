"""Arrays to a framework and back: bfloat16 as its bits where the framework has no ml_dtypes, views as views."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from ..model.call import Array, Call, address, memory_of, strides_of
from ..operators import written

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


class Strided(NamedTuple):
    """A view as frameworks describe one: the elements of its whole memory in a row, and which of them it shows.

    ``strides`` and ``offset`` count elements.
    """

    memory: Array
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int


def strided(array: Array) -> Strided | None:
    """Return the memory that a view looks into and how it looks; None where no framework has such a view: a negative
    stride, or an element that does not lie at a multiple of its size."""
    memory, item = memory_of(array), array.itemsize
    start = address(array) - address(memory)
    if start % item or memory.nbytes % item or min(array.strides, default=0) < 0:
        return None
    return Strided(memory.view(array.dtype), array.shape, strides_of(array), start // item)


def sent(array: Array, make: Callable[[Array], Any], as_strided: Callable[[Any, Any, Any, int], Any]) -> Any:
    """Return a framework's tensor of an array, laid out in the framework's memory as the array is in ours.

    ``make(array)`` makes a tensor of a contiguous array, ``as_strided(tensor, shape, strides, offset)`` a view of one.
    A view that no framework has arrives as a contiguous copy.
    """
    found = strided(array)
    if found is None:
        return make(np.ascontiguousarray(array).reshape(array.shape))
    return as_strided(make(found.memory), found.shape, found.strides, found.offset)


def bits(array: Array) -> Array:
    """Return an array as a framework takes it that does not know ml_dtypes: bfloat16 as int16 on the same memory."""
    return array.view(np.int16) if array.dtype == BFLOAT16 else array


def from_bits(array: Array, dtype: str) -> Array:
    """Return what a framework gave as bits as the dtype that they are of; any other array as it is."""
    return array.view(BFLOAT16) if dtype == "bfloat16" and array.dtype != BFLOAT16 else array


def store(call: Call, *results: Any) -> None:
    """Put results into the call's outputs: cast to their dtypes as the host casts last, and written in place. Results
    of outputs that the call does not write are left out.

    A result of another shape takes the output's place instead, for the verdict to name it.
    """
    names = written(call)
    for (name, given), result in zip(tuple(call.outputs.items()), map(np.asarray, results), strict=True):
        if name not in names:
            continue
        if result.shape != given.shape:
            call.outputs[name] = result
            continue
        with np.errstate(all="ignore"):  # an overflow to infinity is the cast's answer
            given[...] = result.astype(given.dtype, copy=False)
