"""Sums: along an axis, and of an elementwise formula's values if terms share an element.

Each term's value and its own error follow from the formula's graph. The sum's error follows from the number of
additions. Doubtful sums are computed again from pairs of float64 numbers, then exactly: as rationals, or by MPFR at
growing precision.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
from gmpy2 import is_infinite, mpq

from ...model.call import Array
from ...model.dtypes import DTYPES, FORMATS, dtype_of
from ...model.errors import OracleError
from .. import double_double
from ..bounds import additions
from ..bounds.building import SECOND_ORDER
from ..bounds.ranges import is_linear
from ..exact import enclosures
from ..exact.extended import finite_part
from ..exact.rationals import Undefined, numbers, rational
from ..exact.transcendence import rational_sum
from ..expressions import ZERO, Expression
from ..floats.blocks import axis_last, blocks
from ..floats.rounding import LARGEST, NEAR, SURE, UNIT, Arithmetic, classes_differ, half_ulp, quantize, widen
from ..orders.formula import COUNT, Formula
from ..orders.kernel_orders import Graphs, graphs_of, mean_loss
from ..orders.strict import Device
from ..programs import Operands, cast, index_arrays, map_arrays, program, shape_of, simulate
from ..proof import U
from ..sink import Sink
from ..traversal import is_rational

# Sums along an axis: in float64 by runs, as a device's binary tree, and exactly.

RUN = 128  # terms that are summed together, in any order
TERMS = 1 << 14  # terms of a row that are in memory together
AGAIN = 1 << 15  # elements of rows that are evaluated together after a compiled pass left them unproven


def as_rows(values: Array, axes: tuple[int, ...]) -> Array:
    """Return values with some axes merged into one, the last; a view if strides allow it. An array of only those axes
    becomes one row."""
    if len(axes) == 1 and values.ndim > 1:
        return axis_last(values, axes[0])
    moved = np.moveaxis(values, axes, range(-len(axes), 0)) if axes else values
    kept = moved.shape[: moved.ndim - len(axes)]
    return moved.reshape(*(kept or (1,)), math.prod(moved.shape[moved.ndim - len(axes) :]))


def from_rows(rows: Array, shape: tuple[int, ...], axes: tuple[int, ...]) -> Array:
    """Return rows in their original shape; if each row has one element, the axes are kept as 1."""
    ends = [shape[k] if rows.shape[-1] == math.prod(shape[k] for k in axes) else 1 for k in axes]
    kept = [n for k, n in enumerate(shape) if k not in axes]
    whole = rows.reshape(*kept, *ends)
    return np.moveaxis(whole, range(-len(axes), 0), axes) if axes else whole


def run_sum(values: Array) -> Array:
    """Return sums along the last axis, kept as an axis: first RUN terms each, then those sums, both in any order."""
    whole = values.shape[-1] - values.shape[-1] % RUN
    total = values[..., whole:].sum(axis=-1, keepdims=True)
    if whole:
        total += values[..., :whole].reshape(*values.shape[:-1], -1, RUN).sum(axis=-1).sum(axis=-1, keepdims=True)
    return np.asarray(total)


def tree_sum(terms: Array) -> Array:
    """Return sums along the last axis, kept, in the order of a device: a binary tree in the terms' own type."""
    while terms.shape[-1] > 1:
        half = terms.shape[-1] // 2
        pairs = terms[..., :half] + terms[..., half : 2 * half]
        terms = np.concatenate([pairs, terms[..., 2 * half :]], axis=-1)
    return terms


def expanded(terms: list[float]) -> list[float]:
    """Return a short list of float64 numbers with exactly the same sum (math.fsum until the rest is 0)."""
    steps = []
    while (step := math.fsum(terms)) != 0.0:
        steps.append(step)
        terms.append(-step)
    return steps


# Sums of an elementwise formula's values: if operands are larger than the output, several terms share an element.

CHUNK = 1 << 16  # terms that are in memory together

Shape = tuple[int, ...]


