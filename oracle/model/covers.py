"""Few sets that together hold what many hold: greedily, in turn the one that adds most."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any


def few_that_cover(
    sets: Sequence[Collection[Any]], taken: Iterable[int] = (), rank: Callable[[int], Any] = lambda k: -k
) -> Iterator[int]:
    """Yield indices of sets until they, with those ``taken`` already, hold everything that some set holds.

    ``rank``: decides among sets that add as much, the largest first; asked anew in every turn, so it may depend on
    what was yielded before. By default the earlier set is first.
    """
    bits: dict[Any, int] = {}  # of what a set may hold; a set is the sum of its bits
    masks = [_sum(bits.setdefault(each, 1 << len(bits)) for each in held) for held in sets]
    left = _sum(bits.values()) & ~_sum(masks[k] for k in taken)
    while left:
        added = [(left & mask).bit_count() for mask in masks]
        most = max(added)
        best = max((k for k, count in enumerate(added) if count == most), key=rank)
        yield best
        left &= ~masks[best]


def _sum(bits: Iterable[int]) -> int:
    total = 0
    for each in bits:
        total |= each
    return total
