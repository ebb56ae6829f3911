"""The second step of a case: running it on the device, and again where one run does not tell enough."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ..backends import BUILTIN, Backend, load, shorthand
from ..backends.recorded import RecordedOutputs
from ..guest.custody import DeviceError, guarded, readable
from ..model.call import Array, Call
from ..model.errors import OracleError
from ..model.status import SUCCESS, Status
from ..numerics.floats.extremes import some
from ..verdict import Judgement
from .invariance import differences, is_repeated
from .memory import OTHER, Memory
from .prepare import Prepared

Device = Callable[[], AbstractContextManager[None]]  # around every call into a backend


class Stopwatch:
    """Seconds spent, by the name of a record's field: ``with watch("golden_s"):``, one at a time."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def __call__(self, name: str) -> Stopwatch:
        self._name = name
        return self

    def __enter__(self) -> None:
        self._started = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.seconds[self._name] = self.seconds.get(self._name, 0.0) + time.perf_counter() - self._started


@dataclass(frozen=True)
class Execution:
    """What a device did with a call.

    ``memory``: as the device left it. ``changed``: the inputs it modified. ``actual``: the outputs by name, if their
    values can be judged. ``unwritten``: elements of them that hold the poison after two runs with different poisons.
    ``differing``: what other runs of the same call gave otherwise (--determinism, --invariance). ``third``: the third
    party's outputs.
    """

    memory: Memory
    status: Status
    changed: tuple[str, ...] = ()
    actual: Mapping[str, Array] = field(default_factory=dict)
    unwritten: Mapping[str, Array] = field(default_factory=dict)
    differing: tuple[Judgement, ...] = ()
    third: Mapping[str, Array] = field(default_factory=dict)


def execute(prepared: Prepared, backend: Backend, watch: Stopwatch, device: Device = guarded) -> Execution:
    """Run a case, each run of the device inside ``device()``. Raises DeviceError where the backend does, OracleError
    where the third party fails."""

    def run(memory: Memory) -> Status:
        with watch("backend_s"):
            return answer(backend, memory.call, device)

    memory, folder = prepared.memory, prepared.settings.record_outputs
    if folder is None:
        status = run(memory)
    else:
        with RecordedOutputs(Path(folder), memory.call, prepared.settings.worker) as saved:
            status = saved.status = run(memory)
    changed = tuple(memory.changed_inputs())  # before another run restores them
    actual = _judgeable(prepared, memory, status)
    if not actual:
        return Execution(memory, status, changed)
    unwritten = _unwritten(memory, actual, run)
    if is_repeated(prepared.settings):  # the device's own memory, which it may use again in the next run
        actual = {n: a if a is memory.outputs[n].view else a.copy() for n, a in actual.items()}
    differing = tuple(differences(prepared, actual, run))
    return Execution(memory, status, changed, actual, unwritten, differing, third_party_output(prepared))


def _judgeable(prepared: Prepared, memory: Memory, status: Status) -> dict[str, Array]:
    """Return the outputs if their values can be judged: the call computes something, succeeded, and gave arrays of the
    right types and shapes."""
    if not prepared.values or not status.ok:
        return {}
    actual = {}
    for name, output in memory.outputs.items():
        found = memory.call.outputs.get(name)
        if not isinstance(found, np.ndarray) or (found.dtype, found.shape) != (output.view.dtype, output.view.shape):
            return {}
        actual[name] = np.asarray(found)  # not of a class whose operations are the device's
    return actual


def unsupported(backend: Backend, call: Call, device: Device = guarded) -> str:
    """Return why a backend does not take a call ("" if it does)."""
    asked = getattr(backend, "unsupported", None)
    if asked is None:
        return ""
    with device():
        answer = asked(call)
    return readable(answer) if answer else ""


def answer(backend: Backend, call: Call, device: Device) -> Status:
    """Run a call once and return the status that the backend answers. Raises DeviceError where it is none."""
    with device():
        found = backend.run(call)
    if found is None:
        return SUCCESS
    if not isinstance(found, Status):
        told = f"run() returned {type(found).__name__}; it must return an oracle.Status, or None for success"
        with suppress(Exception):  # its repr is the device's too
            told = told.replace(type(found).__name__, readable(repr(found)), 1)
        raise DeviceError from TypeError(told)
    return found


def _unwritten(memory: Memory, actual: Mapping[str, Array], run: Callable[[Memory], Status]) -> dict[str, Array]:
    """Return which elements were not written, of outputs that have such: a result may equal the poison, and then a
    second run with another decides."""
    missing = {n: o.unwritten() for n, o in memory.outputs.items() if actual[n] is o.view}
    missing = {n: found for n, found in missing.items() if some(found)}
    if missing:
        second = memory.again(OTHER)
        run(second)
        missing = {n: found & second.outputs[n].unwritten() for n, found in missing.items()}
    return {n: found for n, found in missing.items() if some(found)}


# third party ----------------------------------------------------------------------------------------------------------


def third_party_output(prepared: Prepared) -> dict[str, Array]:
    """Return what the third party of a dual benchmark answers to the same inputs; nothing where there is none."""
    text = prepared.settings.third_party
    if text is None or "standard" not in prepared.settings.layers:
        return {}
    benchmark = _third_party(text)
    memory = prepared.memory.again()
    asked: Any = getattr(benchmark, "unsupported", None)
    if reason := asked and asked(memory.call):
        raise OracleError(f"third party {text}: {reason}")
    answer = copy_context().run(benchmark.run, memory.call)  # what it sets of NumPy's error state is its own
    if answer is not None and not answer.ok:
        raise OracleError(f"third party {text} answered {answer.name}: {answer.reason}")
    return {name: np.asarray(memory.call.outputs[name]) for name in memory.outputs}


@lru_cache(maxsize=4)
def _third_party(text: str) -> Backend:
    """Load a third party: a backend, or ``name:value`` with the value of the built-in's main option."""
    name, colon, value = text.partition(":")
    if colon and name in BUILTIN:
        return load(name, {shorthand(name): value})
    return load(text, {})
