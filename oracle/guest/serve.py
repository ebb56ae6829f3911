"""The main loop of a device's process.

The process knows the inputs and attributes of a call, but no right results. The run trusts its answers no further than
any device's answer.
"""

from __future__ import annotations

import builtins
import gc
import json
import locale
import math
import os
import pathlib
import pickle
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from mmap import mmap
from os import _exit, getpid  # a device may replace attributes of os
from typing import Any, Literal, NamedTuple

import numpy as np

from ..backends import Backend
from ..model.aclnn import SUCCESS, Status
from ..model.call import Call
from ..model.dtypes import find
from ..model.errors import OracleError
from ..settings.settings import Settings
from .opening import DeviceError, guarded, load_backend, not_the_users, readable, release
from .wire import Place, Wire, as_arrays, mapped

# Changes by a device in its process: after such a change the process is not used for another call.
#
# The state is noted once, when the backend is loaded, and compared after every call. If a fresh process shows the same
# change after its first call, it is the device's habit: a thread of its runtime, or a setting of its library. A habit
# is ignored.

_SPACES: dict[str, Any] = {
    **{module.__name__: module for module in (builtins, os, np, math, time, json, pickle, pathlib, signal, threading)},
    **{f"{kind.__module__}.{kind.__qualname__}": kind for kind in (
        pathlib.Path, pathlib.PurePath, json.JSONEncoder, json.JSONDecoder
    )},
}  # fmt: skip
_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGALRM", "SIGCHLD") if hasattr(signal, name))
_TIMERS = tuple(getattr(signal, name) for name in ("ITIMER_REAL", "ITIMER_VIRTUAL", "ITIMER_PROF")
                if hasattr(signal, name))  # fmt: skip
_MISSING = object()
try:
    import resource
except ImportError:  # no such limits on this platform
    resource = None  # type: ignore[assignment]
_LIMITS = {f"the limit {name}": getattr(resource, name) for name in ("RLIMIT_NOFILE", "RLIMIT_AS", "RLIMIT_DATA",
           "RLIMIT_STACK", "RLIMIT_CPU", "RLIMIT_FSIZE", "RLIMIT_NPROC") if hasattr(resource, name)}  # fmt: skip


def _descriptor(number: int) -> tuple[int, int] | None:
    try:
        result = os.fstat(number)
    except OSError:  # it is closed
        return None
    return result.st_dev, result.st_ino


def _folder() -> str | None:
    try:
        return os.getcwd()  # noqa: PTH109  asked after every call: a Path takes ten times as long
    except OSError:  # it was removed
        return None


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _variables() -> dict[Any, Any]:
    """Return os's own encoded copy of the environment: decoding it takes longer than all other checks here."""
    result: dict[Any, Any] = vars(os.environ)["_data"]
    return result


class Noted:
    """The state of a process when its backend was loaded."""

    def __init__(self) -> None:
        self._spaces = {name: dict(vars(space)) for name, space in _SPACES.items()}
        self._variables = dict(_variables())
        self._modules = len(sys.modules)
        self._search_path = list(sys.path)
        self._filters = list(warnings.filters)
        self._values = self._now()

    def _now(self) -> dict[str, Any]:
        """Return values that must be the same before and after a call."""
        return {
            "the working directory": _folder(),
            "the file mode mask": _umask(),
            "the recursion limit": sys.getrecursionlimit(),
            "sys.meta_path": list(sys.meta_path),
            "sys.path_hooks": list(sys.path_hooks),
            "the tracing of Python": (sys.gettrace(), sys.getprofile()),
            "the garbage collector": gc.isenabled(),
            "the threads of Python": threading.active_count(),
            "the locale": locale.setlocale(locale.LC_ALL),
            **{f"sys.{name}": getattr(sys, name, None) for name in ("stdout", "stderr", "__stdout__", "__stderr__")},
            **{f"descriptor {number}": _descriptor(number) for number in (0, 1, 2)},
            **{f"the handler of {number.name}": signal.getsignal(number) for number in _SIGNALS},
            "the alarm of the process": tuple(t for n in _TIMERS if (t := signal.getitimer(n)) != (0.0, 0.0)),
            **{name: resource.getrlimit(number) for name, number in _LIMITS.items()},
        }

    def changes(self) -> list[str]:
        """Describe what changed. Additions are ignored if they may be the device's own."""
        return [*self._of_spaces(), *_differing(self._values, self._now()), *self._of_the_rest()]

    def _of_spaces(self) -> Iterator[str]:
        for name, before in self._spaces.items():
            now: Mapping[str, Any] = vars(_SPACES[name])
            if now != before:  # a comparison one by one takes a hundred times as long; equal is nearly always identical
                yield from (f"{name}.{key}" for key, value in before.items() if now.get(key, _MISSING) is not value)

    def _of_the_rest(self) -> Iterator[str]:
        now = _variables()
        if now != self._variables:
            lost = (name for name, value in self._variables.items() if now.get(name) != value)
            yield from (f"the environment variable {os.fsdecode(name)}" for name in lost)
        if any(entry not in sys.path for entry in self._search_path):
            yield "sys.path"
        if len(sys.modules) < self._modules:
            yield "sys.modules"
        if any(entry not in warnings.filters for entry in self._filters) or _turned_to_errors(self._filters):
            yield "the filters of warnings"


