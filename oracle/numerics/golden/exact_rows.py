"""One row of a formula with reductions, computed exactly: stages as sums of float64 numbers, or as enclosures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from gmpy2 import mpq

from ..exact import enclosures, extended, rationals
from ..exact.rationals import Irrational, Undefined, rational
from ..expressions import LENGTH, TOTAL, ZERO, Expression, symbol
from ..floats.blocks import Index
from ..floats.rounding import FLOAT64, widen
from ..programs import program, shape_of
from ..traversal import Stage, is_irrational_step, is_rational, names_of, substitute, walk
from .stages import Stages
from .sums import TERMS, expanded


class ExactRow:
    """One row's exact stages: sums of float64 numbers if possible, else enclosures."""

    def __init__(self, rows: Stages, row: Index) -> None:
        self.rows, self.graph = rows, rows.graph.of_one_element if rows.length == 1 else rows.graph
        self.columns = {
            name: v[row] if isinstance(v, np.ndarray) else np.broadcast_to(np.float64(v), rows.length)
            for name, v in rows.operands.items()
        }
        self.parts: dict[str, list[float]] = {}  # stages that are exact sums of float64 numbers
        self.ratios: dict[str, mpq] = {}  # stages that are rational numbers but no such sums
        self.enclosed: list[Stage] = []
        self._ends: dict[int, dict[str, enclosures.Interval]] = {}
        self.plain: dict[str, float] = {}  # every stage in float64, for special values
        if self.graph.stages:
            with np.errstate(all="ignore"):
                kept = rows.totals(self.graph, FLOAT64, row, rows.loaded(row))
            self.plain = {s.name: float(np.ravel(kept.known[s.name])[0]) for s in self.graph.stages}
        for stage in self.graph.stages:
            result = self._as_parts(stage)
            if result is None:
                self.enclosed.append(stage)
            else:
                self.parts[stage.name] = result
        self.sums = {symbol(name): _sum_of(name, len(parts)) for name, parts in self.parts.items()}
        self.outer = substitute(self.graph.outer, self.sums)

    def operands(self, column: int) -> dict[str, float]:
        """Return the operands of an element, and the parts of the stages."""
        result = {name: float(values[column]) for name, values in self.columns.items()}
        named = {f"{name} {k}": part for name, parts in self.parts.items() for k, part in enumerate(parts)}
        return {**result, **named, LENGTH: float(self.rows.length)}

    def _as_parts(self, stage: Stage) -> list[float] | None:
        """Return float64 numbers whose sum is the stage's value; None if there are none."""
        if not is_rational(stage.terms) or not math.isfinite(self.plain[stage.name]):
            return None
        if stage.kind == TOTAL:
            assert self.rows.beyond is not None
            return self.rows.beyond.parts(self.graph.of_row(stage))
        if stage.kind == "sum" and (result := self._added_exactly(stage)) is not None:
            return result
        if stage.terms.op == "symbol":
            return [self.plain[stage.name]]  # the largest, or the smallest, operand
        known = {name: sum(map(mpq, parts), mpq(0)) for name, parts in self.parts.items()}
        if any(name not in known and name not in self.columns and name != LENGTH for name in names_of(stage.terms)):
            return None
        try:
            terms = self._rational_terms(stage, known)
        except Undefined:
            return None
        value = sum(terms, mpq(0)) if stage.kind == "sum" else max(terms) if stage.kind == "most" else min(terms)
        result = parts_of(value)
        if result is None:
            self.ratios[stage.name] = value
        return result

    def _added_exactly(self, stage: Stage) -> list[float] | None:
        """Return the sum of terms that float64 computes without rounding; None if it rounds one."""
        if any(name not in self.columns for name in names_of(stage.terms)):
            return None
        steps: list[float] = []
        for start in range(0, self.rows.length, TERMS):
            some = {name: widen(v[start : start + TERMS]) for name, v in self.columns.items()}
            more = exact_sum(stage.terms, some, steps)
            if more is None:
                return None
            steps = more
        return steps

    def _rational_terms(self, stage: Stage, known: Mapping[str, mpq]) -> list[mpq]:
        names = [n for n in names_of(stage.terms) if n in self.columns]
        fixed = {**known, LENGTH: mpq(self.rows.length)}
        wide = [widen(self.columns[n]) for n in names]
        if not all(np.all(np.isfinite(values)) for values in wide):
            raise Undefined  # an infinity is no rational number
        columns = [[mpq(v) for v in values.tolist()] for values in wide]
        return [
            mpq(rational(stage.terms, {**fixed, **dict(zip(names, at, strict=True))}))
            for at in zip(*columns, strict=True)
        ]

    def ends(self, precision: int) -> dict[str, enclosures.Interval]:
        """Return enclosures of the other stages."""
        if precision not in self._ends:
            result: dict[str, enclosures.Interval] = {}
            self._ends[precision] = result
            for stage in self.enclosed:
                if stage.kind == TOTAL:
                    assert self.rows.beyond is not None
                    result[stage.name] = self.rows.beyond.enclosed(self.graph.of_row(stage), precision)
                    continue
                terms = substitute(stage.terms, self.sums)
                each = [
                    enclosures.enclose(terms, self.operands(k), precision, lambda _: result)
                    for k in range(self.rows.length)
                ]
                result[stage.name] = enclosures.reduced(stage.kind, each, precision)
        return self._ends[precision]

    def value(self, column: int) -> Any:
        """Return the exact value of an element, or enclosures of it."""
        operands = self.operands(column)
        special = {n: v for n, v in self.plain.items() if not math.isfinite(v) and n not in self.parts}
        plainly = all(map(math.isfinite, operands.values())) and not special
        graph: Expression | float = self.outer
        try:
            if not plainly:
                graph = extended.finite_part(self.outer, {**operands, **special}, self.ends)
            if isinstance(graph, float):
                return self._plain(operands)
            left = [s for s in self.enclosed if s.name in names_of(graph)]
            answer = self._by_roots(graph, operands) if left or not is_rational(graph) else None
            if answer is None:
                answer = enclosures.exact(graph, operands, self.ends if left else None)
        except Undefined:
            return self._plain(operands)
        if isinstance(answer, Iterator) or answer != 0:
            return answer
        stages = {s.name: self.plain[s.name] for s in self.enclosed}
        return extended.zero(self.outer, {**operands, **stages})

    def _by_roots(self, graph: Expression, operands: Mapping[str, float]) -> mpq | None:
        """Return the value if every root is rational, as for some rows of two values. Such a value can lie halfway
        between two numbers, which no enclosure can show. Return None if a root is irrational."""
        if any(is_irrational_step(node) and node.op != "sqrt" for node in walk(graph)):
            return None
        exact = {name: mpq(v) for name, v in operands.items() if math.isfinite(v)} | self.ratios
        if not exact.keys() >= set(names_of(graph)):
            return None
        try:
            return mpq(rational(graph, exact))
        except Irrational:
            return None

    def _plain(self, operands: Mapping[str, float]) -> float:
        numbers = {n: np.float64(v) for n, v in {**operands, **self.plain}.items()}
        with np.errstate(all="ignore"):
            (value,) = program(self.graph.outer)(numbers, (1,))
        return float(value)


def parts_of(value: mpq) -> list[float] | None:
    """Return float64 numbers with this sum; None if there are none."""
    if value.denominator & (value.denominator - 1):
        return None
    parts: list[float] = []
    while value:
        parts.append(float(value))
        value -= mpq(parts[-1])
    return parts


def exact_sum(terms: Expression, operands: Mapping[str, Any], steps: list[float]) -> list[float] | None:
    """Return float64 numbers with the sum of some steps and of all terms; None if float64 rounds a term."""
    values = rationals.evaluate(terms, operands)
    if np.any(values.inexact) or np.any(values.den != 1.0):
        return None
    return expanded([*steps, *np.broadcast_to(values.num, shape_of(operands)).ravel().tolist()])


def _sum_of(name: str, parts: int) -> Expression:
    return reduce(add, (symbol(f"{name} {k}") for k in range(parts))) if parts else ZERO
