"""A process's place of work: one backend, here or in a child process."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ..backends import Backend
from ..case.expectations import Expectation
from ..case.one_case import run_case
from ..case.outcome import Outcome, record_of
from ..case.rerun import ALONE, MOST, is_unexplained
from ..catalogue.data.case import Case
from ..guest import watch
from ..guest.opening import load_backend, release
from ..model.errors import OracleError
from ..record.types import CaseRecord, Detail
from ..settings.settings import Settings
from .child import About
from .cluster import Spread
from .parent import Child


@dataclass
class Bench:
    """Runs cases as the settings ask. The backend is loaded by :meth:`open`, or at the first case."""

    settings: Settings
    _backend: Backend | None = None
    _child: Child | None = None
    elsewhere: Spread | None = None  # the workers of a cluster
    _changed: list[str] = field(default_factory=list)
    _cases: int = 0  # that the child has run
    _tried: int = 0  # of them in a process of their own

    def open(self) -> None:
        """Load the backend, here or in the child. Raises OracleError if it cannot be."""
        if self._backend is not None or self._child is not None:
            return
        if self.settings.in_child:
            child = Child(self.settings)
            child.start()
            self._child = child
        else:
            self._backend = load_backend(self.settings, self._changed)

    @property
    def about(self) -> About:
        """What the loaded backend says of itself."""
        if self._child is not None:
            return self._child.about
        assert self._backend is not None, "open() it first"
        return About.of(self._backend, self._changed)

    @property
    def shares(self) -> tuple[int, ...]:
        """The devices that the workers of -n take in turn: --devices, else all visible unless an option names one."""
        if self.settings.devices or "device" in dict(self.settings.backend_options):
            return self.settings.devices
        return tuple(range(self.about.visible))

    def run_case(self, case: Case, expected: Expectation | None = None) -> CaseRecord:
        """Run one case and return its record, counted as its expectation says."""
        if expected is not None and expected.status == "skip" and not expected.expired:
            return record_of(case, self.settings, Outcome("skip", expected.explanation))
        watch.running(case.id)
        try:
            self.open()
            if self.elsewhere is not None:
                record = self.elsewhere.run_case(case)
            elif self._child is not None:
                record = self._alone(case, self._child.run_case(case))
            else:
                assert self._backend is not None
                record = run_case(case, self._backend, self.settings)
        except OracleError as error:  # the device is not there, or not any more: its cases are errors, not lost
            return record_of(case, self.settings, Outcome("error", str(error)))
        if expected is not None:
            record = expected.counted(record)
        return record

    def _alone(self, case: Case, record: CaseRecord) -> CaseRecord:
        """Tell of a failure that nothing explains whether it is one in a process of its own too: of the first few."""
        self._cases += 1
        if self._cases == 1 or self._tried >= MOST or not is_unexplained(record):
            return record
        self._tried += 1
        other = Child(replace(self.settings, record_outputs=None))
        try:
            other.start()
            passes = other.run_case(case).status == "pass"
            other.close()
        except OracleError:  # no second process gets the device, or it does not close: nothing is known then
            passes = False
        finally:
            other.kill()
        return replace(record, detail=replace(record.detail or Detail(), cause=ALONE)) if passes else record

    def restart(self) -> None:
        """Give the next case a fresh child process; a backend in this process stays."""
        if self._child is not None:
            self._child.kill()

    def close(self) -> None:
        """Release the backend and end the child. Raises OracleError where that goes wrong."""
        if self.elsewhere is not None:
            self.elsewhere.close()
        backend, child, self._backend, self._child = self._backend, self._child, None, None
        if child is not None:
            child.close()
        if backend is not None:
            release(backend)
