"""Covering arrays: few combinations of several axes that contain every pair, or every triple, of values.

Most faults need one or two conditions at once, and nearly all others need three. Such rows therefore find almost as
many faults as the full product (D. R. Kuhn, D. R. Wallace, A. M. Gallo, "Software fault interactions", IEEE TSE 30(6),
2004). They are built one axis at a time (in-parameter-order strategy of Y. Lei and K. C. Tai, HASE 1998). Values meet
if one row contains them.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cache, reduce
from itertools import combinations, cycle, product

import numpy as np

from ...model.call import Array
from ...model.classes import greedy_cover

Row = list["int | None"]  # an index per axis; None: any
Place = tuple[tuple[int, ...], tuple["int | None", ...]]  # earlier axes, and their values
Whole = tuple[int, ...]  # a row with an index for every axis
Pair = tuple[tuple[int, int], tuple[int, int]]  # two axes, each with an index
_TRIES = 100  # rows tried for one meeting before it is considered impossible
_TRIES_REFUSED = 24  # the same, if the plain row is accepted with either index alone and refused with both


@cache
def covering(sizes: tuple[int, ...], strength: int) -> tuple[Whole, ...]:
    """Return rows of one index per axis that contain every combination of indices of any ``strength`` axes. The result
    is deterministic."""
    if 0 in sizes:
        return ()
    order = sorted(range(len(sizes)), key=lambda axis: -sizes[axis])
    lengths = [sizes[axis] for axis in order]
    rows: list[Row] = [list(values) for values in product(*map(range, lengths[: strength - 1]))]
    for axis in range(strength - 1, len(lengths)):
        rows += _rows_of(extended_rows(rows, Missing(lengths[:axis], lengths[axis], strength)), axis)
    filled = [[k % lengths[i] if a is None else a for i, a in enumerate(row)] for k, row in enumerate(rows)]
    return tuple(dict.fromkeys(tuple(row[order.index(axis)] for axis in range(len(sizes))) for row in filled))


class Missing:
    """A table of the values of a new axis that have not yet met values of few (strength - 1) earlier axes.

    Its rows are places: for each choice of earlier axes, their combinations of values in order. The last place is for
    rows in which one of these axes is open.
    """

    def __init__(self, lengths: Sequence[int], values: int, strength: int) -> None:
        self.axes = list(combinations(range(len(lengths)), strength - 1))
        self._lengths, self._begins = lengths, [0]
        for axes in self.axes:
            self._begins.append(self._begins[-1] + math.prod(lengths[axis] for axis in axes))
        self.table = np.ones((self._begins[-1] + 1, values), bool)
        self.table[-1] = False

    def places(self, rows: Sequence[Row]) -> Array:
        """Return, for each row and each choice of earlier axes, the place of the row's values in the table."""
        held = np.array([[-1 if a is None else a for a in row] for row in rows], np.int64)
        held = held.reshape(len(rows), len(self._lengths))  # with no rows, the array still has a column per axis
        result = np.empty((len(rows), len(self.axes)), np.int64)
        for k, axes in enumerate(self.axes):
            place, open_ = np.zeros(len(rows), np.int64), np.zeros(len(rows), bool)
            for axis in axes:
                place = place * self._lengths[axis] + held[:, axis]
                open_ |= held[:, axis] < 0
            result[:, k] = np.where(open_, len(self.table) - 1, self._begins[k] + place)
        return result

    def missing_meetings(self) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], int]]:
        """Yield the missing meetings: earlier axes, their values, and the value of the new axis."""
        for begin, end, axes in zip(self._begins, self._begins[1:], self.axes, strict=False):
            lengths = [self._lengths[axis] for axis in axes]
            block = self.table[begin:end].reshape(*lengths, -1)
            for *values, v in np.argwhere(block).tolist():
                yield axes, tuple(values), v


def extended_rows(
    rows: Sequence[Row], missing: Missing, fitting: Callable[[Row], Sequence[int]] | None = None
) -> list[tuple[tuple[int, ...], tuple[int, ...], int]]:
    """Append to every row a value of a new axis that fits it. Return the meetings that are still missing.

    It is the value that adds most missing meetings; among equals, the values take turns.
    """
    any_value = range(missing.table.shape[1])
    for number, (row, places) in enumerate(zip(rows, missing.places(rows), strict=True)):
        values = any_value if fitting is None else fitting(row)
        turns, gains = values[-1] + 1, missing.table[places].sum(0).tolist()
        best = max(values, key=lambda v: (gains[v], -((v - number) % turns)))
        row.append(best)
        missing.table[places, best] = False
    return list(missing.missing_meetings())


