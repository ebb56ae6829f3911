"""Formulas that need a sum along an axis, evaluated by blocks of whole rows.

A row's sum of products is computed once, with a rigorous bound, and its error enters every element of the row. What
that leaves in doubt is looked at again with the sum in two parts, then exactly. The axis is moved last per block, never
for the whole tensor; a row that is too long to be in memory at once is summed and evaluated in parts. docs/proof.md
derives the bounds.
"""

from __future__ import annotations

import copy
import functools
import math
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from gmpy2 import mpq

from ...model.call import Array
from ...model.dtypes import dtype_of
from ...model.errors import OracleError
from ..bounds import additions
from ..bounds.losses import SECOND_ORDER, losses
from ..compiled.engine import is_compiled
from ..evaluate.programs import program, release
from ..exact import enclosures
from ..exact.fractions64 import two_sum
from ..floats.arithmetic import FLOAT64
from ..floats.blocks import Index, Lane, axis_last, block_size, blocks, piece_size, pool_for, region_size, run_blocks
from ..floats.rounding import widen
from ..formula.expressions import ONE, ZERO, Expression, symbol, trace
from ..formula.traversal import substitute
from ..proof import double_double
from ..proof.proof import U
from ..proof.sink import Region, Sink

RUN = 128  # terms that are summed at once, in any order
CHUNK = 1 << 14  # terms of a row that are in memory at once
AGAIN = 1 << 15  # elements of rows that are evaluated at once after a compiled pass left them


@dataclass(frozen=True)
class RowScheme:
    """A formula of g, y and a sum over the row: for :class:`Rows` linear in each, ``y * (g - sum of g * y)`` in any
    order; for GradientRows (:mod:`.gradient_rows`) any graph that is linear in the sum of g.

    ``error``: what a right float32 kernel may lose, from (g, y, sum, sum of magnitudes, what their addition may lose,
    the row's length, the value): the error, the elements on which right kernels disagree, and those that are exact, or
    None. ``reach``: a finite y of a larger magnitude has the effect of one of this magnitude in every format.
    """

    formula: Callable[[Any, Any, Any], Any]
    error: Callable[..., tuple[Array, Array, Array | None]]
    reach: float = math.inf


