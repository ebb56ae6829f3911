"""Static facts of a formula with reductions, known before any element: its stages, and the loss of each step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from ..bounds.building import Loss
from ..bounds.exact_steps import Facts
from ..bounds.losses import losses
from ..expressions import (
    LENGTH,
    ONE,
    ROUNDINGS,
    TOTAL,
    ZERO,
    Expression,
    Function,
    operation,
    symbol,
    symbols_of,
    trace,
)
from ..floats.rounding import NARROW, Arithmetic
from ..traversal import Stage, is_rational, rebuilt, staged, stored_in, substitute, walk
from .formula import Formula, condition_of, constants_of, is_zero_except_at_place, named

Types = frozenset[tuple[str, str]]  # the 16-bit dtypes of operands, by symbol
ANY = 1 << 30  # significant bits of a stage's value: no limit


class Reducing:
    """The graphs of a formula with reductions, and of the orders in which public kernels compute it. ``constants``:
    operands that are constants."""

    def __init__(self, scheme: Formula, constants: frozenset[tuple[str, int]] = frozenset()) -> None:
        self.symbols, self._scheme, self._known = scheme.symbols, scheme, dict(constants)
        self.value = Graph(self._traced(scheme.formula))
        self.forms = {name: Graph(self._traced(form.formula)) for name, form in scheme.written.items()}
        self._answers = {name: Graph(self._traced(f.answers or f.formula)) for name, f in scheme.written.items()}

    def _traced(self, formula: Function) -> Expression:
        return trace(formula, {k: v for k, v in self._known.items() if k in symbols_of(formula)})

    def form(self, kernel: str, types: Types = frozenset()) -> Graph:
        """Return the order of a SoC's kernel. ``types``: the dtypes of the 16-bit operands."""
        result = named(self._answers, kernel)
        return (next(iter(self._answers.values())) if result is None else result).stored_in(types)

    @lru_cache(maxsize=1024)  # noqa: B019  graphs live as long as their page
    def orders(self, soc: str, dtype: str, types: Types = frozenset()) -> tuple[Order, ...]:
        """Return the orders that are right on a SoC with a kernel that stores a dtype. ``types``: as in
        :meth:`form`."""
        own = self._scheme.own(soc)
        result = [
            Order(
                self.forms[name].stored_in(types),
                NARROW[dtype] if form is own and dtype in form.native else None,
                form.departs,
            )
            for name, form in self._scheme.counted(soc).items()
        ]
        return tuple(dict.fromkeys(result))

    def unspecified(self, soc: str, dtype: str) -> Expression | None:
        """Return the condition of operands under which the answer of a SoC's kernel is unknown."""
        condition = condition_of(self._scheme, soc, dtype)
        return None if condition is None else self._traced(condition)


class Order(NamedTuple):
    """A right order: its graph, the arithmetic of another type if it does not compute in float32, and whether its
    result differs from the formula."""

    graph: Graph
    narrow: Arithmetic | None
    departs: bool


def reduces(computes: object) -> TypeGuard[Formula]:
    """Return whether a page's formula reduces along axes."""
    return isinstance(computes, Formula) and bool(computes.over) and not is_zero_except_at_place(computes)


reducing = lru_cache(maxsize=1024)(Reducing)


@dataclass(frozen=True)
class Level:
    """An elementwise graph of a formula with reductions: the terms of a stage, or the graph after all stages."""

    graph: Expression
    loss: Loss

    @cached_property
    def running(self) -> Expression:
        """Return the part of the loss that is not purely relative, without underflow."""
        return self.loss.running(abs(self.graph))


