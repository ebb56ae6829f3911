"""Elementwise operators: a formula evaluated on whole tensors, rounded, proved, and bounded.

Everything follows from the formula's graph: the float64 evaluation and its error bound, the second look on fractions,
the exact value, and from the graphs of the kernels' own orders the strict bound, the elements on which right kernels
disagree, and what a device of a SoC would answer. By NumPy blocks, or by the compiled engine where no bound is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from ..model.call import Array
from ..model.dtypes import FORMATS, FloatFormat
from . import double_double, enclosures, fractions64
from .blocks import Index, block_size, blocks, region_size, run_blocks
from .engine import compiled_engine
from .envelopes import cell_of, is_linear, table
from .errorbounds import FLOAT32, FLOAT32_FLUSHING, FLOAT64, SECOND_ORDER, Arithmetic, Loss, larger, losses
from .expressions import (
    ONE,
    ZERO,
    Expression,
    Facts,
    Formula,
    is_rational,
    maximum,
    substitute,
    symbol,
    symbols_of,
    trace,
    walk,
)
from .expressions import operands as names_of
from .programs import Values, loaded, program, release, simulate
from .ranges import Ranges, largest, ranges_of, stays_inside
from .rounding import widen
from .sink import LARGEST, UNIT, Region, Sink, classes_differ

Operands = Mapping[str, Values]  # arrays of the output's shape, or numbers, by symbol
NEAR = 2.0**-10  # this close to float32's end one right kernel overflows and another does not
COUNT = "n"  # the symbol of the mean's divisor


@dataclass(frozen=True)
class Form:
    """An order in which a right kernel computes.

    ``formula``: of the same symbols as the operator's. One that has no operand ``n`` is multiplied by the mean's factor
    at its end, or, with ``mean="first"``, gets the gradient already multiplied.
    """

    formula: Formula
    mean: str = "last"


@dataclass(frozen=True)
class Elementwise:
    """A formula and the orders in which public kernels compute it.

    ``forms``: by the name of the SoCs' kernel (``950``, ``tbe_a2``, ``tbe_910``, or ``tbe`` for the last two); any
    other name is an order that no public kernel has and a right one may. Without forms, the formula's own order.
    ``gradient``: the symbol that a mean's factor is multiplied to first. A formula without ``n`` is divided by it.
    """

    formula: Formula
    forms: Mapping[str, Form | Formula] | None = None
    gradient: str = "g"

    @cached_property
    def symbols(self) -> tuple[str, ...]:
        """The operands that the formula names, the mean's divisor not among them."""
        return tuple(name for name in symbols_of(self.formula) if name != COUNT)

    def graphs(self, known: frozenset[tuple[str, int]], mean: bool) -> Graphs:
        """Return the graphs of calls in which some operands are constants, with or without a mean."""
        return _graphs(self, known, mean)

    def __hash__(self) -> int:
        return id(self)


