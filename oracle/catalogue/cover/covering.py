"""Covering arrays: few combinations of several axes in which every two, or every three, values of different axes occur.

Most faults need one or two conditions to hold at once, nearly all of the rest three, so that such rows find almost what
the full product finds (D. R. Kuhn, D. R. Wallace, A. M. Gallo, "Software fault interactions", IEEE TSE 30(6), 2004).
Built one axis at a time (the in-parameter-order strategy of Y. Lei and K. C. Tai, HASE 1998).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import combinations, product

import numpy as np

from ...model.call import Array

Row = list["int | None"]  # an index per axis; None: any
Place = tuple[tuple[int, ...], tuple[int, ...]]  # earlier axes, and their values
Whole = tuple[int, ...]  # a row with an index for every axis
Pair = tuple[tuple[int, int], tuple[int, int]]  # two axes, each with an index
_TRIES = 100  # rows that are tried for one meeting before it counts as impossible
_TRIES_REFUSED = 24  # of two indices that are refused beside the first of every other axis, and each alone is not


@cache
def covering(sizes: tuple[int, ...], strength: int) -> tuple[Whole, ...]:
    """Return rows of one index per axis, in which indices of any ``strength`` axes meet in every way; the same rows
    every time."""
    if 0 in sizes:
        return ()
    order = sorted(range(len(sizes)), key=lambda axis: -sizes[axis])
    lengths = [sizes[axis] for axis in order]
    rows: list[Row] = [list(values) for values in product(*map(range, lengths[: strength - 1]))]
    for axis in range(strength - 1, len(lengths)):
        rows += _rows_of(lengthened(rows, Missing(lengths[:axis], lengths[axis], strength)), axis)
    filled = [[k % lengths[i] if a is None else a for i, a in enumerate(row)] for k, row in enumerate(rows)]
    return tuple(dict.fromkeys(tuple(row[order.index(axis)] for axis in range(len(sizes))) for row in filled))


class Missing:
    """Which values of a new axis have not met which values of any few earlier axes: a table of places and values.

    The places of some axes are in the order of their values; the last place stands for rows that leave an axis open.
    """

    def __init__(self, lengths: Sequence[int], values: int, strength: int) -> None:
        self.axes = list(combinations(range(len(lengths)), strength - 1))
        self._lengths, self._begins = lengths, [0]
        for axes in self.axes:
            self._begins.append(self._begins[-1] + math.prod(lengths[axis] for axis in axes))
        self.table = np.ones((self._begins[-1] + 1, values), bool)
        self.table[-1] = False

    def places(self, rows: Sequence[Row]) -> Array:
        """Return where each row has its values of each few axes."""
        held = np.array([[-1 if a is None else a for a in row] for row in rows], np.int64)
        held = held.reshape(len(rows), len(self._lengths))  # no rows have axes too
        found = np.empty((len(rows), len(self.axes)), np.int64)
        for k, axes in enumerate(self.axes):
            place, open_ = np.zeros(len(rows), np.int64), np.zeros(len(rows), bool)
            for axis in axes:
                place = place * self._lengths[axis] + held[:, axis]
                open_ |= held[:, axis] < 0
            found[:, k] = np.where(open_, len(self.table) - 1, self._begins[k] + place)
        return found

    def left(self) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], int]]:
        """Yield the meetings that are missing: earlier axes, their values, and the new axis' value."""
        for begin, end, axes in zip(self._begins, self._begins[1:], self.axes, strict=False):
            lengths = [self._lengths[axis] for axis in axes]
            block = self.table[begin:end].reshape(*lengths, -1)
            for *values, v in np.argwhere(block).tolist():
                yield axes, tuple(values), v


def lengthened(
    rows: Sequence[Row], missing: Missing, fitting: Callable[[Row], Sequence[int]] | None = None
) -> list[tuple[tuple[int, ...], tuple[int, ...], int]]:
    """Append a value of a new axis to every row, one of those that may follow it; return the meetings that are left.

    It is the value that makes most missing meetings; of equals the one whose turn it is.
    """
    any_value = range(missing.table.shape[1])
    for number, (row, places) in enumerate(zip(rows, missing.places(rows), strict=True)):
        values = any_value if fitting is None else fitting(row)
        turns, gains = values[-1] + 1, missing.table[places].sum(0).tolist()
        best = max(values, key=lambda v: (gains[v], -((v - number) % turns)))
        row.append(best)
        missing.table[places, best] = False
    return list(missing.left())


