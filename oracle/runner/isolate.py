"""Cases in a child process: one that dies is a crash, one that does not answer a timeout, and the run goes on.

The child is started once and keeps its backend; after a crash or a timeout the next case gets a new one. It is a fresh
interpreter and not a fork (device runtimes do not survive one), and it does not import the parent's main module.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from ..catalogue.case import Case
from ..errors import OracleError
from .settings import Settings

START_LIMIT = 300.0  # seconds for a child to import its backend: a device runtime may take minutes the first time
GLANCE = 0.2  # seconds between looks at whether the child lives, where a grandchild keeps its pipe open
_CODE = "import json, sys; sys.path[:] = json.loads(sys.argv[2]); from oracle.runner.isolate import serve; serve()"


def serve() -> None:
    """The child's life: load the backend, say so, run cases until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's; it ends this process by closing the pipe
    number = int(sys.argv[1])
    os.set_inheritable(number, False)
    pipe: Connection[Any, Any] = Connection(number)
    from .bench import load_backend
    from .run import run_case

    settings = pipe.recv()
    try:
        backend = load_backend(settings)
    except OracleError as error:
        pipe.send(("refused", str(error)))
        return
    pipe.send(("ready", (backend.name, dict(getattr(backend, "versions", {})), str(getattr(backend, "device", "")))))
    while True:
        try:
            case = pipe.recv()
        except (EOFError, OSError):
            break
        pipe.send(run_case(case, backend, settings))
    close = getattr(backend, "close", None)
    if close is not None:
        close()


class Died(Exception):
    """The child is gone; the text says how."""


class Silent(Exception):
    """The child did not answer in time."""


class Child:
    """A child process that runs cases. ``name``, ``versions`` and ``device`` are its backend's."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.name = settings.backend
        self.versions: dict[str, str] = {}
        self.device = ""
        self._running: tuple[subprocess.Popen[bytes], Connection[Any, Any]] | None = None

    def start(self) -> None:
        """Start the process. Raises OracleError if its backend cannot be loaded."""
        pipe, theirs = Pipe()
        command = [sys.executable, "-c", _CODE, str(theirs.fileno()), json.dumps(sys.path)]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=(theirs.fileno(),))
        theirs.close()
        self._running = process, pipe
        try:
            word, said = self._ask(self.settings, START_LIMIT)
        except Died as error:
            raise OracleError(f"backend {self.settings.backend}: its child process did not start: {error}") from None
        except Silent:
            raise OracleError(f"backend {self.settings.backend} was not loaded within {START_LIMIT:.0f} s") from None
        if word == "refused":
            self.kill()
            raise OracleError(said)
        self.name, self.versions, self.device = said

    def run(self, case: Case) -> dict[str, Any]:
        """Run one case; a death or a silence becomes its status."""
        from .run import Outcome, case_line

        if self._running is None:
            self.start()
        started = time.perf_counter()
        try:
            answer: dict[str, Any] = self._ask(case, self.settings.timeout)
            return answer
        except Died as error:
            outcome = Outcome("crash", f"the process running it died: {error}")
        except Silent:
            told = f"no answer in {self.settings.timeout:g} s; the process running it was killed"
            outcome = Outcome("timeout", told)
        outcome.seconds = {"duration_s": time.perf_counter() - started}
        return case_line(case, self.settings, outcome, device=self.device)

    def _ask(self, question: Any, limit: float | None) -> Any:
        """Send a question and return the answer. Raises Died or Silent, and ends a child that did not answer."""
        assert self._running is not None
        process, pipe = self._running
        answer = None
        deadline = time.monotonic() + (float("inf") if limit is None else limit)
        try:
            pipe.send(question)
            while not pipe.poll(max(0.0, min(GLANCE, deadline - time.monotonic()))):
                if process.poll() is not None and not pipe.poll():
                    raise EOFError
                if time.monotonic() > deadline:
                    raise Silent
            answer = pipe.recv()
            return answer
        except (EOFError, OSError):
            raise Died(self._obituary(process)) from None
        finally:
            if answer is None:
                self.kill()

    def _obituary(self, process: subprocess.Popen[bytes]) -> str:
        """Say how the child ended; its pipe closes a moment before it does."""
        try:
            code = process.wait(5)
        except subprocess.TimeoutExpired:
            return "it closed its pipe"
        if code >= 0:
            return f"exit status {code}"
        try:
            return f"signal {-code} ({signal.Signals(-code).name})"
        except ValueError:
            return f"signal {-code}"

    def close(self) -> None:
        """End the child in order, or by force if it does not follow."""
        if self._running is None:
            return
        process, pipe = self._running
        pipe.close()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            pass
        finally:
            self.kill()

    def kill(self) -> None:
        """End the child at once."""
        if self._running is None:
            return
        process, pipe = self._running
        self._running = None
        process.kill()
        process.wait()
        pipe.close()