class Graphs:
    """An operator's graphs for one kind of call."""

    def __init__(self, scheme: Elementwise, constants: frozenset[tuple[str, int]], mean: bool) -> None:
        self.scheme = scheme
        known: dict[str, Any] = dict(constants)
        self.count = symbol(COUNT) if mean else ONE
        self.facts = Facts([COUNT])
        self._known = known
        self.value = self._graph(scheme.formula)
        written = scheme.forms or {"": Form(scheme.formula)}
        forms = {name: f if isinstance(f, Form) else Form(f) for name, f in written.items()}
        self.forms = {name: self._form(form, form.mean) for name, form in forms.items()}
        orders = list(self.forms.values())
        if mean:
            orders += [self._form(form, other) for form in forms.values() for other in ("last", "first", "divided")]
        self.orders = tuple(dict.fromkeys(orders))

    def _graph(self, formula: Formula) -> Expression:
        names = symbols_of(formula)
        result = trace(formula, {k: v for k, v in {**self._known, COUNT: self.count}.items() if k in names})
        return result if COUNT in names else result / self.count

    def _form(self, form: Form, mean: str) -> Expression:
        names = symbols_of(form.formula)
        given = {k: v for k, v in {**self._known, COUNT: self.count}.items() if k in names}
        if COUNT in names:
            return trace(form.formula, given)
        factor = ONE / self.count
        if mean == "first":
            given[self.scheme.gradient] = symbol(self.scheme.gradient) * factor
        result = trace(form.formula, given)
        return result / self.count if mean == "divided" else result if mean == "first" else result * factor

    def form(self, kernel: str) -> Expression:
        """Return the form of a SoC's kernel."""
        for name in (kernel, kernel.partition("_")[0], ""):
            if name in self.forms:
                return self.forms[name]
        return next(iter(self.forms.values()))

    @cached_property
    def evaluation(self) -> tuple[float, Expression]:
        """What the float64 evaluation may lose: relative, and absolute."""
        (lost,) = losses([self.value], FLOAT64, self.facts)
        return lost.relative, lost.running(abs(self.value))

    @lru_cache(maxsize=8)  # noqa: B019  graphs live as long as the process
    def bound(self, arithmetic: Arithmetic) -> Loss:
        """What a right kernel may lose before its last rounding: the worst of all orders."""
        found = losses(list(self.orders), arithmetic, self.facts, frozenset([COUNT]))
        relative = max(lost.relative for lost in found)
        absolute = underflow = scaled = ZERO
        for lost in found:
            absolute, underflow = larger(absolute, lost.absolute), larger(underflow, lost.underflow)
            scaled = larger(scaled, lost.scaled)
        return Loss(relative, absolute, underflow, scaled)

    @lru_cache(maxsize=8)  # noqa: B019  graphs live as long as the process
    def smooth(self, arithmetic: Arithmetic) -> tuple[str, str, Expression, Expression] | None:
        """Where every order is the gradient times a function of one other operand: their names, and per unit of
        gradient what a right kernel may lose relative to the value and absolutely. None where it is not so, where
        nothing runs, or where rounding may decide a comparison (a table would allow that near it too)."""
        lost = self.bound(arithmetic)
        gradient = self.scheme.gradient
        names = set(names_of(*self.orders))
        if lost.absolute is ZERO is lost.scaled or len(names) != 2:
            return None
        if not all(is_linear(order, gradient) for order in self.orders):
            return None
        known = {id(node) for node in walk(*self.orders)}
        if any(n.is_condition and id(n) not in known for n in walk(lost.absolute, lost.scaled)):
            return None
        (other,) = names - {gradient}
        unit = {symbol(gradient): ONE}
        return gradient, other, substitute(lost.scaled, unit), substitute(lost.absolute, unit)

    @cached_property
    def reach(self) -> Expression:
        """The largest magnitude on the way of any order."""
        steps = [n for n in walk(*self.orders) if not (n.is_condition or n.is_constant or n.op == "where")]
        found = ZERO
        for step in steps:
            if any(name != COUNT for name in names_of(step)):
                found = abs(step) if found is ZERO else maximum(found, abs(step))
        return found

    @cached_property
    def has_second_look(self) -> bool:
        return is_rational(self.value) or double_double.supports(self.value)

    @cached_property
    def is_rational(self) -> bool:
        return all(is_rational(order) for order in self.orders)


@lru_cache(maxsize=1024)
def _graphs(scheme: Elementwise, known: frozenset[tuple[str, int]], mean: bool) -> Graphs:
    return Graphs(scheme, known, mean)


def graphs_of(scheme: Elementwise, operands: Operands) -> Graphs:
    """Return the graphs for the operands that are given: absent ones are 1, and integers (flags) constants too."""
    given = {name: operands.get(name, 1) for name in scheme.symbols}
    known = frozenset((name, value) for name, value in given.items() if isinstance(value, int))
    return scheme.graphs(known, COUNT in operands)


# ---- the golden ------------------------------------------------------------------------------------------------------


def evaluate(scheme: Elementwise, operands: Operands, sink: Sink, *, rank: int = 0, flushes: bool = False) -> None:
    """Fill the sink. ``rank``: of the output, which a mean's divisor may be made from dim by dim. ``flushes``: the
    device's exp and division answer 0 for subnormal results."""
    graphs = graphs_of(scheme, operands)
    engine = compiled_engine(sink)
    device = FLOAT32_FLUSHING if flushes else FLOAT32
    work = _Work(graphs, operands, sink.kernel, device, (4 + 2 * rank) * UNIT if COUNT in operands else 0.0)

    def fill(index: Index) -> None:
        part = work.at(index)
        region = sink.region(index)
        with np.errstate(all="ignore"):
            if engine is None:
                for block in blocks(region.target.shape, block_size()):
                    part.put(block, region)
            else:
                part.compiled(engine, region)
            region.finish(part.exact, part.refine if graphs.has_second_look else None)

    run_blocks(blocks(sink.out.shape, region_size()), fill)


