"""A backend in a process of its own, seen from ours as any other backend.

The process holds the device alone. It is given inputs and attributes, and gives back a status and outputs; data,
golden, verdict and record stay here. It is started once and keeps its backend. A call that ends it, or that changes
something of it, is its last: the next call gets a new process. What an earlier call left in a process (a damaged pipe,
a delayed end) is no matter of the next call either: that is repeated in a new process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from ..model.call import Array, Call
from ..model.dtypes import DTYPES
from ..model.errors import OracleError
from ..model.status import Status
from ..settings.settings import Settings
from .faults import DeviceError, Gone, NotTaken, readable
from .process import NotBegun, Process
from .serve import Question
from .shared import Shared

_PATIENCE = 10  # processes that end by the same change: then it is taken for the device's habit too


class Apart:
    """A backend elsewhere. ``meanwhile``: called once when a call is under way, then forgotten; ``notes``: what the
    device changed in its process since they were last taken; ``seconds``: how long it says that its last call took."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.meanwhile: Callable[[], None] | None = None
        self.notes: list[str] = []
        self.seconds = 0.0
        self.about: dict[str, Any] = {}
        self._process: Process | None = None
        self._calls = 0  # that the process has run
        self._ended_by: frozenset[str] = frozenset()  # changes that were the end of the process before
        self._ends: Counter[str] = Counter()  # processes that a change has ended
        self._habits: set[str] = set()
        self._asked: tuple[Call, Shared] | None = None  # the call that was asked about last, until it has run

    def begin(self) -> None:
        """Start the process, unless it runs; it loads the backend while we do something else."""
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
        """Return why the backend does not take a call ("" if it does). Raises DeviceError."""
        self.open()
        if not self.about.get("asks"):
            return ""
        self._forget()
        shared = Shared(call)
        self._asked = call, shared
        answer = self._ask("unsupported", call, shared, known=False)
        return readable(answer.get("unsupported", ""))

    def run(self, call: Call) -> Status:
        """Run a call and bring its outputs here. Raises DeviceError for what it raises there, Gone for its end, and
        NotTaken where it was not asked before and does not take the call."""
        known = self._asked is not None and self._asked[0] is call
        if not known:
            self._forget()
            self._asked = call, Shared(call)
        assert self._asked is not None
        shared = self._asked[1]
        try:
            answer = self._ask("run", call, shared, known=known)
            outputs = answer["outputs"] if isinstance(answer.get("outputs"), dict) else {}
            others = {name: isinstance(told, dict) and told.get("values") is True for name, told in outputs.items()}
            arrays = shared.given_back(others)
        finally:
            self.meanwhile = None
            self._forget()
        for name, told in outputs.items():
            if name in call.outputs:
                call.outputs[name] = arrays[name] if name in arrays else _stand_in(told)
        code, reason = answer["status"]
        return Status(code, readable(reason))

    def _ask(self, do: Literal["unsupported", "run"], call: Call, shared: Shared, *, known: bool) -> dict[str, Any]:
        """Ask the process, and a new one where it was out of order before. ``known``: it has the call already. Raises
        DeviceError."""
        meanwhile = self.meanwhile if do == "run" else None
        for last in (False, True):
            try:
                known = known and self._process is not None
                self.open()
                assert self._process is not None
                form, memory = (None, -1) if known else (_form(call, shared), shared.descriptor)
                answer = self._process.ask(Question(do, form), memory, self.settings.case_limit, meanwhile)
                return self._looked_at(answer, do)
            except NotBegun as error:
                self._drop()
                if last:
                    raise Gone("crash", f"two processes of the device ended before they began: {error}") from None
            except OracleError as error:  # it was there, and does not come back
                raise DeviceError(readable(error)) from None
            except DeviceError as error:
                if isinstance(error, Gone):
                    self._drop()
                raise
            except BaseException:  # Ctrl-C: nobody waits for its answer any more
                self._drop()
                raise
        raise AssertionError("unreachable")

    def _looked_at(self, answer: dict[str, Any], do: str) -> dict[str, Any]:
        """Note what a call did to its process, and end one that is not as it was. Raises DeviceError."""
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
            raise NotTaken(readable(answer["unsupported"]))
        if do == "run" and not _is_status(answer.get("status")):
            raise Gone("crash", "the device's process answered what is no status")
        return answer

    def taken_notes(self) -> tuple[str, ...]:
        """Return the notes since they were last taken."""
        notes, self.notes = tuple(self.notes), []
        return notes

    def _drop(self) -> None:
        """End the process; the next call gets a new one."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()

    restart = _drop

    def _forget(self) -> None:
        """Give up the memory of a call that was asked about."""
        if self._asked is not None:
            self._asked[1].close()
            self._asked = None

    def close(self) -> None:
        """Let the process close its backend and end. Raises OracleError where that goes wrong."""
        self._forget()
        process, self._process = self._process, None
        if process is not None:
            process.close()


def _form(call: Call, shared: Shared) -> Call:
    """Return a call as it travels: places in the shared memory instead of arrays."""
    inputs: dict[str, Any] = dict(shared.inputs)
    return Call(
        call.op, call.soc, inputs, dict(call.attrs), dict(shared.outputs), dict(call.specs), call.null, call.case_id,
        call.cann, call.subnormals,
    )  # fmt: skip


def _is_status(said: Any) -> bool:
    return isinstance(said, list) and len(said) == 2 and type(said[0]) is int and isinstance(said[1], str)


class _Other:
    """Something that is no array, in an output's place: the verdict names its type."""


def _stand_in(told: Any) -> Any:
    """Return something of the type, or the dtype and shape, that a device put in an output's place."""
    if not isinstance(told, dict) or "type" in told:
        name = readable(told.get("type", "")) if isinstance(told, dict) else ""
        return None if name == "NoneType" else type(name or "object", (_Other,), {})()
    try:
        dtype = DTYPES[told["dtype"]].numpy if told["dtype"] in DTYPES else np.dtype(str(told["dtype"]))
        found: Array = np.broadcast_to(np.zeros((), dtype), tuple(map(int, told["shape"])))
    except (KeyError, TypeError, ValueError):
        return _Other()
    return found
