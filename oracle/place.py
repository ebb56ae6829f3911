"""The place where a case runs: this process, with the device in a separate process, or a cluster."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import NamedTuple

from .backends import Backend
from .case.execute import Stopwatch, open_third_party, operands_after
from .case.expectations import Expectation
from .case.judge import Outcome, record_of
from .case.one_case import ALONE, MOST, Ahead, is_unexplained, run_case
from .catalogue.data.case import Case
from .catalogue.measure import cost
from .explain.diagnosis import family_of
from .guest.opening import DeviceError, load_backend, release
from .guest.process import IsolatedBackend
from .guest.serve import about_of
from .model.call import Array
from .model.errors import OracleError
from .operators import OPERATORS
from .operators.answers.registry import register
from .parallel import Lost, workers
from .record.types import CaseRecord, Detail
from .settings.settings import Settings

# The cases of a run on the workers of a cluster: sent in parts of about equal cost, returned in their order.
#
# Only for backends that are pure arithmetic (``cpu``). A device has a fixed place, and shards send cases to it.

PART_S, PART_CASES = 1.0, 200  # the maximum cost and number of cases of one part

# The search for a cause takes several times as long as a verdict. After 40 failures of an operator in a row without a
# cause, only every eighth failure gets a search: a device that is wrong everywhere does not delay the run.
FAILURES_BEFORE_SAMPLING, SAMPLING_INTERVAL = 40, 8


class ClusterRunner:
    """Runs cases on a cluster. They must be requested in the order given here.

    ``left_out``: the workers that get no cases; ``lost``: why no further case can run.
    """

    def __init__(self, settings: Settings, cases: Sequence[Case]) -> None:
        """Connect to the cluster. Raises OracleError if that is not possible."""
        self.settings, self.lost = settings, ""
        self._open = ExitStack()
        prepare = partial(register, OPERATORS.added)
        self._pool = self._open.enter_context(workers(cluster=settings.cluster, prepare=prepare))
        self.left_out = self._pool.left_out
        self._coming = self._pool.in_order(partial(run_part, settings), parts(cases), self._lost)
        self._there: dict[str, CaseRecord] = {}

    def run_case(self, case: Case) -> CaseRecord:
        """Return the record of a case; ``notrun`` if the cluster lost it."""
        try:
            while case.id not in self._there:
                self._there.update((record.id, record) for record in next(self._coming))
        except (Lost, StopIteration) as error:  # StopIteration: the end after the first loss
            self.lost = self.lost or str(error) or "the cluster gave back less than it was given"
            return self._notrun(case, self.lost)
        return self._there.pop(case.id)

    def _lost(self, part: Sequence[Case], error: OracleError) -> list[CaseRecord]:
        """Return ``notrun`` records for a part whose workers are gone: the loss says nothing about its cases."""
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
    """Run the cases of a part, in a worker's process."""
    settings = settings.for_worker(f"{os.uname().nodename}-{os.getpid()}")
    backend = _loaded(settings)
    return [run_case(case, backend, settings) for case in part]


_loaded = lru_cache(maxsize=4)(load_backend)


# A process's test bench: one backend, here or in a separate process.


class About(NamedTuple):
    """A loaded backend's own description. ``visible``: the number of devices that its workers can share; 0 if it has
    none."""

    name: str
    versions: dict[str, str]
    visible: int


