"""Cases in a child process: one that dies is a crash, one that does not answer a timeout, and the run goes on.

The child is started once and keeps its backend; after a crash, a timeout, or a fault that the backend calls ``broken``,
the next case gets a new one. It is a fresh interpreter and not a fork (device runtimes do not survive one), does not
import the parent's main module, and leads a process group of its own, which ends with it.

What the device does to the pipe between the two costs its own case: see :mod:`.wire`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from ..backends import Backend
from ..catalogue.case import Case
from ..model.errors import OracleError
from ..record.types import CaseRecord
from .custody import readable
from .one_case import run_case
from .opening import load_backend, release
from .outcome import Outcome, record_of
from .settings import Settings
from .wire import Garbled, Wire, pair

START_LIMIT = 300.0  # seconds for a child to import its backend: a device runtime may take minutes the first time
CLOSE_LIMIT = 60.0  # seconds for a child to give its device back
GLANCE = 0.2  # seconds between looks at whether the child lives, where a grandchild keeps its pipe open
_CODE = "import json, sys; sys.path[:] = json.loads(sys.argv[2]); from oracle.runner.isolate import serve; serve()"


def serve() -> None:
    """The child's life: load the backend, say so, run cases until there are no more, close the backend, say how."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's; it ends this process by closing the pipe
    me, wire = os.getpid(), Wire.inherited(int(sys.argv[1]))
    settings = wire.receive()
    try:
        changed: list[str] = []
        backend = load_backend(settings, changed)
    except OracleError as error:
        wire.answer(("refused", str(error)))
        return
    wire.answer(("ready", About.of(backend, changed)))
    while case := _next(wire):
        record = run_case(case, backend, settings)
        if os.getpid() != me:
            os._exit(1)  # a copy of this process that the device made; the answer is not its to give
        wire.answer((record, bool(getattr(backend, "broken", False))))
    try:
        release(backend)
        problem = ""
    except OracleError as error:
        problem = str(error)
    with suppress(OSError):  # the parent may be gone
        wire.answer(problem)


def _next(wire: Wire) -> Case | None:
    """Return the case to run, None when there are no more or the parent is gone."""
    try:
        case: Case | None = wire.receive()
    except (EOFError, OSError):
        return None
    return case


class About(NamedTuple):
    """What a loaded backend says of itself. ``visible``: the devices its workers can share; 0 where it has none."""

    name: str
    versions: dict[str, str]
    device: str
    visible: int
    changed: tuple[str, ...] = ()  # of the process's arithmetic, when it was loaded

    @classmethod
    def of(cls, backend: Backend, changed: Sequence[str] = ()) -> About:
        devices = getattr(backend, "devices", None)
        visible = int(devices()) if devices is not None and hasattr(backend, "use_device") else 0
        versions = dict(getattr(backend, "versions", {}))
        return cls(backend.name, versions, readable(getattr(backend, "device", "")), visible, tuple(changed))


class Died(Exception):
    """The child is gone; the text says how."""


class Silent(Exception):
    """The child did not answer in time."""


class Child:
    """A child process that runs cases."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.about = About(settings.backend, {}, "", 0)
        self._running: tuple[subprocess.Popen[bytes], Wire] | None = None

    def start(self) -> None:
        """Start the process. Raises OracleError if its backend cannot be loaded."""
        wire, theirs = pair()
        command = [sys.executable, "-c", _CODE, str(theirs), json.dumps(sys.path)]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=(theirs,), start_new_session=True)
        os.close(theirs)
        self._running = process, wire
        try:
            word, said = self._ask(self.settings, START_LIMIT)
        except Died as error:
            raise OracleError(f"backend {self.settings.backend}: its child process did not start: {error}") from None
        except Silent:
            raise OracleError(f"backend {self.settings.backend} was not loaded within {START_LIMIT:.0f} s") from None
        if word == "refused":
            self.kill()
            raise OracleError(said)
        self.about = said

    def run_case(self, case: Case) -> CaseRecord:
        """Run one case; a death or a silence becomes its status."""
        if self._running is None:
            self.start()
        started = time.perf_counter()
        try:
            record: CaseRecord
            record, broken = self._ask(case, self.settings.timeout)
            if broken:
                self.kill()
            return record
        except Died as error:
            outcome = Outcome("crash", f"the process running it died: {error}")
        except Silent:
            limit = f"{self.settings.timeout:g} s"
            outcome = Outcome("timeout", f"no answer in {limit}; the process running it was killed")
        seconds = {"duration_s": time.perf_counter() - started}
        return record_of(case, self.settings, outcome, seconds, device=self.about.device)

    def _ask(self, question: Any, limit: float | None) -> Any:
        """Send a question and return the answer. Raises Died or Silent, and ends a child that did not answer."""
        assert self._running is not None
        process, wire = self._running
        answered = False
        deadline = time.monotonic() + (float("inf") if limit is None else limit)
        try:
            wire.ask(question, deadline)
            while not wire.poll(max(0.0, min(GLANCE, deadline - time.monotonic()))):
                if process.poll() is not None and not wire.poll(0):
                    raise EOFError
                if time.monotonic() > deadline:
                    raise Silent
            answer = wire.answered(deadline)
            answered = True
            return answer
        except TimeoutError:
            raise Silent from None
        except Garbled as error:
            raise Died(str(error)) from None
        except (EOFError, OSError):
            raise Died(self._obituary(process)) from None
        finally:
            if not answered:
                self.kill()

    def _obituary(self, process: subprocess.Popen[bytes]) -> str:
        """Say how the child ended; its pipe closes a moment before it does."""
        try:
            code = process.wait(5)
        except subprocess.TimeoutExpired:
            return "it closed its pipe"
        return _how(code)

    def close(self) -> None:
        """Let the child close its backend and end. Raises OracleError where it does not, or not well."""
        if self._running is None:
            return
        process, _ = self._running
        process_of = f"backend {self.about.name}: its process"
        try:
            problem = self._ask(None, CLOSE_LIMIT)
            if code := process.wait(CLOSE_LIMIT):
                problem = problem or f"{process_of} ended with {_how(code)} after closing"
        except Died as error:
            problem = f"{process_of} died while closing: {error}"
        except (Silent, subprocess.TimeoutExpired):
            problem = f"{process_of} did not close within {CLOSE_LIMIT:.0f} s and was killed"
        finally:
            self.kill()
        if problem:
            raise OracleError(problem)

    def kill(self) -> None:
        """End the child at once, and with it what it started."""
        if self._running is None:
            return
        process, wire = self._running
        self._running = None
        with suppress(ProcessLookupError, PermissionError):  # all of them are gone
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        wire.close()


def _how(code: int) -> str:
    """Say how a process ended."""
    if code >= 0:
        return f"exit status {code}"
    try:
        return f"signal {-code} ({signal.Signals(-code).name})"
    except ValueError:
        return f"signal {-code}"
