"""A process's place of work: one backend (here or in a child), and the expectations on it."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, field
from typing import Any

from ..backends import Backend, load
from ..catalogue.case import Case
from ..errors import OracleError
from .expectations import Expectations
from .isolate import Child
from .run import Outcome, case_line, run_case
from .settings import Settings


def load_backend(settings: Settings) -> Backend:
    """Return the backend a run asks for, on this process's device. Raises OracleError."""
    if settings.emulate:
        _emulate(settings)
    backend = load(settings.backend, dict(settings.backend_options))
    use_device = getattr(backend, "use_device", None)
    if settings.device is not None:
        if use_device is None:
            raise OracleError(f"--devices: backend {settings.backend} has no devices to choose from")
        use_device(settings.device)
    return backend


def _emulate(settings: Settings) -> None:
    if importlib.util.find_spec("oracle.emulator.activate") is None:
        raise OracleError("--emulate: this version has no emulated CANN")
    importlib.import_module("oracle.emulator.activate").activate(settings.soc)


@dataclass
class Bench:
    """Runs cases as the settings ask. The backend is loaded by :meth:`open`, or at the first case."""

    settings: Settings
    expectations: Expectations = field(default_factory=Expectations)
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
    def versions(self) -> dict[str, str]:
        """What the loaded backend says of its versions."""
        if self._child is not None:
            return self._child.versions
        return dict(getattr(self._backend, "versions", {}))

    def run(self, case: Case) -> dict[str, Any]:
        """Run one case and return its record line, as the expectations make it count."""
        expected = self.expectations.of(case, self.settings.soc)
        if expected is not None and expected.status == "skip":
            return case_line(case, self.settings, Outcome("skip", expected.told))
        self.open()
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
