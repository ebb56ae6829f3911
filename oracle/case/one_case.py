"""One case from its description to its record: prepare, execute, judge, outcome."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..backends import Backend
from ..backends.replay import record_skip
from ..catalogue.data.case import HUGE, Case
from ..catalogue.plan.statuses import refusal
from ..explain.diagnosis import KEPT, family_of
from ..explain.structure import NOT_WRITTEN, WRITTEN
from ..guest.opening import CallNotSupported, DeviceError, guarded, readable
from ..guest.process import IsolatedBackend
from ..model.call import Array
from ..model.dtypes import dtype_of
from ..model.errors import OracleError, Unserved
from ..numerics.floats.environment import ieee_arithmetic
from ..record.types import NO_GOLDEN, OF_ORACLE, CaseRecord
from ..settings.settings import Settings
from .execute import Execution, Stopwatch, execute, operands_after, unsupported
from .judge import Outcome, judge, outcome_of, outcome_of_bug, outcome_of_device, outcome_of_layers, record_of
from .prepare import ZERO, Memory, Prepared, uninformative

# Does a failure repeat? The same call runs again on the same device, or in its own process. It also runs again with
# outputs that contain zeros before the call.
#
# If a call passes when it runs again, other calls' state or a race made it fail. No wrong value explains that, so this
# check runs only if there is no other explanation. If a call passes with zeros, the old content of its output made it
# fail. Both are repeated, because a race may fail and pass in turn. This check also runs if the values suggest that
# cause. NaN looks the same whether the memory contained it or a kernel made it. A result that is added to NaN looks
# like a result that is not written.

Rerun = Callable[..., tuple[Prepared, Execution]]  # runs one case on one device again, with another poison if given

AGAIN = "the same call passes when it is run again: a race, or state across calls"
OTHERWISE = "the same call gives other results when it is run again: a race, or memory that nobody has written"
ALONE = "the case passes alone, in a process of its own: state across calls, or a race"
OF_STATE = "the smallest case passes alone, in a process of its own: state across calls, or a race"
STALE = "elements that are to be 0 are not written: the output's old content stands there"
REPEATS = 5  # a race that fails every second time looks like old content once in 4096
MOST = 3  # failures of a run that are tried in their own process: each may cost a start of the device


def with_cause_of_reruns(outcome: Outcome, prepared: Prepared, backend: Backend) -> Outcome:
    """Return an outcome. A failure gets the cause that its reruns show, if they show another cause.
    A recording always gives the same answer, so its failures get no cause that only a rerun could show."""
    cause = outcome.detail.cause
    held = [output.held for output in prepared.memory.outputs.values()]
    of_memory = cause == KEPT or (outcome.detail.rule == WRITTEN and cause.startswith(NOT_WRITTEN))
    of_memory |= family_of(cause) == "special" and not np.isfinite(held).all()
    if outcome.status != "fail" or (cause and not of_memory) or not prepared.values:  # no value can be wrong
        return outcome
    if getattr(backend, "recorded", False):
        return _with_cause(outcome, "") if cause == KEPT and not np.isfinite(held).all() else outcome

    def rerun(poison: str | None = None) -> tuple[Prepared, Execution]:
        once = replace(prepared.settings, record_outputs=None, determinism=1, invariance=False)
        again = replace(prepared.again(poison), settings=once)
        return again, execute(again, backend, Stopwatch())

    try:
        if not cause:
            again, execution = rerun()
            if _passes(again, execution):
                return _with_cause(outcome, AGAIN)
            if _differ(prepared.memory, again.memory):
                return _with_cause(outcome, OTHERWISE)
        return _compared_with_zeros(outcome, prepared, rerun) if any(held) or of_memory else outcome
    except DeviceError:
        return outcome


def _compared_with_zeros(outcome: Outcome, prepared: Prepared, rerun: Rerun) -> Outcome:
    """Run the call with outputs that contain 0 and return the failure with the cause that follows.
    If the call always passes then, and always fails with the old content, the old content is the cause. If it also
    fails with 0, there is another cause."""
    cause = outcome.detail.cause
    zeros, execution = rerun(ZERO)
    if not _passes_by_values(zeros, execution):
        finite = all(np.isfinite(output.held) for output in prepared.memory.outputs.values())
        hidden = cause == KEPT or not (cause or finite)  # with NaN, claim less: it might come from the memory
        return _with_cause(outcome, outcome_of(zeros, judge(zeros, execution)).detail.cause) if hidden else outcome
    if not cause and any(_passes(*rerun()) or not _passes_by_values(*rerun(ZERO)) for _ in range(REPEATS)):
        return _with_cause(outcome, AGAIN)
    wrong, zero = _wrong_and_zero(outcome, prepared)
    if (wrong & ~zero).any():
        return _with_cause(outcome, KEPT)
    of_zeros = not cause.startswith(NOT_WRITTEN) or (np.array_equal(wrong, zero) and not zero.all())
    return _with_cause(outcome, STALE) if of_zeros else outcome


def _differ(memory: Memory, again: Memory) -> bool:
    """Return whether an output of two runs differs by more than another order of additions can explain."""
    for name in memory.outputs:
        one, other = (each.outputs[name].view.astype(np.complex128) for each in (memory, again))
        largest = np.max(np.abs(one), where=np.isfinite(one), initial=0.0)
        if not np.isclose(one, other, rtol=2.0**-4, atol=2.0**-6 * largest, equal_nan=True).all():
            return True
    return False


def _passes(prepared: Prepared, execution: Execution) -> bool:
    return outcome_of_layers(judge(prepared, execution).layers).status == "pass"


def _passes_by_values(prepared: Prepared, execution: Execution) -> bool:
    """Return whether a call passes if its unwritten elements are judged by their values: zeros may be right."""
    return _passes(prepared, replace(execution, unwritten={}))


def _wrong_and_zero(outcome: Outcome, prepared: Prepared) -> tuple[Array, Array]:
    """Return masks of the elements to blame, and of the elements for which 0 is a right value."""
    for layer in outcome.layers.values():
        name = layer.output or outcome.detail.output
        if not layer.passed and layer.bad is not None and name in prepared.references:
            right = prepared.references[name]
            return layer.bad, np.asarray(np.abs(right.value) <= right.bound)
    return np.ones(1, bool), np.zeros(1, bool)


def _with_cause(outcome: Outcome, cause: str) -> Outcome:
    return replace(outcome, detail=replace(outcome.detail, cause=cause))


def is_unexplained(record: CaseRecord, *, even_otherwise: bool = False) -> bool:
    """Return whether a case failed and its cause is not known. ``even_otherwise``: or known only as OTHERWISE, which
    state across calls explains better if the case passes in a process of its own."""
    known = None if record.detail is None else record.detail.cause
    return record.status == "fail" and (known == "" or (even_otherwise and known == OTHERWISE))


# The steps of one case.

_LARGEST_AHEAD = 512 << 20  # bytes; larger cases are not prepared while another runs


class Ahead:
    """The next case: its data and golden are made while a device in another process works on this one.

    ``next``: the next case, if it is known. No golden is made for a case that the device may not support. The forecast
    is the device's answer to the last case of the same operator and dtype.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.next: Case | None = None
        self.spent = 0.0  # seconds spent on the next case
        self._ready: tuple[Case, Prepared, float] | None = None
        self._skipped: dict[tuple[str, str], bool] = {}

    def prepare(self) -> None:
        """Make the next case's data and golden. An error is reported only when that case runs."""
        case, started = self.next, time.perf_counter()
        if case is None or case.before is not None or case.tier == HUGE or self._skipped.get((case.op, case.dtype)):
            return
        with suppress(Exception):
            plans = case.plans.values()
            if sum(math.prod(p.shape) * dtype_of(p.dtype).numpy.itemsize for p in plans) <= _LARGEST_AHEAD:
                prepared = _made(case, self.settings)
                self._ready = case, prepared, time.perf_counter() - started
        self.spent = time.perf_counter() - started

    def take(self, case: Case, watch: Stopwatch) -> Prepared | None:
        """Return the case if it was prepared, and record the time that its preparation took."""
        ready, self._ready, self.spent = self._ready, None, 0.0
        if ready is None or ready[0] is not case:
            return None
        watch.seconds["golden_s"] = ready[2]
        return ready[1]

    def note(self, case: Case, *, skipped: bool) -> None:
        self._skipped[case.op, case.dtype] = skipped


