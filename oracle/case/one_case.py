"""One case from its description to its record: prepare, execute, judge, outcome."""

from __future__ import annotations

import time
from dataclasses import replace

from ..backends import Backend
from ..backends.cpu import Backend as Oracle
from ..catalogue.data.case import HUGE, Case
from ..guest.custody import Custody, DeviceError, guarded, readable
from ..model.errors import OracleError
from ..numerics.floats.environment import ieee_arithmetic
from ..record.types import CaseRecord
from ..settings.settings import Settings
from .execute import Device, Stopwatch, execute, unsupported
from .judge import judge
from .memory import Memory
from .outcome import Outcome, outcome_of, outcome_of_error, outcome_of_layers, record_of
from .prepare import Prepared, uninformative
from .rerun import told_of_a_rerun


def run_case(case: Case, backend: Backend, settings: Settings) -> CaseRecord:
    """Run one case on a backend and return its record. Whatever goes wrong becomes a status, never an exception
    (other than KeyboardInterrupt)."""
    started, watch, custody = time.perf_counter(), Stopwatch(), Custody(may_leave=settings.in_child)
    try:
        if type(backend) is Oracle:  # our own code changes nothing of the process
            outcome = _trusted_steps(case, backend, settings, watch, guarded)
        else:
            with custody:
                outcome = _steps(case, backend, settings, watch, custody.device)
    except DeviceError as error:
        outcome = outcome_of_error(error.raised)
    except OracleError as error:
        outcome = Outcome("error", f"oracle: {error}")
    except Exception as error:  # a bug of this package: it says so, and the case is not lost
        outcome = outcome_of_error(error, "oracle failed: ")
    seconds = {**watch.seconds, "duration_s": time.perf_counter() - started}
    if custody.notes:
        outcome = replace(outcome, notes=tuple(custody.notes))
    return record_of(case, settings, outcome, seconds, device=_device_of(backend))


def _device_of(backend: Backend) -> str:
    if type(backend) is Oracle:
        return backend.device
    try:
        with guarded():
            return readable(getattr(backend, "device", ""))
    except DeviceError:
        return ""


def _steps(case: Case, backend: Backend, settings: Settings, watch: Stopwatch, hold: Device) -> Outcome:
    if case.tier == HUGE:
        from . import huge  # with the diagnosis and half the package: other tiers need it where a case fails

        return huge.steps(case, backend, settings, watch, hold)
    with watch("golden_s"):
        kept = Prepared.kept(case, settings)
    memory = kept.memory if kept else Memory.make(case, soc=settings.soc, seed=settings.seed, under=settings.under)
    if reason := unsupported(backend, memory.call, hold):
        return Outcome("skip", reason)
    with watch("golden_s"):
        prepared = kept or Prepared.make(case, settings, memory)
        if kept is None:
            prepared.keep()
    if reason := uninformative(prepared):
        return Outcome("error", reason)
    outcome = outcome_of(prepared, judge(prepared, execute(prepared, backend, watch, hold)))
    return told_of_a_rerun(outcome, prepared, backend, hold)


_trusted_steps = ieee_arithmetic(_steps)


def outcome_on(prepared: Prepared, backend: Backend) -> Outcome:
    """Return run_case's verdict on another backend, less the detail and the rule that a case must be informative."""
    again = prepared.again()
    try:
        return outcome_of_layers(judge(again, execute(again, backend, Stopwatch())).layers)
    except DeviceError as error:
        return outcome_of_error(error.raised)
