"""Cases in a child process: one that dies is a crash, one that does not answer a timeout, and the run goes on.

The child is started once and keeps its backend; after a crash, a timeout, or a fault that the backend calls ``broken``,
the next case gets a new one. It is a fresh interpreter and not a fork (device runtimes do not survive one), does not
import the parent's main module, and leads a process group of its own. What it starts ends with it: see :mod:`.kill`.

What the device does to the pipe between the two costs its own case: see :mod:`.wire`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any

from ..case.outcome import Outcome, record_of
from ..catalogue.data.case import Case
from ..guest.belongings import is_main
from ..guest.custody import readable
from ..guest.kill import COOKIE, how_ended, kill_tree, new_cookie
from ..guest.stderr import LastWords, cause_of_death
from ..guest.wire import Garbled, Wire, pair
from ..model.errors import OracleError
from ..record.types import CaseRecord, Detail
from ..settings.settings import Settings
from .child import About

GLANCE = 0.2  # seconds between looks at whether the child lives, where a grandchild keeps its pipe open
_CODE = "import json, sys; sys.path[:] = json.loads(sys.argv[2]); from oracle.place.child import serve; serve()"


class Died(Exception):
    """The child is gone; the text says how. ``words``: the last line that it wrote to standard error."""

    def __init__(self, how: str, words: str = "") -> None:
        super().__init__(f"{how}; its last words: {words}" if words else how)
        self.words = words


class Silent(Exception):
    """The child did not answer in time."""


class Child:
    """A child process that runs cases."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.about = About(settings.backend, {}, "", 0)
        self._running: tuple[subprocess.Popen[bytes], Wire, str] | None = None
        self._words: LastWords | None = None

    def start(self) -> None:
        """Start the process. Raises OracleError if its backend cannot be loaded."""
        wire, theirs = pair()
        command = [sys.executable, "-c", _CODE, str(theirs), json.dumps(sys.path)]
        command += ["ends with its parent"] if is_main() else []  # a thread of a pool may end before its child is done
        cookie, limit, words = new_cookie(), self.settings.backend_timeout, LastWords()
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stderr=words.descriptor,
            pass_fds=(theirs,),
            start_new_session=True,
            env={**os.environ, COOKIE: cookie, "LIBC_FATAL_STDERR_": "1"},  # an old glibc writes to the terminal
        )
        os.close(theirs)
        words.listen()
        self._words = words
        self._running = process, wire, cookie
        try:
            word, said = self._ask(self.settings, limit)
        except Died as error:
            raise OracleError(f"backend {self.settings.backend}: its child process did not start: {error}") from None
        except Silent:
            told = f"backend {self.settings.backend} was not loaded within {limit:g} s (--timeout-backend)"
            raise OracleError(told) from None
        if word == "refused":
            self.kill()
            raise OracleError(said)
        self.about = said

    def run_case(self, case: Case) -> CaseRecord:
        """Run one case; a death or a silence becomes its status."""
        if self._running is None:
            self.start()
        started = time.perf_counter()
        if self._words is not None:
            self._words.forget()
        try:
            record: CaseRecord
            record, broken = self._ask(case, self.settings.case_limit)
            if broken:
                self.kill()
            return record
        except Died as error:
            detail = Detail(cause=cause_of_death(error.words))
            outcome = Outcome("crash", f"the process running it died: {error}", detail=detail)
        except Silent:
            limit = f"{self.settings.case_limit:g} s (--timeout-per-case)"
            outcome = Outcome("timeout", f"no answer in {limit}; the process running it was killed")
        seconds = {"duration_s": time.perf_counter() - started}
        return record_of(case, self.settings, outcome, seconds, device=self.about.device)

    def _ask(self, question: Any, limit: float) -> Any:
        """Send a question and return the answer. Raises Died or Silent, and ends a child that did not answer."""
        assert self._running is not None
        process, wire, _cookie = self._running
        answered = False
        deadline = time.monotonic() + limit
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
            raise Died(self._obituary(process), self._last_words()) from None
        finally:
            if not answered:
                self.kill()

    def _obituary(self, process: subprocess.Popen[bytes]) -> str:
        """Say how the child ended; its pipe closes a moment before it does."""
        try:
            code = process.wait(5)
        except subprocess.TimeoutExpired:
            return "it closed its pipe"
        return how_ended(code)

    def _last_words(self) -> str:
        return "" if self._words is None else readable(self._words.spoken())

    def close(self) -> None:
        """Let the child close its backend and end. Raises OracleError where it does not, or not well."""
        if self._running is None:
            return
        process, limit = self._running[0], self.settings.backend_timeout
        process_of = f"backend {self.about.name}: its process"
        try:
            problem = self._ask(None, limit)
            if code := process.wait(_waited(limit)):
                problem = problem or f"{process_of} ended with {how_ended(code)} after closing"
        except Died as error:
            problem = f"{process_of} died while closing: {error}"
        except (Silent, subprocess.TimeoutExpired):
            problem = f"{process_of} did not close within {limit:g} s and was killed (--timeout-backend)"
        finally:
            self.kill()
        if problem:
            raise OracleError(problem)

    def kill(self) -> None:
        """End the child at once, and with it what it started."""
        if self._running is None:
            return
        process, wire, cookie = self._running
        self._running = None
        kill_tree(process.pid, cookie)
        process.wait()
        wire.close()


def _waited(limit: float) -> float | None:
    return None if limit == float("inf") else limit
