"""One case, from its description to its record line: data, golden, device, verdict."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from .. import verdict
from ..backends import Backend, load
from ..backends.recorded import RecordedOutputs
from ..catalogue.case import Case
from ..model.call import Array
from ..model.errors import DeviceFault, OracleError
from ..model.status import SUCCESS, Status
from ..operators import Reference
from ..operators import reference as reference_of
from ..record.types import CaseRecord, CaseStatus, Detail, LayerVerdict
from ..verdict import Comparison, Layer
from . import failure
from .invariance import variants
from .memory import POISONS, Memory
from .settings import Settings

OK = SUCCESS.name


@dataclass
class Outcome:
    """How a case ended, and everything its record line says about it."""

    status: CaseStatus
    reason: str = ""
    layers: dict[str, Layer] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    budget_used: float | None = None
    detail: Detail = field(default_factory=Detail)
    seconds: dict[str, float] = field(default_factory=dict)


class DeviceError(Exception):
    """The backend raised; ``__cause__`` is what it raised."""


def run_case(case: Case, backend: Backend, settings: Settings) -> CaseRecord:
    """Run one case on a backend and return its record. Whatever goes wrong becomes a status, never an exception
    (other than KeyboardInterrupt)."""
    started = time.perf_counter()
    seconds: dict[str, float] = {}
    try:
        outcome = _Run(case, backend, settings, seconds).outcome()
    except DeviceError as error:
        outcome = _raised("", error.__cause__ or error)
    except OracleError as error:
        outcome = Outcome("error", f"oracle: {error}")
    except Exception as error:  # a bug of this package: told as such, the case is not lost
        outcome = _raised("oracle failed: ", error)
    outcome.seconds = {"duration_s": time.perf_counter() - started, **seconds}
    return record_of(case, settings, outcome, device=getattr(backend, "device", ""))


def _raised(prefix: str, error: BaseException) -> Outcome:
    told = f"{prefix}{type(error).__name__}: {error}".rstrip(": ")
    if isinstance(error, (DeviceFault, OracleError)):
        return Outcome("error", told)
    trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return Outcome("error", told, detail=Detail(traceback=trace[-4000:]))


def record_of(case: Case, settings: Settings, outcome: Outcome, *, device: str = "") -> CaseRecord:
    """Return the record of a case."""
    detail = None
    if outcome.status not in ("pass", "skip"):
        detail = replace(
            outcome.detail,
            inputs=failure.describe_inputs(case),
            attrs=dict(case.attrs),
            replay=failure.replay_command(case, settings),
        )
    return CaseRecord(
        id=case.id,
        op=case.op,
        dtype=case.dtype,
        status=outcome.status,
        reason=outcome.reason,
        verdicts={n: LayerVerdict(v.passed, v.reason, v.metrics) for n, v in outcome.layers.items()},
        metrics=outcome.metrics,
        budget_used=outcome.budget_used,
        **{name: round(outcome.seconds.get(name, 0.0), 6) for name in ("duration_s", "golden_s", "backend_s")},
        worker=settings.worker,
        device=device or ("" if settings.device is None else str(settings.device)),
        detail=detail,
    )


@dataclass
class Prepared:
    """A case's data and reference, made once and judged many times (the detection score runs many devices on it).

    ``reference`` is None where the call must be refused, or asks for its status alone. Raises OracleError where there is no reference.
    """

    case: Case
    settings: Settings
    memory: Memory
    reference: Reference | None

    @classmethod
    def make(cls, case: Case, settings: Settings, memory: Memory | None = None) -> Prepared:
        memory = memory or Memory.make(case, soc=settings.soc, seed=settings.seed)
        expected = case.expected(settings.soc)
        return cls(case, settings, memory, reference_of(memory.call) if expected == OK and not case.asks_status else None)

    def outcome(self, backend: Backend) -> Outcome:
        """Return run_case's verdict on a backend, less the detail and the rule that a case must be informative."""
        run = _Run(self.case, backend, self.settings, {}, self.memory.again())
        run.reference = self.reference
        try:
            run.status = run.run(run.memory)
            layers = run.judge()
        except DeviceError as error:
            return _raised("", error.__cause__ or error)
        reasons = [f"{name}: {layer.reason}" for name, layer in layers.items() if not layer.passed]
        return Outcome("fail" if reasons else "pass", "; ".join(reasons), layers)


