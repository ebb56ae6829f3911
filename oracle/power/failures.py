"""Failures of kernels whose fault is known: a seeded sample of every class of wrong kernel, each with its first cases.

The diagnosis and the shrinker are scored on them (:mod:`.diagnosis`, :mod:`.scripts`).
"""

from __future__ import annotations

import contextlib
import io
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..case.execute import Stopwatch, execute
from ..case.judge import judge
from ..case.one_case import run_case
from ..case.outcome import Outcome, outcome_of
from ..case.prepare import Prepared
from ..case.rerun import told_of_a_rerun
from ..catalogue.data.case import Case
from ..defects.base.base import CLASSES, Defect
from ..defects.registry import defects
from ..guest.faults import DeviceError
from ..model.errors import OracleError
from ..reduce.handover import fails
from ..reduce.script import script
from ..reduce.shrink import shrink_with
from ..settings.settings import Settings
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
        outcome = told_of_a_rerun(outcome, prepared, defect.device)
    except DeviceError:  # what it raises is told as it is; nothing is claimed of it
        return None
    return outcome if outcome.status == "fail" and plain.passes else None


# How many failures of wrong kernels the shrinker turns into a script that fails.

RUNS = 120  # of a kernel on candidates: enough for most, and a sample has dozens


def kernel(op: str, id: str) -> Any:
    """Return a wrong kernel as a backend: what a script that is about one imports."""
    return next(defect.device for defect in defects(op) if defect.id == id)


@dataclass
class Rate:
    """How many scripts fail as their case does. ``lost``: the others, and why."""

    tried: int = 0
    failing: int = 0
    lost: list[tuple[Failure, str]] = field(default_factory=list)

    @property
    def share(self) -> float:
        return self.failing / self.tried if self.tried else 1.0

    def to_json(self) -> dict[str, Any]:
        return {
            "tried": self.tried,
            "failing": self.failing,
            "lost": [{"kernel": f.defect.id, "case": f.case.id, "why": why} for f, why in self.lost],
        }


def rate_of(found: Iterable[Failure]) -> Rate:
    """Shrink each failure, run its script in this process as Python would, and count."""
    rate = Rate()
    for failure in found:
        rate.tried += 1
        why = _problem(failure)
        if why:
            rate.lost.append((failure, why))
        else:
            rate.failing += 1
    return rate


def _problem(failure: Failure) -> str:
    defect = failure.defect
    options = (("op", defect.op), ("id", defect.id))
    settings = replace(failure.settings, backend=f"{__name__}:kernel", backend_options=options)
    try:
        shrunk = shrink_with(lambda case: run_case(case, defect.device, settings), failure.case, settings, runs=RUNS)
        text = script(shrunk)
    except OracleError as error:
        return str(error)
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            namespace: dict[str, Any] = {"__name__": "failure"}
            exec(compile(text, "failure.py", "exec"), namespace)
            code = int(namespace["main"]())
    except Exception as error:
        return "" if fails(shrunk.record, 1, "", type(error).__name__) else f"{type(error).__name__}: {error}"
    return "" if fails(shrunk.record, code, out.getvalue(), "") else f"the script says: {out.getvalue().strip()[:300]}"
