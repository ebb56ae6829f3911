"""The last steps of a case: the verdict on each output, and the case's line in the record."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .. import verdict
from ..catalogue.data.case import Case
from ..catalogue.plan.statuses import authority_of
from ..explain import detail as failure, findings, structure
from ..explain.diagnosis import KEPT
from ..guest.opening import DeviceError, DeviceProcessEnded, readable, reason_of, trace_of
from ..guest.process import cause_of_death
from ..model.aclnn import PROJECT, SUCCESS, authority_text
from ..model.call import Array
from ..numerics.orders.given import NOT_JUDGED
from ..numerics.orders.reducing import reduces
from ..operators import OPERATORS, Reference
from ..record.types import GIVEN, REFUSED, CaseRecord, CaseStatus, Detail, LayerVerdict
from ..settings.settings import Settings
from ..verdict import Comparison, Judgement
from .execute import Execution
from .prepare import Output, Prepared, is_like


@dataclass(frozen=True)
class Values:
    """An output with judged values, and its comparison with the reference."""

    actual: Array
    compared: Comparison

    @property
    def outside(self) -> Array | None:
        """The elements outside the strict bound; None if there are none."""
        bad = self.compared.strict_bad
        return None if bad is None else bad.reshape(self.actual.shape)


@dataclass(frozen=True)
class Judged:
    """The judgements of the enabled layers on all outputs, in the layers' order.

    ``values``: the outputs with judged values, by name. They are compared whichever layers are enabled.
    """

    layers: Mapping[str, Judgement]
    values: Mapping[str, Values] = field(default_factory=dict)

    @property
    def worst(self) -> str:
        """The output that uses most of its budget; "" if no values were judged."""
        if len(self.values) == 1:
            return next(iter(self.values))
        return max(self.values, key=lambda name: self.values[name].compared.budget_used, default="")

    @property
    def budget_used(self) -> float | None:
        return self.values[self.worst].compared.budget_used if self.values else None

    @property
    def kernel_share(self) -> float | None:
        """The largest kernel share of all outputs; None if no reference gives one."""
        shares = [v.compared.kernel_share for v in self.values.values() if v.compared.kernel_share is not None]
        return max(shares, default=None)


def judge(prepared: Prepared, execution: Execution) -> Judged:
    """Judge the result of running a case on a device."""
    problems = list(_structure(prepared, execution))
    layers: dict[str, Judgement] = {}
    values: dict[str, Values] = {}
    if prepared.values and execution.actual:
        values, layers = judge_outputs(prepared.values, execution.actual, prepared.settings, execution.third)
        problems += [layer for name, layer in layers.items() if name == "structure" and not layer.passed]
    elif prepared.references and (prepared.values or execution.status.name != prepared.expected):
        because = Judgement(False, f"not judged: {problems[0].reason}", problems[0].rule)
        layers = {"standard": because, "strict": because}
    problems += execution.differing
    layers["structure"] = _in_sum(problems, layers.get("structure"))
    if prepared.expected != SUCCESS.name:
        layers["structure"] = replace(layers["structure"], metrics={REFUSED: 1})
    if prepared.is_given:
        marked = {"structure"} & set(prepared.settings.layers) or layers  # one layer is enough for the record
        layers |= {name: replace(layers[name], metrics={**layers[name].metrics, GIVEN: 1}) for name in marked}
    return Judged({name: layers[name] for name in prepared.settings.layers if name in layers}, values)


def judge_outputs(
    references: Mapping[str, Reference],
    actual: Mapping[str, Array],
    settings: Settings,
    third: Mapping[str, Array] | None = None,
) -> tuple[dict[str, Values], dict[str, Judgement]]:
    """Judge the values of all outputs by every layer. A layer fails, and names the output, if any output fails."""
    values: dict[str, Values] = {}
    result: dict[str, dict[str, Judgement]] = {}
    for name, reference in references.items():
        found_in_order = np.asarray(actual[name], order="C")  # every layer reads it: a strided view is copied once
        compared, layers = judge_values(reference, found_in_order, settings, (third or {}).get(name))
        values[name] = Values(found_in_order, compared)
        for layer, judgement in layers.items():
            result.setdefault(layer, {})[name] = replace(judgement, output=name)
    worst = Judged({}, values).worst
    return values, {layer: _of_all(outputs, worst) for layer, outputs in result.items()}


def _of_all(judgements: Mapping[str, Judgement], worst: str) -> Judgement:
    """Return a layer's judgement of all outputs: of the first that fails, else of the worst; with all reasons."""
    if len(judgements) == 1:
        return judgements[worst]
    failed = {name: judgement for name, judgement in judgements.items() if not judgement.passed}
    deciding = next(iter(failed.values()), judgements[worst])
    return replace(deciding, reason="; ".join(f"{name}: {judgement.reason}" for name, judgement in failed.items()))


