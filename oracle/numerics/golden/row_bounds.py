"""The strict bound of rows: the possible answers of right kernels in any order of additions, and where they disagree.

docs/bounds.md and docs/proof-details.md derive it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...model.call import Array
from ...model.dtypes import FORMATS, dtype_of
from ..bounds.exact_steps import is_exact_in
from ..expressions import TOTAL, Expression
from ..floats.blocks import Index
from ..floats.codes import reduce_rows
from ..floats.rounding import BLOCK, FLOAT64, LARGEST, SURE, Arithmetic, classes_differ, lowest_bit
from ..orders.kernel_orders import DEPARTURE
from ..orders.reducing import Graph
from ..programs import FIRST, Operands, Values, cast, index_arrays, program, shape_of, simulate
from ..traversal import names_of, stores
from .stages import Stages, Totals, evaluated
from .sums import TERMS

Shape = tuple[int, ...]
ROUNDED = 2.0**-100  # a larger error is not caused by underflow alone
MOST = 2  # all are looked at if more than 1 in MOST are asked for: the selection takes longer
EXACT_ROWS = 64  # rows up to this length are checked for exact steps; random data of longer ones has none


@dataclass(frozen=True)
class RowBound:
    """The possible answers of right kernels for some rows with known stages."""

    stages: Stages

    def of_each(self, graph: Graph, arithmetic: Arithmetic) -> tuple[Array, Array, bool]:
        """Return a graph's one value for each row, and its error bound. For a device, also return whether right kernels
        may disagree about a value."""
        inner = self.stages.loaded((Ellipsis,) if self.stages.length <= TERMS else (Ellipsis, slice(1)))
        own = self.stages.totals(graph, arithmetic, (Ellipsis,), inner)
        outer, shape = index_arrays(inner, FIRST), (*self.stages.lead, 1)
        value, margin = evaluated(graph.levels(arithmetic)[1], outer, own.known, shape)
        margin = np.broadcast_to(margin, shape)
        if arithmetic is FLOAT64:
            return value, margin, False
        doubtful = any((~np.isnan(own.known[k]) & (v >= SURE)).any() for k, v in own.sizes.items())
        doubtful |= bool(self._overflowing(graph, arithmetic, inner, own).any())
        few = cast(outer, np.float32)
        answers = self._answers(graph, few, own, shape, inside=self.stages.stays_inside((graph.outer,), own))
        doubtful |= bool(classes_differ([*answers, value.astype(np.float32)]).any())
        return value, np.where(np.isfinite(margin), margin, 0.0), doubtful

    def bound_and_unspecified(
        self, rows: Index, inner: Operands, outer: Operands, value: Array
    ) -> tuple[Array, Array, Array | None]:
        """Return the possible loss of a right kernel in any order, the elements on which right kernels disagree, and
        those on which every order is exact. ``inner``: the operands of the terms; ``outer``: of the elements."""
        bound, unspecified, finite = np.zeros(value.shape), np.zeros(value.shape, bool), np.isfinite(value)
        suspect, result, before = ~finite, [], None
        few: Operands = {}
        for graph, narrow, departs in self.stages.orders:
            arithmetic = narrow or self.stages.device
            own = self.stages.totals(graph, arithmetic, rows, inner)
            other, margin = evaluated(graph.levels(arithmetic)[1], outer, own.known, value.shape)
            answers, inside = None, self.stages.stays_inside((graph.outer,), own)
            if departs or stores(graph.outer) or not inside:
                few = few or cast(outer, np.float32)
                answers = self._answers(graph, few, own, value.shape, inside=inside)
                for answer in answers:
                    suspect |= ~(np.abs(answer) < SURE)
            if departs:
                apart = np.abs(other - value)
                unspecified |= _elsewhere(answers or [], other, margin)
                margin = margin + apart
                unspecified |= apart > np.abs(value) * DEPARTURE
            if not np.max(margin, initial=0.0) < LARGEST:
                unspecified |= np.isposinf(margin) & finite  # a divisor or a radicand may change its sign
                margin = np.where(np.isnan(margin), np.inf, margin)
                suspect |= ~(margin < LARGEST)
            np.maximum(bound, margin, out=bound)
            if own is not before:  # the next order often has the same stages
                for name, size in own.sizes.items():  # partial sums may overflow, with either sign
                    unspecified |= ~np.isnan(own.known[name]) & (size >= SURE)
                unspecified |= own.doubtful | self._overflowing(graph, arithmetic, inner, own)
            before = own
            result.append((graph, own, answers))
        if suspect.any():
            few, every = few or cast(outer, np.float32), []
            for graph, own, answers in result:
                answers = self._answers(graph, few, own, value.shape, inside=True) if answers is None else answers
                every += [answer[suspect] for answer in answers]
                every += _answers_of_shifted_stages(graph, own, few, suspect)
            unspecified[suspect] |= classes_differ([*every, value[suspect].astype(np.float32)])
            apart = np.max([np.abs(answer - value[suspect]) for answer in every], axis=0)  # used if no bound is known
            apart = np.where(np.isfinite(apart), apart, 0.0)
            bound[suspect] = np.where(np.isfinite(bound[suspect]), bound[suspect], apart)
        unknown = self.stages.scheme.unspecified(self.stages.soc, dtype_of(self.stages.kind).name)
        if unknown is not None:
            (where,) = program(unknown)(outer, value.shape)
            unspecified |= np.asarray(where)
        return bound, unspecified, self._ties(rows, inner, outer, value)

    def _overflowing(self, graph: Graph, arithmetic: Arithmetic, inner: Operands, totals: Totals) -> Array:
        """Return the rows in which a step of a term may overflow in float32, or in 16 bits if it is stored so, although
        the term does not: the term is then of another class, or far from its value. The axis is kept."""
        if not graph.stages:
            return np.zeros((), bool)
        result = np.zeros((*next(iter(totals.known.values())).shape[:-1], 1), bool)
        levels = {stage.terms: level for stage, level in graph.levels(arithmetic)[0] if stage.kind != TOTAL}
        if not any(map(stores, levels)) and self.stages.stays_inside(tuple(levels), totals):
            return result
        for part in [None] if self.stages.length <= TERMS else self.stages.parts():
            some = {**(inner if part is None else self.stages.loaded((Ellipsis, part))), **totals.known}
            shape = np.broadcast_shapes(*(np.shape(v) for v in some.values()))
            some = {name: np.broadcast_to(v, shape) for name, v in some.items()}
            single = cast(some, np.float32)
            for root, level in levels.items():
                ends = [
                    np.broadcast_to(simulate(root, single, np.float32, largest=end, same_bits=True), shape)
                    for end in (np.inf, SURE)
                ]
                right, margin = evaluated(level, some, totals.known, shape)
                apart = classes_differ([*ends, right.astype(np.float32)]) | _elsewhere(ends, right, margin)
                result |= reduce_rows(np.logical_or, apart)
        return result

    def _answers(self, graph: Graph, few: Operands, totals: Totals, shape: Shape, *, inside: bool) -> list[Array]:
        """Return the answers of an order in float32 with the rows' totals: with and without flushing, with early and
        late overflow. ``inside``: no step can overflow, so that both are one."""
        single = {name: np.broadcast_to(v.astype(np.float32), shape) for name, v in totals.known.items()}
        return [
            np.broadcast_to(
                simulate(graph.outer, {**few, **single}, np.float32, largest=end, flushing=mode, same_bits=True), shape
            )
            for mode in dict.fromkeys((frozenset[str](), self.stages.device.flushing))
            for end in ((np.inf,) if inside else (np.inf, SURE))
        ]

    def _ties(self, rows: Index, inner: Operands, outer: Operands, value: Array) -> Array | None:
        """Return where no step of any order is rounded in float32: the terms, their partial sums, and the outer
        graph."""
        graphs = tuple(dict.fromkeys(order.graph for order in self.stages.orders))
        if self.stages.length > EXACT_ROWS or not all(graph.may_be_exact for graph in graphs):
            return None
        exact = value.astype(np.float32) == value  # otherwise the last step is rounded
        candidates = reduce_rows(np.logical_or, exact)[..., 0]
        if not candidates.any():
            return None
        some = _chosen(candidates)
        few, kept = index_arrays(inner, some), exact[some]
        shape = shape_of(few)
        for graph in {graph.stages: graph for graph in graphs}.values():
            totals = self.stages.totals(graph, FLOAT64, rows, inner)
            known = {name: v[some] for name, v in totals.known.items()}
            for stage, level in graph.levels(FLOAT64)[0]:
                if stage.kind != "sum":  # an extreme is one of its terms
                    continue
                least = reduce_rows(np.minimum, lowest_bit(evaluated(level, few, known, shape)[0]))
                kept &= totals.sizes[stage.name][some] < least * 2.0**24
            terms, where = [stage.terms for stage in graph.stages], reduce_rows(np.logical_or, kept)
            kept &= reduce_rows(np.logical_and, _exact_of(terms, {**few, **known}, shape, where))
        for graph in graphs:
            totals = self.stages.totals(graph, FLOAT64, rows, inner)
            known = {name: v[some] for name, v in totals.known.items()}
            kept = _exact_of([graph.outer], {**index_arrays(outer, some), **known}, kept.shape, kept)
        exact[some] = kept
        return exact if kept.any() else None


def _chosen(mask: Array) -> Index:
    """Return the index of a mask's elements, or of all if it marks most of them."""
    return (Ellipsis,) if MOST * np.count_nonzero(mask) > mask.size else np.nonzero(mask)


