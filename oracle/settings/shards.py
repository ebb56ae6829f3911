"""The distribution of cases: over machines (``--shard K/N``) and, longest first, over the workers of ``-n``.

A case goes to the first shard that its id's hash gives. If this shard already has its share of the total cost, the case
goes to the next shard that the hash gives (consistent hashing with bounded loads). So every machine computes the same
shards alone, a new case moves few others, and no shard is much longer than the rest.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ..catalogue.data.case import Case
from ..catalogue.measure import cost
from ..model.errors import OracleError

T = TypeVar("T")
MOST = 10_000  # shards: a limit above any number of machines
ROOM = 1.02  # a shard's maximum cost, relative to its share


@dataclass(frozen=True)
class Shard:
    """Part ``number`` (from 1) of ``count``."""

    number: int
    count: int

    @classmethod
    def of(cls, text: str) -> Shard:
        """Read ``K/N``. Raises OracleError for anything else."""
        result = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text.strip())
        shard = cls(int(result[1]), int(result[2])) if result else cls(0, 0)
        if not 1 <= shard.number <= shard.count <= MOST:
            raise OracleError(f"--shard {text!r}: must be K/N with 1 <= K <= N <= {MOST}, e.g. 2/8")
        return shard

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def pick(self, cases: Iterable[Case]) -> set[str]:
        """Return the ids of this shard's cases, independent of the order of all cases."""
        return {case_id for case_id, number in deal(cases, self.count).items() if number == self.number}


def deal(cases: Iterable[Case], count: int) -> dict[str, int]:
    """Return the number of every case's shard, by id. The longest cases are assigned first."""
    costs = {case.id: cost(case) for case in cases}
    most = ROOM * math.fsum(costs.values()) / count  # sum() depends on the order, and on the version of Python
    loads = [0.0] * count
    dealt: dict[str, int] = {}
    for case_id in sorted(costs, key=lambda i: (-costs[i], i)):
        choice = next((k for k in _choices(case_id, count) if loads[k] + costs[case_id] <= most), None)
        if choice is None:  # no shard of the hash has room: the case is longer than a share
            choice = loads.index(min(loads))
        loads[choice] += costs[case_id]
        dealt[case_id] = choice + 1
    return dealt


def _choices(case_id: str, count: int) -> Iterator[int]:
    """Yield the shards that an id's hash gives, in order."""
    digest = hashlib.sha256(case_id.encode()).digest()
    for start in range(0, len(digest), 4):
        yield int.from_bytes(digest[start : start + 4], "big") % count


def shuffled(things: Sequence[T], seed: int, name: Callable[[Any], str]) -> list[T]:
    """Return things in an order that depends only on a seed and their names; omitted things do not change the order."""
    return sorted(things, key=lambda thing: hashlib.sha256(f"{seed}/{name(thing)}".encode()).digest())


def interleaved(things: Sequence[T], group: Callable[[Any], str], apart: Callable[[Any], bool]) -> list[T]:
    """Return things with the ``apart`` ones (refused or empty calls) spread evenly among the others of their group. So
    state that a device keeps of such a call meets a call that it computes. Both keep their own order."""
    places: dict[int, tuple[int, float]] = {}
    groups: dict[str, list[int]] = {}
    for number, thing in enumerate(things):
        groups.setdefault(group(thing), []).append(number)
    for first, numbers in enumerate(groups.values()):
        kinds: dict[bool, list[int]] = {False: [], True: []}
        for number in numbers:
            kinds[apart(things[number])].append(number)
        for own in kinds.values():
            places.update((number, (first, (k + 0.5) / len(own))) for k, number in enumerate(own))
    return [things[number] for number in sorted(places, key=places.__getitem__)]


def longest_first(things: Sequence[T], workers: int, cost: Callable[[Any], float]) -> list[T]:
    """Return things in the order in which xdist's workers finish at about the same time.

    xdist first gives every worker a block of consecutive cases, a quarter of its share: the longest cases are
    distributed over these blocks in turn. The rest follows, longest first, in ever smaller blocks.
    """
    ordered = sorted(things, key=cost, reverse=True)
    if workers < 2:
        return ordered
    block = workers * max(2, len(ordered) // workers // 4)
    first = ordered[:block]
    return [thing for worker in range(workers) for thing in first[worker::workers]] + ordered[block:]
