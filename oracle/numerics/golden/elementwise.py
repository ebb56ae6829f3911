"""Elementwise operators: a formula evaluated on whole tensors, rounded, proved, and bounded.

The formula's graph defines the float64 evaluation and its error bound, the second check on fractions, and the exact
value. The graphs of the kernels' own orders define the strict bound and the elements on which right kernels disagree
(:mod:`..orders.strict`). NumPy evaluates by blocks; the compiled engine does it if no bound is requested.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ...model.call import Array
from ...model.dtypes import DTYPES, FORMATS, dtype_of
from .. import double_double, programs
from ..bounds.building import SECOND_ORDER
from ..bounds.losses import Doubt, losses
from ..bounds.windows import WINDOWS, Span, are_single, is_safe_in_float32, number, operand, spanned
from ..compiled.engine import is_compiled
from ..exact import extended, rationals
from ..expressions import IRRATIONAL, ZERO, Expression, constant, symbol
from ..floats.blocks import Index, block_size, blocks, piece_size, region_size, run_blocks, scratch
from ..floats.codes import castable, code, highest, lowest
from ..floats.rounding import FLOAT64, HOST_FLOAT32, widen
from ..orders.formula import Formula
from ..orders.kernel_orders import DEPARTURE, KEPT, Graphs, graphs_of, mean_loss
from ..orders.strict import StrictBound
from ..programs import Operands, Values, cast, index_arrays, loaded, map_arrays, program, release, simulate
from ..proof import ExactValue, narrow, settle
from ..sink import JUDGED, Region, Sink
from ..traversal import has_rational_branch, is_rational, names_of, walk

# 16-bit results evaluated in float32 by NumPy: half the memory of float64 and twice the numbers per operation.
#
# If the operands of a block lie in the formula's window (:mod:`..bounds.windows`), float32's relative error has a
# bound. All results except one in a thousand are further than this from a midpoint. The others use float64.

Formats = tuple[tuple[str, str], ...]
Numbers = tuple[tuple[str, float], ...]
HIDDEN = 2.0**-30  # relative: far below float32's rounding, which is added as one unit
MANY = 8  # a block that leaves more than 1 in MANY elements is evaluated in float64 as a whole


class Plan(NamedTuple):
    """The evaluation of a formula in float32, with symbols for table values. The loss is at most ``relative``, if the
    codes of operands lie in ``windows``."""

    value: Expression
    parts: tuple[programs.Part, ...]
    relative: float
    windows: Mapping[str, tuple[int, int]]


def plan_of(graphs: Graphs, operands: Mapping[str, Values], target: np.dtype[np.generic], elements: int) -> Plan | None:
    """Return the plan of a call that stores a type; None if float32 is not sufficient."""
    if target.itemsize != 2:
        return None
    formats = tuple((n, dtype_of(v.dtype).name) for n, v in sorted(operands.items()) if isinstance(v, np.ndarray))
    numbers = tuple((n, float(v)) for n, v in sorted(operands.items()) if not isinstance(v, np.ndarray))
    if any(FORMATS[kind].mant >= FORMATS["float32"].mant for _, kind in formats):
        return None
    return _plan(graphs, formats, numbers, elements > programs.VALUES)


@lru_cache(maxsize=KEPT)
def _plan(graphs: Graphs, formats: Formats, numbers: Numbers, tabled: bool) -> Plan | None:
    kinds = dict(formats)
    (value,), parts = programs.split((graphs.value,), frozenset(kinds) if tabled else frozenset())
    (lost,) = losses([value], HOST_FLOAT32, graphs.facts_of(formats), rounded=frozenset(part.name for part in parts))
    irrational = any(node.op in IRRATIONAL and node.op != "sqrt" for node in walk(value))
    constant_or_coarse = not names_of(value) or not are_single(v for _, v in numbers)
    if irrational or constant_or_coarse or lost.absolute is not ZERO or lost.scaled is not ZERO:
        return None
    slack = constant(lost.relative + HOST_FLOAT32.unit) * abs(value)
    known = {name: number(v) for name, v in numbers}
    for least, most in WINDOWS:
        codes = {name: (code(DTYPES[kind].numpy, least), code(DTYPES[kind].numpy, most)) for name, kind in formats}
        symbols = {name: operand(kind, least, most) for name, kind in formats} | known
        read = {part.name: _looked_up(part, kinds[part.operand], codes[part.operand]) for part in parts}
        spans = {name: span for name, span in read.items() if span is not None}
        if len(spans) == len(read) and is_safe_in_float32(value, slack, symbols | spans):
            return Plan(value, parts, lost.relative, codes)
    return None


def _looked_up(part: programs.Part, kind: str, window: tuple[int, int]) -> Span | None:
    """Return the span of a table's values, for operands in a window. Return None if float64's loss for a value is more
    than a rounding to float32 hides."""
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


@lru_cache(maxsize=programs.KEPT)
def _table(root: Expression, kind: np.dtype[np.generic]) -> Array:
    with np.errstate(all="ignore"):
        return programs.table(root, kind, False).astype(np.float32)


def put(plan: Plan, operands: Mapping[str, Values], target: Array) -> Array | None:
    """Round a block into a contiguous target; return the flat indices of unproven elements. Return None if float32 is
    not sufficient and float64 must evaluate the block."""
    arrays = {name: np.ascontiguousarray(v) for name, v in operands.items() if isinstance(v, np.ndarray)}
    outside = [_outside(array.view(np.uint16).reshape(-1), plan.windows[name]) for name, array in arrays.items()]
    if MANY * sum(where.size for where in outside) > target.size:
        return None
    needed = set(names_of(plan.value))
    symbols: dict[str, Values] = {
        name: castable(array).astype(np.float32, copy=False) for name, array in arrays.items() if name in needed
    }
    symbols |= {name: v for name, v in operands.items() if name not in arrays}
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
    """Return the positions of codes that are neither 0 nor of magnitudes in a window."""
    first, last = window
    sizes = np.bitwise_and(codes, np.uint16(0x7FFF), out=scratch("sizes", codes.shape, np.uint16))
    large = codes.size and highest(sizes) > last
    if first > 1:
        sizes -= np.uint16(1)  # then 0 is far beyond every window
        last -= 1
    if not large and (first <= 1 or not codes.size or lowest(sizes) >= first - 1):
        return np.empty(0, np.intp)
    beyond = sizes > last if first <= 1 else (sizes > last) & (sizes != 0xFFFF) | (sizes < first - 1)
    return np.flatnonzero(beyond)


AT_ONCE = 1 << 13  # elements that are settled together
ALONE = 16  # up to this number all are settled exactly: a second check costs 1 ms, an exact value some 0.01 ms


# ---- the golden ------------------------------------------------------------------------------------------------------


def evaluate(scheme: Formula, operands: Operands, sink: Sink, *, rank: int = 0) -> None:
    """Fill the sink. ``rank``: of the output; a mean's divisor may be computed from it dim by dim."""
    graphs = graphs_of(scheme, operands, sink.soc, dtype_of(sink.kernel).name)
    compiles = not graphs.is_fragile and is_compiled(sink)
    mean = mean_loss(operands, rank)
    work = _Work(graphs, operands, programs.narrow_of(operands, sink.out.size), sink.device, mean, sink.kernel)
    wide = compiles or sink.judged or graphs.is_fragile
    plan = None if wide else plan_of(graphs, operands, sink.kernel, sink.out.size)
    if compiles:
        from ..compiled import loops
    doubts: list[Array] = []  # unproven elements of compiled passes and float32: settled together if possible

    def fill(index: Index) -> None:
        part, region = work.at(index), sink.region(index)
        with np.errstate(all="ignore"):
            left = loops.elementwise(graphs, part.operands, region.target) if compiles else None
            region.proved_finite = left is not None
            if left is None:
                left = part.put_all(plan, region)
            if region.in_place:
                doubts.append(left + (region.target.ctypes.data - sink.out.ctypes.data) // sink.out.itemsize)
            else:
                part.leave(left, region)
            if not (region.in_place and region.proved_finite):
                part.finish(region)

    size, each = region_size(), 4
    if compiles:
        arrays = [v for v in operands.values() if isinstance(v, np.ndarray)]
        copied = not (sink.is_in_place and all(array.flags.c_contiguous for array in arrays))
        size, each = piece_size(sink.out.size, copied=copied), 1
    run_blocks(blocks(sink.out.shape, size), fill, each=each)
    if any(left.size for left in doubts):
        work.settle(np.concatenate(doubts), sink)
    if graphs.loses_signs:
        work.sign_zeros(sink)
    if graphs.specials is not None:
        work.put_specials(graphs.specials, sink)
    if sink.judged and (graphs.may_depart or graphs.undecided(work.device)):
        sink.undecided = work.marked(sink)


SIZE = "|value|"  # not a symbol of any formula


@dataclass(frozen=True)
class _Work(StrictBound):
    """The operands of a region, with their strict bound; ``dtype``: the dtype that the kernel stores."""

    dtype: np.dtype[Any]

    def at(self, index: Index) -> _Work:
        if index == (Ellipsis,):
            return self
        return self.of(index_arrays(self.operands, index), index_arrays(self.narrow, index))

    def of(self, operands: Operands, narrow: Operands | None = None) -> _Work:
        """Return the same work for other operands."""
        return _Work(self.graphs, operands, narrow or {}, self.device, self.mean, self.dtype)

    def widened(self, where: tuple[Array, ...]) -> Operands:
        """Return the operands of some elements in float64."""
        return map_arrays(index_arrays(self.operands, where), widen)

    def put_all(self, plan: Plan | None, region: Region) -> Array:
        """Evaluate a region block by block, in float32 if sufficient; return the flat indices of unproven elements."""
        left, every = [np.empty(0, np.intp)], True
        for block in blocks(region.target.shape, block_size()):
            target = region.target[block]
            few = None if plan is None else put(plan, index_arrays(self.operands, block), target)
            if few is None:
                every = False
                self.put(block, region)
            else:
                left.append(few + region.start(target))
        region.proved_finite = every
        return np.concatenate(left)

    def put(self, block: Index, region: Region) -> None:
        """Evaluate, round and prove a block; with its bound if the sink is judged."""
        target, judged = region.target[block], region.sink.judged
        wide = loaded(index_arrays(self.operands, block), target.shape)
        part = self.of(wide, index_arrays(self.narrow, block))
        relative, absolute = self.graphs.evaluation
        running = part.running if judged else ZERO
        departure = self.graphs.departure if judged else ZERO
        result, error, lost, apart = part._evaluated(target.shape, absolute, running, departure, fast=not judged)
        value = np.asarray(result)
        if absolute is ZERO:
            region.put_relative(block, value, relative)
        else:
            slack = np.abs(value) * relative + error * SECOND_ORDER
            region.put_between(block, value - slack, value + slack, lambda where: value.reshape(-1)[where])
            if judged:
                region.sink.value[block] = value
        if not (target.dtype == np.float32 and _are_finite(target)) and not _are_finite(value):
            beyond = self._overflowed(value, wide)
            if beyond.size:
                region.add_overflowed(beyond + region.start(target))
        if judged:
            region.sink.put_bound(block, value, *part.bound_and_unspecified(value, lost, apart, region.sink.formats))
        release(value, error, lost, apart, *wide.values())

    def _evaluated(self, shape: tuple[int, ...], *others: Expression, fast: bool) -> list[Values]:
        """Return the values of the formula and of other graphs in float64, from one program: they share most steps."""
        asked = [graph for graph in others if graph is not ZERO]
        roots = self.graphs.value, *asked
        value, *result = programs.evaluate(roots, self.operands, self.narrow, shape, fast=fast)
        return [value, *(0.0 if graph is ZERO else result.pop(0) for graph in others)]

    def _enclosed(self, operands: Operands, shape: tuple[int, ...]) -> tuple[Array, Array]:
        """Return the formula's value in float64, and its possible loss."""
        relative, absolute = self.graphs.evaluation
        value, error = program(self.graphs.value, absolute)(operands, shape)
        slack = np.asarray(np.abs(value) * relative + error * SECOND_ORDER)
        release(error)
        return np.asarray(value), slack

    def exact(self, index: tuple[int, ...]) -> ExactValue:
        """Return the exact value of an element; if the formula has none, the result of IEEE arithmetic."""
        operands = {n: float(v[index]) if isinstance(v, np.ndarray) else float(v) for n, v in self.operands.items()}
        answer: ExactValue | None = extended.exact_value(self.graphs.value, operands)
        if answer is None:
            return self._plain(operands)
        if not isinstance(answer, Iterator) and answer == 0:
            return extended.zero(self.graphs.value, operands)
        return answer

    def alike(self, where: tuple[Array, ...]) -> tuple[Array, Array]:
        """Return one element for each distinct set of operand bits, and the index of each element's representative."""
        few = [
            np.asarray(v, np.float64) for v in index_arrays(self.operands, where).values() if isinstance(v, np.ndarray)
        ]
        bits = np.stack([np.zeros(where[0].size), *few], axis=1).view(np.uint64)  # possibly no operand is an array
        _, first, like = np.unique(bits, axis=0, return_index=True, return_inverse=True)
        return first, like.reshape(-1)

    def _plain(self, operands: Mapping[str, float]) -> float:
        (value,) = program(self.graphs.value)({n: np.float64(v) for n, v in operands.items()}, (1,))
        return float(value)

    def refine(self, where: tuple[Array, ...]) -> tuple[Array, Array, Array]:
        """Return the formula for some elements, with ties separated from near ties: on fractions or in pairs of
        float64."""
        few = self.widened(where)
        value, slack = self._enclosed(few, where[0].shape)
        graph, result = self.graphs.value, (value, value - slack, value + slack)
        if not is_rational(graph) and double_double.supports(graph):
            result = double_double.refined(graph, few, self.dtype, slack)
        if has_rational_branch(graph):  # one result in ten of scale * x, as in Elu, is an exact tie
            ties = rationals.refined(value, rationals.evaluate(graph, few), self.dtype, np.inf)
            result = rationals.preferred(ties, result)
        return _where_finite(*result)

    def settle(self, left: Array, sink: Sink) -> None:
        """Settle the unproven elements of compiled passes and float32, given as flat indices in the sink."""
        alone = not sink.judged and left.size <= ALONE and self._are_finite(left, sink.out.shape)
        with np.errstate(all="ignore"):
            for start in range(0, left.size, AT_ONCE):
                some, region = left[start : start + AT_ONCE], sink.region((Ellipsis,))
                region.proved_finite = True
                if alone:
                    anything = np.full(some.size, np.inf)
                    region.add_unproven(some, np.zeros(some.size), -anything, anything)
                    region.finish(self.exact)
                else:
                    self.leave(some, region)
                    self.finish(region)

    def sign_zeros(self, sink: Sink) -> None:
        """Give zeros the sign of the exact value, if float64 may have lost it."""
        where = sink.out == 0
        flat = np.flatnonzero(where)
        few = self.widened(np.unravel_index(flat, where.shape))
        for name in self.graphs.factors:  # IEEE signs a zero factor, unless the rest has lost its own sign
            few = {**few, name: np.where(few[name] == 0, 1.0, few[name])}
        (value,) = program(self.graphs.value)(few, flat.shape)
        at = np.unravel_index(flat[np.asarray(value) == 0], where.shape)
        signed, anything = np.zeros(at[0].size, self.dtype), np.full(at[0].size, np.inf)
        ends = np.zeros(signed.size), -anything, anything
        settle(np.arange(signed.size), ends, signed, self.of(index_arrays(self.operands, at)).exact)
        sink.out[at] = signed.astype(sink.out.dtype)

    def put_specials(self, graph: Expression, sink: Sink) -> None:
        """Store the IEEE float64 result of a separate graph if the result and an operand are not finite."""
        flat = np.flatnonzero(~np.isfinite(sink.out))
        if not flat.size:
            return
        at = np.unravel_index(flat, sink.out.shape)
        special = ~np.logical_and.reduce(
            [np.broadcast_to(np.isfinite(v), flat.shape) for v in index_arrays(self.operands, at).values()]
        )
        at = tuple(axis[special] for axis in at)
        with np.errstate(all="ignore"):
            (value,) = program(graph)(self.widened(at), at[0].shape)
        sink.out[at] = np.where(np.isnan(value), np.nan, value).astype(sink.kernel).astype(sink.out.dtype)
        if sink.judged:
            sink.value[at] = value

    def marked(self, sink: Sink) -> Array:
        """Return the elements on which a right kernel may depart by more than a rounding: a doubt is true, or the SoC's
        own kernel computes something else."""
        result = sink.lost > np.abs(sink.value) * DEPARTURE
        where = np.nonzero(result)
        if where[0].size:
            few = self.of(self.widened(where))
            with np.errstate(all="ignore"):
                holds = [few._in_doubt(doubt, where[0].shape) for doubt in self.graphs.undecided(self.device)]
                result[where] = np.logical_or.reduce([few.departing(sink.value[where]), *holds])
        return result

    def _in_doubt(self, doubt: Doubt, shape: tuple[int, ...]) -> Array:
        """Return where a doubt is true, and a side of the comparison is rounded or infinite (a product can
        saturate)."""
        (holds,) = program(doubt.condition)(self.operands, shape)
        single = cast(self.operands, np.float32)
        rounded = np.full(shape, not doubt.sides)
        for side in doubt.sides:
            (exact,) = program(side)(self.operands, shape)
            rounded |= (simulate(side, single, np.float32) != exact) | np.isinf(exact)
        return rounded & holds

    def _are_finite(self, where: Array, shape: tuple[int, ...]) -> bool:
        few = index_arrays(self.operands, np.unravel_index(where, shape))
        return all(bool(np.isfinite(operand).all()) for operand in few.values())

    def finish(self, region: Region) -> None:
        region.losing = self.lost_at
        region.finish(self.exact, self.refine, self.graphs.refine_min_elements, self.alike)

    def lost_at(self, where: tuple[Array, ...], value: Array) -> Array:
        """Return the possible loss of a right kernel for values that are more accurate than float64's."""
        few, running = self.of(self.widened(where)), self.graphs.running(self.device, symbol(SIZE))
        return few.lost(value, program(running)({**few.operands, SIZE: np.abs(value)}, value.shape)[0])

    def leave(self, where: Array, region: Region) -> None:
        """Pass on elements that a compiled pass, or float32, did not prove; NumPy settles them."""
        if where.size and region.sink.judged:
            self._judged(where, region)
        elif where.size:
            few = index_arrays(self.operands, np.unravel_index(where, region.target.shape))
            value, slack = self._enclosed(few, where.shape)
            beyond = self._overflowed(value, few)
            region.add_overflowed(where[beyond])
            where, value, slack = (np.delete(part, beyond) for part in (where, value, slack))
            region.add_unproven(where, value, value - slack, value + slack)

    def _overflowed(self, value: Array, operands: Operands) -> Array:
        """Return flat indices of values that overflow float64, or are NaN there, although every operand is finite.
        Exclude NaN that is certainly the value, as for the logarithm of a negative number."""
        where = np.flatnonzero(~np.isfinite(value))
        for array in operands.values():
            if isinstance(array, np.ndarray):
                where = where[np.isfinite(array.reshape(-1)[where])]
            elif not math.isfinite(array):
                return where[:0]
        if where.size and self.graphs.undefined is not None:
            few = index_arrays(operands, np.unravel_index(where, value.shape))
            (nowhere,) = program(self.graphs.undefined)(few, where.shape)
            where = where[~(np.broadcast_to(nowhere, where.shape) & np.isnan(value.reshape(-1)[where]))]
        return where

    def _judged(self, where: Array, region: Region) -> None:
        """Evaluate elements of a region with all data that a verdict needs, by NumPy."""
        at = np.unravel_index(where, region.target.shape)
        work, few = self.of(index_arrays(self.operands, at)), Region(region.sink.vector(where.size))
        work.put((Ellipsis,), few)
        work.finish(few)
        region.target[at] = few.target
        for name in JUDGED:
            getattr(region.sink, name)[at] = getattr(few.sink, name)


def _are_finite(values: Array) -> bool:
    return math.isfinite(highest(values)) and math.isfinite(lowest(values))


def _where_finite(value: Array, low: Array, high: Array) -> tuple[Array, Array, Array]:
    """Return values and intervals. An overflow of float64 becomes an infinite interval."""
    beyond = ~np.isfinite(value)
    if not beyond.any():
        return value, low, high
    return np.where(beyond, 0.0, value), np.where(beyond, -np.inf, low), np.where(beyond, np.inf, high)
