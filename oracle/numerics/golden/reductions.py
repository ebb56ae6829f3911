"""Formulas with reductions along an axis, evaluated by blocks of whole rows: golden and strict bound.

A row's stages (:mod:`oracle.numerics.traversal`) are computed once, each with a rigorous error, which enters every
element of the row. Doubtful elements are looked at again in pairs of float64 numbers, then exactly. A row that is too
long to be in memory at once is reduced and evaluated in parts. docs/proof-details.md derives the bounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from gmpy2 import mpq

from ...model.call import Array
from ...model.dtypes import FORMATS, dtype_of
from .. import double_double
from ..bounds import losses
from ..bounds.exact_steps import is_exact_in
from ..bounds.losses import SECOND_ORDER
from ..bounds.ranges import ranges_of, stays_inside
from ..compiled.engine import is_compiled
from ..exact import enclosures, extended, rationals
from ..exact.rationals import Undefined, rational
from ..expressions import LENGTH, TOTAL, ZERO, Expression, constant, symbol
from ..floats.blocks import Index, block_size, blocks, piece_size, region_size, run_blocks
from ..floats.rounding import FLOAT64, LARGEST, Arithmetic, classes_differ, float32, lowest_bit, quantize, widen
from ..orders.kernel_orders import DEPARTURE, Formula, constants_of
from ..orders.reducing import Graph, Level, Order, Reducing, reducing, types_of
from ..programs import Operands, Values, cast, loaded, program, release, simulate, spare
from ..proof import Exact, ExactValue, Refine, Region, Sink, U
from ..traversal import Stage, is_rational, names_of
from .sums import AGAIN, RUN, TERMS, as_rows, expanded, from_rows, run_sum, tree_sum

Shape = tuple[int, ...]
Pair = tuple[Array, Array]  # an unevaluated sum
EXACT_ROWS = (
    64  # elements of a row up to which exact arithmetic is looked for; random data of longer ones is never exact
)
MANY = 4  # a pass that leaves more than one row in so many proves nothing worth having
NEAR = 2.0**-10  # this close to float32's end one right kernel overflows and another does not


def evaluate(
    formula: Formula,
    operands: Operands,
    axes: tuple[int, ...],
    sink: Sink,
    flushes: frozenset[str] = frozenset(),
    soc: str = "",
    beyond: Beyond | None = None,
) -> None:
    """Fill the sink by blocks of whole rows. ``operands``: arrays of one shape, or numbers, by symbol. ``axes``: the
    axes of that shape along which the formula reduces. The sink has that shape, or one element per row. ``beyond``:
    what it sums over all rows."""
    scheme = reducing(formula, constants_of(formula, operands))
    shape = next(v.shape for v in operands.values() if isinstance(v, np.ndarray))
    rows = {name: as_rows(v, axes) if isinstance(v, np.ndarray) else v for name, v in operands.items()}
    lead, length = next((v.shape[:-1], v.shape[-1]) for v in rows.values() if isinstance(v, np.ndarray))
    target, table = _target(sink, shape, axes, lead)
    loops = 0 < length <= TERMS and beyond is None and is_compiled(sink)

    def work(index: Index) -> None:
        few = {name: v[index] if isinstance(v, np.ndarray) else v for name, v in rows.items()}
        some, part = Rows(scheme, few, sink.kernel, float32(flushes), soc, beyond), target.at(index)
        if not (loops and _compiled(some, part)):
            some.fill(part)

    with np.errstate(all="ignore"):
        size, each = (piece_size(sink.out.size, copied=True), 1) if loops else (region_size(), 4)
        run_blocks(blocks(lead, max(1, size // max(1, length)) if length <= TERMS else 1), work, each=each)
    if table is not None:
        table[0].fill(table[1])


def _target(sink: Sink, shape: Shape, axes: tuple[int, ...], lead: Shape) -> tuple[Sink, tuple[Sink, Sink] | None]:
    """Return the sink as rows: a view of it, or a table and what it is copied to in the end."""
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
    """Fill a sink in one compiled pass; NumPy evaluates the rows that the pass leaves in doubt. Whether a loop serves
    and leaves few."""
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
        taken = {name: v[where] if isinstance(v, np.ndarray) else v for name, v in rows.operands.items()}
        Rows(rows.scheme, taken, rows.kind, rows.device, rows.soc).fill(few)
        region.target.reshape(-1, width)[some] = few.out
    region.proved_finite = True
    region.finish(rows.exact)
    return True


# ---- rows ------------------------------------------------------------------------------------------------------------


@dataclass
class Totals:
    """What the stages of some rows are, and how far each may be off, the axis kept; by symbol. ``sizes``: the sums of
    the terms' magnitudes, infinite ones not among them."""

    known: dict[str, Array] = field(default_factory=dict)
    sizes: dict[str, Array] = field(default_factory=dict)
    doubtful: bool = False  # a sum over all rows, about which right kernels may disagree

    def of(self, rows: Index) -> dict[str, Array]:
        return {name: v[rows] for name, v in self.known.items()}


