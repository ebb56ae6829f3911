"""A formula with reductions as stages: each reduction is cut out, and is an operand of what comes after it.

``e / sum_over(e)`` with ``e = exp(x - max_over(x))`` has two stages: the largest x, then the sum of exp(x - stage 0).
The elementwise graph exp(x - stage 0) / stage 1 is left. Every evaluation of elementwise graphs serves all three; an
operand that is a stage has an error.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from .expressions import REDUCING, Expression, symbol
from .traversal import Operands, rebuilt


class Stage(NamedTuple):
    """A reduction: its kind (of ``REDUCING``), the graph of what is reduced, and its symbol's name in later graphs."""

    kind: str
    terms: Expression
    name: str

    @property
    def error(self) -> str:
        """The name of the symbol that stands for how far the stage's value may be off."""
        return f"{self.name} error"


@lru_cache(maxsize=1024)
def staged(root: Expression) -> tuple[tuple[Stage, ...], Expression]:
    """Return the stages of a graph in their order, and the graph of what is left. Equal reductions are one stage."""
    stages: dict[tuple[str, int], Stage] = {}

    def cut(node: Expression, args: Operands) -> Expression | None:
        if node.op not in REDUCING:
            return None
        stage = stages.setdefault((node.op, id(args[0])), Stage(node.op, args[0], f"stage {len(stages)}"))
        return symbol(stage.name)

    left = rebuilt(root, cut)
    return tuple(stages.values()), left
