"""The second step of a case: running it on the device, and again where one run does not tell enough."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np

from ..backends import BUILTIN, Backend, shorthand
from ..backends.replay import RecordedOutputs
from ..catalogue.data.case import Case
from ..guest.apart import Apart
from ..guest.faults import DeviceError, NotTaken, guarded, readable
from ..guest.opening import load_backend
from ..guest.serve import status_of
from ..model.call import Array, Call
from ..model.errors import OracleError
from ..model.status import Status
from ..numerics.floats.extremes import some
from ..operators import OPERATORS
from ..settings.settings import DEVICE_BACKENDS, Settings
from ..verdict import Judgement
from .invariance import differences, is_repeated
from .memory import OTHER, Memory
from .prepare import Prepared


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
        self._last = time.perf_counter() - self._started
        self.seconds[self._name] = self.seconds.get(self._name, 0.0) + self._last

    def instead(self, name: str, seconds: float) -> None:
        """Count so many seconds instead of those just spent, where they are fewer."""
        self.seconds[name] -= max(0.0, self._last - max(0.0, seconds))


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


def execute(prepared: Prepared, backend: Backend, watch: Stopwatch) -> Execution:
    """Run a case. Raises DeviceError where the backend does, OracleError where the third party fails."""

    def run(memory: Memory) -> Status:
        return answer(backend, memory.call, watch)

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
    unwritten = _unwritten(memory, {n: a for n, a in actual.items() if n in prepared.values}, run)
    if is_repeated(prepared.settings):  # the device's own memory, which it may use again in the next run
        actual = {n: a if a is memory.outputs[n].view else a.copy() for n, a in actual.items()}
    differing = tuple(differences(prepared, actual, run))
    return Execution(memory, status, changed, actual, unwritten, differing, third_party_output(prepared))


def operands_after(
    case: Case, before: Case, backend: Backend, settings: Settings, watch: Stopwatch
) -> dict[str, Array]:
    """Run the forward before a gradient and return the gradient's operands: the device's results, and the forward's
    inputs. What the results are worth its own case says. Raises NotTaken where the backend does not take the call,
    DeviceError where it gives no results."""
    memory = Memory.make(before, soc=settings.soc, seed=settings.seed, under=settings.under)
    if reason := unsupported(backend, memory.call):
        raise NotTaken(f"{before.op}, which comes before: {reason}")
    status = answer(backend, memory.call, watch)
    if not status.ok:
        raise DeviceError(f"{before.op}, which comes before, answered {status.name}: {status.reason}")
    memory.restore()
    forward = next(each for each in OPERATORS[case.op].forwards if each.name == before.op)
    given = {name: memory.inputs.get(forward.inputs.get(name, name)) for name in case.inputs}
    found = {name: array for name, array in given.items() if array is not None}
    for operand, name in forward.results.items():
        view, own = memory.outputs[name].view, memory.call.outputs.get(name)
        if not isinstance(own, np.ndarray) or (own.dtype, own.shape) != (view.dtype, view.shape):
            raise DeviceError(f"{before.op}, which comes before, gave no {name} of {view.dtype} and shape {view.shape}")
        found[operand] = np.asarray(own)
    return found


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


def unsupported(backend: Backend, call: Call) -> str:
    """Return why a backend does not take a call ("" if it does)."""
    asked = getattr(backend, "unsupported", None)
    if asked is None:
        return ""
    with guarded():
        answer = asked(call)
    return readable(answer) if answer else ""


def answer(backend: Backend, call: Call, watch: Stopwatch) -> Status:
    """Run a call once and return the status that the backend answers. Raises DeviceError where it is none.

    The time of a backend elsewhere is what it says itself: we do something else meanwhile.
    """
    with watch("backend_s"), guarded():
        status = status_of(backend.run(call))
    if isinstance(backend, Apart):
        watch.instead("backend_s", backend.seconds)
    return status


def _unwritten(memory: Memory, actual: Mapping[str, Array], run: Callable[[Memory], Status]) -> dict[str, Array]:
    """Return which elements were not written, of outputs that have such: a result may equal the poison, and then a
    second run with another decides."""
    missing = {n: memory.outputs[n].unwritten() for n, a in actual.items() if a is memory.outputs[n].view}
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
    benchmark = _third_party(text, prepared.settings)
    memory = prepared.memory.again()
    try:
        if reason := unsupported(benchmark, memory.call):
            raise OracleError(f"third party {text}: {reason}")
        status = copy_context().run(answer, benchmark, memory.call, Stopwatch())
    except DeviceError as error:
        raise OracleError(f"third party {text}: {error.reason}") from None
    if not status.ok:
        raise OracleError(f"third party {text} answered {status.name}: {status.reason}")
    return {name: np.asarray(memory.call.outputs[name]) for name in memory.outputs}


def _third_party(text: str, settings: Settings) -> Backend:
    """Load a third party: a backend, or ``name:value`` with the value of the built-in's main option."""
    name, colon, value = text.partition(":")
    options = ((shorthand(name), value),) if colon and name in BUILTIN else ()
    name = name if options else text
    isolate, emulate = None if settings.isolate else settings.isolate, settings.emulate and name in DEVICE_BACKENDS
    own = Settings(name, options, settings.operators, soc=settings.soc, cann=settings.cann, isolate=isolate,
                   backend_timeout=settings.backend_timeout, emulate=emulate)  # fmt: skip
    return _loaded(own)


@lru_cache(maxsize=4)
def _loaded(settings: Settings) -> Backend:
    return Apart(settings) if settings.apart else load_backend(settings)