@dataclass(frozen=True)
class _Work:
    """The operands of a region and what is known of them."""

    graphs: Graphs
    operands: Operands
    dtype: np.dtype[Any]  # what the kernel stores
    device: Arithmetic
    mean: float  # what the mean's divisor may lose, relative

    def at(self, index: Any) -> _Work:
        return replace(self, operands=pick(self.operands, index))

    def put(self, block: Index, region: Region) -> None:
        """Evaluate, round and prove a block; with its bound if the sink is judged."""
        shape = region.target[block].shape
        wide = loaded(pick(self.operands, block), shape)
        part = replace(self, operands=wide)
        relative, absolute = self.graphs.evaluation
        value, error = program(self.graphs.value, absolute)(wide, shape)
        assert isinstance(value, np.ndarray)
        if absolute is ZERO:
            region.put_relative(block, value, relative)
        else:
            slack = np.asarray(np.abs(value) * relative + error * SECOND_ORDER)
            region.put_between(block, value - slack, value + slack, lambda where: value.reshape(-1)[where])
            if region.sink.judged:
                region.sink.value[block] = value
        part.leave_undefined(value, region.start(region.target[block]), region)
        if region.sink.judged:
            region.sink.put_bound(block, value, *part.freedom(value, region.sink))
        release(value, error, *wide.values())

    def leave_undefined(self, value: Array, start: int, region: Region) -> None:
        """A value that overflows float64 from finite operands is settled exactly. ``start``: of the block."""
        if np.isfinite(value.max()) and np.isfinite(value.min()):
            return
        where = np.flatnonzero(~np.isfinite(value))
        for operand in self.operands.values():
            if isinstance(operand, np.ndarray):
                where = where[np.isfinite(operand.reshape(-1)[where])]
        if where.size:
            nothing, end = np.zeros(where.size), np.full(where.size, np.inf)
            region.leave(where + start, nothing, -end, end)

    def exact(self, index: tuple[int, ...]) -> Any:
        """The exact value of an element; where the formula has none, what IEEE arithmetic gives."""
        given = {n: float(v[index]) if isinstance(v, np.ndarray) else float(v) for n, v in self.operands.items()}
        try:
            answer = enclosures.exact(self.graphs.value, given)
        except enclosures.Undefined:
            return self._plain(given)
        if not isinstance(answer, Iterator) and answer == 0:
            return self._plain(given) if self._plain(given) == 0 else 0.0
        return answer

    def _plain(self, given: Mapping[str, float]) -> float:
        (value,) = program(self.graphs.value)({n: np.float64(v) for n, v in given.items()}, (1,))
        return float(value)

    def refine(self, where: tuple[Array, ...]) -> tuple[Array, Array, Array]:
        """The formula for some elements, its ties told from near ties: on fractions, or in pairs of float64."""
        few = {n: widen(v) if isinstance(v, np.ndarray) else v for n, v in pick(self.operands, where).items()}
        relative, absolute = self.graphs.evaluation
        value, error = program(self.graphs.value, absolute)(few, where[0].shape)
        slack = np.abs(value) * relative + error * SECOND_ORDER
        if not is_rational(self.graphs.value):
            return double_double.refined(self.graphs.value, few, self.dtype, slack)
        exact = fractions64.evaluate(self.graphs.value, few)
        return fractions64.refined(np.asarray(value), exact, self.dtype, slack)

    # ---- the strict bound ----

    def freedom(self, value: Array, sink: Sink) -> tuple[Array, Array, Array | None]:
        """Return the bound, the elements on which right kernels disagree, and those on which they cannot."""
        ranges = ranges_of(self.operands)
        bound = self._bound(value, ranges)
        unspecified = np.zeros(value.shape, bool)
        if not stays_inside(self.graphs.orders, ranges):
            self._overflows(value, bound, unspecified)
        return bound, unspecified, self._ties(value, sink)

    def _bound(self, value: Array, ranges: Ranges | None) -> Array:
        """What a right kernel may lose, per element. What underflows is looked at as a whole where it is far below
        every element's relative error."""
        lost = self.graphs.bound(self.device)
        bound = np.abs(value)
        smooth = self.graphs.smooth(self.device) if self.mean == 0 else None
        running: tuple[Expression, ...] = ()
        if smooth is not None:  # |gradient| times a function of the other operand
            gradient, other, scaled, absolute = smooth
            cells = cell_of(np.asarray(self.operands[other]))
            bound *= (table(scaled)[cells] + lost.relative) * SECOND_ORDER
            bound += table(absolute)[cells] * np.abs(self.operands[gradient])
        else:
            bound *= (lost.relative + self.mean) * SECOND_ORDER
            running = (lost.running(abs(self.graphs.value)),)
        for more in (*running, lost.underflow):
            if more is not ZERO and not (more is lost.underflow and self._vanishes(more, ranges, bound)):
                (found,) = program(more)(self.operands, value.shape)
                bound += found
                release(found)
        return bound

    def _vanishes(self, underflow: Expression, ranges: Ranges | None, bound: Array) -> bool:
        """Add what underflows to a bound as one number where it is far below every element's; else say no."""
        most = np.inf if ranges is None else largest(underflow, ranges)
        if not most * 2.0**30 <= bound.min():
            return False
        bound += most
        return True

    def _overflows(self, value: Array, bound: Array, unspecified: Array) -> None:
        """Where a step may overflow, or an operand is not finite, every order is run."""
        (reach,) = program(self.graphs.reach)(self.operands, value.shape)
        odd = ~(np.asarray(reach) < LARGEST * (1 - NEAR))
        release(reach)
        if not odd.any():
            return
        few = {n: v[odd].astype(np.float32) if isinstance(v, np.ndarray) else v for n, v in self.operands.items()}
        orders = self.graphs.orders
        answers = [simulate(order, few, np.float32, largest=end) for order in orders for end in _ENDS]
        value = value[odd]
        answers = [np.broadcast_to(answer, value.shape) for answer in answers]
        apart = np.max([np.abs(answer.astype(np.float64) - value) for answer in answers], axis=0)
        own = np.where(np.isfinite(bound[odd]), bound[odd], 0)
        bound[odd] = np.where(np.isfinite(apart), apart + own, own)
        unspecified[odd] = classes_differ([*answers, value.astype(np.float32)])

    def _ties(self, value: Array, sink: Sink) -> Array | None:
        """Where every order is exact in float32 and the value lies halfway between two numbers of a 16-bit type."""
        fmt = sink.formats[0]
        if not self.graphs.is_rational or fmt.mant >= FORMATS["float32"].mant:
            return None
        ties = np.flatnonzero(is_halfway(value, fmt))
        if not ties.size:
            return None
        flat = {n: v.reshape(-1)[ties] if isinstance(v, np.ndarray) else v for n, v in self.operands.items()}
        single = {n: v.astype(np.float32) if isinstance(v, np.ndarray) else v for n, v in flat.items()}
        likely = simulate(self.graphs.orders[0], single, np.float32) == value.reshape(-1)[ties]
        ties, flat = ties[likely], {n: v[likely] if isinstance(v, np.ndarray) else v for n, v in flat.items()}
        exact = np.zeros(value.size, bool)
        exact[ties] = fractions64.is_exact_in(self.graphs.orders, flat, FORMATS["float32"])
        return np.asarray(exact.reshape(value.shape))

    # ---- the compiled engine ----

    def compiled(self, engine: Any, region: Region) -> None:
        """One compiled pass; what it leaves in doubt is evaluated by NumPy."""
        where = engine.elementwise(self.graphs, self.operands, region.target)
        if not where.size:
            return
        few = pick(self.operands, np.unravel_index(where, region.target.shape))
        relative, absolute = self.graphs.evaluation
        value, error = program(self.graphs.value, absolute)(few, where.shape)
        slack = np.asarray(np.abs(value) * relative + error * SECOND_ORDER)
        known = np.ones(where.shape, bool)  # elements whose operands are finite
        for operand in few.values():
            known &= np.isfinite(operand)
        finite = np.isfinite(value) | ~known
        ends = (np.where(finite, value + s, s * np.inf) for s in (-slack, slack))
        region.leave(where, np.where(finite, value, 0.0), *ends)


