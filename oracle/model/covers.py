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
    left: set[Any] = set().union(*sets).difference(*(sets[k] for k in taken))
    while left:
        best = max(range(len(sets)), key=lambda k: (len(left.intersection(sets[k])), rank(k)))
        yield best
        left.difference_update(sets[best])
