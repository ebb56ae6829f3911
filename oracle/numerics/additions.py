"""What a float32 sum may lose, in whatever order it is made.

A partial sum between two powers of two is a multiple of the spacing there, so what adding a term loses depends on the
term alone: its distance from the nearest multiple. Terms that are equal, or lie close together, lose the same again and
again, and small ones all of themselves; others make up for each other. So these distances are added up as the terms
stand; of terms that repeat also by lanes, and for every way that ties may go (docs/bounds.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from ..model.call import Array
from .sink import UNIT

Parts = Callable[[], Iterable[Array]]

SHORT = 256  # terms up to which the worst of any order hides nothing: together 2^-16 of their magnitudes
BINADES = 4  # below a sum of magnitudes, where its partial sums are
RUN = 128  # consecutive terms whose distances are looked at together
SAMPLE, SHARE = 256, 0.25  # terms that tell whether values repeat: where so many of them occur again
LANES = 8, 4, 2  # sums that are made side by side, every so many terms one of each
DIGITS, LEAST = 24, -149  # of a float32 significand; the exponent of its smallest number


def lost(parts: Parts, size: Array, length: int) -> Array:
    """Return what a sum along the last axis may lose, absolute, in the shape of ``size``.

    ``parts`` gives the terms in float64, finite, in one piece or in several along the axis, each but the last of a
    multiple of RUN terms; it is called more than once. ``size``: the sums of their magnitudes, the axis kept.
    ``length``: the number of terms.
    """
    worst = UNIT * max(0, length - 1) * size
    if length <= SHORT:
        return worst
    sizes, every = size.reshape(-1), np.arange(size.size)
    together = _lost_together(parts, sizes, every, 1, ties=False)
    if (rows := np.flatnonzero(_repeats(parts, sizes.size, length))).size:
        each = np.sum([np.abs(_lanes(part, rows, LANES[0])).sum(axis=-1) for part in parts()], axis=0)
        for lanes in (*LANES, 1):
            each = each.reshape(rows.size, -1, lanes).sum(axis=1)
            by_lane = _lost_together(parts, each.reshape(-1), rows, lanes, ties=True)
            together[rows] = np.maximum(together[rows], by_lane.reshape(-1, lanes).sum(axis=-1))
    return np.asarray(np.minimum(worst, UNIT * math.sqrt(length) * size + together.reshape(size.shape)))


def _repeats(parts: Parts, rows: int, length: int) -> Array:
    """In which rows values repeat: of the terms of a sample that are not 0."""
    step = length // SAMPLE | 1
    terms = np.sort(np.concatenate([part.reshape(rows, -1)[:, ::step] for part in parts()], axis=-1), axis=-1)
    again = (terms[:, 1:] == terms[:, :-1]) & (terms[:, 1:] != 0)
    return np.asarray(np.count_nonzero(again, axis=-1) > SHARE * np.count_nonzero(terms, axis=-1))


def _lanes(terms: Array, rows: Array, lanes: int) -> Array:
    """The terms of some rows by lanes: (rows, lanes, terms of each), filled up with zeros."""
    found = terms.reshape(-1, terms.shape[-1])
    if rows.size < found.shape[0]:
        found = found[rows]
    if missing := -found.shape[-1] % lanes:
        found = np.pad(found, ((0, 0), (0, missing)))
    return np.ascontiguousarray(found.reshape(rows.size, -1, lanes).swapaxes(-1, -2))


def _lost_together(parts: Parts, sizes: Array, rows: Array, lanes: int, *, ties: bool) -> Array:
    """What the lanes of some rows lose, one after the other. ``sizes``: of each lane."""
    path = _Path(sizes, 3 if ties else 1)
    for part in parts():
        path.add(_lanes(part, rows, lanes).reshape(sizes.size, -1), RUN // lanes)
    return path.lost()


class _Path:
    """What the terms of some sums lose together, in the binades that the partial sums go through.

    All orders lose the same but at a tie, a term halfway between two multiples: it is rounded to the even one, so that
    the partial sum's parity decides. ``ways``: 1, beside even partial sums, as they are after a tie; or 3, also as the
    odd multiples change it that stand before a tie, and, for a sum from the last term on, behind it. ``odd``: how many
    followed the last ``tie``, of which its distance is kept.
    """

    def __init__(self, sizes: Array, ways: int) -> None:
        self.ways = ways
        self.spacing = np.ldexp(1.0, np.maximum(np.frexp(sizes)[1] - DIGITS, LEAST))
        self.odd, self.tie = (np.zeros((BINADES, sizes.size)) for _ in range(2))
        self.reached, self.most, self.least = (np.zeros((BINADES, ways, sizes.size)) for _ in range(3))

    def add(self, terms: Array, run: int) -> None:
        """Go on with some terms of each sum, so many of which are taken as one."""
        distance = terms / self.spacing[:, None]
        nearest = np.empty_like(distance)
        starts = np.arange(0, distance.shape[-1], run)
        for k in range(BINADES):
            np.rint(distance, out=nearest)
            distance -= nearest
            self._go(k, 0, distance, starts)
            for way, losses in enumerate(self._turned(k, distance, nearest) if self.ways > 1 else (), 1):
                self._go(k, way, losses, starts)
            distance *= 2  # in units of the next binade's spacing, which is half as wide

    def _go(self, k: int, way: int, losses: Array, starts: Array) -> None:
        """Add losses to a path."""
        path = np.cumsum(np.add.reduceat(losses, starts, axis=-1), axis=-1)
        path += self.reached[k, way][:, None]
        np.maximum(self.most[k, way], path.max(axis=-1), out=self.most[k, way])
        np.minimum(self.least[k, way], path.min(axis=-1), out=self.least[k, way])
        self.reached[k, way] = path[:, -1]

    def _turned(self, k: int, distance: Array, nearest: Array) -> Iterator[Array]:
        """Yield what terms lose where the parity of multiples decides ties: forwards, and backwards."""
        row, column = np.nonzero(np.abs(distance) == 0.5)
        passed = np.cumsum(nearest, axis=-1) + self.odd[k][:, None]
        ties, at = distance[row, column], passed[row, column]
        first = np.diff(row, prepend=-1) != 0
        last = np.r_[first[1:], first[:1]]
        sign = 1 - 2 * ((at - np.where(first, 0.0, np.roll(at, 1))) % 2)
        earlier = np.where(first, self.tie[k][row], np.roll(ties, 1))
        self.odd[k] = passed[:, -1]
        self.odd[k][row[last]] -= at[last]
        self.tie[k][row[last]] = ties[last]
        for told in (ties, earlier):  # backwards a tie is told where the next one stands
            losses = distance.copy()
            losses[row, column] = told * sign
            yield losses

    def lost(self) -> Array:
        """The most that any stretch of a path loses, summed over the binades."""
        reach = (self.most - self.least).max(axis=1) * np.ldexp(1.0, -np.arange(BINADES))[:, None]
        return np.asarray(reach.sum(axis=0) * self.spacing)