def _rows_of(
    missing: Sequence[tuple[tuple[int, ...], tuple[int, ...], int]],
    axis: int,
    accepts: Callable[[Row], int] = lambda row: True,
) -> list[Row]:
    """Return rows for the meetings that no existing row can contain; rows that ``accepts`` refuses are not built."""
    rows: list[Row] = []
    unfinished: defaultdict[int, dict[int, Row]] = defaultdict(dict)  # by the new axis' value: number and row
    whole: dict[tuple[Place, int], int] = {}  # meetings in rows without a gap -> the first such row

    def fits(row: Row, wanted: dict[int, int]) -> bool:
        return all(row[i] in (None, a) for i, a in wanted.items()) and bool(accepts(_with_all(row, wanted)))

    for axes, values, v in missing:
        wanted = dict(zip(axes, values, strict=True))
        fitting = (n for n, row in unfinished[v].items() if fits(row, wanted))
        number = min(next(fitting, len(rows)), whole.get(((axes, values), v), len(rows)))
        if number == len(rows):
            rows.append([None] * axis + [v])
            unfinished[v][number] = rows[number]
        row = rows[number]
        row[:] = _with_all(row, wanted)
        if None not in row and number in unfinished[v]:
            del unfinished[v][number]
            for held in combinations(range(axis), len(axes)):
                place = held, tuple(row[i] for i in held)
                whole[place, v] = min(number, whole.get((place, v), number))
    return rows


def _with_all(row: Row, wanted: dict[int, int]) -> Row:
    return [wanted.get(i, a) for i, a in enumerate(row)]


def covering_accepted(sizes: Sequence[int], *wishes: Callable[[Whole], bool]) -> list[Whole]:
    """Return rows that satisfy a wish and contain every pair of indices that such a row can contain. The result is
    deterministic. The wishes are used in order; a later wish adds only the pairs that no earlier wish allowed.

    An index leaves the design if it is refused next to the first index of every other axis, and also next to any one
    other index. If a pair is lost with a refused row, the pair is put into other rows, and these are tried.
    """
    result: list[Whole] = []
    if not all(sizes):
        return result
    for wish in wishes:
        ask = cache(wish)
        kept = [
            [v for v in range(size) if any(map(ask, _neighbour_rows(sizes, axis, v)))]
            for axis, size in enumerate(sizes)
        ]
        rows = [
            tuple(values[k] for values, k in zip(kept, row, strict=True)) for row in covering(tuple(map(len, kept)), 2)
        ]
        met = {pair for row in result for pair in _pairs(row)}
        for row in rows:
            if not met.issuperset(_pairs(row)) and ask(row):
                result.append(row)
                met.update(_pairs(row))
        _repair(
            result, [pair for pair in dict.fromkeys(p for row in rows for p in _pairs(row)) if pair not in met], ask
        )
    return result


def _repair(found: list[Whole], missing: list[Pair], ask: Callable[[Whole], bool]) -> None:
    """Add rows for missing meetings."""
    while missing:
        row = next(filter(ask, _with(*missing[0], found, frozenset(missing), ask)), None)
        found += [] if row is None else [row]
        gone = {missing[0], *(() if row is None else _pairs(row))}
        missing = [pair for pair in missing if pair not in gone]


def _neighbour_rows(sizes: Sequence[int], axis: int, value: int) -> Iterator[Whole]:
    """Yield rows with an index: next to the first index of every other axis, then with one of these changed."""
    usual = tuple(value if other == axis else 0 for other in range(len(sizes)))
    yield usual
    for other, size in enumerate(sizes):
        if other != axis:
            yield from ((*usual[:other], v, *usual[other + 1 :]) for v in range(1, size))


def _pairs(row: Whole) -> Iterator[Pair]:
    return combinations(enumerate(row), 2)


def _with(
    one: tuple[int, int],
    two: tuple[int, int],
    rows: Sequence[Whole],
    missing: frozenset[Pair],
    ask: Callable[[Whole], bool],
) -> Iterator[Whole]:
    """Yield rows with two indices put in, as candidates: first the rows that add most missing meetings."""
    made = dict.fromkeys(_put(row, one, two) for row in rows)
    plain = (0,) * len(rows[0]) if rows else ()
    refused = ask(_put(plain, one)) and ask(_put(plain, two)) and not ask(_put(plain, one, two))
    best = sorted(made, key=lambda row: -sum(pair in missing for pair in _pairs(row)))
    yield from best[: _TRIES_REFUSED if refused else _TRIES]


def _put(row: Whole, *places: tuple[int, int]) -> Whole:
    put = dict(places)
    return tuple(put.get(axis, v) for axis, v in enumerate(row))


# Covering arrays with one axis of many values, for example shapes. Only the classes of these values matter.
#
# The classes must meet each other and the values of the other axes. That takes far fewer rows than a covering array of
# every shape. Classes must meet only if some shape has them all. A value of another axis must meet only the shapes that
# it fits.

Label = tuple[int, ...]  # a class of each kind
Fits = Callable[[int, int, int], bool]  # a label, an axis, a value of the axis


