"""The possible loss of a float32 sum, for any order of its additions.

A partial sum between two powers of two is a multiple of the spacing there. So the loss of an addition depends on the
term alone: on its distance from the nearest multiple. Equal or close terms have the same loss again and again, and
small terms are lost completely; the losses of other terms cancel each other. So these distances are added up in the
order of the terms. This says too little if values repeat. It does not show their losses by lanes, nor at ties, which
depend on the partial sum's parity. Then the worst case of any order applies (docs/bounds.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np

from ...model.call import Array
from ..floats.rounding import UNIT

SHORT = 256  # up to this number of terms, the worst case of any order is good enough: 2^-16 of the magnitudes' sum
BINADES = 4  # the binades of partial sums below the sum of magnitudes: partial sums of eight lanes are three below
RUN = 128  # consecutive terms; their distances are added first
SAMPLE, SHARE = 256, 0.25  # a sample of the terms shows whether values repeat: if this share occurs again
DIGITS, LEAST = 24, -149  # of a float32 significand; the exponent of its smallest number


def lost(parts: Iterable[Array], size: Array, length: int) -> Array:
    """Return the possible absolute loss of a sum along the last axis, in the shape of ``size``.

    ``parts``: the terms in float64, finite, in one piece or in several along the axis. ``size``: the sums of their
    magnitudes, the axis kept. ``length``: the number of terms.
    """
    worst = UNIT * max(0, length - 1) * size
    if length <= SHORT:
        return worst
    sample: list[Array] = []
    step = length // SAMPLE | 1  # odd: the sample contains all values of a short cycle

    def looked_at() -> Iterator[Array]:
        for terms in parts:
            sample.append(terms[..., ::step].copy())  # no view: it would keep the parts of a long row in memory
            yield terms

    together = _lost_together(looked_at(), size)
    differing = np.minimum(worst, UNIT * math.sqrt(length) * size + together)
    return np.where(_repeat(np.concatenate(sample, axis=-1)), worst, differing)


def _repeat(terms: Array) -> Array:
    """Return a mask of the rows in which values other than 0 repeat, the axis kept."""
    ordered = np.sort(terms, axis=-1)
    again = (ordered[..., 1:] == ordered[..., :-1]) & (ordered[..., 1:] != 0)
    most = SHARE * np.count_nonzero(ordered, axis=-1, keepdims=True)
    return np.asarray(np.count_nonzero(again, axis=-1, keepdims=True) > most)


def _lost_together(parts: Iterable[Array], size: Array) -> Array:
    """Return the largest common loss of consecutive terms, summed over the binades that partial sums go through."""
    exponent = np.maximum(np.frexp(size)[1] - DIGITS, LEAST)
    reached, most, least = (np.zeros((BINADES, *size.shape)) for _ in range(3))
    for terms in parts:
        steps = terms * np.ldexp(1.0, -exponent)
        nearest = np.rint(steps)
        steps -= nearest
        distance = steps.astype(np.float32)  # its own error is far below the possible loss in other orders
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