class _Run:
    """One case on its way to an outcome."""

    def __init__(
        self,
        case: Case,
        backend: Backend,
        settings: Settings,
        seconds: dict[str, float],
        memory: Memory | None = None,
    ) -> None:
        self.case, self.backend, self.settings, self.seconds = case, backend, settings, seconds
        self.memory = memory or Memory.make(case, soc=settings.soc, seed=settings.seed)
        self.reference: Reference | None = None
        self.status = SUCCESS
        self.actual: Array | None = None  # the output, once its values can be judged
        self.budget_used: float | None = None
        self.outside: Array | None = None  # elements outside the strict bound, whatever the layers
        self.problems: list[Layer] = []

    @contextmanager
    def clock(self, name: str) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - started

    def outcome(self) -> Outcome:
        unsupported = getattr(self.backend, "unsupported", None)
        if unsupported is not None and (reason := _guarded(unsupported, self.memory.call)):
            return Outcome("skip", str(reason))
        if self.case.expected(self.settings.soc) == OK and not self.case.asks_status:
            with self.clock("golden_s"):
                self.reference = reference_of(self.memory.call)
            if told := self.uninformative(self.reference):
                return Outcome("error", told)
        if self.settings.record_outputs is None:
            self.status = self.run(self.memory)
        else:
            with RecordedOutputs(
                Path(self.settings.record_outputs), self.memory.call, self.settings.worker
            ) as recording:
                self.status = recording.status = self.run(self.memory)
        return self.sum(self.judge())

    def uninformative(self, reference: Reference) -> str:
        if self.case.uninformative or not reference.written:
            return ""
        told = verdict.uninformative(reference)
        return told and f"the case proves nothing: {told}; change its data, or say why with uninformative:"

    def run(self, memory: Memory) -> Status:
        """Run the call on the device; DeviceError where it raises."""
        with self.clock("backend_s"):
            answer = _guarded(self.backend.run, memory.call)
        if answer is None:
            return SUCCESS
        if not isinstance(answer, Status):
            error = TypeError(f"run() returned {answer!r}; it must return an oracle.Status, or None for success")
            raise DeviceError from error
        return answer

    # judging ---------------------------------------------------------------------------------------------------------

    def judge(self) -> dict[str, Layer]:
        """Return the layers that are enabled, in their order."""
        actual = self.structure()
        layers: dict[str, Layer] = {}
        if self.reference is not None and actual is not None and self.reference.written:
            layers = self.values(actual)
        elif self.reference is not None and actual is None:
            told = f"not judged: {self.problems[0].reason}"
            layers = {name: Layer(False, told, self.problems[0].rule) for name in ("standard", "strict")}
        if "structure" in layers:
            self.problems += [] if layers["structure"].passed else [layers["structure"]]
        self.options()
        layers["structure"] = _first(self.problems, layers.get("structure"))
        return {name: layers[name] for name in self.settings.layers if name in layers}

    def structure(self) -> Array | None:
        """Check everything that is not a value; return the output if its values can be judged."""
        expected = self.case.expected(self.settings.soc)
        if self.status.name != expected:
            why = f" ({self.status.reason})" if self.status.reason else ""
            self.problem("status code", f"expected {expected}, the device answered {self.status.name}{why}")
        changed = self.memory.changed_inputs()
        if changed:
            self.problem("inputs unchanged", f"the device modified {', '.join(changed)}")
        actual = None
        for name, output in self.memory.outputs.items():
            found = self.memory.call.outputs.get(name)
            if self.reference is None or not self.reference.written:
                if not output.untouched() or found is not output.view:
                    why = "a refused call" if expected != OK else "an empty input"
                    self.problem(f"{why} leaves the output untouched", f"{name} was written")
                actual = output.view
            elif self.status.ok:
                actual = self.output(name, found)
        return actual if self.status.name == expected else None

    def output(self, name: str, found: Any) -> Array | None:
        """Check one written output's type, shape, coverage and guards; return it if its values can be judged."""
        given = self.memory.outputs[name]
        if not isinstance(found, np.ndarray):
            self.problem("output is an array", f"{name} is {type(found).__name__}, not a NumPy array")
            return None
        if found.dtype != given.view.dtype:
            self.problem("dtype", f"{name} has dtype {found.dtype}, expected {given.view.dtype}")
        if found.shape != given.view.shape:
            self.problem("shape", f"{name} has shape {found.shape}, expected {given.view.shape}")
        if damaged := given.damaged():
            self.problem("guards untouched", f"{damaged} elements outside {name} were written")
        if found.dtype != given.view.dtype or found.shape != given.view.shape:
            return None
        if found is given.view:
            self.coverage(name)
        return found

    def coverage(self, name: str) -> None:
        """Every element must be written; where a result equals the poison a second run with another decides."""
        bad = self.memory.outputs[name].unwritten()
        if not bad.any():
            return
        second = self.memory.again(POISONS[1])
        self.run(second)
        bad &= second.outputs[name].unwritten()
        if count := int(np.count_nonzero(bad)):
            self.problem("every element written", f"{count} of {bad.size} elements of {name} were not written", bad)

    def values(self, actual: Array) -> dict[str, Layer]:
        assert self.reference is not None
        self.actual = actual
        third = self.third() if "standard" in self.settings.layers else None
        compared, layers = judge_values(self.reference, actual, self.settings, third)
        self.budget_used = compared.budget_used
        self.outside = None if compared.strict_bad is None else compared.strict_bad.reshape(actual.shape)
        return layers

    def third(self) -> Array | None:
        """Return the third party's output for the same inputs."""
        if self.settings.third_party is None:
            return None
        benchmark = third_party(self.settings.third_party)
        memory = self.memory.again()
        reason = getattr(benchmark, "unsupported", lambda call: None)(memory.call)
        if reason:
            raise OracleError(f"third party {self.settings.third_party}: {reason}")
        answer = benchmark.run(memory.call)
        if answer is not None and not answer.ok:
            raise OracleError(f"third party {self.settings.third_party} answered {answer.name}: {answer.reason}")
        (output,) = memory.outputs
        return np.asarray(memory.call.outputs[output])

    def options(self) -> None:
        """--determinism and --invariance: more runs of the device, compared bit for bit."""
        if self.actual is None:
            return
        for run in range(2, self.settings.determinism + 1):
            again = self.memory.again()
            self.same_bits(again, self.actual, f"bitwise equal on {self.settings.determinism} runs", f"run {run}")
        if self.settings.invariance:
            for what, memory, part in variants(self.case, self.memory):
                self.same_bits(memory, self.actual[part], f"{what} gives the same bits", what)

    def same_bits(self, memory: Memory, expected: Array, rule: str, what: str) -> None:
        (name,) = memory.outputs
        status = self.run(memory)
        found = memory.call.outputs[name]
        if (
            not status.ok
            or not isinstance(found, np.ndarray)
            or found.shape != expected.shape
            or found.dtype != expected.dtype
        ):
            self.problem(rule, f"{what}: the device answered {status.name} with another output")
            return
        bad = _bits(found) != _bits(expected)
        if bad.any():
            mask = bad if self.actual is not None and bad.shape == self.actual.shape else None
            self.problem(rule, f"{what}: {np.count_nonzero(bad)} of {bad.size} elements differ", mask)

    def problem(self, rule: str, reason: str, bad: Array | None = None) -> None:
        self.problems.append(Layer(False, reason, rule, {}, bad))

    # summing up ------------------------------------------------------------------------------------------------------

    def sum(self, layers: dict[str, Layer]) -> Outcome:
        """A case fails when any enabled layer fails; the first one is told in detail."""
        if not layers:
            return Outcome("skip", "nothing to judge: a call without values, and the structure layer is off")
        outcome = Outcome("pass", layers=layers, budget_used=self.budget_used)
        if "standard" in layers:
            outcome.metrics = layers["standard"].metrics
        failed = [(name, layer) for name, layer in layers.items() if not layer.passed]
        if not failed:
            return outcome
        name, layer = failed[0]
        outcome.status, outcome.reason = "fail", f"{name}: {layer.reason}"
        outcome.detail = Detail(rule=layer.rule)
        if self.reference is not None and self.actual is not None:
            (output,) = self.memory.outputs
            bad = self.outside if layer.bad is None and name == "standard" else layer.bad
            outcome.detail = failure.elements(output, layer.rule, self.reference, self.actual, bad)
        return outcome


