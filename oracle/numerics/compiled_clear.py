"""Large arrays set to zero by stores that go past the cache: memory need not be read before it is written."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .compiled_operands import njit
from .machine_code import keep

LINE = 64  # bytes of a store


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
    """Set a vector of bytes to zero; ``first``: the first of them that begins a cache line."""
    last = first + (content.size - first) // LINE * LINE
    content[:first] = 0
    for place in range(first, last, LINE):
        store_past(content, place)
    stores_are_seen()
    content[last:] = 0


clear = keep(clear, "clear")
