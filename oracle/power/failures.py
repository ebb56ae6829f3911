"""Failures of kernels whose fault is known: a seeded sample of every class of wrong kernel, each with its first cases.

The diagnosis and the shrinker are scored on them (:mod:`.diagnosis`, :mod:`.scripts`).
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..catalogue.case import Case
from ..defects.base import CLASSES, Defect
from ..defects.registry import defects
from ..model.errors import OracleError
from ..runner.custody import DeviceError, guarded
from ..runner.execute import Stopwatch, execute
from ..runner.judge import judge
from ..runner.outcome import Outcome, outcome_of
from ..runner.prepare import Prepared
from ..runner.repeatable import told_of_a_rerun
from ..runner.settings import Settings
from .measure import cases_of
from .share import cheap_first, size_of
from .trial import Plain


@dataclass(frozen=True)
class Failure:
    """A case that a wrong kernel fails, and how."""

    defect: Defect
    case: Case
    settings: Settings
    outcome: Outcome


def chosen(operators: Sequence[str], per_class: int, seed: int, soc: str | None = None) -> list[Defect]:
    """Return so many wrong kernels of every class, over all operators alike; the seed decides which."""
    found: list[Defect] = []
    for kind in CLASSES:
        rng = random.Random(f"{seed}/{kind}")
        turns = [
            (op, [d for d in defects(op) if d.kind == kind and d.soc(soc) and not d.equivalent]) for op in operators
        ]
        left = [(op, ids) for op, ids in turns if ids]
        rng.shuffle(left)
        taken: list[Defect] = []
        while left and len(taken) < per_class:
            for _op, wrong in left[: per_class - len(taken)]:
                taken.append(wrong.pop(rng.randrange(len(wrong))))
            left = [(op, wrong) for op, wrong in left if wrong]
        found += taken
    return found


def failures(
    wrong: Sequence[Defect], cases: tuple[Case, ...], settings: Settings, *, each: int, soc: str | None = None
) -> Iterator[Failure]:
    """Yield the first ``each`` cases that each kernel fails where a right one passes, in an order drawn by the seed.

    Cases of more than 65,536 elements come last.
    """
    groups: defaultdict[tuple[str, str], list[Defect]] = defaultdict(list)
    for defect in wrong:
        groups[defect.op, str(defect.soc(soc))].append(defect)
    for (op, place), group in sorted(groups.items()):
        own = replace(settings, soc=place)
        left = {defect.id: each for defect in group}
        for case in _drawn(cases_of(cases, op, place), settings.seed):
            live = [defect for defect in group if left[defect.id]]
            if not live:
                break
            try:
                plain = Plain(Prepared.make(case, own))
            except OracleError:
                continue  # a case without a reference says nothing of a kernel; `power` lists it
            for defect in live:
                outcome = _failed(defect, plain)
                if outcome is not None:
                    left[defect.id] -= 1
                    yield Failure(defect, case, own, outcome)


def _drawn(cases: Sequence[Case], seed: int) -> list[Case]:
    few = [case for case in cheap_first(cases) if size_of(case) <= 1 << 16]
    random.Random(seed).shuffle(few)
    return [*few, *(case for case in cheap_first(cases) if size_of(case) > 1 << 16)]


def _failed(defect: Defect, plain: Plain) -> Outcome | None:
    """How a kernel fails a case in full; None where it passes, raises, or a right kernel fails too."""
    if not plain.differs(defect.device):
        return None
    prepared = plain.prepared.again()
    try:
        outcome = outcome_of(prepared, judge(prepared, execute(prepared, defect.device, Stopwatch())))
        outcome = told_of_a_rerun(outcome, prepared, defect.device, guarded)
    except DeviceError:  # what it raises is told as it is; nothing is claimed of it
        return None
    return outcome if outcome.status == "fail" and plain.passes else None
