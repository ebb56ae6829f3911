"""Outputs that are zero nearly everywhere, cleared past the cache.

Stores that go past the cache write memory without reading it before, which takes half the time where an output is
larger than the cache.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ...model.call import Array
from .cache import keep
from .operands import njit

LINE = 64  # bytes of a store
PAST = 8 << 20  # bytes of an output that is cleared so: a smaller one is soon read again


def cleared(out: Array) -> None:
    """Set a contiguous output to zero."""
    content = out.reshape(-1).view(np.uint8)
    clear(content, -content.ctypes.data % LINE if content.size >= PAST else content.size)


@intrinsic
def store_past(context, content, place):
    """A cache line of zeros at a place, which is a multiple of it."""

    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        line = ir.VectorType(ir.IntType(8), LINE)
        target = builder.bitcast(builder.gep(data, [arguments[1]]), line.as_pointer())
        store = builder.store(ir.Constant(line, None), target, align=LINE)
        store.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)]))
        return context.get_dummy_value()

    return types.void(content, types.int64), generate


@intrinsic
def stores_are_seen(context):
    """Such stores are in no order with others before this."""

    def generate(context, builder, signature, arguments):
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), generate


@njit(nogil=True)
def clear(content, first):
    """Set a vector of bytes to zero, from ``first`` on, which begins a cache line, past the cache."""
    last = first + (content.size - first) // LINE * LINE
    content[:first] = 0
    for place in range(first, last, LINE):
        store_past(content, place)
    stores_are_seen()
    content[last:] = 0


clear = keep(clear, "clear")
