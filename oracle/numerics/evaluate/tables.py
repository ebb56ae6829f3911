"""Parts of graphs that depend on one operand of 16 bits alone, read from tables of all its 65,536 values.

A table is what the part's own program gives for every value. Every step of a program is an operation of one element
whose bits do not depend on where the element lies, so that a look-up gives the same number, bit for bit, as computing
it: what is proved of the one holds for the other. Tables serve calls of more elements than they have, and only parts
with a function such as e^x, which costs many times a look-up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ...model.call import Array
from ..floats.blocks import aligned, pool_for
from ..formula.expressions import IRRATIONAL, Expression, symbol
from ..formula.traversal import names_of, substitute, walk
from .programs import Values, program, release, simulate

VALUES = 1 << 16  # of a type of 16 bits
KEPT = 32  # tables of a process, half a MiB each


class Part(NamedTuple):
    """A part of graphs that depends on one operand alone; ``name``: of the symbol in its place."""

    name: str
    operand: str
    root: Expression


def narrow_of(given: Mapping[str, Values], elements: int) -> dict[str, Array]:
    """Return the operands that are worth a table in a call of so many elements."""
    if elements <= VALUES:
        return {}
    return {name: v for name, v in given.items() if isinstance(v, np.ndarray) and v.itemsize == 2}


def evaluate(
    roots: tuple[Expression, ...],
    given: Mapping[str, Values],
    narrow: Mapping[str, Any],
    shape: tuple[int, ...],
    *,
    fast: bool = False,
) -> list[Values]:
    """Return what ``program(*roots, fast=fast)(given, shape)`` does. ``narrow``: operands of 16 bits that are looked
    up, as they were before they were widened."""
    left, parts = split(roots, frozenset(narrow)) if narrow else (roots, ())
    if not parts:
        return program(*roots, fast=fast)(given, shape)
    places = {name: narrow[name].view(np.uint16).astype(np.intp) for name in {part.operand for part in parts}}
    free, read = pool_for(shape).free, {}
    for part in parts:
        read[part.name] = buffer = free.pop() if free else aligned(shape)
        known = table(part.root, narrow[part.operand].dtype, fast)
        known.take(places[part.operand], out=buffer, mode="clip")  # another mode would copy
    found = program(*left, fast=fast)({**given, **read}, shape)
    kept = set(map(id, found))
    release(*(buffer for buffer in read.values() if id(buffer) not in kept))
    return found


@lru_cache(maxsize=1024)
def split(roots: tuple[Expression, ...], names: frozenset[str]) -> tuple[tuple[Expression, ...], tuple[Part, ...]]:
    """Return graphs with symbols in the places of all parts that tables hold for operands of some names, and these."""
    found = dict.fromkeys(part for root in roots for part in _parts(root, names))
    parts = tuple(Part(f"table {k}", names_of(root)[0], root) for k, root in enumerate(found))
    places = {part.root: symbol(part.name) for part in parts}
    return tuple(substitute(root, places) for root in roots), parts


def _parts(root: Expression, names: frozenset[str]) -> Iterator[Expression]:
    """The largest parts of a graph that depend on one of the operands alone and hold a function."""
    stack, seen = [root], set()
    while stack:
        node = stack.pop()
        if node in seen or node.is_constant or not any(_is_slow(n) for n in walk(node)):
            continue
        seen.add(node)
        used = names_of(node)
        if len(used) == 1 and used[0] in names and not node.is_condition:
            yield node
        else:
            stack.extend(reversed(node.args))


def _is_slow(node: Expression) -> bool:
    return node.op in IRRATIONAL and node.op != "sqrt" and not node.is_constant


@lru_cache(maxsize=KEPT)
def table(root: Expression, kind: np.dtype[Any], fast: bool) -> Array:
    """Return a graph's value in float64 for every value of its operand, by the operand's bits."""
    (name,) = names_of(root)
    with np.errstate(all="ignore"):
        (found,) = program(root, fast=fast)({name: every_value(kind)}, (VALUES,))
    return np.asarray(found)


def simulated(
    root: Expression, given: Mapping[str, Values], narrow: Mapping[str, Any], compute: Any, flushing: frozenset[str]
) -> Array:
    """Return what ``simulate`` does for operands cast to ``compute``, with the same bits on every machine."""
    (left,), parts = split((root,), frozenset(narrow)) if narrow else ((root,), ())
    read = {}
    for part in parts:
        known = device_table(part.root, narrow[part.operand].dtype, np.dtype(compute), flushing)
        read[part.name] = known.take(narrow[part.operand].view(np.uint16))
    return simulate(left, {**given, **read}, compute, flushing=flushing, same_bits=True)


@lru_cache(maxsize=KEPT)
def device_table(root: Expression, kind: np.dtype[Any], compute: np.dtype[Any], flushing: frozenset[str]) -> Array:
    """Return what a device that computes in a type makes of a graph for every value of its operand."""
    (name,) = names_of(root)
    with np.errstate(all="ignore"):
        values = every_value(kind).astype(compute)
    return simulate(root, {name: values}, compute, flushing=flushing, same_bits=True)


def every_value(kind: np.dtype[Any]) -> Array:
    """Return every value of a type of 16 bits, in the order of their bits."""
    return np.arange(VALUES, dtype=np.uint16).view(kind)
