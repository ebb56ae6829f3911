"""What the layers (structure, standard, strict) say of a case, as reports tell it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from ...record.reader import CaseRecord
from ...record.types import LAYERS


def objections(case: CaseRecord) -> tuple[str, ...]:
    """Names of the layers that reject a case, in the order they are judged."""
    found = [name for name, verdict in case.verdicts.items() if not verdict.passed]
    return tuple(known(found)) if found else ()


def known(names: Iterable[str]) -> list[str]:
    """Layers in the order they are judged; names this version does not know come last."""
    rank = {name: place for place, name in enumerate(LAYERS)}
    return sorted(set(names), key=lambda name: (rank.get(name, len(rank)), name))


def scores(cases: Sequence[CaseRecord]) -> dict[str, tuple[int, int]]:
    """Per layer (accepted, judged), each layer by itself, whatever the others say of the same case."""
    accepted: Counter[str] = Counter()
    judged: Counter[str] = Counter()
    for case in cases:
        for name, verdict in case.verdicts.items():
            judged[name] += 1
            accepted[name] += verdict.passed
    return {name: (accepted[name], judged[name]) for name in known(judged)}
