"""Results of 16 bits evaluated in float32 by NumPy: half the memory of float64 and twice the numbers per operation.

Where the operands of a block lie in the formula's window (:mod:`.windows`), float32 loses a known share of every
result, and all but one in a thousand are further than that from a midpoint. The others are evaluated in float64.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ...model.call import Array
from ...model.dtypes import DTYPES, FORMATS, dtype_of
from ..bounds.losses import losses
from ..bounds.windows import Span, are_single, number, operand, sound, spanned, tried
from ..evaluate import tables
from ..evaluate.programs import Values, program, simulate
from ..floats.arithmetic import FLOAT64, HOST_FLOAT32
from ..floats.blocks import scratch
from ..floats.codes import castable, code
from ..floats.extremes import highest, lowest
from ..formula.expressions import IRRATIONAL, ZERO, Expression, constant
from ..formula.traversal import names_of, walk
from ..orders.kernel_orders import KEPT, Graphs
from ..proof.proof import narrow

Formats = tuple[tuple[str, str], ...]
Numbers = tuple[tuple[str, float], ...]
HIDDEN = 2.0**-30  # relative: far below float32's rounding, of which one unit is counted beside
MANY = 8  # a block that leaves more than one in so many is evaluated in float64 as a whole


class Plan(NamedTuple):
    """How a formula is evaluated: with symbols for what is looked up in tables, losing ``relative`` at most, where the
    codes of operands lie in windows."""

    value: Expression
    parts: tuple[tables.Part, ...]
    relative: float
    windows: Mapping[str, tuple[int, int]]


def plan_of(graphs: Graphs, given: Mapping[str, Values], target: np.dtype[np.generic], elements: int) -> Plan | None:
    """Return the plan of a call that stores a type; None where float32 will not do."""
    if target.itemsize != 2:
        return None
    formats = tuple((n, dtype_of(v.dtype).name) for n, v in sorted(given.items()) if isinstance(v, np.ndarray))
    numbers = tuple((n, float(v)) for n, v in sorted(given.items()) if not isinstance(v, np.ndarray))
    if any(FORMATS[kind].mant >= FORMATS["float32"].mant for _, kind in formats):
        return None
    return _plan(graphs, formats, numbers, elements > tables.VALUES)


@lru_cache(maxsize=KEPT)
def _plan(graphs: Graphs, formats: Formats, numbers: Numbers, tabled: bool) -> Plan | None:
    kinds = dict(formats)
    (value,), parts = tables.split((graphs.value,), frozenset(kinds) if tabled else frozenset())
    (lost,) = losses([value], HOST_FLOAT32, graphs.facts_of(formats), rounded=frozenset(part.name for part in parts))
    irrational = any(node.op in IRRATIONAL and node.op != "sqrt" for node in walk(value))
    constant_or_coarse = not names_of(value) or not are_single(v for _, v in numbers)
    if irrational or constant_or_coarse or lost.absolute is not ZERO or lost.scaled is not ZERO:
        return None
    slack = constant(lost.relative + HOST_FLOAT32.unit) * abs(value)
    known = {name: number(v) for name, v in numbers}
    for least, most in tried():
        codes = {name: (code(DTYPES[kind].numpy, least), code(DTYPES[kind].numpy, most)) for name, kind in formats}
        symbols = {name: operand(kind, least, most) for name, kind in formats} | known
        read = {part.name: _looked_up(part, kinds[part.operand], codes[part.operand]) for part in parts}
        spans = {name: span for name, span in read.items() if span is not None}
        if len(spans) == len(read) and sound(value, slack, symbols | spans):
            return Plan(value, parts, lost.relative, codes)
    return None


def _looked_up(part: tables.Part, kind: str, window: tuple[int, int]) -> Span | None:
    """What the values of a table have in common, of operands in a window; None where float64 loses more of one than a
    rounding to float32 hides."""
    first = np.arange(1 << 15)
    inside = first[(first == 0) | ((first >= window[0]) & (first <= window[1]))]
    codes = np.concatenate((inside, inside + (1 << 15)))
    (lost,) = losses([part.root], FLOAT64)
    (running,) = program(lost.running(abs(part.root)))(
        {part.operand: codes.astype(np.uint16).view(DTYPES[kind].numpy)}, codes.shape
    )
    sizes = np.abs(_table(part.root, DTYPES[kind].numpy)[codes].astype(np.float64))
    if not np.all(lost.relative * sizes + running <= sizes * HIDDEN):
        return None
    some = sizes[sizes > 0]
    return spanned(math.log2(some.min()), math.log2(some.max()), zero=some.size < sizes.size)


@lru_cache(maxsize=tables.KEPT)
def _table(root: Expression, kind: np.dtype[np.generic]) -> Array:
    with np.errstate(all="ignore"):
        return tables.table(root, kind, False).astype(np.float32)


def put(plan: Plan, given: Mapping[str, Values], target: Array) -> Array | None:
    """Round a block into a contiguous target; return the flat indices of what is not proved. None where float32 does
    not do, and the block is to be evaluated in float64."""
    arrays = {name: np.ascontiguousarray(v) for name, v in given.items() if isinstance(v, np.ndarray)}
    outside = [_outside(array.view(np.uint16).reshape(-1), plan.windows[name]) for name, array in arrays.items()]
    if MANY * sum(where.size for where in outside) > target.size:
        return None
    needed = set(names_of(plan.value))
    symbols: dict[str, Values] = {
        name: castable(array).astype(np.float32, copy=False) for name, array in arrays.items() if name in needed
    }
    symbols |= {name: v for name, v in given.items() if name not in arrays}
    places = {n: arrays[n].view(np.uint16).astype(np.intp) for n in {part.operand for part in plan.parts}}
    for part in plan.parts:
        known = _table(part.root, arrays[part.operand].dtype)
        symbols[part.name] = known.take(places[part.operand], mode="clip")
    value = simulate(plan.value, symbols, np.float32)
    band = math.ceil(plan.relative / HOST_FLOAT32.unit) + 1
    doubt = narrow(np.ascontiguousarray(np.broadcast_to(value, target.shape)), target, band).reshape(-1)
    for where in outside:
        doubt[where] = True
    left = np.flatnonzero(doubt)
    return None if MANY * left.size > target.size else left


def _outside(codes: Array, window: tuple[int, int]) -> Array:
    """The places of codes that are neither that of 0 nor of magnitudes in a window."""
    first, last = window
    sizes = np.bitwise_and(codes, np.uint16(0x7FFF), out=scratch("sizes", codes.shape, np.uint16))
    large = codes.size and highest(sizes) > last
    if first > 1:
        sizes -= np.uint16(1)  # 0 is far beyond every window then
        last -= 1
    if not large and (first <= 1 or not codes.size or lowest(sizes) >= first - 1):
        return np.empty(0, np.intp)
    beyond = sizes > last if first <= 1 else (sizes > last) & (sizes != 0xFFFF) | (sizes < first - 1)
    return np.flatnonzero(beyond)
