"""Outputs that are zero but for one element in a row: cleared past the cache, and a proved value for each row's class.

Stores that go past the cache write memory without reading it before, which takes half the time where an output is
larger than the cache.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ...model.call import Array
from ...model.dtypes import FORMATS, dtype_of
from ..formula.expressions import text, trace
from .cache import keep
from .operands import codes_of, i32, i64, load, njit
from .rounding import OUT, encoder

LINE = 64  # bytes of a store
PAST = 8 << 20  # bytes of an output that is cleared so: a smaller one is soon read again


def scatter(
    formula: Callable[..., Any],
    rows: tuple[Array, Array, Array],
    out: Array,
    *,
    total: float,
    relative: float,
    ignore: int,
    narrow: bool,
) -> Array | None:
    """Clear an output (rows, classes), contiguous, and store the formula's value of each row at its class; return the
    rows whose value is not proved. None where a target is no class, or (``narrow``) none of int32: nothing counts then.

    rows: gradients, one per row or one for all, targets, and weights per class.
    formula: of gradient, weight and total, which loses ``relative`` at most.
    """
    grad, target, weight = rows
    assert out.shape == (target.size, weight.size), "compiled code looks at no bounds"
    assert out.flags.c_contiguous
    content = out.reshape(-1).view(np.uint8)
    clear(content, -content.ctypes.data % LINE if content.size >= PAST else content.size)
    left = np.empty(target.size, np.int64)
    run = _scattering(formula, dtype_of(out.dtype).name)
    count = run(
        codes_of(grad),
        codes_of(weight),
        np.ascontiguousarray(target),
        total,
        relative,
        ignore,
        narrow,
        out.view(OUT[out.itemsize]),
        left,
    )
    return None if count < 0 else left[:count]


@functools.cache
def _scattering(formula: Callable[..., Any], dtype: str) -> Any:
    value, encode, most = njit(error_model="numpy")(formula), encoder(dtype), FORMATS[dtype].max

    @njit(nogil=True, error_model="numpy")
    def run(grad, weight, target, total, relative, ignore, narrow, out, left):
        found, step = 0, 1 if grad.size == target.size else 0
        for row in range(target.size):
            chosen = i64(target[row])
            if narrow and chosen != i64(i32(chosen)):
                return -1
            if chosen == ignore:
                continue
            if chosen < 0 or chosen >= weight.size:
                return -1
            v = value(load(grad, row * step), load(weight, chosen), total)
            code, unsure = encode(v, abs(v) * relative)
            out[row, chosen] = code
            left[found] = row
            found += unsure and not (relative == 0.0 and abs(v) <= most)  # an exact value's tie is one
        return found

    return keep(run, f"classes\n{dtype}\n{text(trace(formula))}")


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