def evaluate(
    scheme: RowScheme, grad: Array, output: Array, axis: int, sink: Sink, made: type[Rows] | None = None
) -> None:
    """Fill the sink by blocks of whole rows, of the class ``made``. Raises OracleError for a formula that it does not
    evaluate."""
    if made is None:
        _require_rows(scheme.formula)
    grad, output = axis_last(grad, axis), axis_last(output, axis)
    sink = sink.moved(axis)
    if grad.ndim == 1:
        grad, output, sink = grad[None], output[None], sink.at((None,))
    lead, length = grad.shape[:-1], grad.shape[-1]
    compiles = length <= CHUNK and made is None and not sink.judged and is_compiled(sink)

    def work(index: Index) -> None:
        rows, part = (made or Rows)(scheme, grad[index], output[index], sink.kernel), sink.at(index)
        if compiles:
            compiled(rows, part)
        elif length <= CHUNK:
            by_rows(rows, part)
        else:
            by_columns(rows, part)

    with np.errstate(all="ignore"):
        size, each = (piece_size(sink.out.size, copied=True), 1) if compiles else (region_size(), 4)
        run_blocks(blocks(lead, max(1, size // length) if length <= CHUNK else 1), work, each=each)


@functools.lru_cache(maxsize=64)
def _require_rows(formula: Callable[[Any, Any, Any], Any]) -> None:
    """Raise OracleError for a formula that is not y * (g - total), in whatever order: what is proved here is that."""
    for g, y, total in ((3, 5, 7), (11, -13, 17), (-19, 23, 29)):  # linear in each, it is known by a few values
        try:
            found = formula(mpq(g), mpq(y), mpq(total))
        except (ArithmeticError, AttributeError, TypeError, ValueError):  # made of other things than + - * /
            found = None
        if found != y * (g - total):
            raise OracleError(
                f"rows of {getattr(formula, '__name__', formula)}(g, y, total): only y * (g - total), in any order, is "
                "evaluated so; another formula of a row's sum needs an Evaluation of its own"
            )


def blocks_of(shape: tuple[int, ...]) -> Iterator[Index]:
    """Cut rows, the last axis, into blocks of whole ones."""
    return blocks(shape[:-1], max(1, block_size() // max(1, shape[-1])))


def by_rows(rows: Rows, sink: Sink) -> None:
    """Fill a sink, by blocks of whole rows."""
    region = sink.region((Ellipsis,))
    for block in blocks_of(rows.g.shape):
        loaded = rows.add(block)
        rows.put(block, block, loaded, region)
    region.finish(rows.exact, rows.refine)


def by_columns(rows: Rows, sink: Sink) -> None:
    """Fill a sink of one row that is too long to be in memory at once."""
    parts = [(Ellipsis, slice(start, start + CHUNK)) for start in range(0, rows.g.shape[-1], CHUNK)]
    for part in parts:
        rows.add(part)
    for part in parts:
        shifted = rows.from_column(part[1].start)
        region = sink.region(part)
        shifted.put((Ellipsis,), (Ellipsis,), load(rows.g[part], rows.y[part]), region)
        region.finish(shifted.exact, shifted.refine)


def compiled(rows: Rows, sink: Sink) -> None:
    """Fill a sink in one compiled pass; the rows that leaves in doubt are evaluated by NumPy."""
    from ..compiled.rows import rowwise

    region, length = sink.region((Ellipsis,)), rows.g.shape[-1]
    doubtful = rowwise(rows.scheme.formula, region.target, rows.g, rows.y)
    at_once = max(1, AGAIN // length)
    for start in range(0, doubtful.size, at_once):
        some = doubtful[start : start + at_once]
        where = np.unravel_index(some, rows.g.shape[:-1])
        few = Sink(np.empty((some.size, length), region.target.dtype), dtype_of(region.target.dtype).name)
        by_rows(Rows(rows.scheme, rows.g[where], rows.y[where], rows.kind), few)
        region.target.reshape(-1, length)[some] = few.out
    region.proved_finite = True
    region.finish(rows.exact)


class Rows:
    """Some rows: their sums with rigorous bounds, and the formula on blocks of them.

    ``kind``: the dtype that is rounded to. ``total``: float64 sums of g * y. ``squares``: of g and of y. ``first``: the
    column that masks and indices of the second look begin at; a row of more than CHUNK terms is looked at in parts.
    """

    def __init__(self, scheme: RowScheme, g: Array, y: Array, kind: np.dtype[Any]) -> None:
        self.scheme, self.kind = scheme, kind
        self.g, self.y, self.first = g, y, 0
        shape = (*g.shape[:-1], 1)
        self.total, self.g_squares, self.y_squares = (np.zeros(shape) for _ in range(3))
        self.sums: dict[Index, list[float]] = {}
        self.pair: list[tuple[Array, Array]] = []  # of the only row of a long part: its sum in two parts,
        self.size: list[tuple[Array, Array]] = []  # and its magnitudes

    def from_column(self, first: int) -> Rows:
        """Return the same rows, looked at from a column on."""
        rows = copy.copy(self)
        rows.first = first
        return rows

    def add(self, block: Index) -> tuple[Lane, Lane]:
        """Add a block (of rows, or of columns of the only row) to the sums; return it loaded."""
        g, y = loaded = load(self.g[block], self.y[block])
        rows = block if self.g.shape[-1] <= CHUNK else (Ellipsis,)
        self.total[rows] += dot(g.values, y.values)
        self.g_squares[rows] += dot(g.values, g.values)
        self.y_squares[rows] += dot(y.values, y.values)
        return loaded

    def put(self, rows: Index, block: Index, loaded: tuple[Lane, Lane], region: Region) -> None:
        """Evaluate, round and prove a block of a region that belongs to some of the rows."""
        g, y = (lane.values for lane in loaded)
        length = g.shape[-1]
        total, slack = self.total[rows], self.slack(rows)
        low, high = (loaded[0].apply(np.subtract, total + s) for s in (slack, -slack))
        np.multiply(low.values, y, out=low.values)
        np.multiply(high.values, y, out=high.values)

        def values(where: Array) -> Array:
            return np.asarray(
                self.scheme.formula(g.reshape(-1)[where], y.reshape(-1)[where], total.reshape(-1)[where // length])
            )

        region.put_between(block, low.values, high.values, values)
        if region.sink.judged:
            v = self.scheme.formula(g, y, total)
            region.sink.value[block] = v
            size, lost = self.magnitudes(g, y) if self.g.shape[-1] <= CHUNK else self.whole()
            errors = self.scheme.error(g, y, total, size, lost, self.g.shape[-1], v)
            region.sink.put_bound(block, v, *errors)

    def slack(self, rows: Index) -> Array:
        """How far total may be off, the formula's own rounding errors included, per row (docs/proof.md).

        sum|p| <= |g| |y| (Cauchy-Schwarz).
        """
        terms = RUN + CHUNK // RUN + -(-self.g.shape[-1] // CHUNK)
        norm = np.sqrt(self.g_squares[rows])
        return np.asarray(1.01 * U * norm * ((terms + 6) * np.sqrt(self.y_squares[rows]) + 4))

    def exact(self, i: Index) -> Any:
        """The exact value of an element as a rational, or its signed zero."""
        row = i[:-1]
        where = (*row, i[-1] + self.first)
        g, y = float(self.g[where]), float(self.y[where])
        q = self.scheme.formula(mpq(g), mpq(y), sum(map(mpq, self.expansion(row)), mpq(0)))
        if q == 0 and y == 0:
            return self.scheme.formula(g, y, float(self.total[row][0]))
        if q == 0:  # terms that cancel, or g is 0 and so is the sum
            return self.scheme.formula(g, y, 0.0) if g == 0 else 0.0
        return q

    def refine(self, where: tuple[Array, ...]) -> tuple[Array, Array, Array]:
        """The formula for some elements with the sums in two parts: y * ((g - high) - low)."""
        *lead, column = where
        element = (*lead, column + self.first)
        g, y = widen(self.g[element]), widen(self.y[element])
        length = self.g.shape[-1]
        lengths = self.g.shape[:-1]
        rows, inverse = np.unique(np.ravel_multi_index(tuple(lead), lengths), return_inverse=True)
        where = np.unravel_index(rows, lengths)
        norm = np.sqrt(self.g_squares[where] * self.y_squares[where])[:, 0]
        high, low = self.split(where, norm)
        high, low, norm = high[inverse], low[inverse], norm[inverse]
        d, rest = two_sum(g, -high)
        value = y * (d + (rest - low))
        lost = U * U * (4 * length * length * norm + 4 * (np.abs(g) + np.abs(high)))
        slack = 1.01 * (np.abs(y) * lost + 4 * U * np.abs(value))
        return value, value - slack, value + slack

    def split(self, where: Any, norm: Array) -> tuple[Array, Array]:
        """The sums of rows in two parts; those of a long row, the only one here, are kept."""
        if self.g.shape[-1] <= CHUNK:
            return split_sum(self.g[where], self.y[where], norm)
        if not self.pair:
            shape = (1, self.g.shape[-1])
            self.pair.append(split_sum(self.g.reshape(shape), self.y.reshape(shape), norm))
        return self.pair[0]

    def expansion(self, row: Index) -> list[float]:
        """The exact sum of a row as float64 terms, each the rounded sum of what the ones before leave."""
        if row not in self.sums:
            steps: list[float] = []
            for start in range(0, self.g.shape[-1], CHUNK):
                part = (*row, slice(start, start + CHUNK))
                steps = expanded([*steps, *self.terms(part).tolist()])
            self.sums[row] = steps
        return self.sums[row]

    def terms(self, part: Index, g: Array | None = None, y: Array | None = None) -> Array:
        """What is summed over a row, of some elements, exactly."""
        g, y = self.g if g is None else g, self.y if y is None else y
        return widen(g[part]) * widen(y[part])

    def whole(self) -> tuple[Array, Array]:
        """The magnitudes of all rows, computed once."""
        if not self.size:
            self.size.append(self.magnitudes(self.g, self.y))
        return self.size[0]

    def magnitudes(self, g: Array, y: Array) -> tuple[Array, Array]:
        """Return the sum of the terms' magnitudes per row, infinite ones not among them, and what adding the terms in
        float32 may lose."""
        if g.shape[-1] <= CHUNK:
            ((terms, size),) = self._finite_terms(g, y)
            return size, additions.lost([terms], size, g.shape[-1])
        size = np.zeros((*g.shape[:-1], 1))
        for _, sums in self._finite_terms(g, y):
            size += sums
        return size, additions.lost((terms for terms, _ in self._finite_terms(g, y)), size, g.shape[-1])

    def _finite_terms(self, g: Array, y: Array) -> Iterator[tuple[Array, Array]]:
        """Yield what is summed over rows, so many columns at a time, 0 where that is not finite, and the sums of their
        magnitudes."""
        for start in range(0, g.shape[-1], CHUNK):
            part = (Ellipsis, slice(start, start + CHUNK))
            terms = np.ascontiguousarray(self.terms(part, g, y))  # a sum's order follows the layout
            sums = np.abs(terms).sum(axis=-1, keepdims=True)
            if not np.isfinite(sums).all():
                terms = np.where(np.isfinite(terms), terms, 0.0)
                sums = np.abs(terms).sum(axis=-1, keepdims=True)
            yield terms, sums


def run_sum(values: Array) -> Array:
    """Sums along the last axis, kept as an axis: RUN terms in any order, then those sums in any order."""
    whole = values.shape[-1] - values.shape[-1] % RUN
    total = values[..., whole:].sum(axis=-1, keepdims=True)
    if whole:
        total += values[..., :whole].reshape(*values.shape[:-1], -1, RUN).sum(axis=-1).sum(axis=-1, keepdims=True)
    return np.asarray(total)


def tree_sum(terms: Array, axis: int) -> Array:
    """Sums along an axis, kept, as a device makes them: a binary tree in the terms' own type."""
    terms = axis_last(terms, axis)
    while terms.shape[-1] > 1:
        half = terms.shape[-1] // 2
        pairs = terms[..., :half] + terms[..., half : 2 * half]
        terms = np.concatenate([pairs, terms[..., 2 * half :]], axis=-1)
    return np.moveaxis(terms, -1, axis)


def expanded(terms: list[float]) -> list[float]:
    """Return a short list of float64 numbers with exactly the same sum (math.fsum until nothing is left)."""
    steps = []
    while (step := math.fsum(terms)) != 0.0:
        steps.append(step)
        terms.append(-step)
    return steps


def load(g: Array, y: Array) -> tuple[Lane, Lane]:
    """Return g and y of a block in float64."""
    pool = pool_for(g.shape)
    return Lane.load(pool, g), Lane.load(pool, y)


def dot(a: Array, b: Array) -> Array:
    """Sums of products along the last axis, kept as an axis: RUN terms in any order, then those sums in any order."""
    length = a.shape[-1]
    whole = length - length % RUN
    total = np.einsum("...i,...i->...", a[..., whole:], b[..., whole:])[..., None]
    if whole:
        runs = (*a.shape[:-1], -1, RUN)
        one, other = a[..., :whole].reshape(runs), b[..., :whole].reshape(runs)
        total += np.matmul(one[..., None, :], other[..., None])[..., 0, 0].sum(axis=-1, keepdims=True)
    return np.asarray(total)


def split_sum(g: Array, y: Array, norm: Array) -> tuple[Array, Array]:
    """Row sums of g * y as unevaluated pairs.

    Adding and subtracting a power of two of at least 2 |g| |y| splits each product at one bit position: the upper
    parts add up without error in any order, the lower ones, below u times that power, lose n^2 u^2 times it.
    """
    power = np.ldexp(1.0, np.frexp(norm)[1] + 1)[:, None]
    high, low = np.zeros(g.shape[0]), np.zeros(g.shape[0])
    for start in range(0, g.shape[-1], CHUNK):
        p = widen(g[:, start : start + CHUNK]) * widen(y[:, start : start + CHUNK])
        upper = (power + p) - power
        high += upper.sum(axis=1)
        low += (p - upper).sum(axis=1)
    return high, low


# Rows of a formula of g, y and the sum of g along an axis, as log-softmax has it.
# The rows and their blocks are those of :mod:`.rows`; what the sum leaves in doubt is decided by the formula's graph.


class GradientRows(Rows):
    """Rows of a formula of g, y and the sum of g, linear in the sum.

    Its float64 evaluation is bounded by its graph's own rules, and by what the sum may be off times the difference that
    the sum makes. The second look is the graph in pairs of numbers with the exact sum, the last one MPFR.
    """

    def __init__(self, scheme: RowScheme, g: Array, y: Array, kind: np.dtype[Any]) -> None:
        super().__init__(scheme, g, y, kind)
        self.sizes = np.zeros_like(self.total)

    def add(self, block: Index) -> tuple[Lane, Lane]:
        """Add a block (of rows, or of columns of the only row) to the sums; return it loaded."""
        loaded = load(self.g[block], self.y[block])
        g, y = (lane.values for lane in loaded)
        self.limited(y)
        rows = block if self.g.shape[-1] <= CHUNK else (Ellipsis,)
        self.total[rows] += run_sum(g)
        self.sizes[rows] += run_sum(np.abs(g))
        return loaded

    def limited(self, y: Array) -> None:
        """Move finite values from beyond the scheme's reach to it, in place."""
        if not np.abs(y).max(initial=0.0) <= self.scheme.reach:
            far = np.isfinite(y) & (np.abs(y) > self.scheme.reach)
            y[far] = np.copysign(self.scheme.reach, y[far])

    def slack(self, rows: Index) -> Array:
        """How far total may be off, per row."""
        terms = RUN + CHUNK // RUN + -(-self.g.shape[-1] // CHUNK)
        return np.asarray(1.01 * U * terms * self.sizes[rows])

    def put(self, rows: Index, block: Index, loaded: tuple[Lane, Lane], region: Region) -> None:
        """Evaluate, round and prove a block of a region that belongs to some of the rows."""
        g, y = (lane.values for lane in loaded)
        self.limited(y)
        total, slack = self.total[rows], self.slack(rows)
        if np.isposinf(y).any():
            self.tell_zero(total, slack, g)
        graphs = _graphs(self.scheme.formula)
        given = {"g": g, "y": y, "total": total}
        value, error, slope = map(np.asarray, program(graphs.value, graphs.running, graphs.slope)(given, g.shape))
        margin = np.abs(value) * graphs.relative + error * SECOND_ORDER + np.abs(slope) * slack
        region.put_between(block, value - margin, value + margin, lambda where: value.reshape(-1)[where])
        if region.sink.judged:
            region.sink.value[block] = value
            size, lost = self.magnitudes(self.g[rows], self.y[rows]) if rows != (Ellipsis,) else self.whole()
            errors = self.scheme.error(g, y, total, size, lost, self.g.shape[-1], value)
            region.sink.put_bound(block, value, *errors)
        release(value, error, slope)

    def tell_zero(self, total: Array, slack: Array, g: Array) -> None:
        """Beside an infinite factor the sign of a sum decides, and whether it is zero: sum exactly what is near it."""
        for row in zip(*np.nonzero((np.abs(total) <= slack)[..., 0] & np.isfinite(slack)[..., 0]), strict=True):
            whole = self.g.shape[-1] <= CHUNK
            total[row] = math.fsum(g[row].tolist() if whole else self.expansion(row))

    def terms(self, part: Index, g: Array | None = None, y: Array | None = None) -> Array:
        """What is summed over a row, of some elements."""
        return widen((self.g if g is None else g)[part])

    def operands(self, where: Any) -> tuple[Array, Array]:
        """Return g and y of some elements."""
        *lead, column = where
        element = (*lead, column + self.first)
        g, y = np.atleast_1d(widen(self.g[element])), np.atleast_1d(widen(self.y[element]))
        self.limited(y)
        return g, y

    def exact(self, i: Index) -> Any:
        """The exact value of an element, or enclosures of it."""
        (g,), (y,) = self.operands(i)
        steps = self.expansion(i[:-1])
        given = {"g": float(g), "y": float(y), **{f"total{k}": step for k, step in enumerate(steps)}}
        return enclosures.exact(_graphs(self.scheme.formula).with_sum(len(steps)), given)

    def refine(self, where: tuple[Array, ...]) -> tuple[Array, Array, Array]:
        """The formula for some elements in pairs of numbers, with the exact sums (their third part is below what the
        pairs' addition may lose)."""
        g, y = self.operands(where)
        lengths = self.g.shape[:-1]
        rows, inverse = np.unique(np.ravel_multi_index(where[:-1], lengths), return_inverse=True)
        sums = np.array([[*self.expansion(tuple(np.unravel_index(row, lengths))), 0.0, 0.0][:2] for row in rows])
        high, low = sums[inverse].T
        given = {"g": g, "y": y, "total0": high, "total1": low}
        return double_double.refined(_graphs(self.scheme.formula).with_sum(2), given, self.kind, np.inf)


class _Graphs:
    """What follows from a formula of g, y and total."""

    def __init__(self, formula: Callable[[Any, Any, Any], Any]) -> None:
        self.value = trace(formula)
        (lost,) = losses([self.value], FLOAT64)
        self.relative, self.running = lost.relative, lost.running(abs(self.value))
        self.slope = substitute(self.value, {symbol("total"): ONE, symbol("g"): ZERO})

    @lru_cache(maxsize=64)  # noqa: B019  there are as many as formulas
    def with_sum(self, parts: int) -> Expression:
        """Return the formula with the sum in some parts."""
        total = functools.reduce(operator.add, [symbol(f"total{k}") for k in range(parts)], ZERO)
        return substitute(self.value, {symbol("total"): total})


_graphs = lru_cache(maxsize=64)(_Graphs)
