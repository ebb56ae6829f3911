"""Traversal of formulas' graphs, and their division: at one place of each row, and into stages at each reduction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, reduce
from operator import or_
from typing import NamedTuple

from .expressions import IRRATIONAL, PI, PLACE, REDUCING, ROUNDINGS, ZERO, Expression, checked_operation, symbol

Operands = tuple[Expression, ...]


@lru_cache(maxsize=4096)
def walk(*roots: Expression) -> tuple[Expression, ...]:
    """Return every node once, operands before the nodes that use them."""
    result: dict[Expression, None] = {}
    stack: list[tuple[Expression, bool]] = [(root, False) for root in reversed(roots)]
    while stack:
        node, ready = stack.pop()
        if node in result:
            continue
        if ready:
            result[node] = None
        else:
            stack.append((node, True))
            stack.extend((arg, False) for arg in reversed(node.args))
    return tuple(result)


def names_of(*roots: Expression) -> tuple[str, ...]:
    """Return the names of the symbols that graphs depend on."""
    return tuple(str(n.value) for n in walk(*roots) if n.op == "symbol")


@lru_cache(maxsize=4096)
def is_rational(root: Expression) -> bool:
    """Return whether a graph consists of arithmetic, comparisons and choices alone: its value is a rational number."""
    return not any(map(is_irrational_step, walk(root)))


@lru_cache(maxsize=4096)
def stores(root: Expression) -> bool:
    """Return whether a step of a graph is stored in a dtype."""
    return any(node.op in ROUNDINGS for node in walk(root))


DOMAINS = {"log": 0.0, "sqrt": 0.0, "log1p": -1.0}  # functions without a value below a number
_EXACT = ("symbol", "constant", "neg", "abs")


def undefined(root: Expression) -> Expression | None:
    """Return a condition under which a formula of finite operands certainly has no value; None if no condition is
    known.

    Only functions with an argument that float64 does not round are checked, and only exact conditions of choices.
    """

    known: dict[Expression, Expression] = {}
    for node in walk(root):
        found = [known[arg] for arg in node.args if arg in known and not arg.is_condition]
        if node.op == "where":
            condition, *branches = node.args
            sides = zip((condition, ~condition), branches, strict=True)
            found = [side & known[branch] for side, branch in sides if branch in known] if _is_exact(condition) else []
        elif node.op in DOMAINS and not node.args[0].is_constant and _is_exact(node.args[0]):
            found.append(node.args[0] < DOMAINS[node.op])
        if found and not node.is_condition:
            known[node] = reduce(or_, found)
    return known.get(root)


def _is_exact(node: Expression) -> bool:
    return all(n.op in _EXACT or n.is_condition for n in walk(node))


def has_rational_branch(root: Expression) -> bool:
    """Return whether a graph's conditions are rational and some branches lead to a rational value: other branches can
    contain functions."""
    made: dict[int, bool] = {}
    for node in walk(root):
        args = [made[id(a)] for a in node.args]
        ways = args[0] and (args[1] or args[2]) if node.op == "where" else all(args)
        made[id(node)] = ways and not is_irrational_step(node)
    return made[id(root)]


def is_irrational_step(node: Expression) -> bool:
    """Return whether a node is pi, a function with irrational values at nearly every rational number, or a rounding."""
    return node.op in IRRATIONAL or node is PI or node.op in ROUNDINGS


def substitute(root: Expression, replaced: Mapping[Expression, Expression]) -> Expression:
    """Return a graph with some nodes replaced by others."""
    return rebuilt(root, lambda node, args: replaced.get(node))


def rebuilt(root: Expression, change: Callable[[Expression, Operands], Expression | None]) -> Expression:
    """Return a graph rebuilt from its operands up. ``change`` gets a node and its new operands. It returns the node
    that replaces it; None if the operation stays the same."""
    made: dict[int, Expression] = {}
    for node in walk(root):
        args = tuple(made[id(a)] for a in node.args)
        new = change(node, args)
        made[id(node)] = new if new is not None else checked_operation(node.op, *args) if args else node
    return made[id(root)]


@lru_cache(maxsize=1024)
def stored_in(root: Expression, types: frozenset[tuple[str, str]]) -> Expression:
    """Return a graph with its ``stored`` steps replaced by roundings. ``types``: of the 16-bit operands, by name; a
    wider type rounds nothing."""
    known = dict(types)

    def rounding(node: Expression, args: Operands) -> Expression | None:
        step, _, only = node.op.partition(" ")
        if step != "stored":
            return None
        kind = known.get(str(node.args[1].value))
        return args[0] if kind is None or only not in ("", kind) else checked_operation(kind, args[0])

    return rebuilt(root, rounding)


# Formulas that are zero except at one place of each row: ``where(equal(place(), t) & ~equal(t, ignore), w, 0)``.
#
# Only the value at this place is computed, for each row that takes part, from the operands at the row's place.


class AtPlace(NamedTuple):
    """The one place of each row at which a formula is not zero, the conditions under which a row takes part, and the
    formula's value at the place."""

    place: Expression
    conditions: tuple[Expression, ...]
    value: Expression


