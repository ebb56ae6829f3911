"""The last step of a case: how it ended, and its line of the record."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..catalogue.data.case import Case
from ..catalogue.plan.asked import authority_of
from ..catalogue.plan.attributes import word
from ..explain import broken_rules, ulps
from ..explain import detail as failure
from ..explain.diagnosis import KEPT
from ..guest.faults import DeviceError, Gone, readable, reason_of, trace_of
from ..guest.process import cause_of_death
from ..model.call import Array
from ..model.status import PROJECT, told
from ..numerics.orders.given import NOT_JUDGED
from ..numerics.orders.reducing import reduces
from ..operators import OPERATORS
from ..record.types import CaseRecord, CaseStatus, Detail, LayerVerdict
from ..settings.settings import Settings
from ..verdict import Judgement
from .judge import Judged
from .prepare import Prepared


@dataclass(frozen=True)
class Outcome:
    """How a case ended, and why."""

    status: CaseStatus
    reason: str = ""
    layers: Mapping[str, Judgement] = field(default_factory=dict)
    budget_used: float | None = None
    detail: Detail = field(default_factory=Detail)
    measures: Mapping[str, Any] = field(default_factory=dict)  # of the call's values, by the record's names
    notes: tuple[str, ...] = ()  # what the device changed in the process


def measures_of(prepared: Prepared, judged: Judged, output: str = "") -> dict[str, Any]:
    """Return how large an output of a judged case is (elements, how many enter one result, the golden's largest value)
    and how its errors spread; of the worst output unless one is named."""
    output = output or judged.worst
    if output not in judged.values:
        return {}
    reference, op = prepared.references[output], OPERATORS[prepared.case.op].of(output)
    golden = reference.golden
    shape = golden.shape
    inputs = prepared.memory.inputs
    if op.kept is not None:
        reduced = math.prod(op.terms_shape(inputs)) // max(1, golden.size)
    elif reduces(op.computes):
        arguments = {**prepared.case.attrs, **inputs}
        terms = op.terms_shape(arguments) or (1,)
        reduced = math.prod(terms[axis] for axis in op.reduced_axes(arguments))
    else:
        shapes = {name: array.shape for name, array in inputs.items() if array is not None}
        alone = op.slice_axes(shape, prepared.case.attrs, shapes)
        reduced = math.prod(n for axis, n in enumerate(shape) if axis not in alone)
    found: dict[str, Any] = {"elements": golden.size, "reduced": reduced if reduced > 1 else None}
    found["kernel_share"] = judged.kernel_share
    if golden.dtype.kind != "c":
        found["magnitude"] = ulps.magnitude(golden)
        found["ulps"] = ulps.spread(judged.values[output].actual, reference)
    return found


def outcome_of(prepared: Prepared, judged: Judged) -> Outcome:
    """Sum up: a case fails when any layer of the gate fails; the first one is explained in detail. What only other
    layers reject passes, and its reason says so."""
    if not judged.layers:
        return Outcome("skip", "nothing to judge: a call without values, and the structure layer is off")
    deciding = first_failed(judged.layers, prepared.settings)
    if deciding is None:
        reason, measures = outside_the_gate(judged.layers), measures_of(prepared, judged)
        if any(reference.given for reference in prepared.values.values()):
            reason = "; ".join(filter(None, (f"strict: {NOT_JUDGED}", reason)))
        return Outcome("pass", reason, judged.layers, judged.budget_used, measures=measures)
    name, layer = deciding
    detail = _detail(prepared, judged, name, layer)
    reason = f"{name}: {layer.reason}"
    measures = measures_of(prepared, judged, layer.output)
    return Outcome("fail", reason, judged.layers, judged.budget_used, detail, measures)


def first_failed(layers: Mapping[str, Judgement], settings: Settings) -> tuple[str, Judgement] | None:
    """Return the first layer of the gate that fails a case, with its name; None where all of them pass."""
    return next(((n, layer) for n, layer in layers.items() if n in settings.gate and not layer.passed), None)


def outside_the_gate(layers: Mapping[str, Judgement]) -> str:
    """Say which layers reject a case that the gate lets pass; "" if none does."""
    told = "; ".join(f"{name}: {layer.reason}" for name, layer in layers.items() if not layer.passed)
    return f"outside the gate: {told}" if told else ""


def _detail(prepared: Prepared, judged: Judged, name: str, layer: Judgement) -> Detail:
    """Explain a failed layer: the worst elements and where they lie, and what would explain the failure."""
    output = layer.output or judged.worst
    cause = broken_rules.cause_of_structure(
        layer.rule, layer.reason, layer.bad, others_right=_others_right(prepared, judged, output, layer.bad)
    )
    if output not in judged.values:
        return Detail(rule=layer.rule, cause=cause)
    reference, values = prepared.references[output], judged.values[output]
    as_given = dict(prepared.memory.inputs)  # whatever the device put in their places
    call = replace(prepared.memory.call, inputs=as_given)
    bad = values.outside if layer.bad is None and name == "standard" else layer.bad
    if name == "structure" and bad is None:
        bad = np.zeros(values.actual.shape, bool)  # no element is to blame: an input was modified, a guard written
    memory = prepared.memory.outputs[output]
    detail = failure.elements(output, layer.rule, reference, values.actual, bad, call, memory.held)
    if layer.rule in broken_rules.OF_MEMORY:
        view = memory.view
        cause = broken_rules.written_otherwise(call, output, view, reference.golden) or cause
    if detail.cause == KEPT:
        cause = ""  # a result that is added to what is there looks as if it were not written
    return replace(detail, cause=cause or detail.cause)


def _others_right(prepared: Prepared, judged: Judged, output: str, bad: Array | None) -> bool:
    """Whether all elements but the bad ones are within their bounds, or the output lies in order."""
    if bad is None or output not in judged.values or prepared.memory.outputs[output].view.flags.c_contiguous:
        return True
    outside = judged.values[output].outside
    return outside is None or not (outside & ~bad).any()


def outcome_of_layers(layers: Mapping[str, Judgement]) -> Outcome:
    """Return the verdict alone, with every layer's reason: what a detection score needs of a case."""
    reasons = [f"{name}: {layer.reason}" for name, layer in layers.items() if not layer.passed]
    return Outcome("fail" if reasons else "pass", "; ".join(reasons), layers)


def outcome_of_device(error: DeviceError) -> Outcome:
    """Return the outcome of a case in which the device raised, or did not come back."""
    if isinstance(error, Gone):
        return Outcome(error.status, error.reason, detail=Detail(cause=cause_of_death(error.words)))
    return Outcome("error", error.reason, detail=Detail(traceback=error.trace))


def outcome_of_bug(error: Exception) -> Outcome:
    """Return the outcome of a case in which this package itself failed: it says so, and the case is not lost."""
    return Outcome("error", f"oracle failed: {reason_of(error)}", detail=Detail(traceback=trace_of(error)))


def _authority(case: Case, settings: Settings, outcome: Outcome) -> str:
    """On whose authority the rule stands that a case broke; of one that broke none the case."""
    failed = next((n for n in settings.gate if n in outcome.layers and not outcome.layers[n].passed), "")
    kind = PROJECT if failed == "strict" else authority_of(case, settings.soc, settings.cann)
    return told(kind, OPERATORS[case.op].source)


def record_of(
    case: Case, settings: Settings, outcome: Outcome, seconds: Mapping[str, float] | None = None, *, device: str = ""
) -> CaseRecord:
    """Return the record of a case. ``seconds`` by the record's names."""
    detail = None
    if outcome.status not in ("pass", "skip"):
        detail = replace(
            outcome.detail,
            replay=failure.replay_command(case, settings),
        )
    standard, spent = outcome.layers.get("standard"), seconds or {}
    return CaseRecord(
        id=case.id,
        op=case.op,
        dtype=case.dtype,
        status=outcome.status,
        reason=readable(outcome.reason),
        verdicts={n: LayerVerdict(v.passed, readable(v.reason), v.metrics) for n, v in outcome.layers.items()},
        metrics={} if standard is None else standard.metrics,
        budget_used=outcome.budget_used,
        duration_s=round(spent.get("duration_s", 0.0), 6),
        golden_s=round(spent.get("golden_s", 0.0), 6),
        backend_s=round(spent.get("backend_s", 0.0), 6),
        **outcome.measures,
        authority=_authority(case, settings, outcome),
        worker=settings.worker,
        device=device or ("" if settings.device is None else str(settings.device)),
        detail=detail,
        notes=outcome.notes,
        inputs=failure.describe(case.inputs),
        attrs={n: word(v) if isinstance(v, tuple) else v for n, v in case.attrs.items()},
        outputs=failure.describe(case.outputs),
    )
