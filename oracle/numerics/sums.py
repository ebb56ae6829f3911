"""Sums of an elementwise formula's values: where operands are larger than the output, terms that share an element.

Each term's value and its own error come of the formula's graph, the sum's error of the number of additions. What that
leaves in doubt is summed again from pairs of float64 numbers, then exactly: as rationals, or by MPFR at growing
precision.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from gmpy2 import mpq

from ..model.call import Array
from ..model.dtypes import FORMATS, dtype_of
from . import double_double, enclosures
from .elementwise import pick
from .errorbounds import FLOAT32, SECOND_ORDER
from .expressions import is_rational
from .graphs import COUNT, Elementwise, Graphs, Operands, graphs_of
from .programs import loaded, program, simulate
from .proof import U
from .rows import tree_sum
from .sink import LARGEST, UNIT, Sink, half_ulp

CHUNK = 1 << 16  # terms that are in memory at once
PAIRS = 2.0**-88  # what a term in pairs of float64 numbers may lose, relative, e^x included

Shape = tuple[int, ...]


def evaluate(scheme: Elementwise, operands: Operands, shape: Shape, sink: Sink, *, soc: str = "") -> None:
    """Fill the sink. ``shape``: of the terms; the output's, right-aligned, has 1 or no axis where they are summed."""
    graphs = graphs_of(scheme, operands, soc, dtype_of(sink.kernel).name)
    rows = _by_element(operands, shape, sink.out.shape)
    count = next(v.shape[0] for v in rows.values() if isinstance(v, np.ndarray))
    table = sink.vector(count)
    found = [_Row(graphs, pick(rows, k), dtype_of(sink.kernel).name) for k in range(count)]
    with np.errstate(all="ignore"):
        total, slack = (np.array([getattr(row, name) for row in found]) for name in ("total", "slack"))
        region = table.region((Ellipsis,))
        region.put_between((Ellipsis,), total - slack, total + slack, lambda where: np.asarray(total[where]))
        region.finish(lambda i: found[i[0]].exact(), lambda where: _refined(found, where[0], slack))
        if sink.judged:
            table.value[...] = total
            table.put_bound(
                (Ellipsis,), total, *(np.array(part) for part in zip(*(r.freedom() for r in found), strict=True))
            )
    sink.fill(table)


def kernel(
    scheme: Elementwise,
    operands: Operands,
    shapes: tuple[Shape, Shape],
    form: str,
    compute: Any,
    stored: Any,
    flushing: frozenset[str] = frozenset(),
) -> Array:
    """Return what a SoC's public kernel computes: terms that are ``stored`` in a type, summed as a tree in float32.

    ``shapes``: of the terms, and of the output. ``flushing``: operations whose subnormal float32 results become 0.
    """
    shape, out = shapes
    rows = _by_element(operands, shape, out)
    graphs = graphs_of(scheme, operands, form, dtype_of(stored).name)
    compute = stored if graphs.native is not None else compute
    given = {n: v.astype(compute) if isinstance(v, np.ndarray) else v for n, v in rows.items()}
    with np.errstate(all="ignore"):
        terms = (
            simulate(graphs.form(form), given, compute, flushing=flushing, same_bits=True)
            .astype(stored)
            .astype(np.float32)
        )
        return np.asarray(tree_sum(terms, -1)[..., 0].reshape(out))


def _by_element(operands: Operands, shape: Shape, out: Shape) -> dict[str, Any]:
    """Return the operands as (elements of the output, terms of each)."""
    kept = (1,) * (len(shape) - len(out)) + out
    summed = tuple(k for k, n in enumerate(shape) if kept[k] != n)
    rest = tuple(k for k in range(len(shape)) if k not in summed)
    count = math.prod(shape[k] for k in rest)

    def arranged(array: Array) -> Array:
        return np.asarray(np.broadcast_to(array, shape).transpose(*rest, *summed).reshape(count, -1))

    return {n: arranged(v) if isinstance(v, np.ndarray) else v for n, v in operands.items()}


