"""The process of a device, seen from the run: started, asked, ended.

It is a fresh interpreter and not a fork (device runtimes do not survive one), does not import our main module, and has
a keeper above it, with which everything ends that it started (:mod:`.keeper`).
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ..model.errors import OracleError
from ..settings.settings import Settings
from .faults import Gone, readable
from .keeper import STATUS, how_ended
from .wire import Garbled, pair

GLANCE = 0.2  # seconds between looks at whether the process lives, where another keeps its pipe open
PATIENCE = 5.0  # seconds for a keeper to end what is left
_CODE = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[3]); from oracle.guest.keeper import keep; "
    "keep(int(sys.argv[2])); from oracle.guest.serve import serve; serve(int(sys.argv[1]))"
)


class NotBegun(Exception):
    """The process ended, or spoke out of turn, before it began what was asked: of what an earlier call left there."""


class Process:
    """A device's process. ``about``: what its backend says of itself, once it is loaded."""

    def __init__(self, settings: Settings) -> None:
        """Start it; it begins to load the backend. Raises OracleError where the platform has no such processes."""
        if not hasattr(os, "fork") or not hasattr(socket, "send_fds"):
            told = "this platform cannot give a device a process of its own; --no-isolate runs it in that of the run"
            raise OracleError(f"backend {settings.backend}: {told}")
        self.about: dict[str, Any] = {}
        self._name, self._limit = settings.backend, settings.backend_timeout
        self._wire, pipe = pair()
        self._line, line = socket.socketpair()
        self._words = LastWords()
        self._keeper = subprocess.Popen(
            [sys.executable, "-c", _CODE, str(pipe), str(line.fileno()), json.dumps(sys.path)],
            stdin=subprocess.DEVNULL,
            stderr=self._words.descriptor,
            pass_fds=(pipe, line.fileno()),
            start_new_session=True,
            env={**os.environ, "LIBC_FATAL_STDERR_": "1"},  # an old glibc writes to the terminal
        )
        os.close(pipe)
        line.close()
        self._words.listen()
        with suppress(OSError):  # it has ended already: told when it is waited for
            self._wire.ask(settings, time.monotonic() + self._limit)

    def loaded(self) -> None:
        """Wait until the backend is loaded. Raises OracleError where it cannot be."""
        if self.about:
            return
        try:
            said = self._answer(time.monotonic() + self._limit, self._limit)
        except Gone as error:
            told = f"its process did not start: {error.reason}"
            if error.status == "timeout":
                told = f"was not loaded within {self._limit:g} s (--timeout-per-case)"
            raise OracleError(f"backend {self._name}{':' if error.status == 'crash' else ''} {told}") from None
        if "ready" not in said:
            self.kill()
            raise OracleError(
                readable(said.get("refused", f"backend {self._name}: its process does not say what it is"))
            )
        self.about = dict(said["ready"])

    def ask(self, question: Any, memory: int, limit: float, meanwhile: Callable[[], None] | None) -> dict[str, Any]:
        """Ask, do something else meanwhile, and return the answer. Raises Gone where there is none within ``limit``
        seconds, NotBegun where the process was out of order before."""
        deadline = time.monotonic() + limit
        self._words.forget()
        try:
            self._send(question, memory, deadline)
            if meanwhile is not None:
                meanwhile()
            if self._answer(deadline, limit) != {"begun": True}:
                raise Gone("crash", "it answered before it began")
        except Gone as error:
            self.kill()
            raise NotBegun(str(error)) from None
        except BaseException:  # Ctrl-C
            self.kill()
            raise
        return self._answer(deadline, limit)

    def _send(self, question: Any, memory: int, deadline: float) -> None:
        try:
            self._wire.ask(question, deadline, memory)
        except TimeoutError:
            raise self._silent(0) from None
        except OSError:
            raise self._died() from None

    def _answer(self, deadline: float, limit: float) -> dict[str, Any]:
        """Wait for an answer. Raises Gone, and ends a process that did not give one."""
        answered = False
        try:
            while not self._wire.poll(max(0.0, min(GLANCE, deadline - time.monotonic()))):
                if self._keeper.poll() is not None and not self._wire.poll(0):
                    raise EOFError
                if time.monotonic() > deadline:
                    raise TimeoutError
            answer = self._wire.answered(deadline)
            answered = True
            return answer
        except TimeoutError:
            raise self._silent(limit) from None
        except Garbled as error:
            raise Gone("crash", f"the device's process ended: {error}") from None
        except (EOFError, OSError):
            raise self._died() from None
        finally:
            if not answered:
                self.kill()

    def _silent(self, limit: float) -> Gone:
        return Gone("timeout", f"no answer in {limit:g} s (--timeout-per-case); the device's process was ended")

    def _died(self) -> Gone:
        """Say how the process ended; its pipe closes a moment before it does."""
        status = self._status()
        how = "it closed its pipe" if status is None else how_ended(status)
        self.kill()
        words = readable(self._words.spoken())
        told = f"{how}; its last words: {words}" if words else how
        return Gone("crash", f"the device's process ended: {told}", words)

    def _status(self) -> int | None:
        """Return the exit code of the device's process once its keeper tells it; None where it lives on."""
        self._line.settimeout(PATIENCE)
        try:
            told = self._line.recv(STATUS.size, socket.MSG_WAITALL)
            return os.waitstatus_to_exitcode(STATUS.unpack(told)[0]) if len(told) == STATUS.size else None
        except OSError:  # it has closed its pipe, and lives
            return None

    def close(self) -> None:
        """Let the process close its backend and end. Raises OracleError where it does not, or not well."""
        if not self.about:  # nothing has waited for it
            self.kill()
            return
        told = f"backend {readable(self.about['name'])}"
        try:
            deadline = time.monotonic() + self._limit
            self._send(None, -1, deadline)
            problem = readable(self._answer(deadline, self._limit).get("closed", ""))
            status = self._status()
            if not problem and status:
                problem = f"{told}: its process ended with {how_ended(status)} after closing"
            if not problem and status is None:
                problem = f"{told}: its process did not end within {PATIENCE:g} s after closing and was ended"
        except Gone as error:
            problem = f"{told}: while closing {error.reason}"
            if error.status == "timeout":
                problem = f"{told} did not close within {self._limit:g} s and was ended (--timeout-per-case)"
        finally:
            self.kill()
        if problem:
            raise OracleError(problem)

    def kill(self) -> None:
        """End the process at once, and with it everything that it started."""
        with suppress(OSError):
            self._line.shutdown(socket.SHUT_WR)  # the keeper wakes up; it may still tell how the process ended
        try:
            self._keeper.wait(PATIENCE)
        except subprocess.TimeoutExpired:  # somebody has stopped it
            with suppress(ProcessLookupError):
                os.killpg(self._keeper.pid, 9)
            self._keeper.wait()
        self._line.close()
        self._wire.close()


