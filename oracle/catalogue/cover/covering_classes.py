"""Covering arrays of which one axis has many values that matter by their classes alone, as shapes do.

What shall meet are the classes and the values of the other axes: far fewer rows than a covering array of every shape
has. Classes meet where some shape has them all, and a value of another axis beside the shapes that it fits; no other
meeting is asked for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cache, reduce
from itertools import combinations, cycle, product

from ...model.covers import few_that_cover
from .covering import Missing, Row, lengthened

Label = tuple[int, ...]  # a class of each kind
Fits = Callable[[int, int, int], bool]  # a label, an axis, a value of it


def covering_classes(
    classes: Sequence[tuple[str, ...]], sizes: Sequence[int], place: int, strength: int, fits: Fits = lambda *_: True
) -> list[tuple[int, ...]]:
    """Return rows of one index per axis, in which any ``strength`` of the classes and of the other axes' values meet
    wherever a value of the axis at ``place`` has those classes and fits those values; the same rows every time.

    ``classes``: one of each kind for every value of that axis. ``fits``: whether one of these goes with another axis'
    value; the first value of every other axis goes with all.
    """
    if 0 in sizes:
        return []
    others = [axis for axis in range(len(sizes)) if axis != place]
    every = range(len(classes))
    fitting = tuple(
        tuple(sum(1 << label for label in every if fits(label, axis, value)) for value in range(sizes[axis]))
        for axis in others
    )
    return [(*row[1 : place + 1], row[0], *row[place + 1 :]) for row in _covering(tuple(classes), fitting, strength)]


@cache
def _covering(
    classes: tuple[tuple[str, ...], ...], fitting: tuple[tuple[int, ...], ...], strength: int
) -> tuple[tuple[int, ...], ...]:
    """Return the rows, a label first; ``fitting``: for every value of the other axes the labels that it goes with."""
    order = sorted(range(len(fitting)), key=lambda axis: -len(fitting[axis]))
    known = _Labels(_numbered(classes))
    rows: list[Row] = [list(label) for label in known.few(strength)]
    for axis in order:
        known.add(fitting[axis])
        rows += _rows_of(lengthened(rows, known.missing(strength), known.fitting), known)
    found = []
    for turn, (label, row) in enumerate(zip(known.in_turn(rows), rows, strict=True)):
        indices = [label, *(0 for _ in fitting)]
        for axis, index in zip(order, row[known.kinds :], strict=True):
            free = [v for v, labels in enumerate(fitting[axis]) if labels >> label & 1]
            indices[1 + axis] = free[turn % len(free)] if index is None else index
        found.append(tuple(indices))
    return tuple(dict.fromkeys(found))


def _numbered(classes: Sequence[tuple[str, ...]]) -> list[Label]:
    """The classes of each kind as numbers, in the order in which they come."""
    kinds = [list(dict.fromkeys(kind)) for kind in zip(*classes, strict=True)]
    return [tuple(kind.index(word) for kind, word in zip(kinds, each, strict=True)) for each in classes]


class _Labels:
    """Which labels have some classes and fit some values: sets of labels are the bits of a number.

    A row's columns are the kinds of classes, then the axes in the order in which they are added.
    """

    def __init__(self, labels: Sequence[Label]) -> None:
        self.kinds = len(labels[0])
        self._labels = labels
        self._columns: list[list[int]] = [[0] * (1 + max(kind)) for kind in zip(*labels, strict=True)]
        for k, label in enumerate(labels):
            for kind, value in enumerate(label):
                self._columns[kind][value] |= 1 << k

    def add(self, fitting: Sequence[int]) -> None:
        """Add an axis: for every value of it, which labels it fits."""
        self._columns.append(list(fitting))

    @property
    def earlier(self) -> int:
        """Columns before the axis added last."""
        return len(self._columns) - 1

    def with_all(self, row: Row) -> int:
        """Return the labels that have the classes of a row and fit its values."""
        held = (self._columns[c][value] for c, value in enumerate(row) if value is not None)
        return reduce(int.__and__, held, (1 << len(self._labels)) - 1)

    def fitting(self, row: Row) -> list[int]:
        """Return the values of the last axis that can follow a row of the others."""
        mask = self.with_all(row)
        return [value for value, labels in enumerate(self._columns[-1]) if labels & mask]

    def few(self, strength: int) -> list[Label]:
        """Return labels in which any classes meet that meet in one: in turn the one that adds most, the earlier among
        equals."""
        met = [set(combinations(enumerate(label), strength)) for label in self._labels]
        return [self._labels[k] for k in few_that_cover(met)]

    def in_turn(self, rows: Sequence[Row]) -> Iterator[int]:
        """Yield for every row a label that goes with it: those of rows that have the same take turns."""
        turns: dict[int, Iterator[int]] = {}
        for row in rows:
            mask = self.with_all(row)
            if mask not in turns:
                turns[mask] = cycle([k for k in range(len(self._labels)) if mask >> k & 1])
            yield next(turns[mask])

    def missing(self, strength: int) -> Missing:
        """Return what has yet to meet the values of the axis added last."""
        *earlier, last = self._columns
        found = Missing(list(map(len, earlier)), len(last), strength)
        place = 0
        for axes in found.axes:
            for held in product(*(earlier[c] for c in axes)):
                mask = reduce(int.__and__, held)
                found.table[place] = [bool(mask & labels) for labels in last]
                place += 1
        return found


def _rows_of(missing: Sequence[tuple[tuple[int, ...], tuple[int, ...], int]], known: _Labels) -> list[Row]:
    """Rows for the meetings that no row had room for."""
    by_value: defaultdict[int, list[Row]] = defaultdict(list)
    for held, values, v in missing:
        for row in by_value[v]:
            if all(row[c] in (None, a) for c, a in zip(held, values, strict=True)):
                merged = list(row)
                for c, a in zip(held, values, strict=True):
                    merged[c] = a
                if known.with_all(merged):
                    row[:] = merged
                    break
        else:
            row = [None] * known.earlier + [v]
            for c, a in zip(held, values, strict=True):
                row[c] = a
            by_value[v].append(row)
    return [row for rows in by_value.values() for row in rows]
