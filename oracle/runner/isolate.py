"""Cases in a child process: one that dies is a crash, one that does not answer a timeout, and the run goes on.

The child is started once and keeps its backend; after a crash or a timeout the next case gets a new one.
"""

from __future__ import annotations

import multiprocessing
import signal
import time
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from ..catalogue.case import Case
from ..errors import OracleError
from .settings import Settings

START_LIMIT = 300.0  # seconds for a child to import its backend: a device runtime may take minutes the first time


def serve(pipe: Connection, settings: Settings) -> None:
    """The child's life: load the backend, say so, run cases until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's; it ends this process by closing the pipe
    from .bench import load_backend
    from .run import run_case

    try:
        backend = load_backend(settings)
    except OracleError as error:
        pipe.send(("refused", str(error), {}))
        return
    pipe.send(("ready", backend.name, dict(getattr(backend, "versions", {}))))
    while True:
        try:
            case = pipe.recv()
        except (EOFError, OSError):
            break
        pipe.send(run_case(case, backend, settings))
    close = getattr(backend, "close", None)
    if close is not None:
        close()


class Child:
    """A child process that runs cases. ``name`` and ``versions`` are its backend's."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.name, self.versions = settings.backend, {}  # type: str, dict[str, str]
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None

    def start(self) -> None:
        """Start the process. Raises OracleError if its backend cannot be loaded."""
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        process = context.Process(target=serve, args=(theirs, self.settings), name="aclnn-oracle-case", daemon=False)
        self._process = process
        process.start()
        theirs.close()
        answer = self._answer(START_LIMIT)
        if answer is None:
            told = self._obituary() if self._dead(process) else f"no answer in {START_LIMIT:.0f} s"
            self.kill()
            raise OracleError(f"backend {self.settings.backend}: its child process did not start: {told}")
        word, said, versions = answer
        if word == "refused":
            self.kill()
            raise OracleError(said)
        self.name, self.versions = said, versions

    def run(self, case: Case) -> dict[str, Any]:
        """Run one case; a death or a silence becomes its status."""
        from .run import Outcome, case_line

        if self._process is None:
            self.start()
        pipe, process = self._running()
        started = time.perf_counter()
        try:
            pipe.send(case)
            answer: dict[str, Any] | None = self._answer(self.settings.timeout)
        except (BrokenPipeError, ConnectionResetError):
            answer = None
        if answer is not None:
            return answer
        seconds = {"duration_s": time.perf_counter() - started}
        if self._dead(process):
            outcome = Outcome("crash", f"the process running it died: {self._obituary()}", seconds=seconds)
        else:
            told = f"no answer in {self.settings.timeout:g} s; the process running it was killed"
            outcome = Outcome("timeout", told, seconds=seconds)
        self.kill()
        return case_line(case, self.settings, outcome)

    def _answer(self, limit: float | None) -> Any:
        """Return what the child sends, or None if it dies or stays silent."""
        pipe, process = self._running()
        ready = wait([pipe, process.sentinel], limit)
        if pipe in ready or pipe.poll():
            try:
                return pipe.recv()
            except (EOFError, ConnectionResetError):
                return None
        return None

    def _running(self) -> tuple[Connection, BaseProcess]:
        assert self._pipe is not None
        assert self._process is not None
        return self._pipe, self._process

    def _dead(self, process: BaseProcess) -> bool:
        """Whether the child died; its pipe closes a moment before the process is gone."""
        if self._pipe is None or self._pipe.poll():
            process.join(5)
        return not process.is_alive()

    def _obituary(self) -> str:
        assert self._process is not None
        code = self._process.exitcode
        if code is not None and code < 0:
            try:
                return f"signal {-code} ({signal.Signals(-code).name})"
            except ValueError:
                return f"signal {-code}"
        return f"exit status {code}"

    def close(self) -> None:
        """End the child in order, or by force if it does not follow."""
        if self._pipe is not None:
            self._pipe.close()
        if self._process is not None:
            self._process.join(5)
        self.kill()

    def kill(self) -> None:
        """End the child at once."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process.close()
        if self._pipe is not None:
            self._pipe.close()
        self._process = self._pipe = None
