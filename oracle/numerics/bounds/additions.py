"""What a float32 sum may lose, in whatever order it is made.

A partial sum between two powers of two is a multiple of the spacing there, so what adding a term loses depends on the
term alone: its distance from the nearest multiple. Terms that are equal, or lie close together, lose the same again
and again, and small ones all of themselves; others make up for each other. So these distances are added up as the
terms stand. Where values repeat even that says little, for what they lose by lanes, or at ties, which go by the
partial sum's parity, it does not show: there the worst of any order counts (docs/bounds.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np

from ...model.call import Array
from ..floats.rounding import UNIT

SHORT = 256  # terms up to which the worst of any order hides nothing: together 2^-16 of their magnitudes
BINADES = 4  # below the sum of magnitudes, where partial sums are: those of eight lanes are three below
RUN = 128  # consecutive terms whose distances are looked at together
SAMPLE, SHARE = 256, 0.25  # terms that tell whether values repeat: where so many of them occur again
DIGITS, LEAST = 24, -149  # of a float32 significand; the exponent of its smallest number


def lost(parts: Iterable[Array], size: Array, length: int) -> Array:
    """Return what a sum along the last axis may lose, absolute, in the shape of ``size``.

    ``parts``: the terms in float64, finite, in one piece or in several along the axis. ``size``: the sums of their
    magnitudes, the axis kept. ``length``: the number of terms.
    """
    worst = UNIT * max(0, length - 1) * size
    if length <= SHORT:
        return worst
    sample: list[Array] = []
    step = length // SAMPLE | 1  # odd: few values in turn are all met

    def looked_at() -> Iterator[Array]:
        for terms in parts:
            sample.append(terms[..., ::step].copy())  # no view, which would keep the parts of a long row in memory
            yield terms

    together = _lost_together(looked_at(), size)
    differing = np.minimum(worst, UNIT * math.sqrt(length) * size + together)
    return np.where(_repeat(np.concatenate(sample, axis=-1)), worst, differing)


def _repeat(terms: Array) -> Array:
    """In which rows values repeat, but 0, the axis kept."""
    ordered = np.sort(terms, axis=-1)
    again = (ordered[..., 1:] == ordered[..., :-1]) & (ordered[..., 1:] != 0)
    most = SHARE * np.count_nonzero(ordered, axis=-1, keepdims=True)
    return np.asarray(np.count_nonzero(again, axis=-1, keepdims=True) > most)


def _lost_together(parts: Iterable[Array], size: Array) -> Array:
    """What consecutive terms lose together at most, summed over the binades that partial sums go through."""
    exponent = np.maximum(np.frexp(size)[1] - DIGITS, LEAST)
    reached, most, least = (np.zeros((BINADES, *size.shape)) for _ in range(3))
    for terms in parts:
        steps = terms * np.ldexp(1.0, -exponent)
        nearest = np.rint(steps)
        steps -= nearest
        distance = steps.astype(np.float32)  # whose own error is far below what other orders may lose
        for k in range(BINADES):
            runs = np.add.reduceat(distance, np.arange(0, distance.shape[-1], RUN), axis=-1)
            path = np.cumsum(runs, axis=-1, dtype=np.float64) + reached[k]
            np.maximum(most[k], path.max(axis=-1, keepdims=True), out=most[k])
            np.minimum(least[k], path.min(axis=-1, keepdims=True), out=least[k])
            reached[k] = path[..., -1:]
            distance *= 2  # in units of the next binade's spacing, which is half as wide
            distance -= np.rint(distance)
    most -= least
    most *= np.ldexp(1.0, -np.arange(BINADES)).reshape(-1, *[1] * size.ndim)
    return np.asarray(np.ldexp(most.sum(axis=0), exponent))
