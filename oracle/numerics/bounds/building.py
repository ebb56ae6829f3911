"""A node's loss, and functions that build losses as graphs. A zero bound stays ZERO, so an exact step costs nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ..expressions import ZERO, Expression, constant, maximum, where

SECOND_ORDER = 1 + 2.0**-8  # products of errors, and the rounding errors of the bound's own evaluation


@dataclass(frozen=True)
class Loss:
    """The error of a node: relative to its own size (a number and a graph), and two absolute terms."""

    relative: float
    absolute: Expression
    underflow: Expression
    scaled: Expression = ZERO

    @property
    def is_zero(self) -> bool:
        return self.relative == 0 and self.absolute is ZERO and self.underflow is ZERO and self.scaled is ZERO

    def running(self, size: Expression) -> Expression:
        """Return the part of a node's error that is not purely relative, without underflow; ``size``: the node's."""
        return plus(times(size, self.scaled), self.absolute)

    def enclosing(self, value: Expression, ends: float) -> Expression:
        """Return the half-width around a value, without underflow. ``ends``: the relative rounding of the ends."""
        running = times(constant(SECOND_ORDER), self.running(abs(value)))
        return plus(times(constant(self.relative + ends), abs(value)), running)


EXACT = Loss(0.0, ZERO, ZERO)


def plus(a: Expression, b: Expression) -> Expression:
    return b if a is ZERO else a if b is ZERO else a + b


def times(a: Expression, b: Expression) -> Expression:
    """Return a * b of two bounds; 0 * infinity is 0, because an exact value stays exact."""
    return ZERO if a is ZERO or b is ZERO else a * b


def over(a: Expression, b: Expression) -> Expression:
    return ZERO if a is ZERO else a / b


def larger(a: Expression, b: Expression) -> Expression:
    return b if a is ZERO or a is b else a if b is ZERO else maximum(a, b)


def evened(*known_losses: Loss) -> list[Loss]:
    """Return losses with the same relative number, the smallest. The excess moves to ``scaled``, a graph: each element
    has its own value of it."""
    least = min(lost.relative for lost in known_losses)
    return [
        replace(lost, relative=least, scaled=plus(constant(lost.relative - least), lost.scaled))
        if lost.relative > least
        else lost
        for lost in known_losses
    ]


def worst(known_losses: Iterable[Loss]) -> Loss:
    """Return a common upper bound of some losses."""
    every = list(known_losses)
    if any(lost.scaled is not ZERO for lost in every):
        every = evened(*every)
    first, *others = every
    for lost in others:
        first = Loss(
            max(first.relative, lost.relative),
            larger(first.absolute, lost.absolute),
            larger(first.underflow, lost.underflow),
            larger(first.scaled, lost.scaled),
        )
    return first


def together(a: Expression, b: Expression) -> Expression:
    """Return the sum of two relative errors of a product, with their own product included."""
    return plus(a, b) if a is ZERO or b is ZERO else times(constant(SECOND_ORDER), plus(a, b))


def picked(condition: Expression, a: Expression, b: Expression) -> Expression:
    return a if a is b else where(condition, a, b)