def _turned_to_errors(before: list[Any]) -> bool:
    """Return whether the first filter is new and turns all warnings into errors."""
    first = next(iter(warnings.filters), None)
    return first is not None and first not in before and first[0] == "error" and first[1] is None


def _differing(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    yield from (name for name, value in before.items() if now.get(name, _MISSING) != value)


# The main loop: the process loads the backend, reports that, runs calls until the questions end, closes the backend,
# and reports the result.


class Question(NamedTuple):
    """A question of the run: whether the backend supports a call, or its result. ``call``: tensors without data; None:
    the call of the previous question. With a call, ``run`` first asks the backend whether it supports the call."""

    do: Literal["unsupported", "run"]
    call: Call | None = None


def serve(pipe: int) -> None:
    """Answer the questions of the run at the other end of a pipe."""
    not_the_users()
    wire = Wire.inherited(pipe)
    settings: Settings = wire.receive()[0]
    try:
        if settings.max_memory is not None:
            _limit_memory(settings.max_memory)
        backend = load_backend(settings)
        about = about_of(backend)
    except OracleError as error:
        wire.answer({"refused": readable(error)})
        return
    guest = Guest(backend)
    wire.answer({"ready": about})
    me = getpid()
    while asked := _next(wire):
        question, descriptor = asked
        guest.take(question, descriptor)  # before "begun" is sent: an earlier call may have made this impossible
        wire.answer({"begun": True})
        answer = guest.answer(question)
        if getpid() != me:
            _exit(1)  # a copy of this process that the device made; it must not answer
        wire.answer(answer)
    try:
        release(backend)
        problem = ""
    except OracleError as error:
        problem = str(error)
    with suppress(OSError):  # the run may be gone
        wire.answer({"closed": problem})


def _next(wire: Wire) -> tuple[Question, int] | None:
    """Return the next question; None if there are no more or the run is gone."""
    try:
        question, descriptor = wire.receive()
    except (EOFError, OSError):
        return None
    return None if question is None else (question, descriptor)


def about_of(backend: Backend) -> dict[str, Any]:
    """Return a backend's description of itself. Raises OracleError for every exception of the backend."""
    try:
        with guarded():
            devices = getattr(backend, "devices", None)
            versions = dict(getattr(backend, "versions", {}))
            return {
                "name": readable(backend.name),
                "versions": {readable(name): readable(said) for name, said in versions.items()},
                "device": readable(getattr(backend, "device", "")),
                "visible": int(devices()) if devices is not None and hasattr(backend, "use_device") else 0,
                "asks": hasattr(backend, "unsupported"),
                "answers_status": getattr(backend, "answers_status", False) is True,
                "recorded": bool(getattr(backend, "recorded", False)),
            }
    except DeviceError as error:
        raise OracleError(f"a backend that does not describe itself: {error.reason}") from None


class Guest:
    """A backend and its calls, one at a time."""

    def __init__(self, backend: Backend) -> None:
        self._backend, self._asks = backend, hasattr(backend, "unsupported")
        self._call: Call | None = None
        self._form: Call | None = None  # the same call, with the run's descriptions of its tensors
        self._memory: mmap | None = None
        self._noted = Noted()

    def answer(self, question: Question) -> dict[str, Any]:
        """Answer a question. An exception of the device becomes the answer."""
        assert self._call is not None
        answer: dict[str, Any] = {}
        started = time.perf_counter()
        try:
            with guarded():
                asked = question.do == "unsupported" or (question.call is not None and self._asks)
                answer = self._unsupported() if asked else {}
                if question.do == "run" and not answer.get("unsupported"):
                    answer = self._run()
        except DeviceError as error:
            answer = {"raised": error.reason, "trace": error.trace}
        answer["seconds"] = time.perf_counter() - started
        return {**answer, **self._about_itself()}

    def take(self, question: Question, descriptor: int) -> None:
        """Set up the call on its memory, unless it is the previous call. Raises OSError if that fails."""
        form = question.call
        if form is None:
            return
        memory = mapped(descriptor)
        inputs, outputs = as_arrays(form.inputs, memory), as_arrays(form.outputs, memory)
        self._form, self._memory = form, memory
        self._call = replace(form, inputs=inputs, outputs=outputs)
        self._given: Mapping[str, Any] = dict(outputs)

    def _unsupported(self) -> dict[str, Any]:
        assert self._call is not None
        return {"unsupported": reason_of(self._backend.unsupported(self._call))}  # type: ignore[attr-defined]  # it exists

    def _run(self) -> dict[str, Any]:
        assert self._call is not None
        assert self._form is not None
        assert self._memory is not None
        answered = self._backend.run(self._call)
        for place in self._form.outputs.values():  # in their state when the device returns
            if isinstance(place, Place):
                place.keep(self._memory)
        status = status_of(answered)
        return {"status": [status.code, readable(status.reason)], "outputs": self._outputs()}

    def _outputs(self) -> dict[str, Any]:
        """Describe each output that the device replaced by another object."""
        assert self._call is not None
        result: dict[str, Any] = {}
        for name, given in self._given.items():
            value = self._call.outputs.get(name)
            if value is not given:
                result[name] = self._other(name, value)
        return result

    def _other(self, name: str, value: Any) -> dict[str, Any]:
        """Describe the object in the place of an output. If its values can be judged, copy them into the memory."""
        if not isinstance(value, np.ndarray):
            return {"type": readable(type(value).__name__)}
        description = {"dtype": _name_of(value.dtype), "shape": list(value.shape)}
        place = None if self._form is None else self._form.outputs[name]
        if not isinstance(place, Place) or (value.dtype, value.shape) != (place.dtype, place.shape):
            return description
        assert self._memory is not None
        place.other(self._memory)[...] = np.asarray(value)  # a plain array: a subclass may use the device's operations
        return {**description, "values": True}

    def _about_itself(self) -> dict[str, Any]:
        """Return a device's report about itself after a call, and its changes in the process."""
        about: dict[str, Any] = {}
        try:
            with guarded():
                about["device"] = readable(getattr(self._backend, "device", ""))
                about["broken"] = bool(getattr(self._backend, "broken", False))
        except DeviceError:
            about["broken"] = True
        about["odd"] = [readable(change) for change in self._noted.changes()]
        return about


def reason_of(returned: Any) -> str:
    """Return the reason with which a backend refuses a call, "" if it takes it. Raises TypeError for no reason."""
    if returned is None or isinstance(returned, str):
        return readable(returned or "")
    raise TypeError(f"unsupported() returned {readable(repr(returned))[:200]}; it must return the reason, or None")


def status_of(returned: Any) -> Status:
    """Return the status that a backend answers. Raises TypeError if the answer is not a status."""
    if returned is None:
        return SUCCESS
    if isinstance(returned, Status) and type(returned.code) is int:
        return returned
    if isinstance(returned, (dict, list, tuple, np.ndarray)):  # results; their repr has many lines
        text = f"run() returned a {type(returned).__name__}; it must write into call.outputs"
        raise TypeError(f"{text} and return an oracle.Status, or None for success")
    try:
        text = readable(repr(returned))[:200]
    except BaseException:  # its repr is the device's code too
        text = readable(type(returned).__name__)
    raise TypeError(f"run() returned {text}; it must return an oracle.Status, or None for success")


def _name_of(dtype: np.dtype[Any]) -> str:
    row = find(dtype)
    return row.name if row is not None and row.numpy == dtype else dtype.str


def _limit_memory(size: int) -> None:
    """Limit the memory that this process can allocate. Raises OracleError if the platform has no such limit."""
    if not sys.platform.startswith("linux"):
        raise OracleError("--max-memory: this platform does not limit the memory of a process; only Linux does")
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    most = size if hard == resource.RLIM_INFINITY else min(size, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
