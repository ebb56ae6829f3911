"""The second step of a case: run it on the device, and run it again if one run does not show enough."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from ..backends import BUILTIN, MAIN_OPTION, Backend
from ..backends.replay import RecordedOutputs
from ..catalogue.data.case import Case
from ..guest.opening import CallNotSupported, DeviceError, guarded, load_backend
from ..guest.process import IsolatedBackend
from ..guest.serve import reason_of, status_of
from ..model.aclnn import Status
from ..model.call import Array, Call, TensorSpec
from ..model.errors import OracleError
from ..numerics.floats.codes import any_true
from ..operators import OPERATORS
from ..operators.answers.parts import part_of
from ..settings.settings import DEVICE_BACKENDS, Settings
from ..verdict import Judgement
from .prepare import OTHER, Memory, Prepared, is_like, sliced_axes

# --invariance: a contiguous layout of the same call, and a slice of its batch, must give the same bits.


def variants(
    case: Case, memory: Memory, actual: Mapping[str, Array]
) -> Iterator[tuple[str, Memory, Mapping[str, Array]]]:
    """Yield (what, call, wanted): the call's outputs must equal ``wanted``, the outputs ``actual`` of the original call
    or parts of them, bit for bit."""
    memory.restore()
    call = replace(memory.call, inputs=memory.inputs, outputs={**memory.call.outputs, **actual})
    arrays = [v for v in memory.inputs.values() if isinstance(v, np.ndarray)]
    if not all(a.flags.c_contiguous for a in [*arrays, *(o.view for o in memory.outputs.values())]):
        yield "a contiguous layout", _rebuilt(memory, call), actual
    axis = batch_axis(case)
    if axis is not None:
        size = actual[OPERATORS[case.op].output].shape[axis]
        part = part_of(call, axis, slice(0, (size + 1) // 2))
        yield "a slice of the batch", _rebuilt(memory, part), {name: part.outputs[name] for name in actual}


def batch_axis(case: Case) -> int | None:
    """Return the first axis, of length 2 or more, along which the operator works slice by slice in all outputs.
    None if there is no such axis."""
    plan = case.outputs[OPERATORS[case.op].output]
    return None if plan is None else next((k for k in sliced_axes(case) if plan.shape[k] > 1), None)


def _rebuilt(memory: Memory, call: Call) -> Memory:
    """Return a call, or a part of it, with contiguous tensors of the original formats."""
    inputs = {n: np.array(v, order="C") if isinstance(v, np.ndarray) else v for n, v in call.inputs.items()}
    outputs = {
        name: plan and replace(plan, shape=call.outputs[name].shape, view="contiguous", storage_shape=None)
        for name, plan in memory.case.outputs.items()
    }
    specs = {n: TensorSpec.of(v) for n, v in inputs.items() if isinstance(v, np.ndarray)}
    for n, v in specs.items():
        v.format = memory.call.specs[n].format if n in memory.call.specs else "ND"
    return Memory(replace(memory.case, outputs=outputs), call.soc, inputs, specs, under=memory.under)


# --determinism and --invariance: further runs of the same call on the device. Each must equal the first bit for bit,
# except the sign and the payload of a NaN: IEEE 754 leaves them open, and vector and scalar instructions differ.

Run = Callable[[Memory], Status]


def differences(prepared: Prepared, actual: Mapping[str, Array], run: Run) -> Iterator[Judgement]:
    """Run the call as often as the settings request and yield the differences from the first run's outputs."""
    settings = prepared.settings
    for number in range(2, settings.determinism + 1):
        rule = f"bitwise equal on {settings.determinism} runs"
        yield from _difference(prepared.memory.again(), actual, run, rule, f"run {number}")
    if settings.invariance:
        for what, memory, wanted in variants(prepared.case, prepared.memory, actual):
            for result in _difference(memory, wanted, run, f"{what} gives the same bits", what):
                whole = result.bad is not None and result.bad.shape == actual[result.output].shape
                yield result if whole else Judgement(False, result.reason, result.rule)


def _difference(memory: Memory, expected: Mapping[str, Array], run: Run, rule: str, what: str) -> Iterator[Judgement]:
    status = run(memory)
    for name, wanted in expected.items():
        result = memory.call.outputs[name]
        if not status.ok or not is_like(result, wanted):
            yield Judgement(False, f"{what}: the device answered {status.name} with another output", rule)
            return
        bad = (_bits(result) != _bits(wanted)) & ~((result != result) & (wanted != wanted))
        if bad.any():
            text = f"{np.count_nonzero(bad)} of {bad.size} elements" + (f" of {name}" if len(expected) > 1 else "")
            yield Judgement(False, f"{what}: {text} differ", rule, bad=bad, output=name)


def _bits(array: Array) -> Array:
    kind = f"V{array.itemsize}" if array.itemsize > 8 else f"u{array.itemsize}"
    return np.asarray(np.ascontiguousarray(array).view(kind).reshape(array.shape))


# The run itself.


class Stopwatch:
    """Measure seconds by the name of a record field: ``with watch("golden_s"):``. Only one runs at a time."""

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
        """Replace the time of the last measurement by ``seconds``, if ``seconds`` is less."""
        self.seconds[name] -= max(0.0, self._last - max(0.0, seconds))