def judge_values(
    reference: Reference, actual: Array, settings: Settings, third: Array | None = None
) -> tuple[Comparison, dict[str, Judgement]]:
    """Judge an output's values alone, by every layer (the standard only if it is enabled)."""
    compared = verdict.compare(reference, actual, saturates=settings.saturates)
    layers = {"structure": verdict.values_structure(compared, actual.shape)}
    if reference.given:  # no bound is known: the figures of a verdict would be those of a rounding
        compared.budget_used, compared.kernel_share, compared.strict_bad = 0.0, None, None
    else:
        layers["strict"] = verdict.strict(compared, actual.shape)
    if "standard" in settings.layers:
        name, options = settings.standard, dict(settings.standard_options)
        layers["standard"] = verdict.standard(name, reference, actual, compared, third=third, options=options)
    return compared, layers


# structure, except for the checks of values ---------------------------------------------------------------------------


def _structure(prepared: Prepared, execution: Execution) -> Iterator[Judgement]:
    """Yield all problems except those of the values."""
    yield from structure.of_call(execution.status, prepared.expected, execution.changed)
    for name, output in execution.memory.outputs.items():
        result = execution.memory.call.outputs.get(name)
        if name not in prepared.values:
            if not _is_unwritten(output, result):
                yield Judgement(False, f"{name} was written", _why_unwritten(name, prepared))
        elif execution.status.ok:
            yield from _output(name, output, result, execution.unwritten.get(name))


def _why_unwritten(name: str, prepared: Prepared) -> str:
    if prepared.values:
        return f"the call leaves {name} untouched"
    why = "a call that computes nothing" if prepared.expected == SUCCESS.name else "a refused call"
    return f"{why} leaves the output untouched"


def _is_unwritten(output: Output, result: object) -> bool:
    """Return whether a call left an output as it was. Another array in its place is a result, unless it is empty."""
    same = result is output.view or (output.view.size == 0 and is_like(result, output.view))
    return same and output.untouched()


def _output(name: str, given: Output, actual: object, unwritten: Array | None) -> Iterator[Judgement]:
    """Yield the problems of a written output's type, shape, guards and coverage."""
    yield from structure.of_array(name, actual, given.view)
    if not isinstance(actual, np.ndarray):
        return
    yield from structure.of_guards(name, given.damaged(), given.damaged_before)
    if unwritten is not None:
        count = int(np.count_nonzero(unwritten))
        reason = f"{count} of {unwritten.size} elements of {name} were not written"
        yield Judgement(False, reason, structure.WRITTEN, bad=unwritten, output=name)


def _in_sum(problems: list[Judgement], values: Judgement | None) -> Judgement:
    """Return the structure layer's judgement: the first problem decides, and the reason names all problems."""
    metrics = {} if values is None else values.metrics
    if not problems:
        return Judgement(True, metrics=metrics)
    reasons = "; ".join(dict.fromkeys(problem.reason for problem in problems))
    return replace(problems[0], reason=reasons, metrics=metrics)


# The last step of a case: its outcome, and its line in the record.


@dataclass(frozen=True)
class Outcome:
    """How a case ended, and why."""

    status: CaseStatus
    reason: str = ""
    layers: Mapping[str, Judgement] = field(default_factory=dict)
    budget_used: float | None = None
    detail: Detail = field(default_factory=Detail)
    measures: Mapping[str, Any] = field(default_factory=dict)  # of the call's values, by the names in the record
    notes: tuple[str, ...] = ()  # the device's changes in its process


def measures_of(prepared: Prepared, judged: Judged, output: str = "") -> dict[str, Any]:
    """Return an output's size (elements, terms of one result, the golden's largest value) and the spread of its errors.
    ``output``: the worst one by default."""
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
    result: dict[str, Any] = {"elements": golden.size, "reduced": reduced if reduced > 1 else None}
    result["kernel_share"] = judged.kernel_share
    if golden.dtype.kind != "c":
        result["magnitude"] = findings.magnitude(golden)
        result["ulps"] = findings.spread(judged.values[output].actual, reference)
    return result


def outcome_of(prepared: Prepared, judged: Judged, *, explained: bool = True) -> Outcome:
    """Return the outcome: a case fails if any layer of the gate fails. The first such layer is explained in detail.

    If only other layers reject a case, it passes, and its reason says so. ``explained``: look for causes."""
    if not judged.layers:
        return Outcome("skip", "nothing to judge: a call without values, and the structure layer is off")
    deciding = first_failed(judged.layers, prepared.settings)
    if deciding is None:
        reason, measures = outside_the_gate(judged.layers), measures_of(prepared, judged)
        if prepared.is_given:
            reason = "; ".join(filter(None, (f"strict: {NOT_JUDGED}", reason)))
        return Outcome("pass", reason, judged.layers, judged.budget_used, measures=measures)
    name, layer = deciding
    detail = _detail(prepared, judged, name, layer, explained)
    reason = f"{name}: {layer.reason}"
    measures = measures_of(prepared, judged, layer.output)
    return Outcome("fail", reason, judged.layers, judged.budget_used, detail, measures)