@ieee_arithmetic
def _made(case: Case, settings: Settings) -> Prepared:
    """Return a case with its golden, from the cache or newly made."""
    prepared = Prepared.kept(case, settings)
    if prepared is None:
        prepared = Prepared.make(case, settings)
        prepared.keep()
    return prepared


def run_case(
    case: Case, backend: Backend, settings: Settings, ahead: Ahead | None = None, *, explained: bool = True
) -> CaseRecord:
    """Run one case on a backend and return its record. Every error becomes a status, never an exception.
    KeyboardInterrupt is the one exception that is raised. ``ahead``: prepare the next case while a device in another
    process works. ``explained``: look for the causes of a failure."""
    started, watch = time.perf_counter(), Stopwatch()
    prepared = None if ahead is None else ahead.take(case, watch)
    before = watch.seconds.get("golden_s", 0.0)
    if ahead is not None and isinstance(backend, IsolatedBackend):
        backend.meanwhile = ahead.prepare
    try:
        outcome = _steps(case, backend, settings, watch, prepared, explained=explained)
    except CallNotSupported as error:
        outcome = Outcome("skip", error.reason)
    except DeviceError as error:
        outcome = outcome_of_device(error)
    except Unserved as error:
        outcome = Outcome("skip", f"{NO_GOLDEN}{error}")
    except OracleError as error:
        outcome = Outcome("error", f"{OF_ORACLE}{error}")
    except Exception as error:  # a bug of this package
        outcome = outcome_of_bug(error)
    took = before + time.perf_counter() - started
    if ahead is not None:
        ahead.note(case, skipped=outcome.status == "skip")
        took -= ahead.spent
    if (folder := settings.record_outputs) is not None and outcome.status == "skip":
        try:
            record_skip(Path(folder), case.id, outcome.reason, settings.worker)
        except OracleError as error:
            outcome = Outcome("error", f"{OF_ORACLE}{error}")
    if isinstance(backend, IsolatedBackend):
        backend.meanwhile = None
        outcome = replace(outcome, notes=backend.drain_notes())
    return record_of(
        case,
        settings,
        outcome,
        {**watch.seconds, "duration_s": took},
        device=readable(_attribute_of(backend, "device", "")),
    )


