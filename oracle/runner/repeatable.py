"""Whether a failure stands by itself: the same call again, on the same device, or in a process of its own.

A call that passes then has failed of what other calls left behind, or of a race: no wrong value explains it. It is
asked only where nothing else does.
"""

from __future__ import annotations

from dataclasses import replace

from ..backends import Backend
from ..record.types import CaseRecord
from .custody import DeviceError
from .execute import Device, Stopwatch, execute
from .judge import judge
from .outcome import Outcome, outcome_of_layers
from .prepare import Prepared

AGAIN = "the same call passes when it is run again: a race, or state across calls"
ALONE = "the case passes alone, in a process of its own: state across calls"
MOST = 3  # failures of a run that are tried in a process of their own: each may cost a device's start


def told_of_a_rerun(outcome: Outcome, prepared: Prepared, backend: Backend, hold: Device) -> Outcome:
    """Return a failure that nothing explains with the cause that its rerun tells, if it tells one."""
    if outcome.status != "fail" or outcome.detail.cause:
        return outcome
    once = replace(prepared.settings, record_outputs=None, determinism=1, invariance=False)
    again = replace(prepared.again(), settings=once)
    try:
        second = outcome_of_layers(judge(again, execute(again, backend, Stopwatch(), hold)).layers)
    except DeviceError:
        return outcome
    return replace(outcome, detail=replace(outcome.detail, cause=AGAIN)) if second.status == "pass" else outcome


def is_unexplained(record: CaseRecord) -> bool:
    """Whether a case failed and nothing is known of why."""
    return record.status == "fail" and record.detail is not None and not record.detail.cause
