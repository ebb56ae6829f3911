"""One case from its description to its record: prepare, execute, judge, outcome."""

from __future__ import annotations

import math
import time
from contextlib import suppress
from dataclasses import replace

from ..backends import Backend
from ..catalogue.data.case import HUGE, Case
from ..catalogue.plan.pairs import refusal
from ..guest.apart import Apart
from ..guest.faults import DeviceError, NotTaken, guarded, readable
from ..model.dtypes import dtype_of
from ..model.errors import OracleError, Unserved
from ..numerics.floats.environment import ieee_arithmetic
from ..record.types import NO_GOLDEN, CaseRecord
from ..settings.settings import Settings
from .execute import Stopwatch, execute, operands_after, unsupported
from .judge import judge
from .memory import Memory
from .outcome import Outcome, outcome_of, outcome_of_bug, outcome_of_device, outcome_of_layers, record_of
from .prepare import Prepared, uninformative
from .rerun import told_of_a_rerun

_LARGEST_AHEAD = 512 << 20  # bytes of a case that is prepared beside another


class Ahead:
    """The next case: its data and golden are made while a device elsewhere works on this one.

    ``next``: the case that comes next, if it is known. The golden of a case that the device may not take is not made:
    its answer to the last case of the same operator and dtype counts as a forecast.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.next: Case | None = None
        self.spent = 0.0  # seconds, on the case that comes next
        self._ready: tuple[Case, Prepared, float] | None = None
        self._skipped: dict[tuple[str, str], bool] = {}

    def prepare(self) -> None:
        """Make the next case's data and golden. What goes wrong is told when the case runs."""
        case, started = self.next, time.perf_counter()
        if case is None or case.before is not None or case.tier == HUGE or self._skipped.get((case.op, case.dtype)):
            return
        with suppress(Exception):
            if _bytes_of(case) <= _LARGEST_AHEAD:
                prepared = _made(case, self.settings)
                self._ready = case, prepared, time.perf_counter() - started
        self.spent = time.perf_counter() - started

    def take(self, case: Case, watch: Stopwatch) -> Prepared | None:
        """Return a case that was prepared, and count the time that this took."""
        ready, self._ready, self.spent = self._ready, None, 0.0
        if ready is None or ready[0] is not case:
            return None
        watch.seconds["golden_s"] = ready[2]
        return ready[1]

    def note(self, case: Case, *, skipped: bool) -> None:
        """Note whether the device took a case."""
        self._skipped[case.op, case.dtype] = skipped


def _bytes_of(case: Case) -> int:
    plans = (plan for plan in (*case.inputs.values(), *case.outputs.values()) if plan is not None)
    return sum(math.prod(plan.shape) * dtype_of(plan.dtype).numpy.itemsize for plan in plans)


@ieee_arithmetic
def _made(case: Case, settings: Settings) -> Prepared:
    """Return a case with its golden, kept from an earlier run or made now."""
    prepared = Prepared.kept(case, settings)
    if prepared is None:
        prepared = Prepared.make(case, settings)
        prepared.keep()
    return prepared


def run_case(case: Case, backend: Backend, settings: Settings, ahead: Ahead | None = None) -> CaseRecord:
    """Run one case on a backend and return its record. Whatever goes wrong becomes a status, never an exception
    (other than KeyboardInterrupt). ``ahead``: the next case is made ready while a device elsewhere works."""
    started, watch = time.perf_counter(), Stopwatch()
    prepared = None if ahead is None else ahead.take(case, watch)
    before = watch.seconds.get("golden_s", 0.0)
    if ahead is not None and isinstance(backend, Apart):
        backend.meanwhile = ahead.prepare
    try:
        outcome = _steps(case, backend, settings, watch, prepared)
    except NotTaken as error:
        outcome = Outcome("skip", error.reason)
    except DeviceError as error:
        outcome = outcome_of_device(error)
    except Unserved as error:
        outcome = Outcome("skip", f"{NO_GOLDEN}{error}")
    except OracleError as error:
        outcome = Outcome("error", f"oracle: {error}")
    except Exception as error:  # a bug of this package
        outcome = outcome_of_bug(error)
    took = before + time.perf_counter() - started
    if ahead is not None:
        ahead.note(case, skipped=outcome.status == "skip")
        took -= ahead.spent
    if isinstance(backend, Apart):
        backend.meanwhile = None
        outcome = replace(outcome, notes=backend.taken_notes())
    return record_of(case, settings, outcome, {**watch.seconds, "duration_s": took}, device=_device_of(backend))


def _device_of(backend: Backend) -> str:
    try:
        with guarded():
            return readable(getattr(backend, "device", ""))
    except DeviceError:
        return ""


@ieee_arithmetic
def _steps(
    case: Case, backend: Backend, settings: Settings, watch: Stopwatch, prepared: Prepared | None = None
) -> Outcome:
    if not case.computes(settings.soc, settings.cann) and not _answers_status(backend):
        what = "asks for its status alone" if case.asks_status else "must be refused"
        return Outcome("skip", f"the backend does not answer statuses (answers_status): the call {what}")
    if case.tier == HUGE:
        from . import huge  # with the diagnosis and half the package: other tiers need it where a case fails

        return huge.steps(case, backend, settings, watch)
    if prepared is None:
        with watch("golden_s"):
            prepared = Prepared.kept(case, settings)
    if case.before is not None and (reason := refusal(case, settings.soc, settings.cann)):
        return Outcome("skip", reason)
    given = None if case.before is None else operands_after(case, case.before, backend, settings, watch)
    memory = prepared.memory if prepared else Memory.make(case, soc=settings.soc, seed=settings.seed,
                                                          under=settings.under, given=given)  # fmt: skip
    asked_there = prepared is not None and isinstance(backend, Apart) and settings.record_outputs is None
    if not asked_there and (reason := unsupported(backend, memory.call)):
        return Outcome("skip", reason)
    if prepared is None:
        with watch("golden_s"):
            prepared = Prepared.make(case, settings, memory)
            prepared.keep()
    if reason := uninformative(prepared):
        return Outcome("error", reason)
    outcome = outcome_of(prepared, judge(prepared, execute(prepared, backend, watch)))
    return told_of_a_rerun(outcome, prepared, backend)


def _answers_status(backend: Backend) -> bool:
    """Whether a backend says that it answers calls that must be refused, or that ask for their status alone."""
    try:
        with guarded():
            return getattr(backend, "answers_status", False) is True
    except DeviceError:
        return False


def outcome_on(prepared: Prepared, backend: Backend) -> Outcome:
    """Return run_case's verdict on another backend, less the detail and the rule that a case must be informative."""
    again = prepared.again()
    try:
        return outcome_of_layers(judge(again, execute(again, backend, Stopwatch())).layers)
    except DeviceError as error:
        return outcome_of_device(error)
