"""The cases of a run on the workers of a cluster: handed out in parts of about equal cost, taken back in their order.

For backends that are only arithmetic (``cpu``): a device is where it is, and its cases go there by shards.
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
from ..parallel import Lost, workers
from ..record.types import CaseRecord
from ..settings.settings import Settings

PART_S, PART_CASES = 1.0, 200  # what one part may cost, and hold


class Spread:
    """Runs cases elsewhere. They must be asked for in the order in which they are given here.

    ``told``: which workers get no cases; ``lost``: why no further case can be run.
    """

    def __init__(self, settings: Settings, cases: Sequence[Case]) -> None:
        """Reach the cluster. Raises OracleError where that is not possible."""
        self.settings, self.lost = settings, ""
        self._open = ExitStack()
        prepare = partial(register, OPERATORS.added)
        self._pool = self._open.enter_context(workers(cluster=settings.cluster, prepare=prepare))
        self.told = self._pool.told
        self._coming = self._pool.in_order(partial(run_part, settings), parts(cases), self._lost)
        self._there: dict[str, CaseRecord] = {}

    def run_case(self, case: Case) -> CaseRecord:
        """Return the record of a case; ``notrun`` where the cluster lost it."""
        try:
            while case.id not in self._there:
                self._there.update((record.id, record) for record in next(self._coming))
        except (Lost, StopIteration) as error:  # StopIteration: after the first loss there is nothing more
            self.lost = self.lost or str(error) or "the cluster gave back less than it was given"
            return self._notrun(case, self.lost)
        return self._there.pop(case.id)

    def _lost(self, part: Sequence[Case], error: OracleError) -> list[CaseRecord]:
        """A part whose workers are gone: that says nothing of its cases."""
        if self._pool.alive is not None and not self._pool.alive():
            self.lost = str(error)
        return [self._notrun(case, f"{error}; {len(part)} cases were in that part") for case in part]

    def _notrun(self, case: Case, why: str) -> CaseRecord:
        return record_of(case, self.settings, Outcome("notrun", f"{why}; --resume repeats it"))

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
