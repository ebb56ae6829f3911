"""Formulas that are zero except at one place of each row: golden, strict bound, and the answer of a device.

The output is cleared. The value at a row's place is an elementwise formula of the operands there. It is computed once
for each row that takes part. If no operand has one value per row, it is computed once for each place.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...model.call import Array
from ...model.dtypes import dtype_of
from ..compiled.engine import is_compiled
from ..compiled.source import BOTH, ONE, PLACE, ROW
from ..floats.blocks import axis_last
from ..orders import strict
from ..orders.formula import Formula, PlaceFormula
from ..orders.kernel_orders import Graphs, graphs_of
from ..orders.strict import Device
from ..programs import Operands, simulate
from ..sink import Sink
from . import elementwise, reductions

ROWS = 1 << 18  # rows that are processed together


def evaluate(formula: Formula, operands: Operands, axis: int, sink: Sink) -> None:
    """Fill the sink. ``operands``: arrays that broadcast to the output, or numbers, by symbol; whole numbers can have
    any size. ``axis``: the axis of an element's place."""
    rows = _Rows.of(formula.at_place, operands, sink.out.shape, axis)
    graphs = graphs_of(rows.value, rows.operands, sink.soc, dtype_of(sink.kernel).name)
    whole = rows.chosen.place.op == "symbol" and all(v.dtype.kind in "iu" for v in rows.deciding.values())
    compiles = sink.moved(axis).is_in_place and whole and not graphs.is_fragile and is_compiled(sink)

    def values(few: Operands, count: int) -> Sink:
        table = sink.vector(count)
        elementwise.evaluate(rows.value, few, table)
        return table

    if compiles:
        left = rows.compiled(graphs, sink.out)
        if left.size:
            own = np.concatenate([places for _, places in rows.places()])[left]
            sink.moved(axis).scatter(left, own, values(rows.at(left, own), left.size), slice(None))
        return
    sink.clear()
    target = sink.moved(axis)
    # The value depends on the place alone, and there are fewer places than rows.
    is_shared = not {ROW, BOTH} & {which for _, which in rows.entering.values()} and rows.length < math.prod(rows.lead)
    table = values(rows.operands, rows.length) if is_shared else None
    for start, places in rows.places():
        where = np.flatnonzero(places >= 0)
        if where.size:
            own, where = places[where], where + start
            result = values(rows.at(where, own), where.size) if table is None else table
            target.scatter(where, own, result, slice(None) if table is None else own)


def kernel(
    formula: Formula, operands: Operands, shape: tuple[int, ...], axis: int, device: Device, stored: str = ""
) -> Array:
    """Return a device's answer. ``shape``: of the output. ``stored``: the dtype that the kernel stores."""
    rows, out = _Rows.of(formula.at_place, operands, shape, axis), np.zeros(shape, device.compute)
    lines = np.atleast_2d(axis_last(out, axis))
    for start, places in rows.places():
        where = np.flatnonzero(places >= 0)
        own, where = places[where], where + start
        result = strict.kernel(rows.value, rows.at(where, own), device, stored)
        at = *np.unravel_index(where, lines.shape[:-1]), own
        lines[at] = result
    return out


# ---- sums of such values ---------------------------------------------------------------------------------------------


def evaluate_sums(
    formula: Formula, operands: Operands, shape: tuple[int, ...], axis: int, sink: Sink, *, per_row: bool
) -> None:
    """Fill a sink with sums of values that are zero except at one place of each row: one element for each row
    (``per_row``), or one of all rows. ``shape``: of all values."""
    rows = _Rows.of(formula.picked, operands, shape, axis)
    where, few = rows.counting()
    if per_row:
        sink.clear()
        if where.size:
            table = sink.vector(where.size)
            elementwise.evaluate(formula.of_one_row, few, table)
            lines = sink.viewed(lambda array: array.reshape(-1, 1))
            lines.scatter(where, np.zeros_like(where), table, slice(None))
        return
    reductions.evaluate(rows.value, few or rows.nothing(), (0,), sink)
    if not where.size:  # a sum of no terms is +0
        sink.out[sink.out == 0] = 0


def kernel_sums(
    formula: Formula, operands: Operands, shape: tuple[int, ...], axis: int, device: Device, *, per_row: bool
) -> Array:
    """Return a device's answer for such a sum."""
    rows = _Rows.of(formula.picked, operands, shape, axis)
    where, few = rows.counting()
    if not per_row:
        result = reductions.kernel(rows.value, few or rows.nothing(), (0,), device, per_row=True)
        return np.asarray(result + np.zeros((), device.compute))
    out = np.zeros(math.prod(rows.lead), device.compute)
    if where.size:
        out[where] = strict.kernel(formula.of_one_row, few, device)
    return out


