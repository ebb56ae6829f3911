"""The stages of some rows: values that a formula with reductions has once for each row, with a rigorous error.

First in float64, then in pairs of float64 numbers. docs/proof-details.md derives the bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from ...model.call import Array
from ...model.dtypes import dtype_of
from .. import double_double
from ..bounds import additions
from ..bounds.building import SECOND_ORDER
from ..bounds.ranges import Range, range_of, stays_inside
from ..exact import enclosures, rationals
from ..exact.enclosures import constant_value
from ..exact.rationals import Fraction64
from ..expressions import LENGTH, TOTAL, ZERO, Expression
from ..floats.blocks import Index
from ..floats.codes import reduce_rows
from ..floats.rounding import FLOAT64, Arithmetic, widen
from ..orders.reducing import Graph, Level, Order, Reducing, types_of
from ..programs import Operands, Values, program, release, shape_of, spare
from ..proof import U
from ..sink import Sink
from ..traversal import Stage, names_of
from .sums import AGAIN, RUN, TERMS, run_sum

Pair = tuple[Array, Array]  # an unevaluated sum


@dataclass
class Totals:
    """The stages of some rows and their error bounds, by symbol, the axis kept. ``sizes``: sums of finite magnitudes of
    terms."""

    known: dict[str, Array] = field(default_factory=dict)
    sizes: dict[str, Array] = field(default_factory=dict)
    doubtful: bool = False  # for a sum over all rows: right kernels may disagree about it


class RowTotals(Protocol):
    """The sums of a formula over all rows (stages of the kind ``total``), for :class:`Stages` with some rows only.

    ``graph``: of one row's part of a sum.
    """

    def total(self, graph: Graph, arithmetic: Arithmetic) -> tuple[float, float, bool]:
        """Return the sum, its error bound, and whether right kernels may disagree about it."""
        ...

    def paired(self, graph: Graph) -> tuple[float, float, float]:
        """Return the sum as a pair, and its error bound."""
        ...

    def parts(self, graph: Graph) -> list[float] | None:
        """Return float64 numbers with exactly this sum; None if there are none."""
        ...

    def enclosed(self, graph: Graph, precision: int) -> enclosures.Interval:
        """Return an enclosure of the sum."""
        ...


class Stages:
    """Some rows of a formula: their operands, and the values that are computed once per row. ``sink`` knows the judged
    kernel. ``beyond``: the sums over all rows, if the formula has some."""

    def __init__(self, scheme: Reducing, operands: Operands, sink: Sink, beyond: RowTotals | None = None) -> None:
        self.scheme, self.operands, self.beyond = scheme, operands, beyond
        self.kind, self.device, self.soc = sink.kernel, sink.device, sink.soc
        *lead, self.length = shape_of(operands)
        self.lead = tuple(lead)
        self.graph = scheme.value
        # The totals for the last operands, by stages: the orders of a formula often have the same stages.
        self._kept: dict[tuple[tuple[Stage, ...], int, bool], Totals] = {}
        self._last: Mapping[str, Any] | None = None
        self._paired: Any = None  # its stages in pairs
        self._ranges: dict[str, Range | None] = {}  # of the last operands, or of the long row

    def loaded(self, index: Index) -> dict[str, Any]:
        """Return the operands of some elements in float64, and the length."""
        result: dict[str, Any] = {
            name: widen(v[index]) if isinstance(v, np.ndarray) else np.float64(v) for name, v in self.operands.items()
        }
        return {**result, LENGTH: np.float64(self.length)}

    def parts(self) -> list[slice]:
        """Return the parts of a row; one part is in memory at a time."""
        return [slice(start, start + TERMS) for start in range(0, self.length, TERMS)] or [slice(0, 0)]

    @cached_property
    def orders(self) -> tuple[Order, ...]:
        return self.scheme.orders(self.soc, dtype_of(self.kind).name, types_of(self.operands))

    def stays_inside(self, roots: tuple[Expression, ...], totals: Totals) -> bool:
        """Return whether ranges show that no step of some graphs overflows or divides by zero for the operands of the
        last call of :meth:`totals`, or in the one long row."""
        ranges: list[tuple[str, Range]] = []
        for name in names_of(*roots):
            found = range_of(totals.known[name]) if name in totals.known else self._range(name)
            if found is None:
                return False
            ranges.append((name, found))
        return stays_inside(roots, tuple(ranges))

    def _range(self, name: str) -> Range | None:
        if name not in self._ranges:
            found = [range_of(part) for part in (self._pieces(name) if self._last is None else [self._last[name]])]
            ends = [each for each in found if each is not None]
            known = len(ends) == len(found)
            self._ranges[name] = (min(low for low, _ in ends), max(high for _, high in ends)) if known else None
        return self._ranges[name]

    def _pieces(self, name: str) -> Iterator[Any]:
        """Yield an operand of a long row, part by part."""
        value = self.operands.get(name, self.length)
        if isinstance(value, np.ndarray):
            yield from (widen(value[..., part]) for part in self.parts())
        else:
            yield value

    def totals(
        self, graph: Graph, arithmetic: Arithmetic, rows: Index, operands: Mapping[str, Any], *, fast: bool = False
    ) -> Totals:
        """Return the stages of some rows, computed from their ``operands``. The result is cached for the operands of
        the last call, and for a long row, which is the only one here."""
        if self.length <= TERMS and operands is not self._last:
            self._kept, self._ranges, self._last = {}, {}, operands
        key, kept = (graph.stages, id(arithmetic), fast), self._kept
        if key in kept:
            return kept[key]
        totals = Totals()
        stages, _ = graph.levels(arithmetic)
        for stage, level in stages:
            if stage.kind == TOTAL:
                self._take(totals, graph, stage, arithmetic, max(map(np.ndim, operands.values())))
                continue
            exactly = None if arithmetic is FLOAT64 else kept.get((graph.stages, id(FLOAT64), fast))
            if exactly is None or not self._add_relative(totals, stage, level, exactly):
                self._add(totals, stage, self._terms(level, totals, rows, operands, fast))
            if stage.kind == "sum" and arithmetic is not FLOAT64:  # on a device in any order
                terms = (np.where(np.isfinite(v), v, 0.0) for v, _ in self._terms(level, totals, rows, operands, fast))
                totals.known[stage.error] += additions.lost(terms, totals.sizes[stage.name], self.length)
        kept[key] = totals
        return totals

    def _take(self, totals: Totals, graph: Graph, stage: Stage, arithmetic: Arithmetic, axes: int) -> None:
        """Add a sum over all rows, as an array with ``axes`` axes of size 1."""
        assert self.beyond is not None
        value, error, doubtful = self.beyond.total(graph.of_row(stage), arithmetic)
        one = (1,) * axes
        totals.known |= {stage.name: np.full(one, value), stage.error: np.full(one, error)}
        totals.doubtful |= doubtful

    def _add(self, totals: Totals, stage: Stage, terms: Iterable[tuple[Array, Values]]) -> None:
        """Reduce the terms of a stage, part by part, with each term's error bound and float64's error in the
        addition."""
        add = np.add if stage.kind == "sum" else np.maximum if stage.kind == "most" else np.minimum
        worst = np.add if stage.kind == "sum" else np.maximum
        result: list[Array] = []
        for value, lost in terms:
            spread = np.broadcast_to(lost, value.shape) if np.ndim(lost) else None  # a number: 0
            if stage.kind == "sum":
                total = run_sum(value)
                known = value if np.isfinite(total).all() else np.where(np.isfinite(value), value, 0.0)
                size = run_sum(np.abs(known, out=value))
                parts = [total, np.zeros_like(total) if spread is None else _summed(spread, value), size]
            else:
                total = reduce_rows(add, value)
                parts = [total, np.zeros_like(total) if spread is None else reduce_rows(np.maximum, spread)]
            release(value, lost)
            steps = (add, worst, np.add)
            result = [step(one, part) for step, one, part in zip(steps, result, parts, strict=False)] or parts
        total, slack = result[0], result[1] * SECOND_ORDER
        if stage.kind == "sum":
            totals.sizes[stage.name] = result[2]
            steps64 = RUN + TERMS // RUN + -(-self.length // TERMS)
            slack += 1.01 * U * steps64 * result[2]
        totals.known |= {stage.name: total, stage.error: slack}

    def _add_relative(self, totals: Totals, stage: Stage, level: Level, exactly: Totals) -> bool:
        """Add a stage whose terms lose only a part of their size, without another look at them. Return whether it is
        such a stage. ``exactly``: the same stages in float64."""
        underflow = level.loss.underflow
        if stage.kind != "sum" or level.running is not ZERO or not underflow.is_constant:
            return False
        total, size = exactly.known[stage.name], exactly.sizes[stage.name]
        if not np.isfinite(total).all():
            return False
        lost = level.loss.relative * size + self.length * constant_value(underflow) * SECOND_ORDER
        totals.known |= {stage.name: total, stage.error: exactly.known[stage.error] + lost * SECOND_ORDER}
        totals.sizes[stage.name] = size
        return True

    def _terms(
        self, level: Level, totals: Totals, rows: Index, operands: Mapping[str, Any], fast: bool
    ) -> Iterator[tuple[Array, Values]]:
        """Yield the terms of a stage and an error bound of each. Long rows: TERMS columns at a time."""
        if self.length <= TERMS:
            shape = np.broadcast_shapes(*(np.shape(v) for v in operands.values()))
            yield evaluated(level, operands, totals.known, shape, fast=fast)
            return
        for part in self.parts():
            some = self.loaded((Ellipsis, part))
            shape = np.broadcast_shapes(*(np.shape(v) for v in some.values()))
            yield evaluated(level, some, totals.known, shape, fast=fast)

    # ---- in pairs of float64 numbers ----

    @property
    def has_pairs(self) -> bool:
        """Return whether the formula can be evaluated in pairs of float64 numbers."""
        graphs = [*(s.terms for s in self.graph.stages), self.graph.outer]
        return all(double_double.supports(g, everywhere=True) for g in graphs)

    def in_pairs(self, where: tuple[Array, ...]) -> tuple[Array, Array, Array]:
        """Return some elements as pairs, and an error bound of each."""
        flat, inverse = np.unique(np.ravel_multi_index(where[:-1], self.lead), return_inverse=True)
        rows = np.unravel_index(flat, self.lead)
        if self._paired is None or self.length <= TERMS:
            self._paired = self._pairs(rows)
        pairs, errors = self._paired
        operands = self.loaded(where)
        operands |= {name: (high[inverse, 0], low[inverse, 0]) for name, (high, low) in pairs.items()}
        high, low = (np.asarray(part) for part in double_double.evaluate(self.graph.outer, operands))
        operands |= {name: error[inverse, 0] for name, error in errors.items()}
        outer = self.graph.levels(double_double.ARITHMETIC)[1]
        return high, low, double_double.error_of(outer.loss.relative, outer.running, operands, high)

    def in_fractions(self, where: tuple[Array, ...]) -> Fraction64:
        """Return some elements of a rational formula as fractions, inexact if float64 numbers cannot represent them."""
        flat, inverse = np.unique(np.ravel_multi_index(where[:-1], self.lead), return_inverse=True)
        at_once = max(1, AGAIN // self.length)
        made: list[dict[str, Fraction64]] = []
        for start in range(0, len(flat), at_once):
            rows = np.unravel_index(flat[start : start + at_once], self.lead)
            operands: dict[str, Any] = self.loaded(rows)
            shape = (len(rows[0]), self.length)
            for stage in self.graph.stages:
                terms = rationals.evaluate(stage.terms, operands)
                operands[stage.name] = rationals.reduced(stage.kind, terms, shape)
            made.append({stage.name: operands[stage.name] for stage in self.graph.stages})
        known = self.loaded(where)
        for name in made[0]:
            parts = ((f[name].num, f[name].den, f[name].inexact) for f in made)
            num, den, inexact = (np.concatenate(each)[inverse, 0] for each in zip(*parts, strict=True))
            known[name] = Fraction64(num, den, inexact)
        return rationals.evaluate(self.graph.outer, known)

    def _pairs(self, rows: tuple[Array, ...]) -> tuple[dict[str, Pair], dict[str, Array]]:
        """Return the stages of some rows as pairs, and an error bound of each, the axis kept. Rows are split into
        groups."""
        at_once = max(1, AGAIN // min(TERMS, self.length))
        result = [
            self._pairs_of(tuple(axis[start : start + at_once] for axis in rows))
            for start in range(0, len(rows[0]), at_once)
        ]
        pairs = {
            stage.name: (
                np.concatenate([p[stage.name][0] for p, _ in result]),
                np.concatenate([p[stage.name][1] for p, _ in result]),
            )
            for stage in self.graph.stages
        }
        errors = {stage.error: np.concatenate([e[stage.error] for _, e in result]) for stage in self.graph.stages}
        return pairs, errors

    def _pairs_of(self, rows: tuple[Array, ...]) -> tuple[dict[str, Pair], dict[str, Array]]:
        pairs: dict[str, Pair] = {}
        errors: dict[str, Array] = {}
        for stage, level in self.graph.levels(double_double.ARITHMETIC)[0]:
            if stage.kind == TOTAL:
                assert self.beyond is not None
                paired = self.beyond.paired(self.graph.of_row(stage))
                high, low, lost = (np.full((len(rows[0]), 1), v) for v in paired)
                pairs[stage.name], errors[stage.error] = (high, low), lost
                continue
            total: Pair | None = None
            error = np.zeros((len(rows[0]), 1))
            for part in self.parts():
                operands = self.loaded((*rows, part))
                shape = (len(rows[0]), min(TERMS, self.length - part.start))
                high, low = (
                    np.broadcast_to(p, shape) for p in double_double.evaluate(stage.terms, {**operands, **pairs})
                )
                known = {**operands, **pairs, **errors}
                lost = double_double.error_of(level.loss.relative, level.running, known, high)
                if stage.kind == "sum":
                    one, wrong = pair_sum(high, low)
                    total, more = (one, 0.0) if total is None else _added(total, one)
                    error = error + wrong + more + lost.sum(axis=-1, keepdims=True)
                else:
                    error = np.maximum(error, lost.max(axis=-1, keepdims=True))
                    if total is not None:
                        high, low = np.append(high, total[0], -1), np.append(low, total[1], -1)
                    total = _pair_extreme(high, low, 1.0 if stage.kind == "most" else -1.0)
            assert total is not None
            pairs[stage.name] = total
            errors[stage.error] = error * 1.01 + self.length * double_double.UNDERFLOW
        return pairs, errors


def _summed(spread: Array, size: Array) -> Array:
    """Return the sums of the terms' error bounds. A term of 0, like e^-inf, has no error, even if an infinite operand
    makes its bound NaN."""
    total = spread.sum(axis=-1, keepdims=True)
    if np.isnan(total).any():
        total = np.where(np.isnan(spread) & (size == 0), 0.0, spread).sum(axis=-1, keepdims=True)
    return np.asarray(total)


def evaluated(
    level: Level,
    operands: Mapping[str, Any],
    totals: Mapping[str, Array],
    shape: tuple[int, ...],
    *,
    fast: bool = False,
) -> tuple[Array, Values]:
    """Return a graph's value in float64, and its possible loss in the level's arithmetic: an array, or 0."""
    known = {**operands, **{name: np.broadcast_to(v, shape) for name, v in totals.items()}}
    roots = [level.graph, *(g for g in (level.running, level.loss.underflow) if g is not ZERO)]
    value, *others = program(*roots, fast=fast)(known, shape)
    result = np.asarray(value)
    if result.shape != shape or level.graph.op == "symbol":  # not one of our buffers
        result = np.array(np.broadcast_to(result, shape))
    if not others and level.loss.relative == 0:
        return result, np.float64(0.0)
    margin = np.abs(result, out=spare(shape))
    margin *= level.loss.relative
    scaled = spare(shape)
    for other in others:
        margin += np.multiply(other, SECOND_ORDER, out=scaled)
    theirs = {id(v) for v in known.values()}  # a graph that is one of its operands
    release(scaled, *(v for v in others if id(v) not in theirs))
    return result, margin


def pair_sum(high: Array, low: Array) -> tuple[Pair, Array]:
    """Return sums along the last axis, kept, of numbers in pairs, and their error bounds: a binary tree."""
    lost = np.zeros((*high.shape[:-1], 1))
    while high.shape[-1] > 1:
        half = high.shape[-1] // 2
        one = high[..., :half], low[..., :half]
        more = high[..., 2 * half :], low[..., 2 * half :]
        pair, wrong = _added(one, (high[..., half : 2 * half], low[..., half : 2 * half]))
        lost += wrong.sum(axis=-1, keepdims=True)
        high, low = (np.concatenate([p, m], axis=-1) for p, m in zip(pair, more, strict=True))
    return (high, low), lost


def _added(a: Pair, b: Pair) -> tuple[Pair, Array]:
    """Return a + b and its error bound. The sum is exact if only one term has digits, as in 1 + e^-200."""
    result, rounded = double_double.added(a, b)
    return result, 2 * U * sum(map(np.abs, rounded))


def _pair_extreme(high: Array, low: Array, sign: float) -> Pair:
    """Return the largest (sign 1) or smallest (sign -1) along the last axis, kept, of numbers in pairs."""
    most = (sign * high).max(axis=-1, keepdims=True)
    rest = np.where(sign * high == most, sign * low, -np.inf).max(axis=-1, keepdims=True)
    return sign * most, sign * rest
