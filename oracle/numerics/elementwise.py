"""Elementwise operators: a formula evaluated on whole tensors, rounded, proved, and bounded.

Everything follows from the formula's graph: the float64 evaluation and its error bound, the second look on fractions,
the exact value, and from the graphs of the kernels' own orders the strict bound, the elements on which right kernels
disagree, and what a device of a SoC would answer. By NumPy blocks, or by the compiled engine where no bound is asked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..model.call import Array
from ..model.dtypes import FORMATS, dtype_of
from . import double_double, enclosures, fractions64, outward, singles, tables
from .arithmetic import Arithmetic, float32
from .blocks import Index, block_size, blocks, piece_size, region_size, run_blocks
from .engine import is_compiled
from .envelopes import cell_of, table
from .errorbounds import NO_BOUND, SECOND_ORDER
from .expressions import ZERO, Expression
from .extremes import highest, lowest, some
from .graphs import COUNT, DEPARTURE, VANISHING, Elementwise, Graphs, Operands, cast, changed, graphs_of, pick
from .held import is_exact_in
from .programs import Values, loaded, program, release, simulate
from .ranges import Ranges, largest, ranges_of, stays_inside
from .rationals import Undefined
from .rounding import quantize, widen
from .sink import LARGEST, UNIT, Region, Sink, classes_differ, half_ulp, is_halfway
from .traversal import is_rational

AT_ONCE = 1 << 13  # elements whose doubts are settled together
ALONE = 16  # so few are settled exactly at once: a second look costs a millisecond, an exact value some hundredths
FEW = 4  # one in so many elements is looked at alone, more with all others
WORTH = 1 << 13  # elements of a block from which on a closer look at its ranges costs less than one at each
NEAR = 2.0**-10  # this close to float32's end one right kernel overflows and another does not


# ---- the golden ------------------------------------------------------------------------------------------------------


def evaluate(
    scheme: Elementwise,
    operands: Operands,
    sink: Sink,
    *,
    rank: int = 0,
    soc: str = "",
    flushes: frozenset[str] = frozenset(),
) -> None:
    """Fill the sink. ``rank``: of the output, which a mean's divisor may be made from dim by dim. ``soc``: whose kernel
    is judged. ``flushes``: operations of the device that may answer 0 for subnormal results."""
    graphs = graphs_of(scheme, operands, soc, dtype_of(sink.kernel).name)
    compiles = not graphs.is_fragile and is_compiled(sink)
    mean = (4 + 2 * rank) * UNIT if COUNT in operands else 0.0
    work = _Work(graphs, operands, sink.kernel, float32(flushes), mean, tables.narrow_of(operands, sink.out.size))
    wide = compiles or sink.judged or graphs.is_fragile
    plan = None if wide else singles.plan_of(graphs, operands, sink.kernel, sink.out.size)
    doubts: list[Array] = []  # what compiled passes and float32 leave: settled together if that is possible

    def fill(index: Index) -> None:
        part, region = work.at(index), sink.region(index)
        with np.errstate(all="ignore"):
            left = part.passed(region) if compiles else None
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
    if compiles and not sink.judged:
        arrays = [v for v in operands.values() if isinstance(v, np.ndarray)]
        copied = not (sink.is_in_place and all(array.flags.c_contiguous for array in arrays))
        size, each = piece_size(sink.out.size, copied=copied), 1
    run_blocks(blocks(sink.out.shape, size), fill, each=each)
    if any(left.size for left in doubts):
        work.settle(np.concatenate(doubts), sink)


@dataclass(frozen=True)
class _Work:
    """The operands of a region and what is known of them."""

    graphs: Graphs
    operands: Operands
    dtype: np.dtype[Any]  # what the kernel stores
    device: Arithmetic
    mean: float  # what the mean's divisor may lose, relative
    narrow: Operands = field(default_factory=dict)  # operands of 16 bits that are looked up

    def at(self, index: Index) -> _Work:
        return self if index == (Ellipsis,) else self.of(pick(self.operands, index), pick(self.narrow, index))

    def of(self, operands: Operands, narrow: Operands | None = None) -> _Work:
        """The same of other operands."""
        return replace(self, operands=operands, narrow=narrow or {})

    def _run(self, *roots: Expression, shape: tuple[int, ...], fast: bool = False) -> list[Values]:
        return tables.evaluate(roots, self.operands, self.narrow, shape, fast=fast)

    def put_all(self, plan: singles.Plan | None, region: Region) -> Array:
        """Evaluate a region block by block, in float32 where that will do; return by flat indices what it leaves."""
        left, every = [np.empty(0, np.intp)], True
        for block in blocks(region.target.shape, block_size()):
            target = region.target[block]
            few = None if plan is None else singles.put(plan, pick(self.operands, block), target)
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
        wide = loaded(pick(self.operands, block), target.shape)
        part = self.of(wide, pick(self.narrow, block))
        relative, absolute = self.graphs.evaluation
        running = self.graphs.running(self.device) if judged and self._smooth is None else ZERO
        departure = self.graphs.departure if judged else ZERO
        found, error, lost, apart = part._evaluated(target.shape, absolute, running, departure, fast=not judged)
        value = np.asarray(found)
        if absolute is ZERO:
            region.put_relative(block, value, relative)
        else:
            slack = np.abs(value) * relative + error * SECOND_ORDER
            region.put_between(block, value - slack, value + slack, lambda where: value.reshape(-1)[where])
            if judged:
                region.sink.value[block] = value
        if not (target.dtype == np.float32 and _are_finite(target)) and not _are_finite(value):
            beyond = _overflowed(value, wide)
            if beyond.size:
                region.leave_overflowed(beyond + region.start(target))
        if judged:
            region.sink.put_bound(block, value, *part.freedom(value, lost, apart, region.sink))
        release(value, error, lost, apart, *wide.values())

    def _evaluated(self, shape: tuple[int, ...], *others: Expression, fast: bool) -> list[Values]:
        """The formula's value in float64, and what other graphs are: by one program, for they share most steps."""
        asked = [graph for graph in others if graph is not ZERO]
        value, *found = self._run(self.graphs.value, *asked, shape=shape, fast=fast)
        return [value, *(0.0 if graph is ZERO else found.pop(0) for graph in others)]

    def _enclosed(self, operands: Operands, shape: tuple[int, ...]) -> tuple[Array, Array]:
        """The formula's value in float64 and what it may lose."""
        relative, absolute = self.graphs.evaluation
        value, error = program(self.graphs.value, absolute)(operands, shape)
        slack = np.asarray(np.abs(value) * relative + error * SECOND_ORDER)
        release(error)
        return np.asarray(value), slack

    def exact(self, index: tuple[int, ...]) -> Any:
        """The exact value of an element; where the formula has none, what IEEE arithmetic gives."""
        given = {n: float(v[index]) if isinstance(v, np.ndarray) else float(v) for n, v in self.operands.items()}
        if not all(map(math.isfinite, given.values())):
            return self._plain(given)
        try:
            answer = enclosures.exact(self.graphs.value, given)
        except Undefined:
            return self._plain(given)
        if not isinstance(answer, Iterator) and answer == 0:
            plain = self._plain(given)  # which zero
            return plain if plain == 0 else 0.0
        return answer

    def _plain(self, given: Mapping[str, float]) -> float:
        (value,) = program(self.graphs.value)({n: np.float64(v) for n, v in given.items()}, (1,))
        return float(value)

    def refine(self, where: tuple[Array, ...]) -> tuple[Array, Array, Array]:
        """The formula for some elements, its ties told from near ties: on fractions, or in pairs of float64."""
        few = changed(pick(self.operands, where), widen)
        value, slack = self._enclosed(few, where[0].shape)
        if is_rational(self.graphs.value):
            exact = fractions64.evaluate(self.graphs.value, few)
            found = fractions64.refined(value, exact, self.dtype, slack)
        else:
            found = double_double.refined(self.graphs.value, few, self.dtype, slack)
        return outward.overflowed(self.graphs.value, few, found)

    # ---- the strict bound ----

    def freedom(self, value: Array, running: Values, apart: Values, sink: Sink) -> tuple[Array, Array, Array | None]:
        """Return the bound, the elements on which right kernels disagree, and those on which they cannot."""
        ranges = ranges_of(self.operands)
        bound = self._bound(value, running, ranges)
        unspecified = np.zeros(value.shape, bool)
        own = None if self.graphs.native is None else self.graphs.natively(self.operands, self.narrow)
        inside = own is None and stays_inside(self.graphs.orders, ranges, by_parts=value.size >= WORTH)
        if not inside or not highest(bound) < NO_BOUND / 2:
            self._overflows(value, own, bound, unspecified)
        if self.device.flushing:
            self._flushes(value, bound, unspecified)
        self._departs(value, own, apart, bound, unspecified)
        return bound, unspecified, self._ties(value, sink)

    @property
    def _smooth(self) -> tuple[str, str, Expression, Expression] | None:
        return self.graphs.smooth(self.device) if self.mean == 0 else None

    def _bound(self, value: Array, running: Values, ranges: Ranges | None) -> Array:
        """What a right kernel may lose, per element, of which ``running`` is what was evaluated with the value. What
        underflows is looked at as a whole where it is far below every element's relative error."""
        lost = self.graphs.bound(self.device)
        bound = np.abs(value)
        if self._smooth is not None:  # |gradient| times a function of the other operand
            gradient, other, scaled, absolute = self._smooth
            cells = cell_of(np.asarray(self.operands[other]))
            bound *= (table(scaled)[cells] + lost.relative) * SECOND_ORDER
            bound += table(absolute)[cells] * np.abs(self.operands[gradient])
        else:
            bound *= (lost.relative + self.mean) * SECOND_ORDER
            if self.graphs.running(self.device) is not ZERO:
                bound += running
        if lost.underflow is not ZERO:
            self._add_underflow(lost.underflow, ranges, bound)
        return bound

    def _add_underflow(self, underflow: Expression, ranges: Ranges | None, bound: Array) -> None:
        """Add what underflows to a bound, at least VANISHING of it: so that the sum is the same number whether it was
        looked at element by element or, where it is far below every element's, not at all."""
        least = lowest(bound) * VANISHING
        most = np.inf if ranges is None else largest(underflow, ranges, least if bound.size >= WORTH else np.inf)
        if most <= least:
            bound *= 1 + VANISHING
            return
        flat, where = bound.reshape(-1), np.flatnonzero(~(most <= bound * VANISHING))  # NaN among them
        if FEW * where.size < flat.size:
            few = flat[where]
            self.of(changed(self.operands, lambda v: v.reshape(-1)[where]))._underflowing(underflow, few)
            flat *= 1 + VANISHING
            flat[where] = few
        else:
            self._underflowing(underflow, bound)

    def _underflowing(self, underflow: Expression, bound: Array) -> None:
        (found,) = self._run(underflow, shape=bound.shape)
        above = ~(found <= bound * VANISHING)  # NaN is
        bound[...] = np.where(above, bound + found, bound * (1 + VANISHING))
        release(found)

    def _flushes(self, value: Array, bound: Array, unspecified: Array) -> None:
        """Where a step that is flushed loses a result that is a normal number (a factor is large): no rounding, and a
        standard would take it for an error."""
        size = np.abs(value)
        lost = (size >= self.device.tiny) & (bound > size * DEPARTURE)
        if not lost.any():
            return
        few, least = cast(pick(self.operands, lost), np.float32), size[lost] * DEPARTURE
        apart = np.zeros(least.shape, bool)
        for order in self.graphs.orders:
            kept, flushed = (
                simulate(order, few, np.float32, flushing=mode, same_bits=True).astype(np.float64)
                for mode in (frozenset[str](), self.device.flushing)
            )
            apart |= np.abs(flushed - kept) > least  # not against the value, from which cancellation takes both
        unspecified[lost] |= apart

    def _departs(self, value: Array, own: Array | None, apart: Values, bound: Array, unspecified: Array) -> None:
        """Where the SoC's kernel is known to answer something else (``apart``: by how much), also by computing in
        float16 (``own``, by more than an ULP), or where its answer is not known."""
        if self.graphs.departing is not None:
            unspecified |= apart > np.abs(value) * DEPARTURE
            bound += apart
        if own is not None:
            unspecified |= np.abs(widen(own) - value) > 2 * half_ulp(np.abs(value), FORMATS[self.graphs.dtype])
        if self.graphs.unspecified is not None:
            (unknown,) = program(self.graphs.unspecified)(self.operands, value.shape)
            unspecified |= np.asarray(unknown)

    def _overflows(self, value: Array, own: Array | None, bound: Array, unspecified: Array) -> None:
        """Where a step may overflow, an operand is not finite, or no bound is known, every order is run; ``own``: what
        a kernel answers that computes in a type of 16 bits."""
        (reach,) = self._run(self.graphs.reach, shape=value.shape)
        most = LARGEST if own is None else FORMATS[self.graphs.dtype].max
        odd = ~(np.asarray(reach) < most * (1 - NEAR)) | ~(bound < NO_BOUND / 2)
        release(reach)
        if not some(odd):
            return
        few = cast(pick(self.operands, odd), np.float32)
        orders = self.graphs.orders
        modes = dict.fromkeys((frozenset[str](), self.device.flushing))
        answers = [
            simulate(order, few, np.float32, largest=end, flushing=mode, same_bits=True)
            for order in orders
            for mode in modes
            for end in _ENDS
        ]
        if own is not None:
            answers.append(own[odd].astype(np.float32))
        value = value[odd]
        answers = [np.broadcast_to(answer, value.shape) for answer in answers]
        apart = np.max([np.abs(answer.astype(np.float64) - value) for answer in answers], axis=0)
        lost = np.where(bound[odd] < NO_BOUND / 2, bound[odd], 0)
        bound[odd] = np.where(np.isfinite(apart), apart + lost, lost)
        unspecified[odd] = classes_differ([*answers, value.astype(np.float32)])

    def _ties(self, value: Array, sink: Sink) -> Array | None:
        """Where every order is exact on the way that its conditions take, and the value lies halfway between two
        numbers of a 16-bit type: the host's, or the output's where the host's holds the value."""
        computed = FORMATS["float32" if self.graphs.native is None else self.graphs.dtype]
        narrow = [fmt for fmt in sink.formats if fmt.mant < computed.mant]
        if not (narrow and self.graphs.may_be_exact):
            return None
        halfway = is_halfway(value, narrow[0])
        if len(narrow) > 1:
            halfway |= is_halfway(value, narrow[1]) & (quantize(value, narrow[0]) == value)
        if not some(halfway):
            return None
        ties = np.flatnonzero(halfway)
        flat = changed(self.operands, lambda v: v.reshape(-1)[ties])
        single, wanted = cast(flat, np.float32), value.reshape(-1)[ties]
        likely = simulate(self.graphs.orders[0], single, np.float32) == wanted
        for order in self.graphs.orders if self.device.flushing else ():  # what may be flushed is not exact
            likely &= simulate(order, single, np.float32, flushing=self.device.flushing) == wanted
        exact = np.zeros(value.size, bool)
        own = (*self.graphs.orders, *(() if self.graphs.native is None else (self.graphs.native,)))
        exact[ties[likely]] = is_exact_in(own, pick(flat, likely), computed)
        return np.asarray(exact.reshape(value.shape))

    # ---- the compiled engine ----

    def passed(self, region: Region) -> Array | None:
        """Make a compiled pass over a region; return the flat indices of what it leaves, None where it does nothing,
        for no such loop knows a bound."""
        if region.sink.judged:
            from . import compiled_judged

            return compiled_judged.evaluate(self.graphs, self.operands, self.device, self.mean, region)
        from . import compiled

        return compiled.elementwise(self.graphs, self.operands, region.target)

    def settle(self, left: Array, sink: Sink) -> None:
        """Settle what compiled passes and float32 left, by flat indices in the sink."""
        alone = not sink.judged and left.size <= ALONE and self._are_finite(left, sink.out.shape)
        with np.errstate(all="ignore"):
            for start in range(0, left.size, AT_ONCE):
                some, region = left[start : start + AT_ONCE], sink.region((Ellipsis,))
                region.proved_finite = True
                if alone:
                    anything = np.full(some.size, np.inf)
                    region.leave(some, np.zeros(some.size), -anything, anything)
                    region.finish(self.exact)
                else:
                    self.leave(some, region)
                    self.finish(region)

    def _are_finite(self, where: Array, shape: tuple[int, ...]) -> bool:
        few = pick(self.operands, np.unravel_index(where, shape))
        return all(bool(np.isfinite(operand).all()) for operand in few.values())

    def finish(self, region: Region) -> None:
        """Settle what a region leaves in doubt."""
        region.finish(self.exact, self.refine, self.graphs.second_look)

    def leave(self, where: Array, region: Region) -> None:
        """Leave elements that a compiled pass, or float32, did not prove to be settled by NumPy."""
        if where.size and region.sink.judged:
            self._judged(where, region)
        elif where.size:
            few = pick(self.operands, np.unravel_index(where, region.target.shape))
            value, slack = self._enclosed(few, where.shape)
            beyond = _overflowed(value, few)
            region.leave_overflowed(where[beyond])
            where, value, slack = (np.delete(part, beyond) for part in (where, value, slack))
            region.leave(where, value, value - slack, value + slack)

    def _judged(self, where: Array, region: Region) -> None:
        """Evaluate elements of a region with all that a verdict needs, by NumPy."""
        at = np.unravel_index(where, region.target.shape)
        work, few = self.of(pick(self.operands, at)), Region(region.sink.vector(where.size))
        work.put((Ellipsis,), few)
        work.finish(few)
        region.target[at] = few.target
        for name in ("value", "bound", "lost", "unspecified", "exact"):
            getattr(region.sink, name)[at] = getattr(few.sink, name)


_ENDS = (np.inf, LARGEST * (1 - NEAR))


def _are_finite(values: Array) -> bool:
    return math.isfinite(highest(values)) and math.isfinite(lowest(values))


def _overflowed(value: Array, operands: Operands) -> Array:
    """Flat indices of values that float64 cannot hold, or only as NaN, although every operand is finite."""
    where = np.flatnonzero(~np.isfinite(value))
    for operand in operands.values():
        if isinstance(operand, np.ndarray):
            where = where[np.isfinite(operand.reshape(-1)[where])]
        elif not math.isfinite(operand):
            return where[:0]
    return where
