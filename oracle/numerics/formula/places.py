"""Formulas that are zero but at one place of each row, as ``where(equal(place(), t) & ~equal(t, ignore), w, 0)`` is.

Only there anything is to be computed: a value for each row that counts, of the operands at the row's place.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from .expressions import PLACE, REDUCING, ZERO, Expression, symbol
from .traversal import names_of, substitute, walk


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
    found = [term for term in terms if term is not None]
    if not sums or len(found) < len(sums) or any(node.op != "sum" for node in sums):
        return None
    of_rows = substitute(root, {s.args[0]: term.value for s, term in zip(sums, found, strict=True)})
    of_one = substitute(root, {s: term.value for s, term in zip(sums, found, strict=True)})
    if PLACE in names_of(of_rows) or len({(term.place, term.conditions) for term in found}) > 1:
        return None
    return found[0]._replace(value=of_rows), of_one


def _terms(condition: Expression) -> Iterator[Expression]:
    """The conditions all of which must hold."""
    if condition.op == "and":
        for side in condition.args:
            yield from _terms(side)
    else:
        yield condition
