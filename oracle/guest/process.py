"""The process of a device, seen from the run: started, called and ended here, and used like any other backend.

It is a fresh interpreter, not a fork: device runtimes do not survive a fork. It does not import our main module. A
keeper above it ends everything that it started (:mod:`.keeper`).
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
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Literal

import numpy as np

from ..model.aclnn import Status
from ..model.call import Array, Call
from ..model.dtypes import DTYPES
from ..model.errors import OracleError
from ..settings.settings import Settings
from .keeper import STATUS, how_ended
from .opening import CallNotSupported, DeviceError, DeviceProcessEnded, readable
from .serve import Question
from .wire import Garbled, Shared, pair

GLANCE = 0.2  # seconds between checks that the process lives, if another process keeps its pipe open
PATIENCE = 5.0  # seconds for a keeper to end the remaining processes
ENDING = 30.0  # seconds for a closed device's process to end: Python unloads torch_npu and the driver in it
_CODE = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[3]); from oracle.guest.keeper import keep; "
    "keep(int(sys.argv[2])); from oracle.guest.serve import serve; serve(int(sys.argv[1]))"
)


class NotBegun(Exception):
    """The process ended, or sent a wrong message, before it began to answer: an earlier call's state caused that."""


class Process:
    """A device's process. ``about``: the backend's description of itself, once it is loaded."""

    def __init__(self, settings: Settings) -> None:
        """Start the process, which begins to load the backend. Raises OracleError if the platform cannot do that."""
        if not hasattr(os, "fork") or not hasattr(socket, "send_fds"):
            text = "this platform cannot give a device a process of its own; --no-isolate runs it in that of the run"
            raise OracleError(f"backend {settings.backend}: {text}")
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
        with suppress(OSError):  # it has ended already; ``loaded`` reports that
            self._wire.ask(settings, time.monotonic() + self._limit)

    def loaded(self) -> None:
        """Wait until the backend is loaded. Raises OracleError if it cannot be loaded."""
        if self.about:
            return
        try:
            said = self._answer(time.monotonic() + self._limit, self._limit)
        except DeviceProcessEnded as error:
            text = f"its process did not start: {error.reason}"
            if error.status == "timeout":
                text = f"was not loaded within {self._limit:g} s (--timeout-per-case)"
            raise OracleError(f"backend {self._name}{':' if error.status == 'crash' else ''} {text}") from None
        if "ready" not in said:
            self.kill()
            raise OracleError(readable(said.get("refused", f"backend {self._name}: its process does not describe it")))
        self.about = dict(said["ready"])

    def ask(self, question: Any, memory: int, limit: float, meanwhile: Callable[[], None] | None) -> dict[str, Any]:
        """Send a question, do other work meanwhile, and return the answer. Raises DeviceProcessEnded if there is no
        answer within ``limit`` seconds, NotBegun if the process failed before it began to answer."""
        deadline = time.monotonic() + limit
        self._words.forget()
        try:
            self._send(question, memory, deadline)
            if meanwhile is not None:
                meanwhile()
            if self._answer(deadline, limit) != {"begun": True}:
                raise DeviceProcessEnded("crash", "it answered before it began")
        except DeviceProcessEnded as error:
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
        """Return the next answer. If there is none, end the process and raise DeviceProcessEnded."""
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
            raise DeviceProcessEnded("crash", f"the device's process ended: {error}") from None
        except (EOFError, OSError):
            raise self._died() from None
        finally:
            if not answered:
                self.kill()

    def _silent(self, limit: float) -> DeviceProcessEnded:
        return DeviceProcessEnded(
            "timeout", f"no answer in {limit:g} s (--timeout-per-case); the device's process was ended"
        )

    def _died(self) -> DeviceProcessEnded:
        """Return an error that says how the process ended; its pipe closes a moment before it ends."""
        status = self._status()
        how = "it closed its pipe" if status is None else how_ended(status)
        self.kill()
        words = readable(self._words.spoken())
        text = f"{how}; its last words: {words}" if words else how
        return DeviceProcessEnded("crash", f"the device's process ended: {text}", words)

    def _status(self, patience: float = PATIENCE) -> int | None:
        """Return the exit code of the device's process from its keeper; None if the process still lives."""
        self._line.settimeout(patience)
        try:
            received = self._line.recv(STATUS.size, socket.MSG_WAITALL)
            return os.waitstatus_to_exitcode(STATUS.unpack(received)[0]) if len(received) == STATUS.size else None
        except OSError:  # the process has closed its pipe, but lives
            return None

    def close(self) -> None:
        """Let the process close its backend and end. Raises OracleError if it does not end, or ends with an error."""
        if not self.about:  # ``loaded`` was not called
            self.kill()
            return
        text = f"backend {readable(self.about['name'])}"
        try:
            deadline = time.monotonic() + self._limit
            self._send(None, -1, deadline)
            problem = readable(self._answer(deadline, self._limit).get("closed", ""))
            status = self._status(ENDING)
            if not problem and status:
                problem = f"{text}: its process ended with {how_ended(status)} after closing"
            if not problem and status is None:
                problem = f"{text}: its process did not end within {ENDING:g} s after closing and was ended"
        except DeviceProcessEnded as error:
            problem = f"{text}: while closing {error.reason}"
            if error.status == "timeout":
                problem = f"{text} did not close within {self._limit:g} s and was ended (--timeout-per-case)"
        finally:
            self.kill()
        if problem:
            raise OracleError(problem)

    def kill(self) -> None:
        """End the process at once, with everything that it started."""
        with suppress(OSError):
            self._line.shutdown(socket.SHUT_WR)  # the keeper wakes up; it can still report how the process ended
        try:
            self._keeper.wait(PATIENCE)
        except subprocess.TimeoutExpired:  # the keeper does not react: somebody has stopped it
            with suppress(ProcessLookupError):
                os.killpg(self._keeper.pid, 9)
            self._keeper.wait()
        self._line.close()
        self._wire.close()


