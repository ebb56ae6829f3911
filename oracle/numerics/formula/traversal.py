"""Walking formulas' graphs: every node once, which operands and which kinds of steps there are, and other graphs made
by replacing nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

from .expressions import IRRATIONAL, PI, ROUNDINGS, Expression, checked_operation

Operands = tuple[Expression, ...]


@lru_cache(maxsize=4096)
def walk(*roots: Expression) -> tuple[Expression, ...]:
    """Return every node once, operands before what uses them."""
    return tuple(_walked(roots))


def _walked(roots: tuple[Expression, ...]) -> Iterator[Expression]:
    seen: set[int] = set()
    stack: list[tuple[Expression, bool]] = [(root, False) for root in reversed(roots)]
    while stack:
        node, ready = stack.pop()
        if id(node) in seen:
            continue
        if ready:
            seen.add(id(node))
            yield node
            continue
        stack.append((node, True))
        stack.extend((arg, False) for arg in reversed(node.args))


def names_of(*roots: Expression) -> tuple[str, ...]:
    """Return the names of the symbols that graphs depend on."""
    return tuple(str(n.value) for n in walk(*roots) if n.op == "symbol")


@lru_cache(maxsize=4096)
def is_rational(root: Expression) -> bool:
    """Whether a graph is arithmetic, comparisons and choices alone, so that its value is a rational number."""
    return not any(map(is_irrational_step, walk(root)))


def has_rational_way(root: Expression) -> bool:
    """Whether a graph's conditions are rational, and lead on some way to a value that is: the other branches may hold
    functions."""
    made: dict[int, bool] = {}
    for node in walk(root):
        args = [made[id(a)] for a in node.args]
        ways = args[0] and (args[1] or args[2]) if node.op == "where" else all(args)
        made[id(node)] = ways and not is_irrational_step(node)
    return made[id(root)]


def is_irrational_step(node: Expression) -> bool:
    """Whether a node is pi, a function whose value is irrational at nearly every rational number, or a rounding."""
    return node.op in IRRATIONAL or node is PI or node.op in ROUNDINGS


def substitute(root: Expression, replaced: Mapping[Expression, Expression]) -> Expression:
    """Return a graph with some nodes replaced by others."""
    return rebuilt(root, lambda node, args: replaced.get(node))


def rebuilt(root: Expression, change: Callable[[Expression, Operands], Expression | None]) -> Expression:
    """Return a graph made anew, from its operands up. ``change`` returns the node that takes the place of a node with
    its new operands; None where it stays the same operation."""
    made: dict[int, Expression] = {}
    for node in walk(root):
        args = tuple(made[id(a)] for a in node.args)
        new = change(node, args)
        made[id(node)] = new if new is not None else checked_operation(node.op, *args) if args else node
    return made[id(root)]


@lru_cache(maxsize=1024)
def stored_in(root: Expression, types: frozenset[tuple[str, str]]) -> Expression:
    """Return a graph with the roundings that its ``stored`` steps are. ``types``: of the operands of 16 bits, by name;
    a wider one rounds nothing."""
    known = dict(types)

    def rounding(node: Expression, args: Operands) -> Expression | None:
        if node.op != "stored":
            return None
        kind = known.get(str(node.args[1].value))
        return args[0] if kind is None else checked_operation(kind, args[0])

    return rebuilt(root, rounding)
