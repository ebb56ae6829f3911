"""What follows from a formula with reductions before any element is looked at: its stages, and what each step loses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from ..bounds.losses import Loss, losses
from ..bounds.signs_and_digits import Facts
from ..floats.arithmetic import Arithmetic
from ..formula.expressions import LENGTH, ZERO, Expression, Formula, symbol, symbols_of, trace
from ..formula.stages import Stage, staged
from ..formula.traversal import substitute
from .kernel_orders import named

ANY = 1 << 30  # significant bits of a stage's value: as many as it takes


@dataclass(frozen=True)
class Reducing:
    """A formula that reduces along an axis, and the orders in which public kernels compute it.

    ``over``: the attribute that names the axis. ``orders``: by the name of the SoCs' kernel as for an elementwise
    formula; without them the formula's own order.
    """

    formula: Formula
    orders: Mapping[str, Formula] | None = None
    over: str = field(kw_only=True)

    @cached_property
    def symbols(self) -> tuple[str, ...]:
        """The operands that the formula names."""
        return tuple(name for name in symbols_of(self.formula) if name != LENGTH)

    @cached_property
    def value(self) -> Graph:
        """The formula."""
        return Graph(trace(self.formula))

    @cached_property
    def forms(self) -> dict[str, Graph]:
        """The orders, by the name of their kernel."""
        return {name: Graph(trace(order)) for name, order in (self.orders or {"": self.formula}).items()}

    def form(self, kernel: str) -> Graph:
        """The order of a SoC's kernel."""
        found = named(self.forms, kernel)
        return next(iter(self.forms.values())) if found is None else found

    def __hash__(self) -> int:
        return id(self)


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