@dataclass
class _Rows:
    """The operands of the rows of an output, along which an element has its place.

    ``chosen``: the computation. ``entering``: each operand of the value, with the index of a row's element: ONE (a
    number), ROW, PLACE or BOTH. ``deciding``: the operands of a row's place and of its conditions; one value per row,
    or one.
    """

    chosen: PlaceFormula
    lead: tuple[int, ...]
    length: int
    entering: dict[str, tuple[Any, str]]
    deciding: dict[str, Array]

    @classmethod
    def of(cls, chosen: PlaceFormula | None, operands: Operands, shape: tuple[int, ...], axis: int) -> _Rows:
        assert chosen is not None
        lead, length = (*shape[:axis], *shape[axis + 1 :]) or (1,), shape[axis]
        rows = cls(chosen, lead, length, {}, {})
        for name, v in operands.items():
            if name in chosen.entering:
                rows.entering[name] = rows._entered(v, axis)
            if name in chosen.deciding:
                rows.deciding[name] = rows._per_row(v, axis) if isinstance(v, np.ndarray) else np.array([v])
        if all(which == ONE for _, which in rows.entering.values()):  # the value has at least one array
            name, number = next((n, v) for n, (v, _) in rows.entering.items() if isinstance(v, float))
            rows.entering[name] = np.full(length, number, getattr(operands[name], "dtype", np.float32)), PLACE
        return rows

    def _entered(self, v: Any, axis: int) -> tuple[Any, str]:
        if not isinstance(v, np.ndarray):
            return v, ONE
        if v.size == 1:
            number = float(v.reshape(())[()])
            return (number, ONE) if math.isfinite(number) else (np.full(self.length, v.reshape(()), v.dtype), PLACE)
        if v.size == v.shape[axis]:
            return v.reshape(-1), PLACE
        if v.shape[axis] == 1:
            return self._per_row(v, axis), ROW
        return np.broadcast_to(axis_last(v, axis), (*self.lead, self.length)), BOTH

    def _per_row(self, v: Array, axis: int) -> Array:
        """Return the first value of each row, or one."""
        first = axis_last(v, axis)[..., 0]
        return np.asarray(first if first.size == 1 else np.broadcast_to(first, self.lead)).reshape(-1)

    @property
    def value(self) -> Formula:
        """The formula of the value at a row's place."""
        return self.chosen.value

    @property
    def operands(self) -> dict[str, Any]:
        """The operands that enter the value."""
        return {name: v for name, (v, _) in self.entering.items()}

    def places(self) -> Iterator[tuple[int, Array]]:
        """Yield the first row's index and the places of rows, ROWS at a time; -1 if a row does not take part."""
        count = math.prod(self.lead)
        for start in range(0, count, ROWS):
            given = {n: v if v.size == 1 else v[start : start + ROWS] for n, v in self.deciding.items()}
            exact = np.broadcast_to(simulate(self.chosen.place, given, np.float64), min(ROWS, count - start))
            places = exact.astype(np.int64, copy=False)
            if places is not exact:
                places = _where(places == exact, places)
            for condition in self.chosen.conditions:
                places = _where(simulate(condition, given, np.float64), places)
            yield start, places if places.max() < self.length else _where(places < self.length, places)

    def counting(self) -> tuple[Array, dict[str, Any]]:
        """Return the rows that take part, and the operands at their places, each an array unless it is a flag."""
        own = np.concatenate([np.zeros(0, np.int64), *(places for _, places in self.places())])  # for no rows too
        where = np.flatnonzero(own >= 0)
        few = self.at(where, own[where]) if where.size else {}
        return where, {n: np.full(where.size, v) if isinstance(v, float) else v for n, v in few.items()}

    def nothing(self) -> dict[str, Any]:
        """Return operands for the sum of no rows."""
        return {n: v if isinstance(v, int) else np.zeros(1) for n, v in self.operands.items()}

    def at(self, where: Array, places: Array) -> dict[str, Any]:
        """Return the operands at the places of some rows."""
        index = {ROW: where, PLACE: places, BOTH: (*np.unravel_index(where, self.lead), places)}
        return {n: v if which == ONE else v[index[which]] for n, (v, which) in self.entering.items()}

    def compiled(self, graphs: Graphs, out: Array) -> Array:
        """Clear an output, and store the values at the places in one compiled pass; return the unproven rows."""
        from ..compiled import loops

        out.fill(0)
        return loops.scattered(graphs, self.chosen, self.entering, self.deciding, out.reshape(-1, self.length))


def _where(counts: Array, places: Array) -> Array:
    return places if counts.all() else np.where(counts, places, -1)
