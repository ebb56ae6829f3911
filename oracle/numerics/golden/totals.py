"""Formulas that also sum over all rows a value of each row: golden and strict bound.

The mean of a loss over classes is an example. Each sample's loss is reduced along the classes, then the losses and the
samples' weights are added. Each row's part is a formula with reductions along the axis (:mod:`.reductions`). The sum is
a number with an error; the following steps use it as an operand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from threading import RLock
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from gmpy2 import mpq

from ...model.dtypes import dtype_of
from .. import double_double
from ..bounds import additions
from ..bounds.building import SECOND_ORDER
from ..exact import enclosures
from ..expressions import TOTAL, Expression
from ..floats.blocks import block_size, blocks
from ..floats.rounding import FLOAT64, SURE, Arithmetic
from ..orders.formula import Formula, constants_of
from ..orders.reducing import Graph, Reducing, reducing, types_of
from ..programs import Operands, index_arrays, map_arrays, shape_of
from ..proof import U
from ..sink import Sink
from . import reductions
from .exact_rows import ExactRow, exact_sum, parts_of
from .row_bounds import RowBound
from .stages import RowTotals, Stages, pair_sum
from .sums import AGAIN, RUN, TERMS, as_rows, expanded, run_sum

P = ParamSpec("P")
T = TypeVar("T")


def evaluate(formula: Formula, operands: Operands, axes: tuple[int, ...], sink: Sink) -> None:
    """Fill the sink as :func:`.reductions.evaluate` does, for a formula that may also sum over all rows. Then the sink
    can have one element for all of them."""
    scheme = reducing(formula, constants_of(formula, operands))
    if not scheme.value.sums_rows:
        reductions.evaluate(formula, operands, axes, sink)
        return
    rows = map_arrays(operands, lambda array: as_rows(array, axes))
    every = AllRows(scheme, rows, sink)
    with np.errstate(all="ignore"):
        every.prepare()
    if sink.out.size == 1:  # one row is enough: the steps after the sums are the same for all
        first = tuple(slice(None) if k in axes else slice(1) for k in range(len(axes) + len(every.lead)))
        operands = index_arrays(operands, first)
    reductions.evaluate(formula, operands, axes, sink, every)


def _once(make: Callable[Concatenate[AllRows, P], T]) -> Callable[Concatenate[AllRows, P], T]:
    """Decorate a method: its result is computed once for the same arguments."""

    @wraps(make)
    def kept(rows: AllRows, /, *given: P.args, **named: P.kwargs) -> T:
        key = make.__name__, given, tuple(sorted(named.items()))
        with rows._lock:
            if key not in rows._kept:
                rows._kept[key] = make(rows, *given, **named)
            result: T = rows._kept[key]
            return result

    return kept


class AllRows(RowTotals):
    """All rows of a formula, and the sums over them; each sum is computed once."""

    def __init__(self, scheme: Reducing, operands: Operands, sink: Sink) -> None:
        self._scheme, self._operands, self._sink = scheme, operands, sink
        *lead, self._length = shape_of(operands)
        self.lead = tuple(lead)
        self._kept: dict[tuple[Any, ...], Any] = {}
        self._lock = RLock()

    def _rows(self, elements: int, graph: Graph) -> Iterator[Stages]:
        """Yield all rows in groups of about ``elements`` elements. ``graph``: the computation for each row."""
        for block in blocks(self.lead, max(1, elements // max(1, self._length)) if self._length <= TERMS else 1):
            rows = Stages(self._scheme, index_arrays(self._operands, block), self._sink)
            rows.graph = graph
            yield rows

    def prepare(self) -> None:
        """Compute the sums that every element needs, before several threads process rows."""
        sink, asked = self._sink, [(self._scheme.value, FLOAT64)]
        if sink.judged:
            result = self._scheme.orders(sink.soc, dtype_of(sink.kernel).name, types_of(self._operands))
            asked += [(order.graph, order.narrow or sink.device) for order in result]
        for graph, arithmetic in asked:
            for stage in graph.stages:
                if stage.kind == TOTAL:
                    self.total(graph.of_row(stage), arithmetic)

    @_once
    def total(self, graph: Graph, arithmetic: Arithmetic) -> tuple[float, float, bool]:
        parts = [RowBound(rows).of_each(graph, arithmetic) for rows in self._rows(block_size(), graph)]
        values = np.concatenate([value.reshape(1, -1) for value, _, _ in parts], axis=-1)
        margins = np.concatenate([margin.reshape(1, -1) for _, margin, _ in parts], axis=-1)
        known = np.where(np.isfinite(values), values, 0.0)
        total, size = run_sum(values), run_sum(np.abs(known))
        count = values.shape[-1]
        error = (run_sum(margins) + 1.01 * U * (RUN + count // RUN) * size) * SECOND_ORDER
        doubtful = any(doubt for *_, doubt in parts)
        if arithmetic is not FLOAT64:  # on a device in any order
            error = error + additions.lost([known], size, count)
            doubtful |= bool((~np.isnan(total) & (size >= SURE)).any())
        return float(total[0, 0]), float(error[0, 0]), doubtful

    @_once
    def paired(self, graph: Graph) -> tuple[float, float, float]:
        result = []
        for rows in self._rows(AGAIN, graph):
            index = np.indices(rows.lead).reshape(len(rows.lead), -1)
            result.append(rows.in_pairs((*index, np.zeros(index.shape[1], np.int64))))
        high, low, slack = (np.concatenate([p[k] for p in result]) for k in range(3))
        (one, other), wrong = pair_sum(high, low)
        return (
            float(one[0]),
            float(other[0]),
            float((slack.sum() + wrong[0]) * 1.01 + high.size * double_double.UNDERFLOW),
        )

    @_once
    def _exact_rows(self, graph: Graph) -> list[ExactRow]:
        """Return every row in exact form."""
        every = self._rows(AGAIN, graph)
        return [ExactRow(rows, index) for rows in every for index in np.ndindex(*rows.lead)]

    @_once
    def parts(self, graph: Graph) -> list[float] | None:
        if self._length == 1 and graph.of_one is not None and (known := self._of_ones(graph.of_one[1])) is not None:
            return known
        if not graph.is_rational:
            return None
        result: list[float] = []
        for row in self._exact_rows(graph):
            value = row.value(0)
            part = parts_of(mpq(value)) if isinstance(value, (float, type(mpq()))) else None
            if part is None:
                return None
            result += part
        return expanded(result)

    def _of_ones(self, rational: Expression) -> list[float] | None:
        """Return the exact sum over rows of one element; None if a row's value is rounded in float64."""
        result: list[float] = []
        for rows in self._rows(block_size(), self._scheme.value):
            inner = rows.loaded((Ellipsis,))
            if not all(np.isfinite(v).all() for v in inner.values()):
                return None
            if (more := exact_sum(rational, inner, result)) is None:
                return None
            result = more
        return result

    @_once
    def enclosed(self, graph: Graph, precision: int) -> enclosures.Interval:
        rows = self._exact_rows(graph)
        each = [enclosures.enclose(row.outer, row.operands(0), precision, row.ends) for row in rows]
        return enclosures.reduced("sum", each, precision)
