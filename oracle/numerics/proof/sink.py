"""Where an evaluation puts its blocks: rounding, proof, the host's second rounding, and the strict bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...model.call import Array
from ...model.dtypes import DTYPES, FORMATS, dtype_of
from ..floats.blocks import apart, axis_last, convert
from ..floats.extremes import highest
from ..floats.float32 import classes_differ, half_ulp
from ..floats.rounding import unify_nans, widen
from .proof import Exact, Refine, settle, store_between, store_close

Index = tuple[Any, ...]


class Sink:
    """The destination of one evaluation.

    ``out``: the output array. ``kernel_type``: the type the host rounds to before the cast to ``out``. ``value``,
    ``bound``, ``unspecified``: what a verdict needs beside the golden, filled only when ``judged``; ``lost``: the part
    of the bound that is the kernel's, the rest is the host's rounding. ``filled``: whether every element of these is
    written by the evaluation, so that they need not be zero before.
    """

    def __init__(self, out: Array, kernel_type: str, *, judged: bool = False, filled: bool = False) -> None:
        self.out = out
        self.kernel = DTYPES[kernel_type].numpy
        self.direct = out.dtype == self.kernel
        self.judged = judged
        self.zeros: Array | None = None  # elements that must be exactly zero, where the operator says so
        self.undecided: Array | None = None  # elements on which right kernels may choose differently
        self.given = False  # by a function whose loss nobody derives
        self.on_the_way = ""  # a narrower type that the kernel rounds to before its result
        if judged:
            self.value, self.bound, self.lost = (apart(out.shape) for _ in range(3))
            for array in () if filled else (self.value, self.bound, self.lost):
                array[...] = 0.0
            self.unspecified = np.zeros(out.shape, bool)
            self.exact = np.zeros(out.shape, bool)
            self.formats = [FORMATS[kernel_type]]
            if not self.direct and dtype_of(out.dtype).name in FORMATS:
                self.formats.append(FORMATS[dtype_of(out.dtype).name])
            # A kernel type of fewer digits than the output's shows: the standards must then see the rounded value.
            self.rounded_value = not self.direct and self.formats[0].mant < self.formats[-1].mant
            self.rounded_value |= not self.direct and len(self.formats) == 1  # float64 and complex outputs are wider
            self.coarser = kernel_type if self.rounded_value else dtype_of(out.dtype).name

    @property
    def is_in_place(self) -> bool:
        """Whether what is proved can be written to the output itself."""
        return bool(self.direct and self.out.flags.c_contiguous)

    def at(self, index: Index) -> Sink:
        """Return a sink that writes to a basic-slicing view of this one's arrays."""
        return self.viewed(lambda array: array[index])

    def moved(self, dim: int) -> Sink:
        """Return a sink over the arrays with ``dim`` moved last."""
        return self if dim in (-1, self.out.ndim - 1) else self.viewed(lambda array: axis_last(array, dim))

    def viewed(self, view: Callable[[Array], Array]) -> Sink:
        """Return a sink that writes to views of this one's arrays."""
        part = self._copy()
        part.out = view(self.out)
        if self.judged:
            part.value, part.bound, part.lost = view(self.value), view(self.bound), view(self.lost)
            part.unspecified, part.exact = view(self.unspecified), view(self.exact)
            part.zeros = None if self.zeros is None else view(self.zeros)
        return part

    def _copy(self) -> Sink:
        part = Sink.__new__(Sink)
        part.__dict__.update(self.__dict__)
        return part

    def vector(self, size: int) -> Sink:
        """Return a sink for ``size`` separate values of the kernel type, to be scattered later."""
        part = self._copy()
        part.out, part.direct = np.empty(size, self.kernel), True
        if self.judged:
            part.value, part.bound, part.lost = np.zeros(size), np.zeros(size), np.zeros(size)
            part.unspecified, part.exact = np.zeros(size, bool), np.zeros(size, bool)
        return part

    def clear(self) -> None:
        """Zero the output; every element must then be exactly zero unless it is scattered to."""
        bits = self.out.view(np.uint16) if self.out.itemsize == 2 else self.out  # ml_dtypes fills element by element
        bits[...] = 0
        if self.judged:
            self.zeros = np.ones(self.out.shape, bool)

    def scatter(self, rows: Array, columns: Array, table: Sink, chosen: Any) -> None:
        """Copy a vector's values to (row, column) of the output, whose last axis holds the columns."""
        lead = np.atleast_2d(self.out).shape[:-1]
        where = (rows, columns) if len(lead) == 1 else (*np.unravel_index(rows, lead), columns)
        values = table.out[chosen]
        converted = np.empty(values.shape, self.out.dtype)
        convert(values, converted)
        np.atleast_2d(self.out)[where] = converted
        if self.judged:
            value = widen(converted.real) if self.rounded_value else table.value[chosen]
            np.atleast_2d(self.value)[where] = value
            np.atleast_2d(self.bound)[where] = table.bound[chosen]
            np.atleast_2d(self.lost)[where] = table.lost[chosen]
            np.atleast_2d(self.unspecified)[where] = table.unspecified[chosen]
            np.atleast_2d(self.exact)[where] = table.exact[chosen]
            assert self.zeros is not None  # clear() came first
            np.atleast_2d(self.zeros)[where] = False

    def fill(self, table: Sink) -> None:
        """Copy a vector's values to all elements of the output, in row-major order."""
        converted = np.empty(self.out.shape, self.out.dtype)
        convert(table.out.reshape(self.out.shape), converted)
        self.out[...] = converted
        if self.judged:
            value = table.value.reshape(self.out.shape)
            self.value[...] = widen(converted.real) if self.rounded_value else value
            for name in ("bound", "lost", "unspecified", "exact"):
                getattr(self, name)[...] = getattr(table, name).reshape(self.out.shape)

    def region(self, index: Index) -> Region:
        """Return a part of this sink to be stored block by block and settled at once."""
        return Region(self if index == (Ellipsis,) else self.at(index))

    def put_bound(
        self, index: Index, value: Array, error: Array, unspecified: Array, exact: Array | None = None
    ) -> None:
        """Record what a right float32 kernel may lose: ``error`` before the final roundings, absolute.

        ``exact``: where no right order of float32 operations loses anything, only the golden is right; a bound cannot
        say so, for on a tie both neighbours are half an ULP away.

        The roundings are taken at |value| + error so that a binade's edge is covered; where the standards' value is
        itself rounded, they count twice. Where only part of the interval overflows, finiteness itself is unspecified.
        """
        reach = np.abs(value) + error
        most = highest(reach) if reach.size else 0.0
        for fmt in self.formats:
            if not most < fmt.overflow:  # NaN is not
                unspecified = unspecified | ((reach >= fmt.overflow) & (np.abs(value) - error < fmt.overflow))
        self.lost[index] = error
        bound = self._roundings(reach)
        if self.rounded_value:
            bound = bound * 2
        self.bound[index] = bound + error
        self.unspecified[index] = unspecified
        if exact is not None:
            self.exact[index] = exact

    def _roundings(self, reach: Array) -> Array:
        """What the host's roundings may change: half an ULP of the kernel type, and half an ULP of the output's where
        its numbers lie no closer (else the cast is exact, as from bfloat16 to float16 above float16's subnormals)."""
        first = half_ulp(reach, self.formats[0])
        if len(self.formats) == 1:
            return first
        second = half_ulp(reach, self.formats[1])
        return np.asarray(first + np.where(second < first, 0, second))