def evaluate(scheme: Formula, operands: Operands, shapes: tuple[Shape, Shape], sink: Sink, *, added: str = "") -> None:
    """Fill the sink. ``shapes``: of the terms, and of the output in the same axes, with 1 along summed axes. ``added``:
    the dtype of the terms in the addition, if it is not the kernel's."""
    kind = dtype_of(sink.kernel).name
    graphs = graphs_of(scheme, operands, sink.soc, kind)
    rows, (count, length) = _by_element(operands, *shapes)
    table, mean = sink.vector(count), mean_loss(operands, len(shapes[0]))
    with np.errstate(all="ignore"):
        for block in blocks((count,), max(1, CHUNK // max(1, length))):
            part = _Rows(graphs, index_arrays(rows, block), kind, mean, added or kind, sink.device)
            _fill(part, table.at(block))
    sink.fill(table)


def _fill(rows: _Rows, table: Sink) -> None:
    total, slack = rows.total, rows.slack
    if table.judged:
        table.value[...] = total
    region = table.region((Ellipsis,))
    region.put_between((Ellipsis,), total - slack, total + slack, lambda where: np.asarray(total[where]))
    if (beyond := rows.overflowed()).size:
        region.add_overflowed(beyond)
    if table.judged:
        table.put_bound((Ellipsis,), total, *rows.freedom())
    region.finish(lambda i: rows.exact(i[0]), lambda where: rows.refined(where[0]))


def kernel(
    scheme: Formula, operands: Operands, shapes: tuple[Shape, Shape], device: Device, stored: str, added: str = ""
) -> Array:
    """Return a device's answer, element by element: terms, summed as a tree in float32. ``shapes``, ``added``: as for
    :func:`evaluate`. ``stored``: the dtype of the result."""
    rows, _ = _by_element(operands, *shapes)
    graphs, compute = graphs_of(scheme, operands, device.form, stored), device.compute
    with np.errstate(all="ignore"):
        plain, factor = graphs.summed(device.form)
        root, known = graphs.computed_in(plain, rows)
        terms = simulate(root, cast(known, compute), compute, flushing=device.flushing, same_bits=True)
        total = tree_sum(terms.astype(DTYPES[added or stored].numpy).astype(np.float32))[..., 0]
        scale = simulate(factor, {COUNT: np.float32(operands.get(COUNT, 1))}, np.float32)
        return np.asarray(total * scale)


def _by_element(operands: Operands, shape: Shape, kept: Shape) -> tuple[Operands, tuple[int, int]]:
    """Return the operands as arrays (elements of the output, terms of each), and these two sizes."""
    summed = tuple(k for k, n in enumerate(shape) if kept[k] != n)
    rest = tuple(k for k in range(len(shape)) if k not in summed)
    count, length = math.prod(shape[k] for k in rest), math.prod(shape[k] for k in summed)

    def arranged(array: Array) -> Array:
        return np.asarray(np.broadcast_to(array, shape).transpose(*rest, *summed).reshape(count, length))

    return map_arrays(operands, arranged), (count, length)


class _Rows:
    """The terms of some elements: their float64 sums, and the sums' error bounds. ``mean``: a right kernel's possible
    relative loss in a mean's divisor. ``added``: the dtype of the terms in the addition. ``device``: the arithmetic of
    a right kernel."""

    def __init__(
        self, graphs: Graphs, operands: Operands, kernel: str, mean: float, added: str, device: Arithmetic
    ) -> None:
        self.graphs, self.operands, self.kernel, self.mean = graphs, operands, FORMATS[kernel], mean
        self.added, self.device = FORMATS[added], device
        count = float(operands.get(COUNT, 1))
        #: How much larger the terms are where a mean's factor is multiplied to their sum.
        self.scales = [count] if graphs.factored_sum else []
        self.scales += [] if graphs.factored_sum and not graphs.factored else [1.0]
        self.shape = shape_of(operands)
        relative, absolute = graphs.evaluation
        self.total, self.size, lost = (np.zeros(self.shape[0]) for _ in range(3))
        sums = []
        for part, shape in self.parts():
            value, error = (np.broadcast_to(v, shape) for v in program(graphs.value, absolute)(part, shape))
            sums.append(value.sum(axis=-1))
            self.size += np.abs(value).sum(axis=-1)
            lost += error.sum(axis=-1)
        self.total += np.sum(sums, axis=0)
        self.exact_terms = relative == 0 and absolute is ZERO
        count = min(self.shape[1], CHUNK) + len(sums)
        self.slack = 1.01 * (self.size * (relative + U * count) + lost * SECOND_ORDER)

    def parts(self, rows: Any = slice(None)) -> Iterator[tuple[Operands, Shape]]:
        """Yield the operands of some terms of every row in float64, and their shape."""
        for start in range(0, self.shape[1], CHUNK):
            few = map_arrays(index_arrays(self.operands, (rows, slice(start, start + CHUNK))), widen)
            yield few, shape_of(few)

    def refined(self, where: Array) -> tuple[Array, Array, Array]:
        """Return the sums of some rows from pairs of float64 numbers; an infinite interval if float64 overflowed."""
        result = np.zeros(where.size), np.full(where.size, -np.inf), np.full(where.size, np.inf)
        finite = np.isfinite(self.total[where])
        for all_rows, some in zip(result, self._refined(where[finite]), strict=True):
            all_rows[finite] = some
        return result

    def _refined(self, where: Array) -> tuple[Array, Array, Array]:
        value, slack = self.total[where], self.slack[where]
        plain = value, value - slack, value + slack
        if self.graphs.is_fragile or not double_double.supports(self.graphs.value, everywhere=True):
            return plain
        high, low, error = np.array(self.pairs(where)).reshape(-1, 3).T
        exact = self.exact_terms and (low == 0) & (high != 0)  # a float64 number: it may be a midpoint itself
        closer = double_double.round_near_midpoint(high, low, error, self.kernel, np.where(exact, 0.0, slack))
        known = np.isfinite(high) & np.isfinite(error)  # a term may have no value, or overflow in a step
        one, least, most = (np.where(known, *both) for both in zip(closer, plain, strict=True))
        return one, least, most

    def pairs(self, rows: Array) -> list[tuple[float, float, float]]:
        """Return the sums of some rows, each in two parts, and their error bounds; one chunk of terms at a time."""
        step = max(1, CHUNK // self.shape[1])
        if rows.size > step:
            return [pair for start in range(0, rows.size, step) for pair in self.pairs(rows[start : start + step])]
        root, halves, error = self.graphs.value, [], np.zeros(rows.size)
        for part, shape in self.parts(rows):
            high, low = (np.broadcast_to(half, shape) for half in double_double.evaluate(root, part))
            halves += [high, low]
            if not self.exact_terms:
                error += double_double.lost(root, part, high).sum(axis=-1) + high.shape[-1] * double_double.UNDERFLOW
        terms = [np.concatenate(row).tolist() for row in zip(*halves, strict=True)]
        highs = map(math.fsum, terms)
        return [
            (high, math.fsum([*row, -high]), lost) for high, row, lost in zip(highs, terms, error.tolist(), strict=True)
        ]

    def overflowed(self) -> Array:
        """Return rows with a sum that overflows float64, or is NaN there, although every operand is finite and every
        term that is infinite or NaN in float64 has a value."""
        beyond = np.flatnonzero(~np.isfinite(self.total)).tolist()
        return np.array([row for row in beyond if self._has_value(row)], np.intp)

    def _has_value(self, row: int) -> bool:
        operands = map_arrays(index_arrays(self.operands, row), widen)
        if not all(np.isfinite(v).all() for v in operands.values()):
            return False
        (beyond,) = np.nonzero(~np.isfinite(np.broadcast_to(self.value(operands, self.shape[1:]), self.shape[1:])))
        try:
            for k in beyond.tolist():
                enclosures.enclose(self.graphs.value, self._term(row, k), enclosures.FIRST)
        except Undefined:
            return False
        return True

    def _term(self, row: int, k: int) -> dict[str, float]:
        return {n: float(v[row, k]) if isinstance(v, np.ndarray) else float(v) for n, v in self.operands.items()}

    def exact(self, row: int) -> Any:
        """Return the exact sum of a row, or enclosures of it."""
        if self.exact_terms:
            terms = [v for part, n in self.parts(row) for v in np.broadcast_to(self.value(part, n), n).tolist()]
            return sum(map(mpq, expanded(terms)), mpq(0))
        terms = [self._term(row, k) for k in range(self.shape[1])]
        if is_rational(self.graphs.value):
            return sum((self._ends(term)[0] for term in terms), mpq(0))
        return self._enclosed(terms)

    def _ends(self, term: dict[str, float], precision: int = enclosures.FIRST) -> tuple[mpq, mpq]:
        """Return the ends of a term's value; both are the value if the formula is rational. If the formula has no
        value, as exp(log(0)), both are the result of IEEE arithmetic, which is finite for every requested sum."""
        with suppress(Undefined):
            return self._around(self.graphs.value, term, precision)
        with suppress(Undefined):
            if isinstance(root := finite_part(self.graphs.value, term), Expression):  # of a logarithm of 0
                return self._around(root, term, precision)
        plain = mpq(float(self.value({n: np.float64(v) for n, v in term.items()}, (1,))))
        return plain, plain

    def _around(self, root: Expression, term: dict[str, float], precision: int) -> tuple[mpq, mpq]:
        if is_rational(root):
            value = mpq(rational(root, numbers(term)))
            return value, value
        result = enclosures.enclose(root, term, precision)
        low, high = result.low, result.high
        return enclosures.rational_end(low, upwards=False), enclosures.rational_end(high, upwards=True)

    def value(self, part: Operands, shape: Shape) -> Any:
        return program(self.graphs.value)(part, shape)[0]

    def _enclosed(self, terms: list[dict[str, float]]) -> Iterator[enclosures.Ends]:
        precision, alike = enclosures.FIRST, self._alike(terms)
        while precision <= enclosures.LAST:
            low = high = mpq(0)
            for times, term in alike:
                ends = sorted(times * end for end in self._ends(term, precision))
                low, high = low + ends[0], high + ends[1]
            if low < 0 < high and high - low > enclosures.BEYOND:
                low, high = self._of_huge(terms, precision)
            yield enclosures.Ends(low, high)
            if precision == enclosures.PATIENCE:
                value = rational_sum(self.graphs.value, terms, enclosures.holds)
                if value is not None:
                    yield enclosures.Ends(value, value)
                    return
            precision *= 2
        raise OracleError(f"{self._described(terms)}: {enclosures.UNTOLD}")

    def _described(self, terms: list[dict[str, float]]) -> str:
        return f"the sum of {self.graphs.value} over {len(terms)} terms, the first at {terms[0]}"

    def _of_huge(self, terms: list[dict[str, float]], precision: int) -> tuple[mpq, mpq]:
        """Return the ends of a sum that is infinite in every format: the largest terms decide its sign."""
        each = [enclosures.enclose(self.graphs.value, term, precision) for term in terms]
        total = enclosures.reduced("sum", each, precision)
        if is_infinite(total.low) and is_infinite(total.high):
            text = "terms of both signs are beyond e^(3e18), the end of MPFR's numbers; their sum is unknown"
            raise OracleError(f"{self._described(terms)}: {text}")
        return enclosures.rational_end(total.low, upwards=False), enclosures.rational_end(total.high, upwards=True)

    def _alike(self, terms: list[dict[str, float]]) -> list[tuple[mpq, dict[str, float]]]:
        """Return the terms with their factors. If all terms are proportional to the gradient, terms that differ only in
        the gradient become one term. It is dropped if the gradients cancel."""
        name = self.graphs.scheme.gradient
        if not is_linear(self.graphs.value, name):
            return [(mpq(1), term) for term in terms]
        result: dict[tuple[tuple[str, float], ...], mpq] = {}
        for term in terms:
            others = tuple((n, v) for n, v in term.items() if n != name)
            result[others] = result.get(others, mpq(0)) + mpq(term[name])
        return [(times, {**dict(others), name: 1.0}) for others, times in result.items() if times]

    def freedom(self) -> tuple[Array, Array]:
        """Return the possible loss of a right kernel before the last rounding, and whether right kernels disagree. Each
        term is rounded to the kernel's type before the sum, which can have any order."""
        lost = self.graphs.bound(self.device)
        error, largest, ordinary, unspecified = (np.zeros(self.shape[0], k) for k in (float, float, float, bool))
        for part, shape in self.parts():
            roots = (self.graphs.value, lost.running(abs(self.graphs.value)), lost.underflow, self.graphs.departure)
            value, running, underflow, apart = (np.broadcast_to(v, shape) for v in program(*roots)(part, shape))
            size = np.abs(value)
            own = size * (lost.relative + self.mean) + running + underflow + apart
            error += (own * SECOND_ORDER + self._rounded(size + own)).sum(axis=-1)
            finite = np.where(np.isfinite(size), size, 0.0)  # the terms next to an infinite one may also overflow
            largest, ordinary = np.maximum(largest, finite.max(axis=-1)), ordinary + finite.sum(axis=-1)
            unspecified |= self._disputed(part, shape)
        most = max(self.scales)
        error += UNIT * self.size + np.max([self._added(scale) for scale in self.scales], axis=0)
        inside = (largest * most < self.added.max * (1 - NEAR)) & (ordinary * most < SURE)
        unspecified |= ~inside & ~np.isnan(self.total)
        known = np.isfinite(error)
        return np.where(known, error, 0.0), unspecified | (~known & np.isfinite(self.total))

    def _rounded(self, size: Array) -> Array:
        """Return the possible change by rounding terms to the type of the addition: at most the terms themselves."""
        result = np.zeros(size.shape)
        for scale in self.scales:
            result = np.maximum(result, np.minimum(half_ulp(size * scale, self.added) / scale, size))
        return result

    def _added(self, scale: float) -> Array:
        """Return the possible loss of the addition, if the terms are larger by the factor ``scale`` in it."""
        return additions.lost(self._stored(scale), self.size[:, None] * scale, self.shape[1])[:, 0] / scale

    def _stored(self, scale: float) -> Iterator[Array]:
        """Yield the terms as a kernel adds them, rounded to a type; 0 if they are not finite."""
        for part, shape in self.parts():
            terms = quantize(np.broadcast_to(self.value(part, shape), shape) * scale, self.added)
            yield np.where(np.isfinite(terms), terms, 0.0)

    def _disputed(self, part: Operands, shape: Shape) -> Array:
        """Return the rows with a term that is unknown for the SoC's kernel, or for which right orders give another
        special value."""
        result = np.zeros(shape[0], bool)
        if self.graphs.unspecified is not None:
            (unknown,) = program(self.graphs.unspecified)(part, shape)
            result |= np.broadcast_to(unknown, shape).any(axis=-1)
        (reach,) = program(self.graphs.reach)(part, shape)
        special = [~np.isfinite(v) for v in part.values() if isinstance(v, np.ndarray)]
        most = LARGEST if self.graphs.native is None else FORMATS[self.graphs.dtype].max * (1 - NEAR)
        where = np.any([*special, ~(np.asarray(reach) < most)], axis=0).any(axis=-1)
        if where.any():
            rows, wide = index_arrays(part, where), (int(where.sum()), shape[1])
            few = cast(rows, np.float32)
            answers = [simulate(order, few, np.float32) for order in self.graphs.orders]
            answers.append(np.asarray(self.value(rows, wide)).astype(np.float32))  # every order may overflow in a step
            if self.graphs.native is not None:
                answers.append(self.graphs.natively(few, {}).astype(np.float32))
            result[where] |= classes_differ([np.broadcast_to(a, wide) for a in answers]).any(axis=-1)
        return result
