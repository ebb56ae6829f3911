"""Whether a failure stands by itself: the same call again, on the same device, or in a process of its own; and once
more where its output holds zeros before it.

A call that passes when it is run again has failed of what other calls left behind, or of a race: no wrong value
explains it. That is asked only where nothing else does. A call that passes beside zeros has failed of what its output
held. That is asked too where the values look so, for NaN looks the same whether it was in the memory or a kernel made
it, and a result that is added to NaN looks like one that is not written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from ..backends import Backend
from ..explain.broken_rules import NOT_WRITTEN, WRITTEN
from ..explain.diagnosis import KEPT, family_of
from ..guest.faults import DeviceError
from ..model.call import Array
from ..record.types import CaseRecord
from .execute import Execution, Stopwatch, execute
from .judge import judge
from .memory import ZERO
from .outcome import Outcome, outcome_of, outcome_of_layers
from .prepare import Prepared

Rerun = Callable[..., tuple[Prepared, Execution]]  # of one case on one device, beside a poison if one is given

AGAIN = "the same call passes when it is run again: a race, or state across calls"
ALONE = "the case passes alone, in a process of its own: state across calls"
STALE = "elements that are to be 0 are not written: what the output held before the call stands there"
MOST = 3  # failures of a run that are tried in a process of their own: each may cost a device's start


def told_of_a_rerun(outcome: Outcome, prepared: Prepared, backend: Backend) -> Outcome:
    """Return a failure with the cause that its reruns tell, where they tell another. A recording answers the same
    whatever it is given: what only a rerun could tell is not claimed of it."""
    cause = outcome.detail.cause
    held = [output.held for output in prepared.memory.outputs.values()]
    of_memory = cause == KEPT or (outcome.detail.rule == WRITTEN and cause.startswith(NOT_WRITTEN))
    of_memory |= family_of(cause) == "special" and not np.isfinite(held).all()
    if outcome.status != "fail" or (cause and not of_memory):
        return outcome
    if getattr(backend, "recorded", False):
        return _claiming(outcome, "") if cause == KEPT and not np.isfinite(held).all() else outcome
    rerun = partial(_rerun, prepared, backend)
    try:
        if not cause and _passes(*rerun()):
            return _claiming(outcome, AGAIN)
        return _beside_zeros(outcome, prepared, rerun) if any(held) or of_memory else outcome
    except DeviceError:
        return outcome


def _beside_zeros(outcome: Outcome, prepared: Prepared, rerun: Rerun) -> Outcome:
    """Run the call where its outputs hold 0: what passes then, and fails again beside what they held, failed of that;
    of what fails beside 0 as well the cause is another."""
    cause = outcome.detail.cause
    zeros, execution = rerun(ZERO)
    if not _passes_by_values(zeros, execution):
        finite = all(np.isfinite(output.held) for output in prepared.memory.outputs.values())
        hidden = cause == KEPT or not (cause or finite)  # beside NaN less is claimed: it might have been there before
        return _claiming(outcome, outcome_of(zeros, judge(zeros, execution)).detail.cause) if hidden else outcome
    if not cause and (_passes(*rerun()) or not _passes_by_values(*rerun(ZERO))):
        return _claiming(outcome, AGAIN)
    wrong, zero = _wrong_and_zero(outcome, prepared)
    if (wrong & ~zero).any():
        return _claiming(outcome, KEPT)
    of_zeros = not cause.startswith(NOT_WRITTEN) or (np.array_equal(wrong, zero) and not zero.all())
    return _claiming(outcome, STALE) if of_zeros else outcome


def _rerun(prepared: Prepared, backend: Backend, poison: str | None = None) -> tuple[Prepared, Execution]:
    """Run the same call once more, beside another poison where one is given."""
    once = replace(prepared.settings, record_outputs=None, determinism=1, invariance=False)
    again = replace(prepared.again(poison), settings=once)
    return again, execute(again, backend, Stopwatch())


def _passes(prepared: Prepared, execution: Execution) -> bool:
    return outcome_of_layers(judge(prepared, execution).layers).status == "pass"


def _passes_by_values(prepared: Prepared, execution: Execution) -> bool:
    """Whether a call passes but for elements that nobody wrote: among zeros they may be right."""
    return _passes(prepared, replace(execution, unwritten={}))


def _wrong_and_zero(outcome: Outcome, prepared: Prepared) -> tuple[Array, Array]:
    """The elements to blame, and those of which 0 is a right value."""
    for layer in outcome.layers.values():
        name = layer.output or outcome.detail.output
        if not layer.passed and layer.bad is not None and name in prepared.references:
            right = prepared.references[name]
            return layer.bad, np.asarray(np.abs(right.value) <= right.bound)
    return np.ones(1, bool), np.zeros(1, bool)


def _claiming(outcome: Outcome, cause: str) -> Outcome:
    return replace(outcome, detail=replace(outcome.detail, cause=cause))


def is_unexplained(record: CaseRecord) -> bool:
    """Whether a case failed and nothing is known of why."""
    return record.status == "fail" and record.detail is not None and not record.detail.cause