@dataclass(frozen=True)
class Execution:
    """The result of running a call on a device.

    ``memory``: its state after the run. ``changed``: the inputs that the device modified. ``actual``: the outputs by
    name, if their values can be judged. ``unwritten``: the elements of ``actual`` that contain the poison after two
    runs with different poisons. ``differing``: the differences between runs of the same call (--determinism,
    --invariance). ``third``: the third party's outputs.
    """

    memory: Memory
    status: Status
    changed: tuple[str, ...] = ()
    actual: Mapping[str, Array] = field(default_factory=dict)
    unwritten: Mapping[str, Array] = field(default_factory=dict)
    differing: tuple[Judgement, ...] = ()
    third: Mapping[str, Array] = field(default_factory=dict)


def execute(prepared: Prepared, backend: Backend, watch: Stopwatch) -> Execution:
    """Run a case. Raises DeviceError if the backend does, OracleError if the third party fails."""

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
    settings = prepared.settings
    if settings.determinism > 1 or settings.invariance:  # the array is the device's memory; the next run may reuse it
        actual = {n: a if a is memory.outputs[n].view else a.copy() for n, a in actual.items()}
    differing = tuple(differences(prepared, actual, run))
    return Execution(memory, status, changed, actual, unwritten, differing, third_party_output(prepared))


def operands_after(
    case: Case, before: Case, backend: Backend, settings: Settings, watch: Stopwatch
) -> dict[str, Array]:
    """Run the forward before a gradient. Return the gradient's operands: the device's results and the forward's inputs.
    The forward's own case judges these results. Raises CallNotSupported if the backend refuses the call, and
    DeviceError if it gives no results."""
    memory = Memory.make(before, soc=settings.soc, seed=settings.seed, under=settings.under)
    if reason := unsupported(backend, memory.call):
        raise CallNotSupported(f"{before.op}, which comes before: {reason}")
    status = answer(backend, memory.call, watch)
    if not status.ok:
        raise DeviceError(f"{before.op}, which comes before, answered {status.name}: {status.reason}")
    memory.restore()
    forward = next(each for each in OPERATORS[case.op].forwards if each.name == before.op)
    given = {name: memory.inputs.get(forward.inputs.get(name, name)) for name in case.inputs}
    result = {name: array for name, array in given.items() if array is not None}
    for operand, name in forward.results.items():
        view, own = memory.outputs[name].view, memory.call.outputs.get(name)
        if not is_like(own, view):
            raise DeviceError(f"{before.op}, which comes before, gave no {name} of {view.dtype} and shape {view.shape}")
        result[operand] = np.asarray(own)
    return result


def _judgeable(prepared: Prepared, memory: Memory, status: Status) -> dict[str, Array]:
    """Return the outputs if their values can be judged; else an empty dict.
    The call must compute values and succeed, and its arrays must have the right types and shapes."""
    if not prepared.values or not status.ok:
        return {}
    actual = {}
    for name, output in memory.outputs.items():
        result = memory.call.outputs.get(name)
        if not is_like(result, output.view):
            return {}
        actual[name] = np.asarray(result)  # a plain array: a subclass may run its operations on the device
    return actual


def unsupported(backend: Backend, call: Call) -> str:
    """Return why a backend does not support a call ("" if it does)."""
    asked = getattr(backend, "unsupported", None)
    if asked is None:
        return ""
    with guarded():
        return reason_of(asked(call))


def answer(backend: Backend, call: Call, watch: Stopwatch) -> Status:
    """Run a call once and return the backend's status. Raises DeviceError if the answer is not a status.

    A backend in another process reports its own time, because this process does other work meanwhile.
    """
    with watch("backend_s"), guarded():
        status = status_of(backend.run(call))
    if isinstance(backend, IsolatedBackend):
        watch.instead("backend_s", backend.seconds)
    return status


def _unwritten(memory: Memory, actual: Mapping[str, Array], run: Callable[[Memory], Status]) -> dict[str, Array]:
    """Return masks of the elements that were not written, for each output that has any.
    A result may equal the poison. A second run with another poison decides."""
    missing = {n: memory.outputs[n].unwritten() for n, a in actual.items() if a is memory.outputs[n].view}
    missing = {n: result for n, result in missing.items() if any_true(result)}
    if missing:
        second = memory.again(OTHER)
        run(second)
        missing = {n: result & second.outputs[n].unwritten() for n, result in missing.items()}
    return {n: result for n, result in missing.items() if any_true(result)}


# third party ----------------------------------------------------------------------------------------------------------


def third_party_output(prepared: Prepared) -> dict[str, Array]:
    """Return the third party's outputs for the same inputs; an empty dict if no dual benchmark is judged."""
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


def open_third_party(settings: Settings) -> None:
    """Load the third party of a dual benchmark, if there is one. Raises OracleError if it cannot be loaded."""
    if settings.third_party is not None and "standard" in settings.layers:
        benchmark = _third_party(settings.third_party, settings)
        if isinstance(benchmark, IsolatedBackend):
            benchmark.open()


def _third_party(text: str, settings: Settings) -> Backend:
    """Load a third party: a backend, or ``name:value``. ``value`` sets the main option of a built-in backend."""
    name, colon, value = text.partition(":")
    options = ((MAIN_OPTION[name], value),) if colon and name in BUILTIN else ()
    name = name if options else text
    isolate, emulate = None if settings.isolate else settings.isolate, settings.emulate and name in DEVICE_BACKENDS
    own = Settings(name, options, settings.operators, soc=settings.soc, cann=settings.cann, isolate=isolate,
                   backend_timeout=settings.backend_timeout, emulate=emulate)  # fmt: skip
    return _loaded(own)


def backend_of(settings: Settings) -> Backend:
    """Return the backend that the settings choose: loaded here, or in its own process, which is not started yet."""
    return IsolatedBackend(settings) if settings.apart else load_backend(settings)


_loaded = lru_cache(maxsize=4)(backend_of)