def _places(row: Row, strength: int) -> Iterator[Place]:
    """Yield what a value of the next axis meets in a row."""
    known = [i for i, a in enumerate(row) if a is not None]
    for axes in combinations(known, strength - 1):
        yield axes, tuple(row[i] for i in axes)  # type: ignore[misc]


def _rows_of(missing: Sequence[tuple[tuple[int, ...], tuple[int, ...], int]], axis: int) -> list[Row]:
    """Rows for the meetings that no row had room for."""
    rows: list[Row] = []
    unfinished: defaultdict[int, dict[int, Row]] = defaultdict(dict)  # by the new axis' value: number and row
    whole: dict[tuple[Place, int], int] = {}  # meetings in rows without a gap: the first such row
    for axes, values, v in missing:
        wanted = dict(zip(axes, values, strict=True))
        fitting = (n for n, r in unfinished[v].items() if all(r[i] in (None, a) for i, a in wanted.items()))
        number = min(next(fitting, len(rows)), whole.get(((axes, values), v), len(rows)))
        if number == len(rows):
            rows.append([None] * axis + [v])
            unfinished[v][number] = rows[number]
        row = rows[number]
        for i, a in wanted.items():
            row[i] = a
        if None not in row and number in unfinished[v]:
            del unfinished[v][number]
            for place in _places(row[:axis], len(axes) + 1):
                whole[place, v] = min(number, whole.get((place, v), number))
    return rows


def covering_accepted(sizes: Sequence[int], *wishes: Callable[[Whole], bool]) -> list[Whole]:
    """Return rows that are as they are wished, in which indices of any two axes meet, where some such row lets them;
    the same rows every time. Of several wishes the first holds for every meeting that it lets be.

    An index that is refused beside the first of every other axis, and beside any one of the others, leaves the design.
    A meeting that was lost with a refused row is looked for in other rows, with the two put in.
    """
    found: list[Whole] = []
    for wish in wishes:
        ask = cache(wish)
        kept = [[v for v in range(size) if any(map(ask, _beside(sizes, axis, v)))] for axis, size in enumerate(sizes)]
        rows = [_from(kept, row) for row in covering(tuple(map(len, kept)), 2)]
        met = {pair for row in found for pair in _pairs(row)}
        for row in rows:
            if not met.issuperset(_pairs(row)) and ask(row):
                found.append(row)
                met.update(_pairs(row))
        _repair(found, [pair for pair in dict.fromkeys(p for row in rows for p in _pairs(row)) if pair not in met], ask)
    return found


def _repair(found: list[Whole], missing: list[Pair], ask: Callable[[Whole], bool]) -> None:
    """Add rows for missing meetings."""
    while missing:
        row = next(filter(ask, _with(*missing[0], found, frozenset(missing), ask)), None)
        found += [] if row is None else [row]
        gone = {missing[0], *(() if row is None else _pairs(row))}
        missing = [pair for pair in missing if pair not in gone]


def _beside(sizes: Sequence[int], axis: int, value: int) -> Iterator[Whole]:
    """Yield rows that hold an index: beside the first of every other axis, then with another one of one of them."""
    usual = tuple(value if other == axis else 0 for other in range(len(sizes)))
    yield usual
    for other, size in enumerate(sizes):
        if other != axis:
            yield from ((*usual[:other], v, *usual[other + 1 :]) for v in range(1, size))


def _from(kept: Sequence[Sequence[int]], row: Whole) -> Whole:
    return tuple(values[k] for values, k in zip(kept, row, strict=True))


def _pairs(row: Whole) -> Iterator[Pair]:
    return combinations(enumerate(row), 2)


def _with(
    one: tuple[int, int],
    two: tuple[int, int],
    rows: Sequence[Whole],
    missing: frozenset[Pair],
    ask: Callable[[Whole], bool],
) -> Iterator[Whole]:
    """Yield accepted rows with two indices put in: those that make most missing meetings first."""
    made = dict.fromkeys(_put(row, one, two) for row in rows)
    plain = (0,) * len(rows[0]) if rows else ()
    refused = ask(_put(plain, one)) and ask(_put(plain, two)) and not ask(_put(plain, one, two))
    best = sorted(made, key=lambda row: -sum(pair in missing for pair in _pairs(row)))
    yield from best[: _TRIES_REFUSED if refused else _TRIES]


def _put(row: Whole, *places: tuple[int, int]) -> Whole:
    put = dict(places)
    return tuple(put.get(axis, v) for axis, v in enumerate(row))