# What a device's process wrote to standard error: the words of a death.


KEPT = 4096  # bytes
LAST_WORDS = 0.5  # seconds for the last of it to come; a grandchild may hold the pipe open for ever

# What glibc says when it finds its heap or its stack damaged.
_DAMAGE = re.compile(
    r"(free|malloc|calloc|realloc|malloc_consolidate|munmap_chunk|_int_free|sysmalloc)\(\): |corrupted |double free or "
    r"corruption|stack smashing detected|buffer overflow detected|Assertion .*(top|chunk|heap)"
)


class LastWords:
    """A pipe for a child's standard error. ``descriptor`` is the child's end: hand it over, then call ``listen``."""

    def __init__(self) -> None:
        self._read, self.descriptor = os.pipe()
        self._kept: deque[bytes] = deque()
        self._thread = threading.Thread(target=self._pass_on, daemon=True, name="standard error of a child")

    def listen(self) -> None:
        """Give the child's end up, and pass on what is written to the other."""
        os.close(self.descriptor)
        self._thread.start()

    def forget(self) -> None:
        """Forget what was said so far: another case begins."""
        self._kept.clear()

    def spoken(self) -> str:
        """Return the last line that a child has written since, once it is dead; "" for none."""
        self._thread.join(LAST_WORDS)
        lines = b"".join(self._kept)[-KEPT:].decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    def _pass_on(self) -> None:
        with suppress(OSError):
            while said := os.read(self._read, 1 << 16):
                self._kept.append(said[-KEPT:])
                while len(self._kept) > 1 and sum(map(len, self._kept)) - len(self._kept[0]) >= KEPT:
                    self._kept.popleft()
                with suppress(OSError):  # our own standard error is closed
                    os.write(2, said)
        os.close(self._read)


def cause_of_death(words: str) -> str:
    """Return what the last words of a process tell about its memory, or ""."""
    if not _DAMAGE.search(words):
        return ""
    return f"memory that is not the device's is overwritten: the C library found it damaged ({words})"
