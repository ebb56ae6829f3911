"""Covering arrays: few combinations of several axes in which every two, or every three, values of different axes occur.

Most faults need one or two conditions to hold at once, nearly all of the rest three, so that such rows find almost what
the full product finds (D. R. Kuhn, D. R. Wallace, A. M. Gallo, "Software fault interactions", IEEE TSE 30(6), 2004).
Built one axis at a time (the in-parameter-order strategy of Y. Lei and K. C. Tai, HASE 1998).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product

Row = list["int | None"]  # an index per axis; None: any
Meeting = tuple[tuple[int, ...], tuple[int, ...], int]  # earlier axes, their values, the new axis' value


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
            (axes, values, v)
            for axes in combinations(range(axis), strength - 1)
            for values in product(*(range(lengths[i]) for i in axes))
            for v in range(lengths[axis])
        }
        for number, row in enumerate(rows):
            row.append(_best(row, missing, lengths[axis], number, strength))
            missing -= set(_meetings(row[:-1], row[-1], strength))
        rows += _rows_of(sorted(missing), axis)
    filled = [[k % lengths[i] if a is None else a for i, a in enumerate(row)] for k, row in enumerate(rows)]
    return list(dict.fromkeys(tuple(row[order.index(axis)] for axis in range(len(sizes))) for row in filled))


def _meetings(row: Sequence[int | None], value: int | None, strength: int) -> Iterator[Meeting]:
    """Yield what a value of the next axis meets in a row."""
    known = [i for i, a in enumerate(row) if a is not None]
    for axes in combinations(known, strength - 1):
        yield axes, tuple(row[i] for i in axes), value  # type: ignore[misc]


def _best(row: Sequence[int | None], missing: set[Meeting], length: int, number: int, strength: int) -> int:
    """The value of the new axis that makes most missing meetings; among equals the one whose turn it is."""
    gains = [sum(meeting in missing for meeting in _meetings(row, v, strength)) for v in range(length)]
    return max(range(length), key=lambda v: (gains[v], -((v - number) % length)))


def _rows_of(missing: Sequence[Meeting], axis: int) -> list[Row]:
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
