"""Covering arrays of which one axis has many values that matter by their classes alone, as shapes do.

What shall meet are the classes and the values of the other axes: far fewer rows than a covering array of every shape
has. Classes meet where some shape has them all; no other meeting is asked for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import combinations, cycle, product

from .covering import Missing, Row, _best, _places

Label = tuple[int, ...]  # a class of each kind


def covering_classes(
    classes: Sequence[tuple[str, ...]], sizes: Sequence[int], place: int, strength: int
) -> list[tuple[int, ...]]:
    """Return rows of one index per axis, in which any ``strength`` of the classes and of the other axes' values meet
    wherever a value of the axis at ``place`` has those classes; the same rows every time. ``classes``: one of each kind
    for every value of that axis."""
    if 0 in sizes:
        return []
    order = sorted((axis for axis in range(len(sizes)) if axis != place), key=lambda axis: -sizes[axis])
    known = _Labels(_numbered(classes))
    rows: list[Row] = [list(label) for label in known.few(strength)]
    for number, axis in enumerate(order):
        missing = known.missing([sizes[a] for a in order[:number]], sizes[axis], strength)
        for turn, row in enumerate(rows):
            places = list(_places(row, strength))
            value = _best(places, missing, sizes[axis], turn)
            row.append(value)
            for met in places:
                missing[met].discard(value)
        left = sorted((*met, v) for met, values in missing.items() for v in values)
        rows += _rows_of(left, known.kinds + number, known)
    chosen = known.in_turn(rows)
    found = []
    for turn, (label, row) in enumerate(zip(chosen, rows, strict=True)):
        indices = {place: label}
        for axis, index in zip(order, row[known.kinds :], strict=True):
            indices[axis] = turn % sizes[axis] if index is None else index
        found.append(tuple(indices[axis] for axis in range(len(sizes))))
    return list(dict.fromkeys(found))


def _numbered(classes: Sequence[tuple[str, ...]]) -> list[Label]:
    """The classes of each kind as numbers, in the order in which they come."""
    kinds = [list(dict.fromkeys(kind)) for kind in zip(*classes, strict=True)]
    return [tuple(kind.index(word) for kind, word in zip(kinds, each, strict=True)) for each in classes]


class _Labels:
    """Which labels have some classes: sets of labels are the bits of a number."""

    def __init__(self, labels: Sequence[Label]) -> None:
        self.kinds = len(labels[0])
        self._labels = labels
        self._everyone = (1 << len(labels)) - 1
        self._having: defaultdict[tuple[int, int], int] = defaultdict(int)
        for k, label in enumerate(labels):
            for held in enumerate(label):
                self._having[held] |= 1 << k

    def with_all(self, row: Row) -> int:
        """Return the labels that have the classes of a row."""
        held = ((kind, value) for kind, value in enumerate(row[: self.kinds]) if value is not None)
        return reduce(lambda bits, one: bits & self._having[one], held, self._everyone)

    def few(self, strength: int) -> list[Label]:
        """Return labels in which any classes meet that meet in one: in turn the one that adds most, the earlier among
        equals."""
        met = [set(combinations(enumerate(label), strength)) for label in self._labels]
        left = set().union(*met)
        found = []
        while left:
            best = max(range(len(met)), key=lambda k: (len(met[k] & left), -k))
            found.append(self._labels[best])
            left -= met[best]
        return found

    def in_turn(self, rows: Sequence[Row]) -> Iterator[int]:
        """Yield for every row a label that has its classes: those that have the same classes take turns."""
        turns: dict[int, Iterator[int]] = {}
        for row in rows:
            mask = self.with_all(row)
            if mask not in turns:
                turns[mask] = cycle([k for k in range(len(self._labels)) if mask >> k & 1])
            yield next(turns[mask])

    def missing(self, earlier: Sequence[int], size: int, strength: int) -> Missing:
        """Return what has yet to meet the values of a new axis, after axes of the sizes ``earlier``."""
        found: Missing = {}
        for columns in combinations(range(self.kinds + len(earlier)), strength - 1):
            kinds = [c for c in columns if c < self.kinds]
            held = dict.fromkeys(tuple(label[c] for c in kinds) for label in self._labels)
            others = product(*(range(earlier[c - self.kinds]) for c in columns if c >= self.kinds))
            for classes, values in product(held, list(others)):
                found[columns, (*classes, *values)] = set(range(size))
        return found


def _rows_of(
    missing: Sequence[tuple[tuple[int, ...], tuple[int, ...], int]], columns: int, known: _Labels
) -> list[Row]:
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
            row = [None] * columns + [v]
            for c, a in zip(held, values, strict=True):
                row[c] = a
            by_value[v].append(row)
    return [row for rows in by_value.values() for row in rows]
