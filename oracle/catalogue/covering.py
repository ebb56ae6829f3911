"""Covering arrays: few combinations of several axes in which every two, or every three, values of different axes occur.

Most faults need one or two conditions to hold at once, nearly all of the rest three, so that such rows find almost what
the full product finds (D. R. Kuhn, D. R. Wallace, A. M. Gallo, "Software fault interactions", IEEE TSE 30(6), 2004).
Built one axis at a time (the in-parameter-order strategy of Y. Lei and K. C. Tai, HASE 1998).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product

Row = list["int | None"]  # an index per axis; None: any
Place = tuple[tuple[int, ...], tuple[int, ...]]  # earlier axes, and their values
Missing = dict[Place, set[int]]  # which values of the new axis have not met them


def covering(sizes: Sequence[int], strength: int) -> list[tuple[int, ...]]:
    """Return rows of one index per axis, in which indices of any ``strength`` axes meet in every way; the same rows
    every time."""
    if 0 in sizes:
        return []
    order = sorted(range(len(sizes)), key=lambda axis: -sizes[axis])
    lengths = [sizes[axis] for axis in order]
    rows: list[Row] = [list(values) for values in product(*map(range, lengths[: strength - 1]))]
    for axis in range(strength - 1, len(lengths)):
        missing = {
            (axes, values): set(range(lengths[axis]))
            for axes in combinations(range(axis), strength - 1)
            for values in product(*(range(lengths[i]) for i in axes))
        }
        for number, row in enumerate(rows):
            places = list(_places(row, strength))
            value = _best(places, missing, lengths[axis], number)
            row.append(value)
            for place in places:
                missing[place].discard(value)
        rows += _rows_of(sorted((*place, v) for place, values in missing.items() for v in values), axis)
    filled = [[k % lengths[i] if a is None else a for i, a in enumerate(row)] for k, row in enumerate(rows)]
    return list(dict.fromkeys(tuple(row[order.index(axis)] for axis in range(len(sizes))) for row in filled))


def _places(row: Row, strength: int) -> Iterator[Place]:
    """Yield what a value of the next axis meets in a row."""
    known = [i for i, a in enumerate(row) if a is not None]
    for axes in combinations(known, strength - 1):
        yield axes, tuple(row[i] for i in axes)  # type: ignore[misc]


def _best(places: Sequence[Place], missing: Missing, length: int, number: int) -> int:
    """The value of the new axis that makes most missing meetings; among equals the one whose turn it is."""
    gains = [0] * length
    for place in places:
        for v in missing[place]:
            gains[v] += 1
    return max(range(length), key=lambda v: (gains[v], -((v - number) % length)))


def _rows_of(missing: Sequence[tuple[tuple[int, ...], tuple[int, ...], int]], axis: int) -> list[Row]:
    """Rows for the meetings that no row had room for."""
    rows: list[Row] = []
    for axes, values, v in missing:
        wanted = dict(zip(axes, values, strict=True))
        row = next((r for r in rows if r[axis] == v and all(r[i] in (None, a) for i, a in wanted.items())), None)
        if row is None:
            row = [None] * axis + [v]
            rows.append(row)
        for i, a in wanted.items():
            row[i] = a
    return rows
