"""The answer of a device to a formula, and the strict bound of elementwise results (docs/bounds.md).

The float64 evaluation supplies its values, and the values of two graphs that it evaluated together with them. This
module decides everything else. It checks elements in detail only if a step may underflow, be flushed, overflow, or be
exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from ...model.call import Array
from ...model.dtypes import FORMATS, FloatFormat, dtype_of
from .. import programs
from ..bounds.building import SECOND_ORDER
from ..bounds.exact_steps import is_exact_in
from ..bounds.losses import NO_BOUND
from ..bounds.ranges import Ranges, cell_of, is_linear, largest, ranges_of, stays_inside, table
from ..expressions import ZERO, Expression
from ..floats.blocks import block_size, blocks
from ..floats.codes import any_true, highest, lowest
from ..floats.rounding import LARGEST, NEAR, SURE, Arithmetic, classes_differ, half_ulp, is_halfway, quantize, widen
from ..programs import Operands, Values, cast, index_arrays, map_arrays, program, release, simulate
from .formula import Formula
from .kernel_orders import DEPARTURE, VANISHING, Graphs, graphs_of

# A device's answer to a formula of one element: its kernel's graph, step by step in the kernel's type.


class Device(NamedTuple):
    """A device that runs the public kernel of a SoC, by the name of its form. ``compute``: the type of every
    intermediate. ``flushing``: operations that return 0 instead of subnormal float32 results."""

    form: str
    compute: Any
    flushing: frozenset[str] = frozenset()


def kernel(scheme: Formula, operands: Operands, device: Device, stored: str = "") -> Array:
    """Return a device's answer. ``stored``: the dtype of the result; the default is the operands' dtype."""
    if not stored:
        kinds = {v.dtype for v in operands.values() if isinstance(v, np.ndarray)}
        stored = dtype_of(kinds.pop()).name if len(kinds) == 1 else ""
    graphs, flushing, compute = graphs_of(scheme, operands, device.form, stored), device.flushing, device.compute
    root, operands = graphs.computed_in(graphs.form(device.form), operands)
    shape = next((v.shape for v in operands.values() if isinstance(v, np.ndarray)), ())
    result, narrow = np.empty(shape, compute), programs.narrow_of(operands, math.prod(shape))
    for block in blocks(shape, block_size()):
        few = cast(index_arrays(operands, block), compute)
        result[block] = programs.simulated(root, few, index_arrays(narrow, block), compute, flushing)
    return result


# The strict bound of elementwise results: possible losses of right kernels, and their disagreement (docs/bounds.md).

FEW = 4  # up to 1 in FEW elements are checked alone; if more, all are checked together
WORTH = 1 << 13  # elements of a block from which a closer check of its ranges costs less than one check per element
_ENDS = (np.inf, SURE)


@dataclass(frozen=True)
class StrictBound:
    """The possible answers of right kernels for some operands.

    ``operands``: float64 arrays of one shape, or numbers, by symbol. ``narrow``: the 16-bit operands that are looked up
    (see :mod:`..programs`), before they were widened. ``device``: the arithmetic of a right kernel. ``mean``: the
    possible relative loss of the mean's divisor.
    """

    graphs: Graphs
    operands: Operands
    narrow: Operands
    device: Arithmetic
    mean: float

    @property
    def running(self) -> Expression:
        """The graph to evaluate together with the value: the part of the loss that is not purely relative."""
        return self.graphs.running(self.device) if self.smooth is None else ZERO

    @property
    def smooth(self) -> tuple[str, str, Expression, Expression] | None:
        """Like :meth:`Graphs.smooth`: the running bound is then read from a table."""
        return self.graphs.smooth(self.device) if self.mean == 0 else None

    def bound_and_unspecified(
        self, value: Array, running: Values, departure: Values, formats: Sequence[FloatFormat]
    ) -> tuple[Array, Array, Array | None]:
        """Return the bound before the last roundings, the elements on which right kernels disagree, and those on which
        they cannot, because every step is exact. The arrays have the shape of ``value``; the last is None if
        there are no such elements.

        ``running``, ``departure``: the values of :attr:`running` and of :attr:`Graphs.departure`. ``formats``: the
        host's formats, rounded to one after the other.
        """
        ranges = ranges_of(self.operands)
        bound = self.lost(value, running, ranges)
        unspecified = np.zeros(value.shape, bool)
        own = None if self.graphs.native is None else self.graphs.natively(self.operands, self.narrow)
        inside = own is None and stays_inside(self.graphs.orders, ranges, by_parts=value.size >= WORTH)
        if not inside or not highest(bound) < NO_BOUND / 2:
            self._overflows(value, own, bound, unspecified)
        if self.device.flushing:
            self._flushes(value, bound, unspecified, formats[-1])
        self._departs(value, own, departure, bound, unspecified)
        return bound, unspecified, self._ties(value, formats)

    def _run(self, root: Expression, shape: tuple[int, ...]) -> Values:
        return programs.evaluate((root,), self.operands, self.narrow, shape)[0]

    def lost(self, value: Array, running: Values, ranges: Ranges | None = None) -> Array:
        """Return the possible loss of a right kernel, per element. ``running`` was evaluated with the value. The
        underflow is bounded as a whole if it is far below every element's relative error."""
        lost = self.graphs.bound(self.device)
        bound = np.abs(value)
        if self.smooth is not None:  # |gradient| times a function of the other operand
            gradient, other, scaled, absolute = self.smooth
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
        """Add the underflow to a bound, at least VANISHING of it. So the sum is the same number in both cases: with a
        check element by element, or with no check because the underflow is far below every element's bound."""
        least = lowest(bound) * VANISHING
        most = np.inf if ranges is None else largest(underflow, ranges, least if bound.size >= WORTH else np.inf)
        if most <= least:
            bound *= 1 + VANISHING
            return
        flat, where = bound.reshape(-1), np.flatnonzero(~(most <= bound * VANISHING))  # includes NaN
        if FEW * where.size < flat.size:
            few = flat[where]
            those = replace(self, operands=map_arrays(self.operands, lambda v: v.reshape(-1)[where]), narrow={})
            those._underflowing(underflow, few)
            flat *= 1 + VANISHING
            flat[where] = few
        else:
            self._underflowing(underflow, bound)

    def _underflowing(self, underflow: Expression, bound: Array) -> None:
        result = self._run(underflow, bound.shape)
        above = ~(result <= bound * VANISHING)  # true for NaN
        bound[...] = np.where(above, bound + result, bound * (1 + VANISHING))
        release(result)

    def _flushes(self, value: Array, bound: Array, unspecified: Array, stored: FloatFormat) -> None:
        """Mark elements where a flushed step loses a normal number (a factor is large). A standard would read this loss
        as an error, not as a rounding. ``stored``: the output's type; a loss below its ULP does not matter."""
        size = np.abs(value)
        lost = (size >= self.device.tiny) & (bound > size * DEPARTURE) & (bound > half_ulp(size, stored))
        if not lost.any():
            return
        few, least = cast(index_arrays(self.operands, lost), np.float32), size[lost] * DEPARTURE
        apart = np.zeros(least.shape, bool)
        for order in self.graphs.orders:
            kept, flushed = (
                simulate(order, few, np.float32, flushing=mode, same_bits=True).astype(np.float64)
                for mode in (frozenset[str](), self.device.flushing)
            )
            apart |= np.abs(flushed - kept) > least  # not compared with the value: cancellation can move both away
        unspecified[lost] |= apart

    def _departs(self, value: Array, own: Array | None, apart: Values, bound: Array, unspecified: Array) -> None:
        """Allow a known different answer of the SoC's kernel; ``apart``: its distance. The element is unspecified if an
        operand or the answer is not finite, or if the answer is unknown."""
        if self.graphs.departing is not None:
            far = apart > np.abs(value) * DEPARTURE
            if any_true(far):
                arrays = [v for v in self.operands.values() if isinstance(v, np.ndarray)]
                unspecified |= far & (np.isinf(apart) | ~np.logical_and.reduce([np.isfinite(v) for v in arrays]))
            bound += apart
        if own is not None:
            unspecified |= ~np.isfinite(widen(own)) & np.isfinite(value)
        if self.graphs.unspecified is not None:
            (unknown,) = program(self.graphs.unspecified)(self.operands, value.shape)
            unspecified |= np.asarray(unknown)

    def departing(self, value: Array) -> Array:
        """Return where the SoC's kernel answers another number than the formula, also because it computes in float16
        (by more than an ULP). Every layer accepts an answer within the bound."""
        result = np.zeros(value.shape, bool)
        if self.graphs.departing is not None:
            result |= np.asarray(self._run(self.graphs.departure, value.shape)) > np.abs(value) * DEPARTURE
        if self.graphs.native is not None:
            own = widen(self.graphs.natively(self.operands, self.narrow))
            result |= np.abs(own - value) > 2 * half_ulp(np.abs(value), FORMATS[self.graphs.dtype])
        return result

    def _overflows(self, value: Array, own: Array | None, bound: Array, unspecified: Array) -> None:
        """Run every order where a step may overflow, an operand is not finite, or no bound is known. ``own``: the
        answer of a kernel that computes in a 16-bit type."""
        reach = self._run(self.graphs.reach, value.shape)
        most = LARGEST if own is None else FORMATS[self.graphs.dtype].max
        suspect = ~(np.asarray(reach) < most * (1 - NEAR)) | ~(bound < NO_BOUND / 2)
        release(reach)
        if not any_true(suspect):
            return
        few = cast(index_arrays(self.operands, suspect), np.float32)
        orders = self.graphs.orders
        modes = dict.fromkeys((frozenset[str](), self.device.flushing))
        answers = [
            simulate(order, few, np.float32, largest=end, flushing=mode, same_bits=True)
            for order in orders
            for mode in modes
            for end in _ENDS
        ]
        if own is not None:
            answers.append(own[suspect].astype(np.float32))
        value = value[suspect]
        answers = [np.broadcast_to(answer, value.shape) for answer in answers]
        apart = np.max([np.abs(answer.astype(np.float64) - value) for answer in answers], axis=0)
        lost = np.where(bound[suspect] < NO_BOUND / 2, bound[suspect], 0)
        bound[suspect] = np.where(np.isfinite(apart), apart + lost, lost)
        unspecified[suspect] = classes_differ(
            [*answers, value.astype(np.float32)]
        ) | self._sign_of_infinity_unspecified(suspect)

    def _sign_of_infinity_unspecified(self, where: Array) -> Array:
        """Return, for some elements, whether right kernels can answer infinities of either sign, or NaN. This happens
        if an infinite factor multiplies a value that is closer to zero than its own error."""
        few, shape = index_arrays(self.operands, where), (int(np.count_nonzero(where)),)
        infinite = {n: np.isinf(v) for n, v in few.items() if is_linear(self.graphs.value, n)}
        if not any(map(any_true, infinite.values())):
            return np.zeros(shape, bool)
        ones = {n: np.where(inf, np.copysign(1.0, few[n]), few[n])[()] for n, inf in infinite.items()}
        few_bounds = replace(self, operands={**few, **ones}, narrow={})
        value, running = map(np.asarray, program(self.graphs.value, few_bounds.running)(few_bounds.operands, shape))
        size = np.abs(value)
        near = size <= few_bounds.lost(value, running)
        return np.asarray(near & (size >= FORMATS["float32"].tiny) & reduce(np.logical_or, infinite.values()))

    def _ties(self, value: Array, formats: Sequence[FloatFormat]) -> Array | None:
        """Return where the value is halfway between two numbers of a 16-bit type and every order is exact on its chosen
        branches. The type is the host's, or the output's if the value is representable in the host's type."""
        computed = FORMATS["float32" if self.graphs.native is None else self.graphs.dtype]
        narrow = [fmt for fmt in formats if fmt.mant < computed.mant]
        if not (narrow and self.graphs.may_be_exact):
            return None
        halfway = is_halfway(value, narrow[0])
        if len(narrow) > 1:
            halfway |= is_halfway(value, narrow[1]) & (quantize(value, narrow[0]) == value)
        if not any_true(halfway):
            return None
        ties = np.flatnonzero(halfway)
        flat = map_arrays(self.operands, lambda v: v.reshape(-1)[ties])
        single, wanted = cast(flat, np.float32), value.reshape(-1)[ties]
        likely = simulate(self.graphs.orders[0], single, np.float32) == wanted
        for order in self.graphs.orders if self.device.flushing else ():  # a result that may be flushed is not exact
            likely &= simulate(order, single, np.float32, flushing=self.device.flushing) == wanted
        exact = np.zeros(value.size, bool)
        own = (*self.graphs.orders, *(() if self.graphs.native is None else (self.graphs.native,)))
        exact[ties[likely]] = is_exact_in(own, index_arrays(flat, likely), computed)
        return np.asarray(exact.reshape(value.shape))