class Region:
    """A part of a sink: stored block by block while a block is in the cache, its unproven elements settled together."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self.in_place = sink.is_in_place
        self.target = sink.out if self.in_place else np.empty(sink.out.shape, sink.kernel)
        self.proved_finite = False  # what is not left is a number, and proved
        self.unproven: list[tuple[Array, ...]] = []  # of each block: flat indices in this part, values, ends
        self.overflowed: list[Array] = []  # flat indices of elements that float64 cannot hold

    def put_relative(self, index: Index, value: Array, relative: float) -> None:
        """Round one block, contiguous in this part, whose elements have the same relative error bound."""
        block = self.target[index]
        where = store_close(value, relative, block)
        if where.size:
            few = value.reshape(-1)[where]
            self.leave(where + self.start(block), few, few * (1 - relative), few * (1 + relative))
        if self.sink.judged:
            self.sink.value[index] = value

    def put_between(self, index: Index, low: Array, high: Array, value: Callable[[Array], Array]) -> None:
        """Round one block known by its ends; ``value(flat indices)`` is asked for where values matter."""
        block = self.target[index]
        where = store_between(low, high, block)
        if where.size:
            ends = value(where), low.reshape(-1)[where], high.reshape(-1)[where]
            self.leave(where + self.start(block), *ends)

    def leave(self, where: Array, value: Array, low: Array, high: Array) -> None:
        """Leave elements, by flat indices in this part, to be settled at the end."""
        self.unproven.append((where, value, low, high))

    def leave_overflowed(self, where: Array) -> None:
        """Leave elements whose value overflows float64 although it exists; the standards are given the golden."""
        nothing, end = np.zeros(where.size), np.full(where.size, np.inf)
        self.leave(where, nothing, -end, end)
        self.overflowed.append(where)

    def start(self, block: Array) -> int:
        """Return the flat index at which a block of this part begins."""
        return (block.ctypes.data - self.target.ctypes.data) // block.itemsize

    def finish(self, exact: Exact, refine: Refine | None = None, least: float = 1) -> None:
        """Settle the unproven elements (``exact`` and ``refine`` answer for this part; ``refine`` is asked
        for ``least`` at least) and apply the host's cast."""
        where: Any = Ellipsis
        if self.unproven:
            where, *ends = (np.concatenate(parts) for parts in zip(*self.unproven, strict=True))
            value, low, high = ends
            recorded = None if refine is None else self._recorded(refine)
            settle(where, (value, low, high), self.target, exact, recorded, least)
        if not self.proved_finite:
            unify_nans(self.target)
        elif self.unproven:
            few = self.target.reshape(-1)[where]
            unify_nans(few)
            self.target.reshape(-1)[where] = few
        if self.overflowed and self.sink.judged:
            beyond = np.unravel_index(np.concatenate(self.overflowed), self.target.shape)
            golden = widen(self.target[beyond])
            # A kernel that does not find the way around an overflow, as float64 did not, answers no finite number.
            self.sink.unspecified[beyond] |= classes_differ([golden, self.sink.value[beyond]])
            self.sink.value[beyond] = golden
        if not self.in_place:
            convert(self.target, self.sink.out)
        if self.sink.judged and self.sink.rounded_value:
            self.sink.value[...] = widen(self.sink.out.real)

    def _recorded(self, refine: Refine) -> Refine:
        """The same refinement, whose values the standards see too where it has any: plain float64 may have cancelled
        there."""

        def recorded(where: tuple[Array, ...]) -> tuple[Array, Array, Array]:
            value, low, high = refine(where)
            if self.sink.judged:
                known = np.isfinite(low) & np.isfinite(high)
                self.sink.value[tuple(axis[known] for axis in where)] = value[known]
            return value, low, high

        return recorded
