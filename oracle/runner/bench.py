"""A process's place of work: one backend, here or in a child process."""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from typing import Any

from ..backends import Backend, load
from ..catalogue.case import Case
from ..errors import OracleError
from .expectations import Expectation
from .isolate import Child
from .run import Outcome, case_line, run_case
from .settings import Settings


def load_backend(settings: Settings) -> Backend:
    """Return the backend a run asks for, on this process's device. Raises OracleError."""
    if settings.emulate:
        _emulate(settings)
    backend = load(settings.backend, dict(settings.backend_options))
    _check_devices(backend, settings)
    number = settings.device if settings.device is not None else _own_share(backend, settings)
    if number is not None:
        use_device = getattr(backend, "use_device", None)
        if use_device is None:
            raise OracleError(f"--devices: backend {settings.backend} has no devices to choose from")
        use_device(number)
    found = getattr(backend, "soc", None)
    if found is not None and found != settings.soc:
        raise OracleError(f"--soc {settings.soc}: the device of backend {settings.backend} is a {found}: --soc {found}")
    return backend


def _check_devices(backend: Backend, settings: Settings) -> None:
    """Refuse a device of --devices that is not there before any worker meets it."""
    devices = getattr(backend, "devices", None)
    if not settings.devices or devices is None:
        return
    count = devices()
    for number in settings.devices:
        if number >= count:
            raise OracleError(f"--devices: no device {number}; backend {settings.backend} sees {count}, from 0 on")


def _own_share(backend: Backend, settings: Settings) -> int | None:
    """Without --devices the workers of -n take all visible devices in turn; a single process stays on the first."""
    count, number = getattr(backend, "devices", None), settings.worker.removeprefix("gw")
    if count is None or not hasattr(backend, "use_device") or not number.isdigit():
        return None
    return int(number) % found if (found := count()) > 1 else None


def _emulate(settings: Settings) -> None:
    if importlib.util.find_spec("oracle.emulator") is None:
        raise OracleError("--emulate: this version has no emulated CANN")
    importlib.import_module("oracle.emulator").activate(settings.soc)


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
    def name(self) -> str:
        """What the loaded backend calls itself."""
        return (
            self._child.name
            if self._child is not None
            else self.settings.backend
            if self._backend is None
            else self._backend.name
        )

    @property
    def versions(self) -> dict[str, str]:
        """What the loaded backend says of its versions."""
        return self._child.versions if self._child is not None else dict(getattr(self._backend, "versions", {}))

    def run(self, case: Case, expected: Expectation | None = None) -> dict[str, Any]:
        """Run one case and return its record line, counted as its expectation says."""
        if expected is not None and expected.status == "skip":
            return case_line(case, self.settings, Outcome("skip", expected.told))
        try:
            self.open()
        except OracleError as error:  # one worker's device may be missing: its cases are errors, not lost
            return case_line(case, self.settings, Outcome("error", str(error)))
        if self._child is not None:
            line = self._child.run(case)
        else:
            assert self._backend is not None
            line = run_case(case, self._backend, self.settings)
        if expected is not None:
            line["status"], line["reason"] = expected.resolve(line["status"], line["reason"])
        return line

    def close(self) -> None:
        """Release the backend and end the child."""
        if self._child is not None:
            self._child.close()
        close = getattr(self._backend, "close", None)
        if close is not None:
            close()
        self._backend = self._child = None
