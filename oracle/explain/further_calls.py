"""Further calls of a run for its largest groups of failures: where they fail, and which step of a formula is wrong."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..catalogue.data.case import Case
from ..model.errors import OracleError
from ..record.reader import Record
from ..record.types import GONE, CaseRecord, Group
from .conditions import Contrast, contrast, is_clear
from .diagnosis import VAGUE, family_of
from .formulas import MOST
from .groups import Part, Step, group_of, merged, over_all, parts
from .neighbours import CallHistory

ASKED = 3  # groups that get further calls
TRIED = 5  # failures of a group in which a wrong step of the formula is looked for


def describes(where: Contrast, failures: int, misses: int) -> bool:
    """Return whether a condition describes a number of failures: it covers most of them, and predicts nearly all cases
    correctly or no more cases wrongly than ``misses``."""
    return 2 * where.failed > failures and (is_clear(where) or where.misses <= misses)


@dataclass
class GroupExplorer:
    """Further calls that a run makes for its largest groups. ``case_of``: the case of an id; ``run``: run one case.
    ``step_of``: the wrong step of the formula that a failing case shows, or ""."""

    case_of: Callable[[str], Case | None]
    run: Callable[[Case], CaseRecord]
    step_of: Callable[[Case], str]
    soc: str
    cann: str
    most: int  # calls
    until: float  # of the monotonic clock
    calls: int = 0

    def groups(self, record: Record) -> list[Group]:
        """Return the groups of a record's failures; further calls have tested the conditions of the largest ones."""
        result = parts(record.cases)
        stepped = [replace(part, step=self._step(part)) for part in result[:ASKED]]
        result = merged([*stepped, *result[ASKED:]])  # groups of one wrong step are one bug
        for number, part in enumerate(result[:ASKED]):
            share = min(len(result), ASKED) - number
            result[number] = self._tried(part, (self.most - self.calls) // share, share)
        return [group_of(part, record) for part in result]

    def _step(self, part: Part) -> Step | None:
        """Return the wrong step of the formula that most of some failures of a part show; None if there is none, or if
        the part has a clear cause. The largest failures are tried: fewer formulas fit them."""
        if part.status != "fail" or family_of(part.cause) not in VAGUE:
            return None
        sizes = {case.id: case.elements or 0 for case in part.cases}
        few = sorted((name for name, size in sizes.items() if 0 < size <= MOST), key=lambda name: -sizes[name])[:TRIED]
        again = [case for name in few if (case := self.case_of(name)) is not None]
        told = [self.step_of(case) for case in again if time.monotonic() < self.until]  # fewer, if time runs out
        (step, count), *_ = Counter(filter(None, told)).most_common(1) or [("", 0)]
        return Step(step, count, len(told)) if 2 * count > len(told) else None

    def _tried(self, part: Part, most: int, share: int) -> Part:
        """Return a part with the condition that its failures, the passing cases and their neighbours show.
        The part keeps its own condition if the new one does not describe the record's cases as well."""
        if part.limit or part.status != "fail":  # after a crash every call needs a new process, which takes too long
            return part
        number = max(range(len(part.members)), key=lambda k: int(np.count_nonzero(part.members[k])))
        population, chosen = part.populations[number], part.members[number]
        kept = [(self.case_of(population.cases[k].id), k) for k in np.flatnonzero(chosen | ~population.bad).tolist()]
        own = [(case, population.facts[k], bool(chosen[k])) for case, k in kept if case is not None]
        if not any(is_bad for *_, is_bad in own):
            return part
        calls, facts, are_bad = (list(column) for column in zip(*own, strict=True))
        known = CallHistory(calls, facts, are_bad, self._fails, self.soc, self.cann)
        now = time.monotonic()
        known.ask(calls=most, until=now + (self.until - now) / share)
        self.calls += known.calls
        result = contrast(*known.thinned())
        if result is None:
            return part
        where = over_all(result.conditions, part.populations, part.members)
        misses = len(part.cases) if part.where is None else part.where.misses
        return replace(part, where=where) if describes(where, len(part.cases), misses) else part

    def _fails(self, case: Case) -> bool | None:
        """Return whether a call fails; None for another status. Raises OracleError if the device is gone."""
        status = self.run(case).status
        if status in GONE:
            raise OracleError(f"{case.id} ended {status}")
        return {"pass": False, "fail": True}.get(status)