# The standard error of a device's process: it shows why the process ended.


KEPT = 4096  # bytes
LAST_WORDS = 0.5  # seconds to wait for the last text; a grandchild may keep the pipe open for ever

# glibc's messages about a damaged heap or stack.
_DAMAGE = re.compile(
    r"(free|malloc|calloc|realloc|malloc_consolidate|munmap_chunk|_int_free|sysmalloc)\(\): |corrupted |double free or "
    r"corruption|stack smashing detected|buffer overflow detected|Assertion .*(top|chunk|heap)"
)


class LastWords:
    """A pipe for a child's standard error. ``descriptor`` is the child's end: pass it on, then call ``listen``."""

    def __init__(self) -> None:
        self._read, self.descriptor = os.pipe()
        self._kept: deque[bytes] = deque()
        self._thread = threading.Thread(target=self._pass_on, daemon=True, name="standard error of a child")

    def listen(self) -> None:
        """Close the child's end here, and copy the child's text to our standard error."""
        os.close(self.descriptor)
        self._thread.start()

    def forget(self) -> None:
        """Forget the text so far: another case begins."""
        self._kept.clear()

    def spoken(self) -> str:
        """Return the last line that a dead child wrote since ``forget``; "" if there is none."""
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
    """Return the cause that the last words of a process show: damaged memory, or ""."""
    if not _DAMAGE.search(words):
        return ""
    return f"memory that is not the device's is overwritten: the C library found it damaged ({words})"


# A backend in its own process, used from ours like any other backend.
#
# Only that process uses the device. It receives inputs and attributes, and returns a status and outputs. Data, golden,
# verdict and record stay here. It is started once and keeps its backend. If a call ends the process or changes its
# state, the next call gets a new process. The state that an earlier call left in a process (a damaged pipe, a delayed
# end) must not affect the next call: that call is repeated in a new process.

_PATIENCE = 10  # processes that the same change ends: then the change is treated as the device's habit


