"""Walking formulas' graphs, and cutting them: at one place of each row, and into stages at each reduction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, reduce
from operator import or_
from typing import NamedTuple

from .expressions import IRRATIONAL, PI, PLACE, REDUCING, ROUNDINGS, ZERO, Expression, checked_operation, symbol

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


DOMAINS = {"log": 0.0, "sqrt": 0.0, "log1p": -1.0}  # functions that have no value below a number
_EXACT = ("symbol", "constant", "neg", "abs")


def undefined(root: Expression) -> Expression | None:
    """Return a condition under which a formula of finite operands has no value, for sure; None where none is known.

    Only functions are looked at whose argument has no rounding in float64, and of a choice only its exact condition.
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
        step, _, only = node.op.partition(" ")
        if step != "stored":
            return None
        kind = known.get(str(node.args[1].value))
        return args[0] if kind is None or only not in ("", kind) else checked_operation(kind, args[0])

    return rebuilt(root, rounding)


# Formulas that are zero but at one place of each row, as ``where(equal(place(), t) & ~equal(t, ignore), w, 0)`` is.
#
# Only there anything is to be computed: a value for each row that counts, of the operands at the row's place.


class AtPlace(NamedTuple):
    """The place of each row at which a formula is not zero, the conditions under which a row counts, and the value
    there."""

    place: Expression
    conditions: tuple[Expression, ...]
    value: Expression


@lru_cache(maxsize=1024)
def at_place(root: Expression) -> AtPlace | None:
    """Return what a formula is at one place of each row, if it is zero elsewhere; None for any other formula."""
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
    """Return what a formula that sums such values alone is of the rows that count, over which its sums then run, and
    what it is of one row, whose sum is its one term. None for any other formula."""
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
    """The conditions all of which must hold."""
    if condition.op == "and":
        for side in condition.args:
            yield from _terms(side)
    else:
        yield condition


# A formula with reductions as stages: each reduction is cut out, and is an operand of what comes after it.
#
# ``e / sum_over(e)`` with ``e = exp(x - max_over(x))`` has two stages: the largest x, then the sum of exp(x - stage 0).
# The elementwise graph exp(x - stage 0) / stage 1 is left. Every evaluation of elementwise graphs serves all three; an
# operand that is a stage has an error.


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
