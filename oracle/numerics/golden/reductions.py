"""Formulas with reductions along an axis, evaluated by blocks of whole rows: golden and strict bound.

A row's stages (:mod:`oracle.numerics.traversal`) are computed once, each with a rigorous error. This error affects
every element of the row. Doubtful elements are computed again in pairs of float64 numbers, then exactly. A row of more
than TERMS elements is reduced and evaluated in parts. docs/proof-details.md derives the bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, cached_property, partial, reduce
from typing import Any, TypeVar

import numpy as np

from ...model.call import Array
from ...model.dtypes import FORMATS, dtype_of
from .. import double_double
from ..compiled.engine import is_compiled
from ..exact import rationals
from ..expressions import LENGTH, TOTAL, Expression
from ..floats.blocks import Index, block_size, blocks, piece_size, region_size, run_blocks
from ..floats.rounding import FLOAT64, quantize
from ..orders.formula import Formula, constants_of
from ..orders.reducing import reducing, types_of
from ..orders.strict import Device
from ..programs import (
    FIRST,
    Operands,
    cast,
    index_arrays,
    loaded,
    map_arrays,
    program,
    release,
    shape_of,
    simulate,
    spare,
)
from ..proof import U
from ..sink import Region, Sink
from ..traversal import Stage
from .exact_rows import ExactRow
from .row_bounds import RowBound
from .stages import RowTotals, Stages, evaluated
from .sums import AGAIN, TERMS, as_rows, from_rows, tree_sum

T = TypeVar("T")
Shape = tuple[int, ...]
MANY = 4  # a pass is useless if it leaves more than 1 in MANY rows unproven


def evaluate(
    formula: Formula, operands: Operands, axes: tuple[int, ...], sink: Sink, beyond: RowTotals | None = None
) -> None:
    """Fill the sink by blocks of whole rows. ``operands``: arrays of one shape, or numbers, by symbol. ``axes``: the
    axes of that shape along which the formula reduces. The sink has that shape, or one element per row. ``beyond``: the
    sums over all rows."""
    scheme = reducing(formula, constants_of(formula, operands))
    shape, rows = shape_of(operands), map_arrays(operands, lambda array: as_rows(array, axes))
    *lead, length = shape_of(rows)
    target, table = _target(sink, shape, axes, tuple(lead))
    loops = 0 < length <= TERMS and beyond is None and is_compiled(sink)

    def work(index: Index) -> None:
        some, part = index_arrays(rows, index), target.at(index)
        if not loops:
            Rows(scheme, some, sink, beyond).fill(part)
        elif not _compiled(whole := Rows(scheme, some, sink), part):
            for few in blocks(whole.lead, max(1, region_size() // length)):
                Rows(scheme, index_arrays(some, few), sink).fill(part.at(few))

    with np.errstate(all="ignore"):
        size, each = (piece_size(sink.out.size, copied=True), 1) if loops else (region_size(), 4)
        run_blocks(blocks(tuple(lead), max(1, size // max(1, length)) if length <= TERMS else 1), work, each=each)
    if table is not None:
        table[0].fill(table[1])


def _target(sink: Sink, shape: Shape, axes: tuple[int, ...], lead: Shape) -> tuple[Sink, tuple[Sink, Sink] | None]:
    """Return the sink as rows: a view of it, or a table and the views of its final copy."""
    if sink.out.shape != shape or not axes:
        if sink.out.flags.c_contiguous:
            return sink.viewed(lambda array: array.reshape(*lead, 1)), None
        table = sink.vector(math.prod(lead))
        return table.viewed(lambda array: array.reshape(*lead, 1)), (sink, table)
    if len(axes) == 1 and len(shape) > 1:
        return sink.moved(axes[0]), None
    if axes == tuple(range(len(shape) - len(axes), len(shape))) and sink.out.flags.c_contiguous:
        return sink.viewed(lambda array: array.reshape(*lead, -1)), None
    table = sink.vector(sink.out.size)
    return table.viewed(lambda array: array.reshape(*lead, -1)), (
        sink.viewed(lambda array: np.moveaxis(array, axes, range(-len(axes), 0))),
        table,
    )


# ---- the compiled loop -----------------------------------------------------------------------------------------------


def _compiled(rows: Rows, sink: Sink) -> bool:
    """Fill a sink in one compiled pass. NumPy evaluates the rows that the pass leaves in doubt. Return whether a loop
    exists and leaves few rows."""
    from ..compiled.rows import rowwise

    region, length = sink.region((Ellipsis,)), rows.length
    doubtful = rowwise(rows.graph, rows.operands, region.target, length)
    if doubtful is None or doubtful.size * MANY > max(MANY, math.prod(rows.lead)):
        return False
    width = region.target.shape[-1]
    at_once = max(1, AGAIN // length)
    for start in range(0, doubtful.size, at_once):
        some = doubtful[start : start + at_once]
        where = np.unravel_index(some, rows.lead)
        few = Sink(np.empty((some.size, width), region.target.dtype), dtype_of(region.target.dtype).name)
        Rows(rows.scheme, index_arrays(rows.operands, where), sink).fill(few)
        region.target.reshape(-1, width)[some] = few.out
    region.proved_finite = True
    region.finish(rows.exact)
    return True


class Rows(Stages):
    """Some rows of a formula, evaluated into a sink."""

    wide = True  # the output has an element for each operand element, not one per row

    @cached_property
    def _exact_row(self) -> Callable[[Index], ExactRow]:
        return cache(partial(ExactRow, self))

    def fill(self, sink: Sink) -> None:
        """Fill a sink, by blocks of whole rows or, of a long row, in parts."""
        self.wide = sink.out.shape[-1] == self.length
        if self.length <= TERMS:
            region = sink.region((Ellipsis,))
            for block in blocks(self.lead, max(1, block_size() // max(1, self.length))):
                self._put(block, (Ellipsis,), region)
            region.finish(self.exact, self.refine)
            return
        for part in self.parts() if self.wide else [slice(0, 1)]:
            region = sink.region((Ellipsis, part))
            self._put((Ellipsis,), (part,), region)
            region.finish(partial(_later, self.exact, part.start), partial(_later, self.refine, part.start))

    def _put(self, rows: Index, columns: Index, region: Region) -> None:
        """Evaluate, round and prove some rows, or a part of a long one."""
        index = (*rows, *columns) if columns != (Ellipsis,) else rows
        block = rows if columns == (Ellipsis,) else (Ellipsis,)
        shape, fast = region.target[block].shape, not region.sink.judged
        views = {name: v[index] if isinstance(v, np.ndarray) else np.float64(v) for name, v in self.operands.items()}
        inner = {**loaded(views, shape_of(views)), LENGTH: np.float64(self.length)}
        outer = inner if self.wide else index_arrays(inner, FIRST)
        totals = self.totals(self.graph, FLOAT64, rows, inner, fast=fast)
        value, margin = evaluated(self.graph.levels(FLOAT64)[1], outer, totals.known, shape, fast=fast)
        low, high = np.subtract(value, margin, out=spare(shape)), np.add(value, margin, out=spare(shape))
        region.put_between(block, low, high, lambda where: value.reshape(-1)[where])
        if self.graph.may_overflow and np.isnan(value).any():
            beyond = np.flatnonzero(np.isnan(value) & _all_finite({**outer, **totals.known}, shape))
            region.add_overflowed(beyond + region.start(region.target[block]))
        if region.sink.judged:
            region.sink.value[block] = value
            region.sink.put_bound(block, value, *RowBound(self).bound_and_unspecified(rows, inner, outer, value))
        release(*inner.values(), value, margin, low, high)

    def refine(self, where: tuple[Array, ...]) -> tuple[Array, Array, Array]:
        """Return some elements, and the stages of their rows, in pairs of float64 numbers."""
        if self.length == 1 and self.graph.of_one is not None:  # many such rows are exactly 0, which no margin can show
            inner, (whole, rational) = self.loaded(where), self.graph.of_one
            (plain,) = program(whole)(inner, where[0].shape)
            ends = rationals.refined(np.asarray(plain), rationals.evaluate(rational, inner), self.kind, np.inf)
            known = (ends[1] == ends[2]) & reduce(np.logical_and, map(np.isfinite, inner.values()))
            return ends if known.all() else rationals.preferred(ends, self._refined(where), known)
        result = self._refined(where)
        if self.graph.is_rational and not self.graph.sums_rows and 1 < self.length <= TERMS:
            fractions = self.in_fractions(where)  # half of the differences of two numbers are exact ties
            ends = rationals.refined(np.asarray(fractions.num / fractions.den), fractions, self.kind, np.inf)
            result = rationals.preferred(ends, result, ends[0] != 0)  # the sign of a zero is decided elsewhere
        return result

    def _refined(self, where: tuple[Array, ...]) -> tuple[Array, Array, Array]:
        nothing = np.zeros(where[0].shape)
        if not self.has_pairs:
            return nothing, nothing - np.inf, nothing + np.inf
        high, low, slack = self.in_pairs(where)
        fmt = FORMATS[dtype_of(self.kind).name]
        around = slack + 4 * U * np.abs(high)  # if float64 is close enough, verdicts use the value itself
        plain = np.abs(high - quantize(high, fmt.with_ties)) > around
        closer = double_double.round_near_midpoint(high, low, slack, fmt, np.inf)
        ends = high, high - around, high + around
        known = np.isfinite(high) & np.isfinite(around)  # pairs give no result for an infinite operand in the row
        value, least, most = (
            np.where(known, np.where(plain, e, t), nothing)
            for e, t, nothing in zip(ends, closer, (0.0, -np.inf, np.inf), strict=True)
        )
        return value, least, most

    def exact(self, index: tuple[int, ...]) -> Any:
        """Return the exact value of an element, or enclosures of it; if it has none, the result of IEEE arithmetic."""
        return self._exact_row(index[:-1]).value(index[-1])


def _later(check: Callable[[Any], T], start: int, index: tuple[Any, ...]) -> T:
    """Check an element, or elements, of a part of a long row that begins at a column."""
    return check((*index[:-1], index[-1] + start))


def _all_finite(operands: Operands, shape: Shape) -> Array:
    return reduce(np.logical_and, (np.isfinite(v) for v in operands.values()), np.ones(shape, bool))


# ---- a device's answer -----------------------------------------------------------------------------------------------


def kernel(
    formula: Formula, operands: Operands, axes: tuple[int, ...], device: Device, *, per_row: bool = False
) -> Array:
    """Return a device's answer; a sum is a binary tree, as on the device. ``per_row``: one element per row, the reduced
    axes kept as 1."""
    graph = reducing(formula, constants_of(formula, operands)).form(device.form, types_of(operands))
    shape, moved = shape_of(operands), map_arrays(operands, lambda array: as_rows(array, axes))
    totals: dict[str, Any] = {}
    with np.errstate(all="ignore"):
        for stage in graph.stages:
            if stage.kind == TOTAL:
                terms = of_rows(graph.before(stage), stage.terms, {**moved, **totals}, device, per_row=True)
                totals[stage.name] = tree_sum(terms.reshape(-1))[0]
        stages = tuple(stage for stage in graph.stages if stage.kind != TOTAL)
        result = of_rows(stages, graph.outer, {**moved, **totals}, device, per_row=per_row)
    return from_rows(result, shape, axes)


def of_rows(
    stages: tuple[Stage, ...], outer: Expression, operands: Operands, device: Device, *, per_row: bool
) -> Array:
    """Return a device's result for rows, from some stages and an outer graph; ``per_row``: one element for each."""
    (*lead, length), compute = shape_of(operands), device.compute
    result = np.empty((*lead, 1 if per_row else length), compute)
    for block in blocks(tuple(lead), max(1, block_size() // max(1, length))):
        few = index_arrays(operands, block)
        inner, whole = {**cast(few, compute), LENGTH: np.dtype(compute).type(length)}, shape_of(few)
        for stage in stages:
            terms = simulate(stage.terms, inner, compute, flushing=device.flushing, same_bits=True)
            terms = np.broadcast_to(terms, whole)
            extreme = {"most": np.maximum, "least": np.minimum}.get(stage.kind)
            total = tree_sum(terms) if extreme is None else extreme.reduce(terms, axis=-1, keepdims=True)
            inner[stage.name] = np.broadcast_to(total, whole)
        last = index_arrays(inner, FIRST) if per_row else inner
        result[block] = simulate(outer, last, compute, flushing=device.flushing, same_bits=True)
    return result