_ENDS = (np.inf, LARGEST * (1 - NEAR))


def is_halfway(value: Array, fmt: FloatFormat) -> Array:
    """Whether float64 values lie exactly halfway between two numbers of a narrower format."""
    dropped = 52 - fmt.mant
    bits = np.ascontiguousarray(value).view(np.int64)
    found = (bits & np.int64((1 << dropped) - 1)) == np.int64(1 << (dropped - 1))
    small = np.flatnonzero(np.abs(value) < fmt.tiny)
    if small.size:  # subnormals are multiples of the quantum
        steps = value.reshape(-1)[small] / (fmt.quantum / 2)
        found.reshape(-1)[small] = np.abs(steps) % 2 == 1
    return np.asarray(found)


def pick(operands: Operands, index: Any) -> Operands:
    """Index the operands that are arrays."""
    return {n: o[index] if isinstance(o, np.ndarray) else o for n, o in operands.items()}


# ---- what a device answers -------------------------------------------------------------------------------------------


def kernel(scheme: Elementwise, operands: Operands, form: str, compute: Any) -> Array:
    """Return what a SoC's public kernel computes, every intermediate in a type."""
    graphs = graphs_of(scheme, operands)
    ready = {n: v.astype(compute) if isinstance(v, np.ndarray) else v for n, v in operands.items()}
    return simulate(graphs.form(form), ready, compute)