@lru_cache(maxsize=1024)
def at_place(root: Expression) -> AtPlace | None:
    """Return the parts of a formula that is zero except at one place of each row; None for any other formula."""
    if root.op != "where" or root.args[2] is not ZERO:
        return None
    own, terms = symbol(PLACE), tuple(_terms(root.args[0]))
    places = [term for term in terms if term.op == "==" and own in term.args]
    if len(places) != 1:
        return None
    (place,) = (side for side in places[0].args if side is not own)
    rest = [term for term in terms if term is not places[0]]
    value = root.args[1]
    if PLACE in names_of(place, value, *rest) or any(node.op in REDUCING for node in walk(root)):
        return None
    return AtPlace(place, tuple(rest), value)


@lru_cache(maxsize=1024)
def picked(root: Expression) -> tuple[AtPlace, Expression] | None:
    """Return two formulas for a formula that only sums such values. In the first, the sums run over the rows that take
    part. The second is for one row; each of its sums is its one term. Return None for any other formula."""
    sums = [node for node in walk(root) if node.op in REDUCING]
    terms = [at_place(node.args[0]) for node in sums]
    result = [term for term in terms if term is not None]
    if not sums or len(result) < len(sums) or any(node.op != "sum" for node in sums):
        return None
    of_rows = substitute(root, {s.args[0]: term.value for s, term in zip(sums, result, strict=True)})
    of_one = substitute(root, {s: term.value for s, term in zip(sums, result, strict=True)})
    if PLACE in names_of(of_rows) or len({(term.place, term.conditions) for term in result}) > 1:
        return None
    return result[0]._replace(value=of_rows), of_one


def _terms(condition: Expression) -> Iterator[Expression]:
    """Yield the conditions that must all be true."""
    if condition.op == "and":
        for side in condition.args:
            yield from _terms(side)
    else:
        yield condition


# A formula with reductions as stages: each reduction is cut out and becomes an operand of the following steps.
#
# ``e / sum_over(e)`` with ``e = exp(x - max_over(x))`` has two stages: the largest x, then the sum of exp(x - stage 0).
# The remaining elementwise graph is exp(x - stage 0) / stage 1. Every evaluation of elementwise graphs can process all
# three; an operand that is a stage has an error.


class Stage(NamedTuple):
    """A reduction: its kind (of ``REDUCING``), the graph of its terms, and its symbol's name in later graphs."""

    kind: str
    terms: Expression
    name: str

    @property
    def error(self) -> str:
        """The name of the symbol for the error bound of the stage's value."""
        return f"{self.name} error"


@lru_cache(maxsize=1024)
def staged(root: Expression) -> tuple[tuple[Stage, ...], Expression]:
    """Return the stages of a graph in their order, and the remaining graph. Equal reductions are one stage."""
    stages: dict[tuple[str, int], Stage] = {}

    def cut(node: Expression, args: Operands) -> Expression | None:
        if node.op not in REDUCING:
            return None
        stage = stages.setdefault((node.op, id(args[0])), Stage(node.op, args[0], f"stage {len(stages)}"))
        return symbol(stage.name)

    left = rebuilt(root, cut)
    return tuple(stages.values()), left