class _Row:
    """The terms of one element: their float64 sum, and how far it may be off."""

    def __init__(self, graphs: Graphs, operands: Operands, kernel: str) -> None:
        self.graphs, self.operands, self.kernel = graphs, operands, FORMATS[kernel]
        self.count = next(v.size for v in operands.values() if isinstance(v, np.ndarray))
        relative, absolute = graphs.evaluation
        sums, size, lost = [], 0.0, 0.0
        with np.errstate(all="ignore"):
            for part in self.parts():
                value, error = (np.broadcast_to(v, part[1]) for v in program(graphs.value, absolute)(*part))
                sums.append(float(value.sum()))
                size += float(np.abs(value).sum())
                lost += float(error.sum())
            self.total, self.size = float(np.sum(sums)), size
            additions = min(self.count, CHUNK) + len(sums)
            self.slack = 1.01 * (size * (relative + U * additions) + lost * SECOND_ORDER)

    def parts(self) -> Iterator[tuple[dict[str, Any], Shape]]:
        """Yield the operands of some terms in float64, and their shape."""
        for start in range(0, self.count, CHUNK):
            few = pick(self.operands, slice(start, start + CHUNK))
            shape = (min(CHUNK, self.count - start),)
            yield loaded(few, shape), shape

    def pairs(self) -> tuple[float, float, float]:
        """The sum in two parts, and what they may be off."""
        terms: list[float] = []
        for part, _ in self.parts():
            for half in double_double.evaluate(self.graphs.value, part):
                terms += np.atleast_1d(half).tolist()
        high = math.fsum(terms)
        return high, math.fsum([*terms, -high]), self.size * PAIRS

    def exact(self) -> Any:
        """The exact sum, or enclosures of it; where a term has no value, what IEEE arithmetic gives."""
        given = [{n: float(v[k]) if isinstance(v, np.ndarray) else float(v) for n, v in self.operands.items()}
                 for k in range(self.count)]  # fmt: skip
        root = self.graphs.value
        if is_rational(root):
            return sum((enclosures.rational(root, enclosures.numbers(term)) for term in given), mpq(0))
        return self._enclosed(given)

    def _enclosed(self, given: list[dict[str, float]]) -> Iterator[tuple[Any, Any]]:
        precision = enclosures.FIRST
        while precision <= enclosures.LAST:
            found = [enclosures.enclose(self.graphs.value, term, precision) for term in given]
            yield sum((mpq(e.low) for e in found), mpq(0)), sum((mpq(e.high) for e in found), mpq(0))
            precision *= 2

    def freedom(self) -> tuple[float, bool]:
        """What a right kernel may lose before the last rounding, and whether right kernels disagree: each term is
        rounded to the kernel's type before it is summed, in any order."""
        lost = self.graphs.bound(FLOAT32)
        mean = 6 * UNIT if COUNT in self.operands else 0.0
        error, largest, smallest = 0.0, 0.0, math.inf
        for part in self.parts():
            roots = (self.graphs.value, lost.running(abs(self.graphs.value)), lost.underflow)
            value, running, underflow = (np.broadcast_to(v, part[1]) for v in program(*roots)(*part))
            size = np.abs(value)
            own = size * (lost.relative + mean) + running + underflow
            error += float((own * SECOND_ORDER + half_ulp(size + own, self.kernel)).sum())
            largest, smallest = max(largest, float(size.max())), min(smallest, float(size.min()))
        alike = largest <= 2 * smallest
        additions = self.count - 1 if alike else min(self.count - 1, 2 * math.sqrt(self.count))
        error += UNIT * (additions + 1) * self.size
        overflows = not (largest < self.kernel.max * (1 - 2.0**-10) and self.size < LARGEST * (1 - 2.0**-10))
        special = not math.isfinite(self.total)
        return (error if math.isfinite(error) else 0.0), overflows and not special


def _refined(rows: list[_Row], where: Array, slack: Array) -> tuple[Array, Array, Array]:
    if not double_double.supports(rows[0].graphs.value):
        value = np.array([rows[k].total for k in where])
        return value, value - slack[where], value + slack[where]
    high, low, error = (np.array(part) for part in zip(*(rows[k].pairs() for k in where), strict=True))
    return double_double.beside(high, low, error, rows[0].kernel, slack[where])