def _attribute_of(backend: Backend, name: str, otherwise: Any) -> Any:
    """Return an attribute by which a backend describes itself; ``otherwise`` if it has none or the access raises."""
    try:
        with guarded():
            return getattr(backend, name, otherwise)
    except DeviceError:
        return otherwise


@ieee_arithmetic
def _steps(
    case: Case,
    backend: Backend,
    settings: Settings,
    watch: Stopwatch,
    prepared: Prepared | None = None,
    *,
    explained: bool = True,
) -> Outcome:
    if reason := not_asked(case, backend, settings):
        return Outcome("skip", reason)
    if case.tier == HUGE:
        from . import huge  # imports the diagnosis and half of the package; other tiers need those only for a failure

        return huge.steps(case, backend, settings, watch)
    if prepared is None:
        with watch("golden_s"):
            prepared = Prepared.kept(case, settings)
    if case.before is not None and (reason := refusal(case, settings.soc, settings.cann)):
        return Outcome("skip", reason)
    given = None if case.before is None else operands_after(case, case.before, backend, settings, watch)
    memory = prepared.memory if prepared else Memory.make(case, soc=settings.soc, seed=settings.seed,
                                                          under=settings.under, given=given)  # fmt: skip
    asked_there = prepared is not None and isinstance(backend, IsolatedBackend) and settings.record_outputs is None
    if not asked_there and (reason := unsupported(backend, memory.call)):
        return Outcome("skip", reason)
    if prepared is None:
        with watch("golden_s"):
            prepared = Prepared.make(case, settings, memory)
            prepared.keep()
    outcome = outcome_of(prepared, judge(prepared, execute(prepared, backend, watch)), explained=explained)
    if outcome.status == "pass" and (reason := uninformative(case, prepared.values)):
        return Outcome("error", reason)
    return with_cause_of_reruns(outcome, prepared, backend) if explained else outcome


def not_asked(case: Case, backend: Backend, settings: Settings) -> str:
    """Return why a call is not run on a backend; "" if it is run.
    A call that must be refused, or that checks only its status, needs a backend that declares ``answers_status``."""
    if case.computes(settings.soc, settings.cann) or _attribute_of(backend, "answers_status", False) is True:
        return ""
    what = "asks for its status alone" if case.asks_status else "must be refused"
    return f"the backend does not answer statuses (answers_status): the call {what}"


def outcome_on(prepared: Prepared, backend: Backend) -> Outcome:
    """Return run_case's verdict on another backend, without the detail and without the check for informative data."""
    again = prepared.again()
    try:
        return outcome_of_layers(judge(again, execute(again, backend, Stopwatch())).layers)
    except DeviceError as error:
        return outcome_of_device(error)