@dataclass
class Bench:
    """Runs cases with the settings. The backend is loaded by :meth:`open`, or at the first case."""

    settings: Settings
    elsewhere: ClusterRunner | None = None  # the workers of a cluster
    _backend: Backend | None = None
    _ahead: Ahead = field(init=False)
    _cases: int = 0  # cases that ran on the backend
    _tried: int = 0  # of these, repeated in a separate process
    _in_a_row: Counter[str] = field(default_factory=Counter)  # failures in a row without a cause, by operator

    def __post_init__(self) -> None:
        self._ahead = Ahead(self.settings)

    def begin(self) -> None:
        """Let a backend in a separate process load while this process does other work."""
        if self._backend is None and self.settings.apart:
            self._backend = IsolatedBackend(self.settings)
            self._backend.begin()

    def open(self) -> None:
        """Load the backend, here or in its process, and the third party. Raises OracleError if that fails."""
        self.begin()
        if self._backend is None:
            self._backend = load_backend(self.settings)
        if isinstance(self._backend, IsolatedBackend):
            self._backend.open()
        open_third_party(self.settings)

    @property
    def about(self) -> About:
        """The loaded backend's own description."""
        assert self._backend is not None, "open() it first"
        said = self._backend.about if isinstance(self._backend, IsolatedBackend) else about_of(self._backend)
        return About(said["name"], dict(said["versions"]), int(said["visible"]))

    @property
    def shares(self) -> tuple[int, ...]:
        """The devices that the workers of -n take in turn: --devices; else all visible, unless an option names one."""
        if self.settings.devices or "device" in dict(self.settings.backend_options):
            return self.settings.devices
        return tuple(range(self.about.visible))

    def run_case(self, case: Case, expected: Expectation | None = None, then: Case | None = None) -> CaseRecord:
        """Run one case and return its record, with the status that its expectation gives. ``then``: the next case."""
        record = self._run(case, expected, then)
        return record if expected is not None else self._alone(case, record)

    def further(self, case: Case) -> CaseRecord:
        """Run a case that explains another one. It is not repeated in a separate process: to start one costs more than
        all further calls together."""
        return self._run(case, None, None)

    def step_of(self, case: Case) -> str:
        """Run a failing case again, and return the wrong step of its formula; "" if none gives the device's results."""
        self.open()
        assert self._backend is not None
        detail = run_case(case, self._backend, replace(self.settings, steps=True)).detail
        return detail.cause if detail is not None and family_of(detail.cause) == "formula" else ""

    def _run(self, case: Case, expected: Expectation | None, then: Case | None) -> CaseRecord:
        if expected is not None and expected.statuses == ("skip",) and not expected.expired:
            return record_of(case, self.settings, Outcome("skip", expected.explanation))
        self._ahead.next = then
        try:
            if self.elsewhere is not None:
                record = self.elsewhere.run_case(case)
            else:
                self.open()
                assert self._backend is not None
                row = self._in_a_row[case.op]
                explained = (expected is None or not expected.explains) and (
                    row < FAILURES_BEFORE_SAMPLING or row % SAMPLING_INTERVAL == 0
                )
                record = run_case(case, self._backend, self.settings, self._ahead, explained=explained)
                if record.status == "fail":
                    self._in_a_row[case.op] = row + 1 if is_unexplained(record) else 0
        except OracleError as error:  # the device is missing: its cases are errors, not lost
            return record_of(case, self.settings, Outcome("error", str(error)))
        return record if expected is None else expected.counted(record)

    def operands_after(self, case: Case) -> dict[str, Array]:
        """Return the operands of a gradient after its forward, from the device. Raises OracleError if it does not give
        them."""
        self.open()
        assert self._backend is not None
        assert case.before is not None
        try:
            return operands_after(case, case.before, self._backend, self.settings, Stopwatch())
        except DeviceError as error:
            raise OracleError(f"{case.id}: {error.reason}") from None

    def _alone(self, case: Case, record: CaseRecord) -> CaseRecord:
        """Return the record, marked if it is one of the first few unexplained failures and passes in a separate
        process."""
        self._cases += 1
        first = self._cases == 1 or not isinstance(self._backend, IsolatedBackend)
        if first or self._tried >= MOST or not is_unexplained(record, even_otherwise=True):
            return record
        self._tried += 1
        return replace(record, detail=replace(record.detail or Detail(), cause=ALONE)) if self.alone(case) else record

    def alone(self, case: Case) -> bool:
        """Return whether a failing case passes in a fresh process, so that state left by other calls makes it fail."""
        if not isinstance(self._backend, IsolatedBackend):
            return False
        other = IsolatedBackend(replace(self.settings, record_outputs=None))
        try:
            other.open()
            passes = run_case(case, other, other.settings).status == "pass"
            other.close()
        except OracleError:  # a second process cannot open or close the device: unknown
            passes = False
        finally:
            other.restart()
        return passes

    def restart(self) -> None:
        """Give the next case a fresh process; a backend in this process is kept."""
        if isinstance(self._backend, IsolatedBackend):
            self._backend.restart()

    def close(self) -> None:
        """Release the backend and end its process. Raises OracleError if that fails."""
        if self.elsewhere is not None:
            self.elsewhere.close()
        backend, self._backend = self._backend, None
        if backend is not None:
            release(backend)