class IsolatedBackend:
    """A backend in another process. ``meanwhile``: called once while a call runs, then forgotten. ``notes``: changes in
    its process since the last ``drain_notes``. ``seconds``: the time of the last call, as the process reports it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.meanwhile: Callable[[], None] | None = None
        self.notes: list[str] = []
        self.seconds = 0.0
        self.about: dict[str, Any] = {}
        self._process: Process | None = None
        self._calls = 0  # calls that the process has run
        self._ended_by: frozenset[str] = frozenset()  # the changes that ended the previous process
        self._ends: Counter[str] = Counter()  # how many processes each change has ended
        self._habits: set[str] = set()
        self._asked: tuple[Call, Shared] | None = None  # the call of the last question, until it has run

    def begin(self) -> None:
        """Start the process, unless it runs; it loads the backend while we do other work."""
        if self._process is None:
            self._process, self._calls = Process(self.settings), 0

    def open(self) -> None:
        """Start the process, unless it runs. Raises OracleError if its backend cannot be loaded."""
        self.begin()
        assert self._process is not None
        try:
            self._process.loaded()
        except BaseException:
            self._drop()
            raise
        self.about = self._process.about

    @property
    def name(self) -> str:
        return readable(self.about.get("name", self.settings.backend))

    @property
    def device(self) -> str:
        return readable(self.about.get("device", ""))

    @property
    def answers_status(self) -> bool:
        return self.about.get("answers_status") is True

    @property
    def recorded(self) -> bool:
        return self.about.get("recorded") is True

    def unsupported(self, call: Call) -> str:
        """Return why the backend does not support a call ("" if it does). Raises DeviceError."""
        self.open()
        if not self.about.get("asks"):
            return ""
        self._forget()
        shared = Shared(call)
        self._asked = call, shared
        answer = self._ask("unsupported", call, shared, known=False)
        return readable(answer.get("unsupported", ""))

    def run(self, call: Call) -> Status:
        """Run a call and copy its outputs to this process. Raises DeviceError for an exception of the backend,
        DeviceProcessEnded for the end of its process, and CallNotSupported if it does not support the call and was not
        asked before."""
        known = self._asked is not None and self._asked[0] is call
        if not known:
            self._forget()
            self._asked = call, Shared(call)
        assert self._asked is not None
        shared = self._asked[1]
        try:
            answer = self._ask("run", call, shared, known=known)
            outputs = answer["outputs"] if isinstance(answer.get("outputs"), dict) else {}
            others = {
                name: isinstance(description, dict) and description.get("values") is True
                for name, description in outputs.items()
            }
            arrays = shared.copy_back(others)
        finally:
            self.meanwhile = None
            self._forget()
        for name, description in outputs.items():
            if name in call.outputs:
                call.outputs[name] = arrays[name] if name in arrays else _stand_in(description)
        code, reason = answer["status"]
        return Status(code, readable(reason))

    def _ask(self, do: Literal["unsupported", "run"], call: Call, shared: Shared, *, known: bool) -> dict[str, Any]:
        """Ask the process; if it fails before it begins, ask a new one. ``known``: the process has the call already.
        Raises DeviceError."""
        meanwhile = self.meanwhile if do == "run" else None
        for last in (False, True):
            try:
                known = known and self._process is not None
                self.open()
                assert self._process is not None
                form, memory = (None, -1) if known else (shared.form(call), shared.descriptor)
                answer = self._process.ask(Question(do, form), memory, self.settings.case_limit, meanwhile)
                return self._check_answer(answer, do)
            except NotBegun as error:
                self._drop()
                if last:
                    raise DeviceProcessEnded(
                        "crash", f"two processes of the device ended before they began: {error}"
                    ) from None
            except OracleError as error:  # a new process cannot load the backend, although an earlier one could
                raise DeviceError(readable(error)) from None
            except DeviceError as error:
                if isinstance(error, DeviceProcessEnded):
                    self._drop()
                raise
            except BaseException:  # Ctrl-C: its answer is not needed any more
                self._drop()
                raise
        raise AssertionError("unreachable")

    def _check_answer(self, answer: dict[str, Any], do: str) -> dict[str, Any]:
        """Note the changes that a call made to its process, and end a changed process. Raises DeviceError."""
        self._calls += do == "run"
        self.about["device"] = answer.get("device", "")
        seconds = answer.get("seconds")
        self.seconds = float(seconds) if isinstance(seconds, (int, float)) else 0.0
        odd = frozenset(map(readable, answer.get("odd", ())))
        if self._calls <= 1:
            self._habits |= odd & self._ended_by
        odd -= self._habits
        self.notes += [change for change in sorted(odd) if change not in self.notes]
        if odd or answer.get("broken") is not False:
            self._ended_by = odd
            self._ends.update(odd)
            self._habits |= {change for change in odd if self._ends[change] >= _PATIENCE}
            self._drop()
        if "raised" in answer:
            raise DeviceError(readable(answer["raised"]), readable(answer.get("trace", "")))
        if do == "run" and answer.get("unsupported"):
            raise CallNotSupported(readable(answer["unsupported"]))
        status = answer.get("status")
        is_status = isinstance(status, list) and [type(each) for each in status] == [int, str]
        if do == "run" and not is_status:
            raise DeviceProcessEnded("crash", "the device's process answered something other than a status")
        return answer

    def drain_notes(self) -> tuple[str, ...]:
        """Return the notes since the last call of this method."""
        notes, self.notes = tuple(self.notes), []
        return notes

    def _drop(self) -> None:
        """End the process; the next call gets a new one."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()

    restart = _drop

    def _forget(self) -> None:
        """Release the memory of the last question's call."""
        if self._asked is not None:
            self._asked[1].close()
            self._asked = None

    def close(self) -> None:
        """Let the process close its backend and end. Raises OracleError if that fails."""
        self._forget()
        process, self._process = self._process, None
        if process is not None:
            process.close()


class _Other:
    """An object that is not an array, in the place of an output: the verdict names its type."""


def _stand_in(described: Any) -> Any:
    """Return an object with the type, or with the dtype and shape, of the device's object in the place of an output."""
    if not isinstance(described, dict) or "type" in described:
        name = readable(described.get("type", "")) if isinstance(described, dict) else ""
        return None if name == "NoneType" else type(name or "object", (_Other,), {})()
    try:
        dtype = DTYPES[described["dtype"]].numpy if described["dtype"] in DTYPES else np.dtype(str(described["dtype"]))
        result: Array = np.broadcast_to(np.zeros((), dtype), tuple(map(int, described["shape"])))
    except (KeyError, TypeError, ValueError):
        return _Other()
    return result