def _guarded(function: Any, call: Any) -> Any:
    """Call into a backend: what it raises is the device's error, not ours."""
    try:
        return function(call)
    except Exception as error:
        raise DeviceError from error
    except SystemExit as error:
        raise DeviceError from error


def judge_values(
    reference: Reference, actual: Array, settings: Settings, third: Array | None = None
) -> tuple[Comparison, dict[str, Layer]]:
    """Judge an output's values alone, by every layer (the standard only where it is enabled)."""
    compared = verdict.compare(reference, actual, saturates=settings.saturates)
    layers = {
        "structure": verdict.values_structure(compared, actual.shape),
        "strict": verdict.strict(compared, actual.shape),
    }
    if "standard" in settings.layers:
        name, options = settings.standard, dict(settings.standard_options)
        layers["standard"] = verdict.standard(name, reference, actual, compared, third=third, options=options)
    return compared, layers


def _first(problems: list[Layer], values: Layer | None) -> Layer:
    """The structure layer in sum: the first problem decides, all are told."""
    metrics = {} if values is None else values.metrics
    if not problems:
        return Layer(True, metrics=metrics)
    reasons = "; ".join(dict.fromkeys(problem.reason for problem in problems))
    return Layer(False, reasons, problems[0].rule, metrics, problems[0].bad)


def _bits(array: Array) -> Array:
    kind = f"V{array.itemsize}" if array.itemsize > 8 else f"u{array.itemsize}"
    return np.asarray(np.ascontiguousarray(array).view(kind).reshape(array.shape))


@lru_cache(maxsize=4)
def third_party(text: str) -> Backend:
    """Load a third party: a backend, or ``name:value`` with the value of the built-in's main option."""
    from ..backends import BUILTIN, shorthand

    name, colon, value = text.partition(":")
    if colon and name in BUILTIN:
        return load(name, {shorthand(name): value})
    return load(text, {})