def first_failed(layers: Mapping[str, Judgement], settings: Settings) -> tuple[str, Judgement] | None:
    """Return the first layer of the gate that fails a case, with its name; None if all of them pass."""
    return next(((n, layer) for n, layer in layers.items() if n in settings.gate and not layer.passed), None)


def outside_the_gate(layers: Mapping[str, Judgement]) -> str:
    """Say which layers reject a case that the gate lets pass; "" if there are none."""
    text = "; ".join(f"{name}: {layer.reason}" for name, layer in layers.items() if not layer.passed)
    return f"outside the gate: {text}" if text else ""


def _detail(prepared: Prepared, judged: Judged, name: str, layer: Judgement, explained: bool) -> Detail:
    """Explain a failed layer: the worst elements, where they lie, and the likely cause."""
    output = layer.output or judged.worst
    ignored = failure.ignored_rows(prepared.references[output]) if output in judged.values else None
    cause = structure.cause_of_structure(
        layer.rule, layer.reason, layer.bad, ignored, others_right=_others_right(prepared, judged, output, layer.bad)
    )
    if output not in judged.values:
        return Detail(rule=layer.rule, cause=cause)
    reference, values = prepared.references[output], judged.values[output]
    as_given = dict(prepared.memory.inputs)  # the device may have replaced entries of call.inputs
    call = replace(prepared.memory.call, inputs=as_given)
    bad = values.outside if layer.bad is None and name == "standard" else layer.bad
    if name == "structure" and bad is None:
        bad = np.zeros(values.actual.shape, bool)  # no element is wrong: an input was modified, or a guard written
    memory = prepared.memory.outputs[output]
    detail = failure.elements(output, layer.rule, reference, values.actual, bad, call, memory.held,
                              explained=explained, steps=prepared.settings.steps)  # fmt: skip
    if layer.rule in structure.OF_MEMORY:
        view = memory.view
        cause = structure.written_otherwise(call, output, view, reference.golden) or cause
    if detail.cause == KEPT:
        cause = ""  # a result that is added to the old content looks as if it were not written
    return replace(detail, cause=cause or detail.cause)


def _others_right(prepared: Prepared, judged: Judged, output: str, bad: Array | None) -> bool:
    """Return whether all elements except the bad ones are within their bounds, or the output is contiguous."""
    if bad is None or output not in judged.values or prepared.memory.outputs[output].view.flags.c_contiguous:
        return True
    outside = judged.values[output].outside
    return outside is None or not (outside & ~bad).any()


def outcome_of_layers(layers: Mapping[str, Judgement]) -> Outcome:
    """Return the verdict alone, with every layer's reason: a detection score needs no more."""
    reasons = [f"{name}: {layer.reason}" for name, layer in layers.items() if not layer.passed]
    return Outcome("fail" if reasons else "pass", "; ".join(reasons), layers)


def outcome_of_device(error: DeviceError) -> Outcome:
    """Return the outcome of a case in which the device raised an exception, or did not come back."""
    if isinstance(error, DeviceProcessEnded):
        return Outcome(error.status, error.reason, detail=Detail(cause=cause_of_death(error.words)))
    return Outcome("error", error.reason, detail=Detail(traceback=error.trace))


def outcome_of_bug(error: Exception) -> Outcome:
    """Return the outcome of a case in which this package itself failed: an error, so that the case is not lost."""
    return Outcome("error", f"oracle failed: {reason_of(error)}", detail=Detail(traceback=trace_of(error)))


def record_of(
    case: Case, settings: Settings, outcome: Outcome, seconds: Mapping[str, float] | None = None, *, device: str = ""
) -> CaseRecord:
    """Return the record of a case. ``seconds``: times by the names in the record."""
    failed = next((n for n in settings.gate if n in outcome.layers and not outcome.layers[n].passed), "")
    whose = PROJECT if failed == "strict" else authority_of(case, settings.soc, settings.cann)
    detail = None
    if outcome.status not in ("pass", "skip"):
        detail = replace(outcome.detail, replay=failure.replay_command(case, settings))
    standard, spent = outcome.layers.get("standard"), seconds or {}
    return replace(
        failure.described(case),
        status=outcome.status,
        reason=readable(outcome.reason),
        verdicts={n: LayerVerdict(v.passed, readable(v.reason), v.metrics) for n, v in outcome.layers.items()},
        metrics={} if standard is None else standard.metrics,
        budget_used=outcome.budget_used,
        duration_s=round(spent.get("duration_s", 0.0), 6),
        golden_s=round(spent.get("golden_s", 0.0), 6),
        backend_s=round(spent.get("backend_s", 0.0), 6),
        **outcome.measures,
        authority=authority_text(whose, OPERATORS[case.op].source),
        worker=settings.worker,
        device=device or ("" if settings.device is None else str(settings.device)),
        detail=detail,
        notes=outcome.notes,
    )
