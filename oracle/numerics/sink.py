"""The destination of an evaluation's blocks: rounding, proof, the host's second rounding, and the strict bound."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np

from ..model.call import Array
from ..model.dtypes import DTYPES, FORMATS, FloatFormat, dtype_of
from .floats.blocks import axis_last, convert, empty_with_margin
from .floats.codes import highest
from .floats.rounding import classes_differ, float32, half_ulp, unify_nans, widen
from .proof import Alike, Exact, Refine, settle, store_between, store_close

Lost = Callable[[tuple[Array, ...], Array], Array]  # the loss of right kernels for some elements with these values
CANCELLED = 2.0**-20  # relative: if float64's value was farther off, it had cancelled
Index = tuple[Any, ...]
JUDGED = ("value", "bound", "lost", "unspecified", "exact")  # a sink's arrays for a verdict


class Sink:
    """The destination of one evaluation.

    ``out``: the output array. ``kernel_type``: the type the host rounds to before the cast to ``out``. ``value``,
    ``bound``, ``unspecified``: a verdict's data in addition to the golden, filled only when ``judged``; ``lost``: the
    kernel's part of the bound, the rest is the host's rounding. ``filled``: whether the evaluation writes every element
    of these, so that they need not be zero before. ``soc``: the SoC of the judged kernel, by the name of its form.
    ``flushes``: its operations that may return 0 for subnormal results.
    """

    def __init__(
        self,
        out: Array,
        kernel_type: str,
        *,
        judged: bool = False,
        filled: bool = False,
        soc: str = "",
        flushes: frozenset[str] = frozenset(),
    ) -> None:
        self.out, self.soc, self.device = out, soc, float32(flushes)
        self.kernel = DTYPES[kernel_type].numpy
        self.direct = out.dtype == self.kernel
        self.judged = judged
        self.zeros: Array | None = None  # elements that must be exactly zero, if the operator says so
        self.undecided: Array | None = None  # elements on which right kernels may choose differently
        self.given = False  # True: the golden is from a function with an unknown loss
        self.on_the_way = ""  # a narrower type that the kernel rounds to before its result
        if judged:
            self.value, self.bound, self.lost = (empty_with_margin(out.shape) for _ in range(3))
            for array in () if filled else (self.value, self.bound, self.lost):
                array[...] = 0.0
            self.unspecified = np.zeros(out.shape, bool)
            self.exact = np.zeros(out.shape, bool)
            self.formats = [FORMATS[kernel_type]]
            if not self.direct and dtype_of(out.dtype).name in FORMATS:
                self.formats.append(FORMATS[dtype_of(out.dtype).name])
            self.overflow = overflow_of(self.formats)
            # If the kernel type has fewer digits than the output's, the standards must use the rounded value.
            self.rounded_value = not self.direct and self.formats[0].mant < self.formats[-1].mant
            self.rounded_value |= not self.direct and len(self.formats) == 1  # float64 and complex outputs are wider
            self.coarser = kernel_type if self.rounded_value else dtype_of(out.dtype).name

    @property
    def is_in_place(self) -> bool:
        """Return whether proved values can be written to the output itself."""
        return bool(self.direct and self.out.flags.c_contiguous)

    def at(self, index: Index) -> Sink:
        """Return a sink that writes to a basic-slicing view of this one's arrays."""
        return self if index == (Ellipsis,) else self.viewed(lambda array: array[index])

    def moved(self, dim: int) -> Sink:
        """Return a sink over the arrays with ``dim`` moved last."""
        return self if dim in (-1, self.out.ndim - 1) else self.viewed(lambda array: axis_last(array, dim))

    def viewed(self, view: Callable[[Array], Array]) -> Sink:
        """Return a sink that writes to views of this one's arrays."""
        part = copy(self)
        part.out = view(self.out)
        if self.judged:
            for name in JUDGED:
                setattr(part, name, view(getattr(self, name)))
            part.zeros = None if self.zeros is None else view(self.zeros)
        return part

    def vector(self, size: int) -> Sink:
        """Return a sink for ``size`` separate values of the kernel type, to be scattered later."""
        part = copy(self)
        part.out, part.direct = np.empty(size, self.kernel), True
        if self.judged:
            for name in JUDGED:
                setattr(part, name, np.zeros(size, getattr(self, name).dtype))
        return part

    def clear(self) -> None:
        """Zero the output; every element must then be exactly zero unless it is scattered to."""
        bits = self.out.view(np.uint16) if self.out.itemsize == 2 else self.out  # ml_dtypes fills one by one
        bits[...] = 0
        if self.judged:
            self.zeros = np.ones(self.out.shape, bool)

    def scatter(self, rows: Array, columns: Array, table: Sink, chosen: Any) -> None:
        """Copy a vector's values to (row, column) of the output; its last axis contains the columns."""
        lead = np.atleast_2d(self.out).shape[:-1]
        where = (rows, columns) if len(lead) == 1 else (*np.unravel_index(rows, lead), columns)
        self._take(where, table, chosen)
        if self.judged:
            assert self.zeros is not None  # clear() came first
            np.atleast_2d(self.zeros)[where] = False

    def fill(self, table: Sink) -> None:
        """Copy a vector's values to all elements of the output, in row-major order."""
        self._take((Ellipsis,), table.viewed(lambda array: array.reshape(self.out.shape)), (Ellipsis,))

    def _take(self, where: Index, table: Sink, chosen: Any) -> None:
        """Copy some values of another sink, which stores the kernel's type."""
        values = table.out[chosen]
        converted = np.empty(values.shape, self.out.dtype)
        convert(values, converted)
        np.atleast_2d(self.out)[where] = converted
        for name in JUDGED if self.judged else ():
            rounded = name == "value" and self.rounded_value
            taken = widen(converted.real) if rounded else getattr(table, name)[chosen]
            np.atleast_2d(getattr(self, name))[where] = taken

    def region(self, index: Index) -> Region:
        """Return a part of this sink. It is stored block by block and settled as a whole."""
        return Region(self.at(index))

    def put_bound(
        self, index: Index, value: Array, error: Array, unspecified: Array, exact: Array | None = None
    ) -> None:
        """Record the possible loss of a right float32 kernel: ``error`` before the final roundings, absolute.

        ``exact``: where no right order of float32 operations loses anything, only the golden is right. A bound cannot
        express this, because on a tie both neighbours are half an ULP away.

        The roundings are computed at |value| + error so that a binade's edge is covered. They count twice if the
        standards' value is itself rounded. If only part of the interval overflows, finiteness itself is unspecified.
        """
        reach = np.abs(value) + error
        if reach.size and not highest(reach) < self.overflow:  # true for NaN
            unspecified = unspecified | ((reach >= self.overflow) & (np.abs(value) - error < self.overflow))
        self.lost[index] = error
        bound = self._roundings(reach)
        if self.rounded_value:
            bound = bound * 2
        self.bound[index] = bound + error
        self.unspecified[index] = unspecified
        if exact is not None:
            self.exact[index] = exact

    def record_exact_values(self, index: tuple[Array, ...], value: Array, lost: Lost | None = None) -> None:
        """Record the true values of elements, where float64 had cancelled, and the bound there. ``lost``: the loss of
        right kernels for such values; a share of a value that had become 0 was no bound."""
        error = self.lost[index]
        if lost is not None:
            moved = np.abs(value - self.value[index]) > np.abs(value) * CANCELLED
            if moved.any():
                error[moved] = np.maximum(error[moved], lost(tuple(axis[moved] for axis in index), value[moved]))
        self.value[index] = value
        self.put_bound(index, value, error, self.unspecified[index])

    def _roundings(self, reach: Array) -> Array:
        """Return the possible change by the host's roundings: half an ULP of the kernel type, plus half an ULP of the
        output's if that is not finer. (Else the cast is exact, as from bfloat16 to float16 above float16's
        subnormals.)"""
        first = half_ulp(reach, self.formats[0])
        if len(self.formats) == 1:
            return first
        second = half_ulp(reach, self.formats[1])
        return np.asarray(first + np.where(second < first, 0, second))