class Graph:
    """The stages of a formula's graph, and the remaining graph."""

    def __init__(self, root: Expression) -> None:
        self.root = root
        self.stages, self.outer = staged(root)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Graph) and (self.stages, self.outer) == (other.stages, other.outer)

    def __hash__(self) -> int:
        return hash((self.stages, id(self.outer)))

    @cached_property
    def facts(self) -> Facts:
        """The signs of stages: a sum or an extreme has the sign of its terms. The stage values can have any digits."""
        positive = {LENGTH}
        for stage in self.stages:
            if Facts(positive).sign(stage.terms) > 0:
                positive.add(stage.name)
        return Facts(positive, {stage.name: ANY for stage in self.stages})

    @cached_property
    def sums_rows(self) -> bool:
        """Return whether a stage sums over all rows."""
        return any(stage.kind == TOTAL for stage in self.stages)

    @cached_property
    def of_one_element(self) -> Graph:
        """The graph of a row of one element: each stage is its only term."""
        if self.sums_rows:
            return self
        terms: dict[Expression, Expression] = {}
        for stage in self.stages:
            terms[symbol(stage.name)] = substitute(stage.terms, terms)
        return Graph(substitute(self.outer, terms))

    @cached_property
    def is_rational(self) -> bool:
        """Return whether every stage, and the remaining graph, is a rational number."""
        return all(map(is_rational, (*(stage.terms for stage in self.stages), self.outer)))

    @cached_property
    def may_be_exact(self) -> bool:
        """Return whether every step may be exact: it is rational, and no stage sums over all rows."""
        return self.is_rational and not self.sums_rows

    @cached_property
    def may_overflow(self) -> bool:
        """Return whether a step of an element can overflow float64, with NaN from operands without NaN: inf * 0."""
        return any(node.op in ("exp", "expm1") for node in walk(self.outer))

    @cached_property
    def of_one(self) -> tuple[Expression, Expression] | None:
        """The formula of a row of one element, in which every stage is its one term, and a rational formula with the
        same value for finite operands; None if there is none."""
        if self.sums_rows:
            return None
        whole: dict[Expression, Expression] = {}
        for stage in self.stages:
            whole[symbol(stage.name)] = substitute(stage.terms, whole)
        result = substitute(self.outer, whole)
        finite = rebuilt(result, _of_finite)
        return (result, finite) if is_rational(finite) else None

    def before(self, stage: Stage) -> tuple[Stage, ...]:
        """Return the stages of rows that precede a stage."""
        known = self.stages[: self.stages.index(stage)]
        return tuple(each for each in known if each.kind != TOTAL)

    @lru_cache(maxsize=1024)  # noqa: B019  graphs live as long as their page
    def of_row(self, stage: Stage) -> Graph:
        """Return the graph of one row's part of a sum over all rows."""
        whole: dict[Expression, Expression] = {}
        for each in self.before(stage):
            whole[symbol(each.name)] = operation(each.kind, substitute(each.terms, whole))
        return Graph(substitute(stage.terms, whole))

    @lru_cache(maxsize=1024)  # noqa: B019  graphs live as long as their page
    def levels(self, arithmetic: Arithmetic) -> tuple[tuple[tuple[Stage, Level], ...], Level]:
        """Return every stage with the loss of its terms, and the same for the outer graph."""
        graphs = [stage.terms for stage in self.stages] + [self.outer]
        inexact = {stage.name: stage.error for stage in self.stages}
        lost = losses(graphs, arithmetic, self.facts, frozenset([LENGTH]), inexact=inexact)
        made = [Level(graph, loss) for graph, loss in zip(graphs, lost, strict=True)]
        return tuple(zip(self.stages, made[:-1], strict=True)), made[-1]

    def stored_in(self, types: Types) -> Graph:
        """Return the graph with the roundings that its ``stored`` steps are for operands of some types."""
        root = stored_in(self.root, types)
        return self if root is self.root else _graph(root)


_graph = lru_cache(maxsize=1024)(Graph)


def types_of(operands: Mapping[str, Any]) -> Types:
    """Return the 16-bit dtypes of operands, by symbol."""
    kinds = {name: v.dtype.name for name, v in operands.items() if isinstance(v, np.ndarray)}
    return frozenset((name, kind) for name, kind in kinds.items() if kind in NARROW)


def coarsest(scheme: Formula, operands: Mapping[str, Any], soc: str) -> str:
    """Return the 16-bit type to which a kernel of a SoC rounds between steps; empty if there is no such type."""
    result = reducing(scheme, constants_of(scheme, operands)).orders(soc, "", types_of(operands))
    return next((node.op for order in result for node in walk(order.graph.root) if node.op in ROUNDINGS), "")


def _of_finite(node: Expression, args: tuple[Expression, ...]) -> Expression | None:
    """Return the value of a step of finite operands if it is a whole number: a - a, e^0, log 1."""
    if node.op == "-" and args[0] is args[1]:
        return ZERO
    return {("exp", ZERO): ONE, ("log", ONE): ZERO}.get((node.op, args[0])) if args else None
