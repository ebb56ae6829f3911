"""The third step of a case: what the three layers say of what the device did. Nothing here runs a device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from .. import verdict
from ..explain import broken_rules
from ..model.call import Array
from ..model.status import SUCCESS
from ..operators import Reference
from ..record.types import GIVEN, REFUSED
from ..settings.settings import Settings
from ..verdict import Comparison, Judgement
from .execute import Execution
from .memory import Output
from .prepare import Prepared


@dataclass(frozen=True)
class Values:
    """An output whose values were judged, and how it compares."""

    actual: Array
    compared: Comparison

    @property
    def outside(self) -> Array | None:
        """The elements outside the strict bound; None if there is none."""
        bad = self.compared.strict_bad
        return None if bad is None else bad.reshape(self.actual.shape)


@dataclass(frozen=True)
class Judged:
    """What the enabled layers say of all outputs, in the layers' order.

    ``values``: the outputs whose values were judged, by name; how they compare is known whatever the layers.
    """

    layers: Mapping[str, Judgement]
    values: Mapping[str, Values] = field(default_factory=dict)

    @property
    def worst(self) -> str:
        """The output that uses most of its budget, "" where no values were judged."""
        if len(self.values) == 1:
            return next(iter(self.values))
        return max(self.values, key=lambda name: self.values[name].compared.budget_used, default="")

    @property
    def budget_used(self) -> float | None:
        return self.values[self.worst].compared.budget_used if self.values else None

    @property
    def kernel_share(self) -> float | None:
        """The largest of all outputs; None where no reference tells it."""
        shares = [v.compared.kernel_share for v in self.values.values() if v.compared.kernel_share is not None]
        return max(shares, default=None)


def judge(prepared: Prepared, execution: Execution) -> Judged:
    """Judge what a device did with a case."""
    problems = list(_structure(prepared, execution))
    layers: dict[str, Judgement] = {}
    values: dict[str, Values] = {}
    if prepared.values and execution.actual:
        values, layers = judge_outputs(prepared.values, execution.actual, prepared.settings, execution.third)
        problems += [layer for name, layer in layers.items() if name == "structure" and not layer.passed]
    elif prepared.references and not _as_expected(prepared, execution):
        because = Judgement(False, f"not judged: {problems[0].reason}", problems[0].rule)
        layers = {"standard": because, "strict": because}
    problems += execution.differing
    layers["structure"] = _in_sum(problems, layers.get("structure"))
    if prepared.expected != SUCCESS.name:
        layers["structure"] = replace(layers["structure"], metrics={REFUSED: 1})
    if any(reference.given for reference in prepared.values.values()):
        marked = {"structure"} & set(prepared.settings.layers) or layers  # one layer tells it to the record
        layers |= {name: replace(layers[name], metrics={**layers[name].metrics, GIVEN: 1}) for name in marked}
    return Judged({name: layers[name] for name in prepared.settings.layers if name in layers}, values)


def judge_outputs(
    references: Mapping[str, Reference],
    actual: Mapping[str, Array],
    settings: Settings,
    third: Mapping[str, Array] | None = None,
) -> tuple[dict[str, Values], dict[str, Judgement]]:
    """Judge the values of all outputs, by every layer: one fails where it fails for any output, and names that."""
    values: dict[str, Values] = {}
    found: dict[str, dict[str, Judgement]] = {}
    for name, reference in references.items():
        found_in_order = np.asarray(actual[name], order="C")  # every layer reads it: a strided view is copied once
        compared, layers = judge_values(reference, found_in_order, settings, (third or {}).get(name))
        values[name] = Values(found_in_order, compared)
        for layer, judgement in layers.items():
            found.setdefault(layer, {})[name] = judgement.of(name)
    worst = Judged({}, values).worst
    return values, {layer: _of_all(told, worst) for layer, told in found.items()}


def _of_all(told: Mapping[str, Judgement], worst: str) -> Judgement:
    """A layer of all outputs: what it says of the first that fails, or of the worst; the reasons of all that fail."""
    if len(told) == 1:
        return told[worst]
    failed = {name: judgement for name, judgement in told.items() if not judgement.passed}
    deciding = next(iter(failed.values()), told[worst])
    return replace(deciding, reason="; ".join(f"{name}: {judgement.reason}" for name, judgement in failed.items()))


def judge_values(
    reference: Reference, actual: Array, settings: Settings, third: Array | None = None
) -> tuple[Comparison, dict[str, Judgement]]:
    """Judge an output's values alone, by every layer (the standard only where it is enabled)."""
    compared = verdict.compare(reference, actual, saturates=settings.saturates)
    layers = {
        "structure": verdict.values_structure(compared, actual.shape),
    }
    if reference.given:  # no bound is known: the verdict's figures would be those of a rounding
        compared.budget_used, compared.kernel_share, compared.strict_bad = 0.0, None, None
    else:
        layers["strict"] = verdict.strict(compared, actual.shape)
    if "standard" in settings.layers:
        name, options = settings.standard, dict(settings.standard_options)
        layers["standard"] = verdict.standard(name, reference, actual, compared, third=third, options=options)
    return compared, layers


def _as_expected(prepared: Prepared, execution: Execution) -> bool:
    """Whether a call without values ended as it should."""
    return not prepared.values and execution.status.name == prepared.expected


# structure, less what reads values ------------------------------------------------------------------------------------


def _structure(prepared: Prepared, execution: Execution) -> Iterator[Judgement]:
    """Yield what is wrong with everything that is not a value."""
    yield from broken_rules.of_call(execution.status, prepared.expected, execution.changed)
    for name, output in execution.memory.outputs.items():
        found = execution.memory.call.outputs.get(name)
        if not prepared.values:
            if not output.untouched() or found is not output.view:
                why = "a call that computes nothing" if prepared.expected == SUCCESS.name else "a refused call"
                yield Judgement(False, f"{name} was written", f"{why} leaves the output untouched")
        elif name not in prepared.values:
            if not output.untouched() or found is not output.view:
                yield Judgement(False, f"{name} was written", f"the call leaves {name} untouched")
        elif execution.status.ok:
            yield from _output(name, output, found, execution.unwritten.get(name))


def _output(name: str, given: Output, found: object, unwritten: Array | None) -> Iterator[Judgement]:
    """Yield what is wrong with a written output's type, shape, guards and coverage."""
    yield from broken_rules.of_array(name, found, given.view)
    if not isinstance(found, np.ndarray):
        return
    yield from broken_rules.of_guards(name, given.damaged())
    if unwritten is not None:
        count = int(np.count_nonzero(unwritten))
        reason = f"{count} of {unwritten.size} elements of {name} were not written"
        yield Judgement(False, reason, broken_rules.WRITTEN, bad=unwritten, output=name)


def _in_sum(problems: list[Judgement], values: Judgement | None) -> Judgement:
    """The structure layer in sum: the first problem decides, all are named."""
    metrics = {} if values is None else values.metrics
    if not problems:
        return Judgement(True, metrics=metrics)
    reasons = "; ".join(dict.fromkeys(problem.reason for problem in problems))
    return replace(problems[0], reason=reasons, metrics=metrics)
