"""What follows from a formula with reductions before any element is looked at: its stages, and what each step loses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TypeGuard

from ..bounds.losses import Loss, losses
from ..bounds.signs_and_digits import Facts
from ..floats.arithmetic import Arithmetic
from ..formula.expressions import LENGTH, ZERO, Expression, symbol, trace
from ..formula.stages import Stage, staged
from ..formula.traversal import substitute
from .kernel_orders import Form, Formula, named

ANY = 1 << 30  # significant bits of a stage's value: as many as it takes


class Reducing:
    """The graphs of a formula with reductions, and of the orders in which public kernels compute it."""

    def __init__(self, scheme: Formula) -> None:
        self.symbols = scheme.symbols
        self.value = Graph(trace(scheme.formula))
        orders = scheme.orders or {"": scheme.formula}
        self.forms = {
            name: Graph(trace(order.formula if isinstance(order, Form) else order)) for name, order in orders.items()
        }

    def form(self, kernel: str) -> Graph:
        """The order of a SoC's kernel."""
        found = named(self.forms, kernel)
        return next(iter(self.forms.values())) if found is None else found


def reduces(computes: object) -> TypeGuard[Formula]:
    """Whether a page's formula reduces along axes."""
    return isinstance(computes, Formula) and bool(computes.over)


@lru_cache(maxsize=1024)
def reducing(scheme: Formula) -> Reducing:
    """Return the graphs of a formula with reductions."""
    return Reducing(scheme)


@dataclass(frozen=True)
class Level:
    """An elementwise graph of a formula with reductions: the terms of a stage, or what is left after all stages."""

    graph: Expression
    loss: Loss
    running: Expression = field(default=ZERO)

    @classmethod
    def of(cls, graph: Expression, loss: Loss) -> Level:
        return cls(graph, loss, loss.running(abs(graph)))


class Graph:
    """The stages of a formula's graph and the graph of what is left."""

    def __init__(self, root: Expression) -> None:
        self.stages, self.outer = staged(root)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Graph) and (self.stages, self.outer) == (other.stages, other.outer)

    def __hash__(self) -> int:
        return hash((self.stages, id(self.outer)))

    @cached_property
    def facts(self) -> Facts:
        """Signs of stages: of a sum, and of an extreme, that of what is reduced. Their values have any digits."""
        positive = {LENGTH}
        for stage in self.stages:
            if Facts(positive).sign(stage.terms) > 0:
                positive.add(stage.name)
        return Facts(positive, {stage.name: ANY for stage in self.stages})

    @lru_cache(maxsize=16)  # noqa: B019  graphs live as long as their page
    def levels(self, arithmetic: Arithmetic) -> tuple[tuple[tuple[Stage, Level], ...], Level]:
        """Return every stage with what computing its terms loses, and the same of the outer graph."""
        graphs = [stage.terms for stage in self.stages] + [self.outer]
        inexact = {stage.name: stage.error for stage in self.stages}
        lost = losses(graphs, arithmetic, self.facts, frozenset([LENGTH]), inexact=inexact)
        made = [Level.of(graph, loss) for graph, loss in zip(graphs, lost, strict=True)]
        return tuple(zip(self.stages, made[:-1], strict=True)), made[-1]

    def written_with(self, totals: Mapping[str, Expression]) -> Expression:
        """Return the outer graph with stages replaced."""

        return substitute(self.outer, {symbol(name): value for name, value in totals.items()})
