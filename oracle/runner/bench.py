"""A process's place of work: one backend, here or in a child process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..backends import Backend, load
from ..catalogue.case import Case
from ..errors import OracleError
from .expectations import Expectation
from .isolate import About, Child
from .run import Outcome, case_line, run_case
from .settings import Settings


def load_backend(settings: Settings) -> Backend:
    """Return the backend a run asks for, on this process's device. Raises OracleError, whatever the backend raises."""
    try:
        return _load(settings)
    except OracleError:
        raise
    except Exception as error:
        told = f"backend {settings.backend} could not be opened: {type(error).__name__}: {error}"
        raise OracleError(told) from error


def _load(settings: Settings) -> Backend:
    if settings.emulate:
        from ..emulator import activate

        activate(settings.soc)
    backend = load(settings.backend, dict(settings.backend_options))
    _check_devices(backend, settings)
    if settings.device is not None:
        use_device = getattr(backend, "use_device", None)
        if use_device is None:
            raise OracleError(f"--devices: backend {settings.backend} has no devices to choose from")
        use_device(settings.device)
    found = getattr(backend, "soc", None)
    if found is not None and found != settings.soc:
        raise OracleError(f"--soc {settings.soc}: the device of backend {settings.backend} is a {found}: --soc {found}")
    getattr(backend, "versions", None)  # a device that does not open says so now
    return backend


def release(backend: Backend) -> None:
    """Close a backend that can be closed. Raises OracleError, whatever the backend raises."""
    close = getattr(backend, "close", None)
    if close is None:
        return
    try:
        close()
    except Exception as error:
        told = f"backend {backend.name} could not be closed: {type(error).__name__}: {error}"
        raise OracleError(told) from error


def _check_devices(backend: Backend, settings: Settings) -> None:
    """Refuse a device of --devices that is not there before any worker meets it."""
    devices = getattr(backend, "devices", None)
    if not settings.devices or devices is None:
        return
    count = devices()
    for number in settings.devices:
        if number >= count:
            raise OracleError(f"--devices: no device {number}; backend {settings.backend} sees {count}, from 0 on")


@dataclass
class Bench:
    """Runs cases as the settings ask. The backend is loaded by :meth:`open`, or at the first case."""

    settings: Settings
    _backend: Backend | None = None
    _child: Child | None = None

    def open(self) -> None:
        """Load the backend, here or in the child. Raises OracleError if it cannot be."""
        if self._backend is not None or self._child is not None:
            return
        if self.settings.in_child:
            child = Child(self.settings)
            child.start()
            self._child = child
        else:
            self._backend = load_backend(self.settings)

    @property
    def about(self) -> About:
        """What the loaded backend says of itself."""
        if self._child is not None:
            return self._child.about
        assert self._backend is not None, "open() it first"
        return About.of(self._backend)

    @property
    def shares(self) -> tuple[int, ...]:
        """The devices that the workers of -n take in turn: --devices, else all visible unless an option names one."""
        if self.settings.devices or "device" in dict(self.settings.backend_options):
            return self.settings.devices
        return tuple(range(self.about.visible))

    def run(self, case: Case, expected: Expectation | None = None) -> dict[str, Any]:
        """Run one case and return its record line, counted as its expectation says."""
        if expected is not None and expected.status == "skip":
            return case_line(case, self.settings, Outcome("skip", expected.told))
        try:
            self.open()
            if self._child is not None:
                line = self._child.run(case)
            else:
                assert self._backend is not None
                line = run_case(case, self._backend, self.settings)
        except OracleError as error:  # the device is not there, or not any more: its cases are errors, not lost
            return case_line(case, self.settings, Outcome("error", str(error)))
        if expected is not None:
            line["status"], line["reason"] = expected.resolve(line["status"], line["reason"])
        return line

    def close(self) -> None:
        """Release the backend and end the child. Raises OracleError where that goes wrong."""
        backend, child, self._backend, self._child = self._backend, self._child, None, None
        if child is not None:
            child.close()
        if backend is not None:
            release(backend)
