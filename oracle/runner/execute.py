"""The second step of a case: running it on the device, and again where one run does not tell enough."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ..backends import BUILTIN, Backend, load, shorthand
from ..backends.recorded import RecordedOutputs
from ..model.call import Array, Call
from ..model.errors import OracleError
from ..model.status import SUCCESS, Status
from ..numerics.extremes import some
from ..verdict import Judgement
from .custody import DeviceError, guarded, readable
from .memory import Memory
from .poisons import OTHER
from .prepare import Prepared
from .repeat import differences, is_repeated

Device = Callable[[], AbstractContextManager[None]]  # around every call into a backend


@dataclass
class Stopwatch:
    """Seconds spent, by the name of a record's field."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - started


@dataclass(frozen=True)
class Execution:
    """What a device did with a call.

    ``memory``: as the device left it. ``changed``: the inputs it modified. ``actual``: the output, if its values can be
    judged. ``unwritten``: elements of it that hold the poison after two runs with different poisons. ``differing``:
    what other runs of the same call gave otherwise (--determinism, --invariance). ``third``: the third party's output.
    """

    memory: Memory
    status: Status
    changed: tuple[str, ...] = ()
    actual: Array | None = None
    unwritten: Array | None = None
    differing: tuple[Judgement, ...] = ()
    third: Array | None = None


def execute(prepared: Prepared, backend: Backend, watch: Stopwatch, device: Device = guarded) -> Execution:
    """Run a case, each run of the device inside ``device()``. Raises DeviceError where the backend does, OracleError
    where the third party fails."""

    def run(memory: Memory) -> Status:
        with watch("backend_s"):
            return _answer(backend, memory.call, device)

    memory, folder = prepared.memory, prepared.settings.record_outputs
    if folder is None:
        status = run(memory)
    else:
        with RecordedOutputs(Path(folder), memory.call, prepared.settings.worker) as saved:
            status = saved.status = run(memory)
    changed = tuple(memory.changed_inputs())  # before another run restores them
    actual = _judgeable(prepared, memory, status)
    if actual is None:
        return Execution(memory, status, changed)
    unwritten = _unwritten(memory, actual, run)
    if is_repeated(prepared.settings) and all(actual is not output.view for output in memory.outputs.values()):
        actual = actual.copy()  # the device's own memory, which it may use again in the next run
    differing = tuple(differences(prepared, actual, run))
    return Execution(memory, status, changed, actual, unwritten, differing, third_party_output(prepared))


def _judgeable(prepared: Prepared, memory: Memory, status: Status) -> Array | None:
    """Return the output if its values can be judged: the call computes something, succeeded, and gave an array of the
    right type and shape."""
    if prepared.values is None or not status.ok:
        return None
    ((name, output),) = memory.outputs.items()
    found = memory.call.outputs.get(name)
    right = isinstance(found, np.ndarray) and (found.dtype, found.shape) == (output.view.dtype, output.view.shape)
    return np.asarray(found) if right else None  # not of a class whose operations are the device's


def unsupported(backend: Backend, call: Call, device: Device = guarded) -> str:
    """Return why a backend does not take a call ("" if it does)."""
    asked = getattr(backend, "unsupported", None)
    if asked is None:
        return ""
    with device():
        answer = asked(call)
    return readable(answer) if answer else ""


def _answer(backend: Backend, call: Call, device: Device) -> Status:
    with device():
        answer = backend.run(call)
    if answer is None:
        return SUCCESS
    if not isinstance(answer, Status):
        told = f"run() returned {type(answer).__name__}; it must return an oracle.Status, or None for success"
        with suppress(Exception):  # its repr is the device's too
            told = told.replace(type(answer).__name__, readable(repr(answer)), 1)
        raise DeviceError from TypeError(told)
    return answer


def _unwritten(memory: Memory, actual: Array, run: Callable[[Memory], Status]) -> Array | None:
    """Return which elements were not written, None if all were: a result may equal the poison, and then a second run
    with another decides."""
    ((name, output),) = memory.outputs.items()
    if actual is not output.view:
        return None
    missing = output.unwritten()
    if some(missing):
        second = memory.again(OTHER)
        run(second)
        missing &= second.outputs[name].unwritten()
    return missing if some(missing) else None


# third party ----------------------------------------------------------------------------------------------------------


def third_party_output(prepared: Prepared) -> Array | None:
    """Return what the third party of a dual benchmark answers to the same inputs; None where there is none."""
    text = prepared.settings.third_party
    if text is None or "standard" not in prepared.settings.layers:
        return None
    benchmark = _third_party(text)
    memory = prepared.memory.again()
    asked: Any = getattr(benchmark, "unsupported", None)
    if reason := asked and asked(memory.call):
        raise OracleError(f"third party {text}: {reason}")
    answer = benchmark.run(memory.call)
    if answer is not None and not answer.ok:
        raise OracleError(f"third party {text} answered {answer.name}: {answer.reason}")
    (output,) = memory.outputs
    return np.asarray(memory.call.outputs[output])


@lru_cache(maxsize=4)
def _third_party(text: str) -> Backend:
    """Load a third party: a backend, or ``name:value`` with the value of the built-in's main option."""
    name, colon, value = text.partition(":")
    if colon and name in BUILTIN:
        return load(name, {shorthand(name): value})
    return load(text, {})
