"""A process's place of work: one backend, here or in a process of its own."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ..backends import Backend
from ..case.execute import Stopwatch, operands_after
from ..case.expectations import Expectation
from ..case.one_case import Ahead, run_case
from ..case.outcome import Outcome, record_of
from ..case.rerun import ALONE, MOST, is_unexplained
from ..catalogue.data.case import Case
from ..guest.apart import Apart
from ..guest.faults import DeviceError
from ..guest.opening import load_backend, release
from ..guest.serve import about_of
from ..model.call import Array
from ..model.errors import OracleError
from ..record.types import CaseRecord, Detail
from ..settings.settings import Settings
from .cluster import Spread


class About(NamedTuple):
    """What a loaded backend says of itself. ``visible``: the devices its workers can share; 0 where it has none."""

    name: str
    versions: dict[str, str]
    visible: int


@dataclass
class Bench:
    """Runs cases as the settings ask. The backend is loaded by :meth:`open`, or at the first case."""

    settings: Settings
    elsewhere: Spread | None = None  # the workers of a cluster
    _backend: Backend | None = None
    _ahead: Ahead = field(init=False)
    _cases: int = 0  # that ran on the backend
    _tried: int = 0  # of them in a process of their own

    def __post_init__(self) -> None:
        self._ahead = Ahead(self.settings)

    def begin(self) -> None:
        """Let a backend elsewhere load while this process does something else."""
        if self._backend is None and self.settings.apart:
            self._backend = Apart(self.settings)
            self._backend.begin()

    def open(self) -> None:
        """Load the backend, here or in its process. Raises OracleError if it cannot be."""
        self.begin()
        if self._backend is None:
            self._backend = load_backend(self.settings)
        if isinstance(self._backend, Apart):
            self._backend.open()

    @property
    def about(self) -> About:
        """What the loaded backend says of itself."""
        assert self._backend is not None, "open() it first"
        said = self._backend.about if isinstance(self._backend, Apart) else about_of(self._backend)
        return About(said["name"], dict(said["versions"]), int(said["visible"]))

    @property
    def shares(self) -> tuple[int, ...]:
        """The devices that the workers of -n take in turn: --devices, else all visible unless an option names one."""
        if self.settings.devices or "device" in dict(self.settings.backend_options):
            return self.settings.devices
        return tuple(range(self.about.visible))

    def run_case(self, case: Case, expected: Expectation | None = None, then: Case | None = None) -> CaseRecord:
        """Run one case and return its record, counted as its expectation says. ``then``: the case that comes next."""
        record = self._run(case, expected, then)
        return record if expected is not None else self._alone(case, record)

    def further(self, case: Case) -> CaseRecord:
        """Run a case that explains another one. It is not run a second time in a process of its own: starting one
        costs more than all the further calls may."""
        return self._run(case, None, None)

    def _run(self, case: Case, expected: Expectation | None, then: Case | None) -> CaseRecord:
        if expected is not None and expected.status == "skip" and not expected.expired:
            return record_of(case, self.settings, Outcome("skip", expected.explanation))
        self._ahead.next = then
        try:
            if self.elsewhere is not None:
                record = self.elsewhere.run_case(case)
            else:
                self.open()
                assert self._backend is not None
                record = run_case(case, self._backend, self.settings, self._ahead)
        except OracleError as error:  # the device is not there, or not any more: its cases are errors, not lost
            return record_of(case, self.settings, Outcome("error", str(error)))
        return record if expected is None else expected.counted(record)

    def operands_after(self, case: Case) -> dict[str, Array]:
        """Return the operands of a gradient after its forward, as the device gives them. Raises OracleError where it
        does not."""
        self.open()
        assert self._backend is not None
        assert case.before is not None
        try:
            return operands_after(case, case.before, self._backend, self.settings, Stopwatch())
        except DeviceError as error:
            raise OracleError(f"{case.id}: {error.reason}") from None

    def _alone(self, case: Case, record: CaseRecord) -> CaseRecord:
        """Tell of a failure that nothing explains whether it is one in a process of its own too: of the first few."""
        self._cases += 1
        first = self._cases == 1 or not isinstance(self._backend, Apart)
        if first or self._tried >= MOST or not is_unexplained(record):
            return record
        self._tried += 1
        other = Apart(replace(self.settings, record_outputs=None))
        try:
            other.open()
            passes = run_case(case, other, other.settings).status == "pass"
            other.close()
        except OracleError:  # no second process gets the device, or it does not close: nothing is known then
            passes = False
        finally:
            other.restart()
        return replace(record, detail=replace(record.detail or Detail(), cause=ALONE)) if passes else record

    def restart(self) -> None:
        """Give the next case a fresh process; a backend in this process stays."""
        if isinstance(self._backend, Apart):
            self._backend.restart()

    def close(self) -> None:
        """Release the backend and end its process. Raises OracleError where that goes wrong."""
        if self.elsewhere is not None:
            self.elsewhere.close()
        backend, self._backend = self._backend, None
        if backend is not None:
            release(backend)