class Beyond(Protocol):
    """What a formula sums over all rows, of which :class:`Rows` are some: the stages of the kind ``total``."""

    def total(self, graph: Graph, stage: Stage, arithmetic: Arithmetic) -> tuple[float, float, bool]:
        """Return the sum, how far it may be off, and whether right kernels may disagree about it."""
        ...

    def paired(self, graph: Graph, stage: Stage) -> tuple[float, float, float]:
        """Return the sum as a pair, and how far it may be off."""
        ...

    def parts(self, graph: Graph, stage: Stage) -> list[float] | None:
        """Return the sum as float64 numbers whose sum it is; None where it is no such number."""
        ...

    def enclosed(self, graph: Graph, stage: Stage, precision: int) -> enclosures.Interval:
        """Return an enclosure of the sum."""
        ...


class Rows:
    """Some rows of a formula: their operands, and everything that is computed once per row.

    ``kind``: the dtype that is rounded to. ``device``: a right kernel's arithmetic. ``soc``: whose kernel is judged, by
    the name of its form. ``beyond``: of a formula that sums over all rows.
    """

    def __init__(
        self,
        scheme: Reducing,
        operands: Operands,
        kind: np.dtype[Any],
        device: Arithmetic,
        soc: str = "",
        beyond: Beyond | None = None,
    ) -> None:
        self.scheme, self.operands, self.kind, self.device, self.soc = scheme, operands, kind, device, soc
        self.beyond = beyond
        array = next(v for v in operands.values() if isinstance(v, np.ndarray))
        self.lead, self.length = array.shape[:-1], array.shape[-1]
        self.wide = True  # an element of the output for each of the operands', not one per row
        self.graph = scheme.value
        self._exact: dict[Index, ExactRow] = {}
        self._kept: dict[tuple[Graph, int, bool], Totals] = {}  # of a long row, which is alone
        self._paired: Any = None  # its stages in pairs

    def loaded(self, index: Index) -> dict[str, Any]:
        """The operands of some elements in float64, and the length."""
        found: dict[str, Any] = {
            name: widen(v[index]) if isinstance(v, np.ndarray) else np.float64(v) for name, v in self.operands.items()
        }
        return {**found, LENGTH: np.float64(self.length)}

    def fill(self, sink: Sink) -> None:
        """Fill a sink, by blocks of whole rows or, of a long row, in parts."""
        self.wide = sink.out.shape[-1] == self.length
        if self.length <= TERMS:
            region = sink.region((Ellipsis,))
            for block in blocks(self.lead, max(1, block_size() // max(1, self.length))):
                self._put(block, (Ellipsis,), region)
            region.finish(self.exact, self.refine)
            return
        for part in self._parts() if self.wide else [slice(0, 1)]:
            region = sink.region((Ellipsis, part))
            self._put((Ellipsis,), (part,), region)
            region.finish(*self._closer(part.start))

    def _closer(self, start: int) -> tuple[Exact, Refine]:
        """The closer looks at a part of a long row."""

        def exact(index: Index) -> ExactValue:
            return self.exact((*index[:-1], index[-1] + start))

        def refine(where: tuple[Array, ...]) -> tuple[Array, Array, Array]:
            return self.refine((*where[:-1], where[-1] + start))

        return exact, refine

    def _parts(self) -> list[slice]:
        return [slice(start, start + TERMS) for start in range(0, self.length, TERMS)] or [slice(0, 0)]

    def _put(self, rows: Index, columns: Index, region: Region) -> None:
        """Evaluate, round and prove some rows, or a part of a long one."""
        index = (*rows, *columns) if columns != (Ellipsis,) else rows
        block = rows if columns == (Ellipsis,) else (Ellipsis,)
        shape, fast = region.target[block].shape, not region.sink.judged
        views = {name: v[index] if isinstance(v, np.ndarray) else np.float64(v) for name, v in self.operands.items()}
        terms = next(v.shape for v in views.values() if isinstance(v, np.ndarray))
        given = {**loaded(views, terms), LENGTH: np.float64(self.length)}
        outer = given if self.wide else {name: v[..., :1] if np.ndim(v) else v for name, v in given.items()}
        totals = self._totals(self.graph, FLOAT64, rows, given, fast=fast)
        value, margin = evaluated(self.graph.levels(FLOAT64)[1], outer, totals.known, shape, fast=fast)
        low, high = np.subtract(value, margin, out=spare(shape)), np.add(value, margin, out=spare(shape))
        region.put_between(block, low, high, lambda where: value.reshape(-1)[where])
        if region.sink.judged:
            region.sink.value[block] = value
            region.sink.put_bound(block, value, *self._strict(rows, given, outer, value))
        release(*given.values(), value, margin, low, high)

    # ---- stages ----

    def _totals(
        self, graph: Graph, arithmetic: Arithmetic, rows: Index, given: Mapping[str, Any], *, fast: bool = False
    ) -> Totals:
        """Return the stages of some rows, whose operands are ``given``; a long row's, the only one here, are kept."""
        key = graph, id(arithmetic), fast
        if key in self._kept:
            return self._kept[key]
        totals = Totals()
        stages, _ = graph.levels(arithmetic)
        for stage, level in stages:
            if stage.kind == TOTAL:
                self._take(totals, graph, stage, arithmetic, max(map(np.ndim, given.values())))
                continue
            self._add(totals, stage, self._terms(level, totals, rows, given, fast))
            if stage.kind == "sum" and arithmetic is not FLOAT64:  # on a device in any order
                terms = (np.where(np.isfinite(v), v, 0.0) for v, _ in self._terms(level, totals, rows, given, fast))
                totals.known[stage.error] += losses.lost(terms, totals.sizes[stage.name], self.length)
        if self.length > TERMS:
            self._kept[key] = totals
        return totals

    def _take(self, totals: Totals, graph: Graph, stage: Stage, arithmetic: Arithmetic, axes: int) -> None:
        """Take a sum over all rows, with so many axes."""
        assert self.beyond is not None
        value, error, doubtful = self.beyond.total(graph, stage, arithmetic)
        one = (1,) * axes
        totals.known |= {stage.name: np.full(one, value), stage.error: np.full(one, error)}
        totals.doubtful |= doubtful

    def _add(
        self,
        totals: Totals,
        stage: Stage,
        terms: Iterable[tuple[Array, Values]],
    ) -> None:
        """Reduce the terms of a stage, part by part, with what each may be off, and what float64 loses in adding."""
        add = np.add if stage.kind == "sum" else np.maximum if stage.kind == "most" else np.minimum
        worst = np.add if stage.kind == "sum" else np.maximum
        found: list[Array] = []
        for value, lost in terms:
            spread = np.broadcast_to(lost, value.shape) if np.ndim(lost) else None  # a number: 0
            if stage.kind == "sum":
                total = run_sum(value)
                known = value if np.isfinite(total).all() else np.where(np.isfinite(value), value, 0.0)
                size = run_sum(np.abs(known, out=value))
                parts = [total, np.zeros_like(total) if spread is None else _summed(spread, value), size]
            else:
                total = add.reduce(value, axis=-1, keepdims=True)
                parts = [total, np.zeros_like(total) if spread is None else spread.max(axis=-1, keepdims=True)]
            release(value, lost)
            steps = (add, worst, np.add)
            found = [step(one, part) for step, one, part in zip(steps, found, parts, strict=False)] or parts
        total, slack = found[0], found[1] * SECOND_ORDER
        if stage.kind == "sum":
            totals.sizes[stage.name] = found[2]
            steps64 = RUN + TERMS // RUN + -(-self.length // TERMS)
            slack += 1.01 * U * steps64 * found[2]
        totals.known |= {stage.name: total, stage.error: slack}

    def _terms(
        self, level: Level, totals: Totals, rows: Index, given: Mapping[str, Any], fast: bool
    ) -> Iterator[tuple[Array, Values]]:
        """Yield the terms of a stage and what each may be off; of a long row so many columns at a time."""
        if self.length <= TERMS:
            shape = np.broadcast_shapes(*(np.shape(v) for v in given.values()))
            yield evaluated(level, given, totals.known, shape, fast=fast)
            return
        for part in self._parts():
            some = self.loaded((Ellipsis, part))
            shape = np.broadcast_shapes(*(np.shape(v) for v in some.values()))
            yield evaluated(level, some, totals.known, shape, fast=fast)

    def of_each(self, graph: Graph, arithmetic: Arithmetic) -> tuple[Array, Array, bool]:
        """Return a graph's one value for each row, and what each may be off; on a device also whether right kernels
        may disagree about one."""
        given = self.loaded((Ellipsis,) if self.length <= TERMS else (Ellipsis, slice(1)))
        own = self._totals(graph, arithmetic, (Ellipsis,), given)
        outer, shape = {name: v[..., :1] if np.ndim(v) else v for name, v in given.items()}, (*self.lead, 1)
        value, margin = evaluated(graph.levels(arithmetic)[1], outer, own.known, shape)
        margin = np.broadcast_to(margin, shape)
        if arithmetic is FLOAT64:
            return value, margin, False
        doubtful = any((~np.isnan(own.known[k]) & (v >= LARGEST * (1 - NEAR))).any() for k, v in own.sizes.items())
        doubtful |= bool(self._overflowing(graph, given, own).any())
        answers = self._answers(graph, cast(outer, np.float32), own, shape)
        doubtful |= bool(classes_differ([*answers, value.astype(np.float32)]).any())
        return value, np.where(np.isfinite(margin), margin, 0.0), doubtful

    # ---- the strict bound ----

    def _strict(
        self, rows: Index, given: dict[str, Any], outer: dict[str, Any], value: Array
    ) -> tuple[Array, Array, Array | None]:
        """What a right kernel may lose in any of the orders, the elements on which right kernels disagree, and those on
        which every order is exact. ``given``: the operands of the terms; ``outer``: of the elements."""
        bound, unspecified = np.zeros(value.shape), np.zeros(value.shape, bool)
        answers = []
        few = cast(outer, np.float32)
        for graph, narrow, departs in self.orders:
            arithmetic = narrow or self.device
            own = self._totals(graph, arithmetic, rows, given)
            other, margin = evaluated(graph.levels(arithmetic)[1], outer, own.known, value.shape)
            if departs:
                apart = np.abs(other - value)
                margin = margin + apart
                unspecified |= apart > np.abs(value) * DEPARTURE
            bound = np.maximum(bound, np.where(np.isnan(margin), np.inf, margin))
            for name, size in own.sizes.items():  # partial sums may overflow, to either side
                unspecified |= ~np.isnan(own.known[name]) & (size >= LARGEST * (1 - NEAR))
            unspecified |= own.doubtful | self._overflowing(graph, given, own)
            answers += self._answers(graph, few, own, value.shape)
        suspect = ~(bound < LARGEST) | ~np.isfinite(value)
        for answer in answers:
            suspect |= ~(np.abs(answer) < LARGEST * (1 - NEAR))
        if suspect.any():
            apart = classes_differ([*(a[suspect] for a in answers), value[suspect].astype(np.float32)])
            unspecified[suspect] |= apart
            bound[suspect] = np.where(np.isfinite(bound[suspect]), bound[suspect], 0.0)
        unknown = self.scheme.unspecified(self.soc, dtype_of(self.kind).name)
        if unknown is not None:
            (where,) = program(unknown)(outer, value.shape)
            unspecified |= np.asarray(where)
        return bound, unspecified, self._ties(rows, given, outer, value.shape)

    @property
    def orders(self) -> tuple[Order, ...]:
        """The orders that are right."""
        return self.scheme.orders(self.soc, dtype_of(self.kind).name, types_of(self.operands))

    def _overflowing(self, graph: Graph, given: dict[str, Any], totals: Totals) -> Array:
        """The rows in which a step of a term may overflow in float32 although the term does not, the axis kept."""
        if not graph.stages:
            return np.zeros((), bool)
        found = np.zeros((*next(iter(totals.known.values())).shape[:-1], 1), bool)
        known = {**given, **totals.known}
        roots = tuple(stage.terms for stage in graph.stages if stage.kind != TOTAL)
        if stays_inside(roots, ranges_of({name: known[name] for name in names_of(*roots)})):
            return found
        for part in [None] if self.length <= TERMS else self._parts():
            some = {**(given if part is None else self.loaded((Ellipsis, part))), **totals.known}
            shape = np.broadcast_shapes(*(np.shape(v) for v in some.values()))
            some = {name: np.broadcast_to(v, shape) for name, v in some.items()}
            single = cast(some, np.float32)
            for root in roots:
                ends = [
                    np.broadcast_to(simulate(root, single, np.float32, largest=end, same_bits=True), shape)
                    for end in (np.inf, LARGEST * (1 - NEAR))
                ]
                (right,) = program(root)(some, shape)
                apart = classes_differ([*ends, np.broadcast_to(right, shape).astype(np.float32)])
                found |= apart.any(axis=-1, keepdims=True)
        return found

    def _answers(self, graph: Graph, few: Operands, totals: Totals, shape: Shape) -> list[Array]:
        """What an order gives in float32 beside the rows' totals, flushing and not, overflowing early and late."""
        single = {name: np.broadcast_to(v.astype(np.float32), shape) for name, v in totals.known.items()}
        return [
            np.broadcast_to(
                simulate(graph.outer, {**few, **single}, np.float32, largest=end, flushing=mode, same_bits=True), shape
            )
            for mode in dict.fromkeys((frozenset[str](), self.device.flushing))
            for end in (np.inf, LARGEST * (1 - NEAR))
        ]

    def _ties(self, rows: Index, given: dict[str, Any], outer: dict[str, Any], shape: Shape) -> Array | None:
        """Where no step of any order is rounded in float32: the terms, their partial sums, and what is left."""
        graphs = list(dict.fromkeys(order.graph for order in self.orders))
        stages = [stage for graph in graphs for stage in graph.stages]
        if (
            self.length > EXACT_ROWS
            or not all(stage.kind == "sum" and is_rational(stage.terms) for stage in stages)
            or not all(is_rational(graph.outer) for graph in graphs)
        ):
            return None
        single = FORMATS["float32"]
        terms_shape = next(np.shape(v) for v in given.values() if np.ndim(v))
        exact = np.ones((*shape[:-1], 1), bool)
        for graph in graphs:
            totals = self._totals(graph, FLOAT64, rows, given)
            for stage, level in graph.levels(FLOAT64)[0]:
                terms = evaluated(level, given, totals.known, terms_shape)[0]
                exact &= totals.sizes[stage.name] < lowest_bit(terms).min(axis=-1, keepdims=True) * 2.0**24
            if not exact.any():
                return None
            inner, whole = (
                {n: np.broadcast_to(v, of).reshape(-1) for n, v in {**known, **totals.known}.items()}
                for known, of in ((given, terms_shape), (outer, shape))
            )
            terms_exact = is_exact_in([s.terms for s in graph.stages], inner, single).reshape(terms_shape)
            exact = exact & terms_exact.all(axis=-1, keepdims=True)
            exact = exact & is_exact_in([graph.outer], whole, single).reshape(shape)
        return np.asarray(exact)

    # ---- closer looks ----

    def refine(self, where: tuple[Array, ...]) -> tuple[Array, Array, Array]:
        """Some elements in pairs of float64 numbers, the stages of their rows too."""
        nothing = np.zeros(where[0].shape)
        if not self.has_pairs:
            return nothing, nothing - np.inf, nothing + np.inf
        high, low, slack = self.in_pairs(where)
        fmt = FORMATS[dtype_of(self.kind).name]
        around = slack + 4 * U * np.abs(high)  # where float64 is close enough, the value itself is what verdicts see
        plain = np.abs(high - quantize(high, fmt.with_ties)) > around
        told = double_double.beside(high, low, slack, fmt, np.inf)
        ends = high, high - around, high + around
        known = np.isfinite(high) & np.isfinite(around)  # pairs know nothing of an infinite operand in the row
        value, least, most = (
            np.where(known, np.where(plain, e, t), nothing)
            for e, t, nothing in zip(ends, told, (0.0, -np.inf, np.inf), strict=True)
        )
        return value, least, most

    @property
    def has_pairs(self) -> bool:
        """Whether the formula can be evaluated in pairs of float64 numbers."""
        graphs = [*(s.terms for s in self.graph.stages), self.graph.outer]
        return all(double_double.supports(g, everywhere=True) for g in graphs)

    def in_pairs(self, where: tuple[Array, ...]) -> tuple[Array, Array, Array]:
        """Some elements as pairs, and how far each may be off."""
        flat, inverse = np.unique(np.ravel_multi_index(where[:-1], self.lead), return_inverse=True)
        rows = np.unravel_index(flat, self.lead)
        if self._paired is None or self.length <= TERMS:
            self._paired = self._pairs(rows)
        pairs, errors = self._paired
        given = self.loaded(where)
        given |= {name: (high[inverse, 0], low[inverse, 0]) for name, (high, low) in pairs.items()}
        (lost,) = self._pair_losses()[-1:]
        high, low = (np.asarray(part) for part in double_double.evaluate(self.graph.outer, given))
        plain = {n: v[0] if isinstance(v, tuple) else v for n, v in given.items()}
        plain |= {name: error[inverse, 0] for name, error in errors.items()}
        return high, low, _slack(Level.of(self.graph.outer, lost), plain, high)

    def _pair_losses(self) -> list[Any]:
        stages, outer = self.graph.levels(double_double.ARITHMETIC)
        return [*(level.loss for _, level in stages), outer.loss]

    def _pairs(self, rows: tuple[Array, ...]) -> tuple[dict[str, Pair], dict[str, Array]]:
        """The stages of some rows as pairs, and how far each may be off, the axis kept; so many rows at a time."""
        at_once = max(1, AGAIN // min(TERMS, self.length))
        found = [
            self._pairs_of(tuple(axis[start : start + at_once] for axis in rows))
            for start in range(0, len(rows[0]), at_once)
        ]
        pairs = {
            stage.name: (
                np.concatenate([p[stage.name][0] for p, _ in found]),
                np.concatenate([p[stage.name][1] for p, _ in found]),
            )
            for stage in self.graph.stages
        }
        errors = {stage.error: np.concatenate([e[stage.error] for _, e in found]) for stage in self.graph.stages}
        return pairs, errors

    def _pairs_of(self, rows: tuple[Array, ...]) -> tuple[dict[str, Pair], dict[str, Array]]:
        pairs: dict[str, Pair] = {}
        errors: dict[str, Array] = {}
        for stage, level in self.graph.levels(double_double.ARITHMETIC)[0]:
            if stage.kind == TOTAL:
                assert self.beyond is not None
                high, low, lost = (np.full((len(rows[0]), 1), v) for v in self.beyond.paired(self.graph, stage))
                pairs[stage.name], errors[stage.error] = (high, low), lost
                continue
            total: Pair | None = None
            error = size = np.zeros((len(rows[0]), 1))
            for part in self._parts():
                given = self.loaded((*rows, part))
                shape = (len(rows[0]), min(TERMS, self.length - part.start))
                high, low = (np.broadcast_to(p, shape) for p in double_double.evaluate(stage.terms, {**given, **pairs}))
                plain = {**given, **{n: np.broadcast_to(p[0], shape) for n, p in pairs.items()}}
                plain |= {n: np.broadcast_to(e, shape) for n, e in errors.items()}
                lost = _slack(level, plain, high)
                if stage.kind == "sum":
                    error = error + lost.sum(axis=-1, keepdims=True)
                    size = size + np.abs(high).sum(axis=-1, keepdims=True)
                    one = pair_sum(high, low)
                    total = one if total is None else double_double.add(total, one)
                else:
                    error = np.maximum(error, lost.max(axis=-1, keepdims=True))
                    if total is not None:
                        high, low = np.append(high, total[0], -1), np.append(low, total[1], -1)
                    total = _pair_extreme(high, low, 1.0 if stage.kind == "most" else -1.0)
            assert total is not None
            pairs[stage.name] = total
            errors[stage.error] = error * 1.01 + self.length * 2.0**-102 * size
        return pairs, errors

    def exact(self, index: tuple[int, ...]) -> Any:
        """The exact value of an element, or enclosures of it; where it has none, what IEEE arithmetic gives."""
        row = index[:-1]
        if row not in self._exact:
            self._exact[row] = ExactRow(self, row)
        return self._exact[row].value(index[-1])


def _summed(spread: Array, size: Array) -> Array:
    """The sums of what terms of a size may be off. A term that is 0, as e^-inf is, is off by nothing, whatever an
    infinite operand made of its bound."""
    total = spread.sum(axis=-1, keepdims=True)
    if np.isnan(total).any():
        total = np.where(np.isnan(spread) & (size == 0), 0.0, spread).sum(axis=-1, keepdims=True)
    return np.asarray(total)


def evaluated(
    level: Level, given: Mapping[str, Any], totals: Mapping[str, Array], shape: tuple[int, ...], *, fast: bool = False
) -> tuple[Array, Values]:
    """Return a graph's value in float64, and what computing it in the level's arithmetic may lose: an array, or 0."""
    known = {**given, **{name: np.broadcast_to(v, shape) for name, v in totals.items()}}
    roots = [level.graph, *(g for g in (level.running, level.loss.underflow) if g is not ZERO)]
    value, *others = program(*roots, fast=fast)(known, shape)
    found = np.asarray(value)
    if found.shape != shape or level.graph.op == "symbol":  # not a buffer of ours
        found = np.array(np.broadcast_to(found, shape))
    if not others and level.loss.relative == 0:
        return found, np.float64(0.0)
    margin = np.abs(found, out=spare(shape))
    margin *= level.loss.relative
    scaled = spare(shape)
    for other in others:
        margin += np.multiply(other, SECOND_ORDER, out=scaled)
    theirs = {id(v) for v in known.values()}  # a graph that is one of its operands
    release(scaled, *(v for v in others if id(v) not in theirs))
    return found, margin


def _slack(level: Level, given: Mapping[str, Any], value: Array) -> Array:
    (running,) = program(level.running)(given, value.shape)
    return np.asarray((np.abs(value) * level.loss.relative + running) * 1.01)


def pair_sum(high: Array, low: Array) -> Pair:
    """Sums along the last axis, kept, of numbers in pairs: a binary tree."""
    while high.shape[-1] > 1:
        half = high.shape[-1] // 2
        one = high[..., :half], low[..., :half]
        more = high[..., 2 * half :], low[..., 2 * half :]
        pair = double_double.add(one, (high[..., half : 2 * half], low[..., half : 2 * half]))
        high, low = (np.concatenate([p, m], axis=-1) for p, m in zip(pair, more, strict=True))
    return high, low


def _pair_extreme(high: Array, low: Array, sign: float) -> Pair:
    """The largest (sign 1) or smallest (sign -1) along the last axis, kept, of numbers in pairs."""
    most = (sign * high).max(axis=-1, keepdims=True)
    rest = np.where(sign * high == most, sign * low, -np.inf).max(axis=-1, keepdims=True)
    return sign * most, sign * rest


# ---- exact rows ------------------------------------------------------------------------------------------------------


class ExactRow:
    """One row's stages, exactly: as sums of float64 numbers where they are such, else as enclosures."""

    def __init__(self, rows: Rows, row: Index) -> None:
        self.rows, self.graph = rows, rows.graph
        self.columns = {
            name: v[row] if isinstance(v, np.ndarray) else np.broadcast_to(np.float64(v), rows.length)
            for name, v in rows.operands.items()
        }
        self.parts: dict[str, list[float]] = {}  # stages that are exact sums of float64 numbers
        self.plain: dict[str, float] = {}  # every stage in float64, for special values
        self.enclosed: list[Stage] = []
        self._ends: dict[int, dict[str, enclosures.Interval]] = {}
        with np.errstate(all="ignore"):
            kept = rows._totals(self.graph, FLOAT64, row, rows.loaded(row))
        self.plain = {s.name: float(np.ravel(kept.known[s.name])[0]) for s in self.graph.stages}
        for stage in self.graph.stages:
            found = self._as_parts(stage)
            if found is None:
                self.enclosed.append(stage)
            else:
                self.parts[stage.name] = found
        graph = {name: _sum_of(name, len(parts)) for name, parts in self.parts.items()}
        self.outer = self.graph.written_with(graph)

    def operands(self, column: int) -> dict[str, float]:
        """The operands of an element, and the parts of the stages."""
        found = {name: float(values[column]) for name, values in self.columns.items()}
        named = {f"{name} {k}": part for name, parts in self.parts.items() for k, part in enumerate(parts)}
        return {**found, **named, LENGTH: float(self.rows.length)}

    def _as_parts(self, stage: Stage) -> list[float] | None:
        """The stage's value as float64 numbers whose sum it is; None where it is not such a number."""
        if not is_rational(stage.terms) or not math.isfinite(self.plain[stage.name]):
            return None
        if stage.kind == TOTAL:
            assert self.rows.beyond is not None
            return self.rows.beyond.parts(self.graph, stage)
        if stage.kind == "sum" and (found := self._added_exactly(stage)) is not None:
            return found
        if stage.terms.op == "symbol":
            return [self.plain[stage.name]]  # the largest, or the smallest, operand
        known = {name: sum(map(mpq, parts), mpq(0)) for name, parts in self.parts.items()}
        if any(name not in known and name not in self.columns and name != LENGTH for name in names_of(stage.terms)):
            return None
        try:
            terms = self._rational_terms(stage, known)
        except Undefined:
            return None
        return parts_of(
            sum(terms, mpq(0)) if stage.kind == "sum" else max(terms) if stage.kind == "most" else min(terms)
        )

    def _added_exactly(self, stage: Stage) -> list[float] | None:
        """The sum of terms that float64 computes without rounding; None where it rounds one."""
        if any(name not in self.columns for name in names_of(stage.terms)):
            return None
        steps: list[float] = []
        for start in range(0, self.rows.length, TERMS):
            some = {name: widen(v[start : start + TERMS]) for name, v in self.columns.items()}
            terms = rationals.evaluate(stage.terms, some)
            if np.any(terms.inexact) or np.any(terms.den != 1.0):
                return None
            steps = expanded([*steps, *np.broadcast_to(terms.num, next(iter(some.values())).shape).tolist()])
        return steps

    def _rational_terms(self, stage: Stage, known: Mapping[str, mpq]) -> list[mpq]:
        names = [n for n in names_of(stage.terms) if n in self.columns]
        fixed = {**known, LENGTH: mpq(self.rows.length)}
        columns = [[mpq(v) for v in widen(self.columns[n]).tolist()] for n in names]
        return [
            mpq(rational(stage.terms, {**fixed, **dict(zip(names, at, strict=True))}))
            for at in zip(*columns, strict=True)
        ]

    def ends(self, precision: int) -> dict[str, enclosures.Interval]:
        """Enclosures of the other stages."""
        if precision not in self._ends:
            found: dict[str, enclosures.Interval] = {}
            self._ends[precision] = found
            exact_parts = {name: _sum_of(name, len(parts)) for name, parts in self.parts.items()}
            for stage in self.enclosed:
                if stage.kind == TOTAL:
                    assert self.rows.beyond is not None
                    found[stage.name] = self.rows.beyond.enclosed(self.graph, stage, precision)
                    continue
                terms = Graph(stage.terms).written_with(exact_parts)
                each = [
                    enclosures.enclose(terms, self.operands(k), precision, lambda _: found)
                    for k in range(self.rows.length)
                ]
                found[stage.name] = enclosures.reduced(stage.kind, each, precision)
        return self._ends[precision]

    def value(self, column: int) -> Any:
        """The exact value of an element, or enclosures of it."""
        given = self.operands(column)
        special = {n: v for n, v in self.plain.items() if not math.isfinite(v) and n not in self.parts}
        plainly = all(map(math.isfinite, given.values())) and not special
        graph: Expression | float = self.outer
        try:
            if not plainly:
                graph = extended.finite_part(self.outer, {**given, **special}, self.ends)
            if isinstance(graph, float):
                return self._plain(given)
            left = [s for s in self.enclosed if s.name in names_of(graph)]
            answer = enclosures.exact(graph, given, self.ends if left else None)
        except Undefined:
            return self._plain(given)
        if isinstance(answer, Iterator) or answer != 0:
            return answer
        stages = {s.name: self.plain[s.name] for s in self.enclosed}
        return extended.zero(self.outer, {**given, **stages})

    def _plain(self, given: Mapping[str, float]) -> float:
        numbers = {n: np.float64(v) for n, v in {**given, **self.plain}.items()}
        with np.errstate(all="ignore"):
            (value,) = program(self.graph.outer)(numbers, (1,))
        return float(value)


def parts_of(value: mpq) -> list[float] | None:
    """Return float64 numbers with this sum; None where there are none."""
    if value.denominator & (value.denominator - 1):
        return None
    parts: list[float] = []
    while value:
        parts.append(float(value))
        value -= mpq(parts[-1])
    return parts


def _sum_of(name: str, parts: int) -> Expression:
    total: Expression = constant(0)
    for k in range(parts):
        total = symbol(f"{name} {k}") if k == 0 else total + symbol(f"{name} {k}")
    return total


# ---- a device's answer -----------------------------------------------------------------------------------------------


def kernel(
    formula: Formula,
    operands: Operands,
    axes: tuple[int, ...],
    form: str,
    compute: Any,
    flushing: frozenset[str] = frozenset(),
    *,
    per_row: bool = False,
) -> Array:
    """Return what a SoC's public kernel computes, every intermediate in ``compute``; a sum is a binary tree, as on the
    device. ``per_row``: one element per row, the reduced axes kept as 1."""
    graph = reducing(formula, constants_of(formula, operands)).form(form, types_of(operands))
    shape = next(v.shape for v in operands.values() if isinstance(v, np.ndarray))
    moved = {name: as_rows(v, axes) if isinstance(v, np.ndarray) else v for name, v in operands.items()}
    totals: dict[str, Any] = {}
    with np.errstate(all="ignore"):
        for stage in graph.stages:
            if stage.kind == TOTAL:
                terms = of_rows(graph.before(stage), stage.terms, {**moved, **totals}, compute, flushing, per_row=True)
                totals[stage.name] = tree_sum(terms.reshape(-1), -1)[0]
        stages = tuple(stage for stage in graph.stages if stage.kind != TOTAL)
        result = of_rows(stages, graph.outer, {**moved, **totals}, compute, flushing, per_row=per_row)
    return from_rows(result, shape, axes)


def of_rows(
    stages: tuple[Stage, ...],
    outer: Expression,
    operands: Operands,
    compute: Any,
    flushing: frozenset[str],
    *,
    per_row: bool,
) -> Array:
    """Return what a device computes of rows by some stages and an outer graph; ``per_row``: one element for each."""
    lead, length = next((v.shape[:-1], v.shape[-1]) for v in operands.values() if isinstance(v, np.ndarray))
    result = np.empty((*lead, 1 if per_row else length), compute)
    for block in blocks(lead, max(1, block_size() // max(1, length))):
        few = {name: v[block] if isinstance(v, np.ndarray) else v for name, v in operands.items()}
        given = {**cast(few, compute), LENGTH: np.dtype(compute).type(length)}
        whole = next(v.shape for v in few.values() if isinstance(v, np.ndarray))
        for stage in stages:
            terms = simulate(stage.terms, given, compute, flushing=flushing, same_bits=True)
            terms = np.broadcast_to(terms, whole)
            extreme = {"most": np.maximum, "least": np.minimum}.get(stage.kind)
            total = tree_sum(terms, -1) if extreme is None else extreme.reduce(terms, axis=-1, keepdims=True)
            given[stage.name] = np.broadcast_to(total, whole)
        if per_row:
            given = {name: v[..., :1] if np.ndim(v) else v for name, v in given.items()}
        result[block] = simulate(outer, given, compute, flushing=flushing, same_bits=True)
    return result