def _exact_of(roots: Sequence[Expression], known: Mapping[str, Any], shape: Shape, where: Array) -> Array:
    """Return where every step is exact in float32, for some rows or elements; False elsewhere."""
    wanted, result = np.broadcast_to(where, shape), np.zeros(shape, bool)
    chosen = _chosen(wanted)
    few = {name: np.broadcast_to(known[name], shape)[chosen].reshape(-1) for name in names_of(*roots)}
    exact = np.empty(result[chosen].size, bool)
    for start in range(0, exact.size, BLOCK):
        part = slice(start, start + BLOCK)
        exact[part] = is_exact_in(roots, {name: v[part] for name, v in few.items()}, FORMATS["float32"])
    result[chosen] = exact.reshape(result[chosen].shape)
    result &= wanted
    return result


def _elsewhere(answers: list[Array], value: Array, margin: Values) -> Array:
    """Return where a kernel's answer is far from the value: a step has overflowed."""
    far = 4 * margin + np.abs(value) * DEPARTURE
    return np.asarray(np.logical_or.reduce([np.abs(answer - value) > far for answer in answers]))


def _answers_of_shifted_stages(graph: Graph, totals: Totals, few: Operands, where: Array) -> Iterator[Array]:
    """Yield the answers of an order for some elements with its stages shifted by their largest errors. Next to a root
    of the formula an infinite factor changes its sign, or gives NaN at the root itself."""
    own = {name: np.broadcast_to(v, where.shape)[where] for name, v in few.items()}
    for sign in (-1.0, 1.0):
        stages = {}
        for stage in graph.stages:
            value, error = totals.known[stage.name], totals.known[stage.error]
            # A sum of zeros is 0 in every order, unless its terms are rounded, like x minus a rounded mean.
            sized = np.isfinite(error) & ((totals.sizes.get(stage.name, 1.0) != 0) | (error > ROUNDED))
            shifted = value + np.where(sized, sign * error, 0.0)
            stages[stage.name] = np.broadcast_to(shifted.astype(np.float32), where.shape)[where]
        yield np.broadcast_to(
            simulate(graph.outer, {**own, **stages}, np.float32, same_bits=True), (int(np.count_nonzero(where)),)
        )
