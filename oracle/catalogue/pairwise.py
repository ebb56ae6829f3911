"""Covering arrays of strength two: few combinations of several axes in which every pair of values occurs.

Most faults need one or two conditions to hold at once, so all pairs find nearly what the full product finds, with as
many combinations as the two longest axes have (D. R. Kuhn, D. R. Wallace, A. M. Gallo, "Software fault interactions",
IEEE TSE 30(6), 2004). Built one axis at a time (the in-parameter-order strategy of Y. Lei and K. C. Tai, HASE 1998).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import count

Pair = tuple[int, int, int]  # an earlier axis, its value, the new axis' value


def pairs(sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """Return rows of one index per axis, in which each pair of indices of two axes occurs; the same ones every time."""
    if 0 in sizes:
        return []
    order = sorted(range(len(sizes)), key=lambda axis: -sizes[axis])
    lengths = [sizes[axis] for axis in order]
    rows: list[list[int | None]] = [[value] for value in range(lengths[0])] if lengths else [[]]
    for axis in range(1, len(lengths)):
        missing = {(i, a, v) for i in range(axis) for a in range(lengths[i]) for v in range(lengths[axis])}
        for number, row in enumerate(rows):
            row.append(_best(row, missing, lengths[axis], number))
            missing -= {(i, a, row[-1]) for i, a in enumerate(row[:-1]) if a is not None}
        rows += _rows_of(sorted(missing), axis)
    filled = [[k % lengths[i] if a is None else a for i, a in enumerate(row)] for k, row in enumerate(rows)]
    return [tuple(row[order.index(axis)] for axis in range(len(sizes))) for row in filled]


def _best(row: Sequence[int | None], missing: set[Pair], length: int, number: int) -> int:
    """The value of the new axis that makes most missing pairs; among equals the one whose turn it is."""
    gains = [sum((i, a, v) in missing for i, a in enumerate(row) if a is not None) for v in range(length)]
    return max(range(length), key=lambda v: (gains[v], -((v - number) % length)))


def _rows_of(missing: Sequence[Pair], axis: int) -> list[list[int | None]]:
    """Rows for the pairs that no row had room for."""
    rows: list[list[int | None]] = []
    for i, a, v in missing:
        row = next((row for row in rows if row[axis] == v and row[i] is None), None)
        if row is None:
            row = [None] * axis + [v]
            rows.append(row)
        row[i] = a
    return rows


def turns(sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield rows of one index per axis without end: the values of each take turns, so that as many rows as the longest
    axis has values hold every value of every axis."""
    skips = skips_of(sizes)
    for number in count():
        yield tuple(place(number, length, skip) for length, skip in zip(sizes, skips, strict=True))


def skips_of(sizes: Sequence[int]) -> list[int]:
    """Return after how many rows each axis skips a value (0: never), for axes whose lengths have a common divisor would
    stay in step."""
    found, period = [], 1
    for length in sizes:
        together = math.lcm(period, length)
        found.append(together if together < period * length else 0)
        period = together
    return found


def place(number: int, length: int, skip: int) -> int:
    """Return which of an axis' values has a turn."""
    return (number + (number // skip if skip else 0)) % length
