"""Rows of a formula of g, y and the sum of g along an axis, as log-softmax has it.

The rows and their blocks are those of :mod:`.rows`; what the sum leaves in doubt is decided by the formula's graph.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ..model.call import Array
from . import double_double, enclosures
from .arithmetic import FLOAT64
from .blocks import Index, Lane
from .errorbounds import SECOND_ORDER, losses
from .expressions import ONE, ZERO, Expression, symbol, trace
from .programs import program, release
from .proof import U
from .rounding import widen
from .rows import CHUNK, RUN, Rows, RowScheme, load, run_sum
from .sink import Region
from .traversal import substitute


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
