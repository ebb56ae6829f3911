"""Where an operator fails and where it does not: the shortest conditions that hold for the failures and for no pass.

Among the conjunctions of at most three conditions the one is chosen that describes which cases fail in the fewest bits:
its own length, and what the exceptions inside and outside cost (a description's length, as in two-part codes). So a
third condition has to pay for itself, and a single exception does not hide what all other cases show.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..model.call import Array
from .conditions import Condition, Fact, conditions

MOST = 3  # subjects of conditions together
LONGEST = 5  # conditions together: two of one subject are one range, or a range and a step
VARIED = 8  # of them, of which others that no case tells apart are looked at
BEAM = 32  # conjunctions that are carried on
FEWEST = 2  # failures that a condition may be claimed of
LEAST_PRECISION = 0.5  # share of the cases under the condition that must fail
EXTRA = 4.0  # bits that a further condition costs, whatever it says


@dataclass(frozen=True)
class Contrast:
    """A conjunction, and how the cases lie: ``failed`` of ``inside`` under it, ``passed`` of ``outside`` elsewhere."""

    conditions: tuple[Condition, ...]
    failed: int
    inside: int
    passed: int
    outside: int
    holds: Array  # which of the cases fulfil it
    bits: float = 0.0

    @property
    def misses(self) -> int:
        """How many cases are told wrongly."""
        return self.inside - self.failed + self.outside - self.passed


def contrast(facts: Sequence[Mapping[str, Fact]], bad: Array) -> Contrast | None:
    """Return the conjunction that tells best which cases are ``bad``, None where none is worth its words."""
    if np.count_nonzero(bad) < FEWEST or bad.all():
        return None
    alike, rows = conditions(facts)
    if not alike:
        return None
    known = [own[0] for own in alike]
    best = next((found for found in _search(known, rows, bad) if found.is_worth), None)
    if best is None:
        return None
    chosen, bits = best.chosen, best.bits
    holds = np.logical_and.reduce(rows[list(chosen)])
    return measured([known[k] for k in chosen], holds, bad, bits)


def measured(chosen: Sequence[Condition], holds: Array, bad: Array, bits: float = 0.0) -> Contrast:
    """Count how the cases lie under a conjunction and elsewhere."""
    inside, outside = int(np.count_nonzero(holds)), int(np.count_nonzero(~holds))
    failed, passed = int(np.count_nonzero(holds & bad)), int(np.count_nonzero(~holds & ~bad))
    return Contrast(tuple(chosen), failed, inside, passed, outside, holds, bits)


@dataclass(frozen=True)
class Found:
    """A conjunction that the search met, by the numbers of its conditions. ``is_worth``: it is shorter than to name the
    failures one by one, holds for some of them, and most cases under it fail."""

    chosen: tuple[int, ...]
    bits: float
    is_worth: bool


def rivals(facts: Sequence[Mapping[str, Fact]], bad: Array) -> list[tuple[tuple[Condition, ...], float]]:
    """Return the conjunctions that tell the failures best, with their bits, the best first: of the very best also those
    with another condition that the same cases fulfil."""
    alike, rows = conditions(facts)
    best = _search([own[0] for own in alike], rows, bad)[:BEAM] if alike else []
    found = {each.chosen: (tuple(alike[k][0] for k in each.chosen), each.bits) for each in best}
    told = list(found.values())
    for each in best[:VARIED]:
        chosen, bits = found[each.chosen]
        for place, k in enumerate(each.chosen):
            told += [((*chosen[:place], twin, *chosen[place + 1 :]), bits + twin.bits - chosen[place].bits)
                     for twin in alike[k][1:]]  # fmt: skip
    return sorted(told, key=lambda each: each[1])


def _search(known: Sequence[Condition], rows: Array, bad: Array) -> list[Found]:
    """Extend the best conjunctions by every condition in turn; return all that were carried on, the best first."""
    own = np.array([condition.bits + EXTRA for condition in known])
    numbers = {subject: n for n, subject in enumerate(dict.fromkeys(condition.subject for condition in known))}
    subjects = np.array([numbers[condition.subject] for condition in known])
    wrong, right = rows[:, bad].astype(np.float32), rows[:, ~bad].astype(np.float32)
    failures, passes = wrong.shape[1], right.shape[1]
    nothing = float(_coded(np.array([0.0]), np.array([0.0]), failures, passes)[0])
    met: dict[tuple[int, ...], Found] = {}
    beam: list[tuple[int, ...]] = [()]
    for _ in range(LONGEST):
        found: dict[tuple[int, ...], Found] = {}
        here = np.array([np.minimum.reduce(wrong[list(chosen)], initial=1, axis=0) for chosen in beam])
        there = np.array([np.minimum.reduce(right[list(chosen)], initial=1, axis=0) for chosen in beam])
        for chosen, failed, passed in zip(beam, here @ wrong.T, there @ right.T, strict=True):
            bits = _coded(failed, passed, failures, passes) + own + sum(float(own[k]) for k in chosen)
            bits[list(chosen)] = np.inf
            told = subjects[list(chosen)]
            if len(set(told)) == MOST:
                bits[~np.isin(subjects, told)] = np.inf
            for k in np.argpartition(bits, min(BEAM, len(bits) - 1))[:BEAM]:
                if failed[k] and np.isfinite(bits[k]):
                    enough = failed[k] >= max(FEWEST, LEAST_PRECISION * (failed[k] + passed[k]))
                    key = tuple(sorted((*chosen, int(k))))
                    found.setdefault(key, Found(key, float(bits[k]), bool(enough and bits[k] < nothing)))
        beam = sorted(found, key=lambda key: (found[key].bits, key))[:BEAM]
        met.update((key, found[key]) for key in beam)
        if not beam:
            break
    return sorted(met.values(), key=lambda each: (each.bits, each.chosen))


def _coded(failed: Array, passed: Array, failures: int, passes: int) -> Array:
    """Bits that say which cases fail, inside and outside a condition that holds for so many failures and passes."""
    inside, outside = failed + passed, failures - failed + passes - passed
    return np.asarray(_entropy(failed, inside) + _entropy(failures - failed, outside))


def _entropy(some: Array, all_of_them: Array) -> Array:
    """Bits that say which of ``all_of_them`` are the ``some``, and how many they are."""
    total = np.maximum(all_of_them, 1.0).astype(np.float64)
    share = np.clip(some / total, 1e-12, 1 - 1e-12)
    shannon = -total * (share * np.log2(share) + (1 - share) * np.log1p(-share) / np.log(2))
    return np.where(all_of_them > 0, shannon + 0.5 * np.log2(total + 1), 0.0)


def sentence(chosen: Sequence[Condition]) -> str:
    """Return conditions as a sentence without its end: those of one subject are told of it together."""
    told: dict[str, list[str]] = {}
    for condition in sorted(chosen, key=lambda c: (c.bits, c.told)):
        told.setdefault(condition.subject, []).append(condition.told)
    return ", and ".join(f"{subject} {' and '.join(_joined(words))}" for subject, words in told.items())


def _joined(words: Sequence[str]) -> list[str]:
    """ "is longer than 64", "no multiple of 64": the verb once, the limit first, another verb last."""
    ordered = sorted(words, key=lambda word: (not word.startswith("is "), "multiple" in word))
    return [ordered[0], *(word.removeprefix("is ") for word in ordered[1:])]


def counted(where: Contrast) -> str:
    """Return the counts beside a sentence."""
    return f"fails in {where.failed:,} of {where.inside:,}; passes in {where.passed:,} of {where.outside:,} elsewhere"


def is_clear(where: Contrast) -> bool:
    """Whether a contrast tells nearly all cases rightly."""
    return where.misses <= math.ceil(0.02 * (where.inside + where.outside))