def overflow_of(formats: list[FloatFormat]) -> float:
    """Return the smallest float64 that becomes infinite when it is rounded to one or two formats, one after the other:
    65408 for bfloat16 and then float16, because it becomes 65536 first."""
    first, last = formats[0], formats[-1]
    if not last.overflow < first.max:
        return first.overflow
    half = 2.0 ** (math.frexp(last.overflow)[1] - 2 - first.mant)  # half an ULP of the first format
    least = math.ceil(last.overflow / (2 * half))  # ULPs: its smallest number that overflows
    tie = (2 * least - 1) * half
    return tie if least % 2 == 0 else math.nextafter(tie, math.inf)


class Region:
    """A part of a sink: stored block by block while a block is in the cache, its unproven elements settled together."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self.in_place = sink.is_in_place
        self.target = sink.out if self.in_place else np.empty(sink.out.shape, sink.kernel)
        self.losing: Lost | None = None  # used where float64 had cancelled
        self.proved_finite = False  # True: all elements except the unproven ones are proved numbers
        self.unproven: list[tuple[Array, ...]] = []  # of each block: flat indices in this part, values, ends
        self.overflowed: list[Array] = []  # flat indices of elements that overflow float64

    def put_relative(self, index: Index, value: Array, relative: float) -> None:
        """Round one block, contiguous in this part, with the same relative error bound for all elements."""
        block = self.target[index]
        where = store_close(value, relative, block)
        if where.size:
            few = value.reshape(-1)[where]
            self.add_unproven(where + self.start(block), few, few * (1 - relative), few * (1 + relative))
        if self.sink.judged:
            self.sink.value[index] = value

    def put_between(self, index: Index, low: Array, high: Array, value: Callable[[Array], Array]) -> None:
        """Round one block given by its ends; ``value(flat indices)`` is called where values matter."""
        block = self.target[index]
        where = store_between(low, high, block)
        if where.size:
            ends = value(where), low.reshape(-1)[where], high.reshape(-1)[where]
            self.add_unproven(where + self.start(block), *ends)

    def add_unproven(self, where: Array, value: Array, low: Array, high: Array) -> None:
        """Leave elements, by flat indices in this part, to be settled at the end."""
        self.unproven.append((where, value, low, high))

    def add_overflowed(self, where: Array) -> None:
        """Leave elements for which float64 overflows although the value exists; the standards get the golden."""
        nothing, end = np.zeros(where.size), np.full(where.size, np.inf)
        self.add_unproven(where, nothing, -end, end)
        self.overflowed.append(where)

    def start(self, block: Array) -> int:
        """Return the flat index at which a block of this part begins."""
        return (block.ctypes.data - self.target.ctypes.data) // block.itemsize

    def finish(self, exact: Exact, refine: Refine | None = None, least: float = 1, alike: Alike | None = None) -> None:
        """Settle the unproven elements and apply the host's cast. ``exact``, ``refine`` and ``alike`` use this part's
        indices; ``refine`` is called for at least ``least`` elements."""
        where: Any = Ellipsis
        if self.unproven:
            where, *ends = (np.concatenate(parts) for parts in zip(*self.unproven, strict=True))
            value, low, high = ends
            recorded = None if refine is None else self._recording_refine(refine)
            alone = settle(
                where, (value, low, high), self.target, exact, recorded, least, alike, valued=self.sink.judged
            )
            if self.sink.judged:
                self._record(*alone)
        if not self.proved_finite:
            unify_nans(self.target)
        elif self.unproven:
            few = self.target.reshape(-1)[where]
            unify_nans(few)
            self.target.reshape(-1)[where] = few
        if self.overflowed and self.sink.judged:
            beyond = np.unravel_index(np.concatenate(self.overflowed), self.target.shape)
            golden = widen(self.target[beyond])
            # A kernel that overflows in a step, as float64 did, answers no finite number.
            self.sink.unspecified[beyond] |= classes_differ([golden, self.sink.value[beyond]])
            self.sink.value[beyond] = golden
        if not self.in_place:
            convert(self.target, self.sink.out)
        if self.sink.judged and self.sink.rounded_value:
            self.sink.value[...] = widen(self.sink.out.real)

    def _record(self, where: Array, values: Array) -> None:
        """Give the standards values that only exact arithmetic knows, except where float64 overflows in a step."""
        known = np.isfinite(values)
        for beyond in self.overflowed:
            known &= ~np.isin(where, beyond)
        self.sink.record_exact_values(np.unravel_index(where[known], self.target.shape), values[known], self.losing)

    def _recording_refine(self, refine: Refine) -> Refine:
        """Return the same refinement; the standards also use its finite values: plain float64 may have cancelled."""

        def recorded(where: tuple[Array, ...]) -> tuple[Array, Array, Array]:
            value, low, high = refine(where)
            if self.sink.judged:
                known = np.isfinite(low) & np.isfinite(high)
                self.sink.record_exact_values(tuple(axis[known] for axis in where), value[known], self.losing)
            return value, low, high

        return recorded
