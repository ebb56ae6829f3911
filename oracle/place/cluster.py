"""The cases of a run on the workers of a cluster: handed out in parts of about equal cost, taken back in their order.

For backends that are only arithmetic (``cpu``): a device is where it is, and its cases go there by shards or ssh.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import lru_cache, partial

from ..backends import Backend
from ..case.one_case import run_case
from ..case.outcome import Outcome, record_of
from ..catalogue.data.case import Case
from ..catalogue.measure.cost import cost
from ..guest.opening import load_backend
from ..model.errors import OracleError
from ..operators import OPERATORS
from ..operators.answers.registry import register
from ..parallel import workers
from ..record.types import CaseRecord
from ..settings.settings import Settings

PART_S, PART_CASES = 1.0, 200  # what one part may cost, and hold


class Spread:
    """Runs cases elsewhere. They must be asked for in the order in which they are given here."""

    def __init__(self, settings: Settings, cases: Sequence[Case]) -> None:
        self.settings, self.cases = settings, cases
        self._open = ExitStack()
        self._coming: Iterator[list[CaseRecord]] | None = None
        self._there: dict[str, CaseRecord] = {}

    def run_case(self, case: Case) -> CaseRecord:
        """Return the record of a case. Raises OracleError where the cluster is gone, or never was."""
        if self._coming is None:
            prepare = partial(register, OPERATORS.added)
            pool = self._open.enter_context(workers(cluster=self.settings.cluster, prepare=prepare))
            self._coming = pool.in_order(partial(run_part, self.settings), parts(self.cases), self._lost)
        while case.id not in self._there:
            found = next(self._coming, None)
            if found is None:
                raise OracleError(f"{case.id} was not handed out to the cluster")
            self._there.update((record.id, record) for record in found)
        return self._there.pop(case.id)

    def _lost(self, part: Sequence[Case], error: OracleError) -> list[CaseRecord]:
        """A part that ended every worker that had it: none of its cases is known to be right."""
        why = f"{error}; {len(part)} cases were in that part"
        return [record_of(case, self.settings, Outcome("crash", why)) for case in part]

    def close(self) -> None:
        self._open.close()


def parts(cases: Sequence[Case]) -> Iterator[tuple[Case, ...]]:
    """Yield cases in parts of about equal cost, in their order."""
    part: list[Case] = []
    spent = 0.0
    for case in cases:
        part.append(case)
        spent += cost(case)
        if spent >= PART_S or len(part) >= PART_CASES:
            yield tuple(part)
            part, spent = [], 0.0
    if part:
        yield tuple(part)


def run_part(settings: Settings, part: Sequence[Case]) -> list[CaseRecord]:
    """Run some cases, in a worker's process."""
    settings = settings.for_worker(f"{os.uname().nodename}-{os.getpid()}")
    backend = _backend(settings)
    return [run_case(case, backend, settings) for case in part]


@lru_cache(maxsize=4)
def _backend(settings: Settings) -> Backend:
    return load_backend(settings)