def covering_classes(
    classes: Sequence[tuple[str, ...]], sizes: Sequence[int], strength: int, fits: Fits = lambda *_: True
) -> tuple[tuple[int, ...], ...]:
    """Return rows of a label and one index per other axis. Any ``strength`` classes and values of other axes meet if a
    label has those classes and fits those values. The result is deterministic.

    ``classes``: for every label, one class of each kind. ``sizes``: lengths of the other axes. ``fits``: whether a
    label fits a value of another axis; the first value of every axis fits all labels.
    """
    if not classes or 0 in sizes:
        return ()
    every = range(len(classes))
    fitting = tuple(
        tuple(sum(1 << label for label in every if fits(label, axis, value)) for value in range(size))
        for axis, size in enumerate(sizes)
    )
    return _covering(tuple(classes), fitting, strength)


@cache
def _covering(
    classes: tuple[tuple[str, ...], ...], fitting: tuple[tuple[int, ...], ...], strength: int
) -> tuple[tuple[int, ...], ...]:
    """Return the rows. ``fitting``: for every value of the other axes, the bit set of labels that it fits."""
    order = sorted(range(len(fitting)), key=lambda axis: -len(fitting[axis]))
    known = _Labels(_numbered(classes))
    rows: list[Row] = [list(label) for label in known.few(strength)]
    for axis in order:
        known.add(fitting[axis])
        left = _rows_of(extended_rows(rows, known.missing(strength), known.fitting), known.earlier, known.with_all)
        turns = list(dict.fromkeys(row[-1] for row in left))
        rows += sorted(left, key=lambda row: turns.index(row[-1]))
    result = []
    for turn, (label, row) in enumerate(zip(known.in_turn(rows), rows, strict=True)):
        indices = [label, *(0 for _ in fitting)]
        for axis, index in zip(order, row[known.kinds :], strict=True):
            free = [v for v, labels in enumerate(fitting[axis]) if labels >> label & 1]
            indices[1 + axis] = free[turn % len(free)] if index is None else index
        result.append(tuple(indices))
    return tuple(dict.fromkeys(result))


def _numbered(classes: Sequence[tuple[str, ...]]) -> list[Label]:
    """Return the classes of each kind as numbers, in order of appearance."""
    kinds = [list(dict.fromkeys(kind)) for kind in zip(*classes, strict=True)]
    return [tuple(kind.index(word) for kind, word in zip(kinds, each, strict=True)) for each in classes]


class _Labels:
    """The labels that have some classes and fit some values. A set of labels is the bits of an integer.

    A row's columns are the kinds of classes, then the axes in the order in which they were added.
    """

    def __init__(self, labels: Sequence[Label]) -> None:
        self.kinds = len(labels[0])
        self._labels = labels
        self._columns: list[list[int]] = [[0] * (1 + max(kind)) for kind in zip(*labels, strict=True)]
        for k, label in enumerate(labels):
            for kind, value in enumerate(label):
                self._columns[kind][value] |= 1 << k

    def add(self, fitting: Sequence[int]) -> None:
        """Add an axis: for every value of it, the labels that it fits."""
        self._columns.append(list(fitting))

    @property
    def earlier(self) -> int:
        """The number of columns before the axis added last."""
        return len(self._columns) - 1

    def with_all(self, row: Row) -> int:
        """Return the labels that have the classes of a row and fit its values."""
        held = (self._columns[c][value] for c, value in enumerate(row) if value is not None)
        return reduce(int.__and__, held, (1 << len(self._labels)) - 1)

    def fitting(self, row: Row) -> list[int]:
        """Return the values of the last axis that fit a row of the others."""
        mask = self.with_all(row)
        return [value for value, labels in enumerate(self._columns[-1]) if labels & mask]

    def few(self, strength: int) -> list[Label]:
        """Return labels that contain every combination of ``strength`` classes that some label has. Each step takes the
        label that adds most, and the earlier one among equals."""
        met = [set(combinations(enumerate(label), strength)) for label in self._labels]
        return [self._labels[k] for k in greedy_cover(met)]

    def in_turn(self, rows: Sequence[Row]) -> Iterator[int]:
        """Yield a fitting label for every row; rows with the same fitting labels take them in turn."""
        turns: dict[int, Iterator[int]] = {}
        for row in rows:
            mask = self.with_all(row)
            if mask not in turns:
                turns[mask] = cycle([k for k in range(len(self._labels)) if mask >> k & 1])
            yield next(turns[mask])

    def missing(self, strength: int) -> Missing:
        """Return the meetings that the values of the axis added last still need."""
        *earlier, last = self._columns
        result = Missing(list(map(len, earlier)), len(last), strength)
        place = 0
        for axes in result.axes:
            for held in product(*(earlier[c] for c in axes)):
                mask = reduce(int.__and__, held)
                result.table[place] = [bool(mask & labels) for labels in last]
                place += 1
        return result
