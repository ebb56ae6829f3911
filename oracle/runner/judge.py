"""The third step of a case: what the three layers say of what the device did. Nothing here runs a device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from .. import verdict
from ..model.call import Array
from ..model.status import SUCCESS
from ..operators import Reference
from ..verdict import Comparison, Judgement
from .execute import Execution
from .memory import Output
from .prepare import Prepared
from .settings import Settings


@dataclass(frozen=True)
class Judged:
    """What the enabled layers say, in their order.

    ``actual``: the output, where its values were judged. ``budget_used``, ``kernel_share`` and ``outside`` (elements
    outside the strict bound) are known whatever the layers.
    """

    layers: Mapping[str, Judgement]
    actual: Array | None = None
    budget_used: float | None = None
    outside: Array | None = None
    kernel_share: float | None = None


def judge(prepared: Prepared, execution: Execution) -> Judged:
    """Judge what a device did with a case."""
    problems = list(_structure(prepared, execution))
    actual = execution.actual
    layers: dict[str, Judgement] = {}
    compared = None
    if prepared.values is not None and actual is not None:
        compared, layers = judge_values(prepared.values, actual, prepared.settings, execution.third)
        problems += [layer for name, layer in layers.items() if name == "structure" and not layer.passed]
    elif prepared.reference is not None and not _as_expected(prepared, execution):
        because = Judgement(False, f"not judged: {problems[0].reason}", problems[0].rule)
        layers = {"standard": because, "strict": because}
    problems += execution.differing
    layers["structure"] = _in_sum(problems, layers.get("structure"))
    enabled = {name: layers[name] for name in prepared.settings.layers if name in layers}
    if compared is None or actual is None:
        return Judged(enabled)
    outside = None if compared.strict_bad is None else compared.strict_bad.reshape(actual.shape)
    return Judged(enabled, actual, compared.budget_used, outside, compared.kernel_share)


def judge_values(
    reference: Reference, actual: Array, settings: Settings, third: Array | None = None
) -> tuple[Comparison, dict[str, Judgement]]:
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


def _as_expected(prepared: Prepared, execution: Execution) -> bool:
    """Whether a call without values ended as it should."""
    return prepared.values is None and execution.status.name == prepared.expected


# structure, less what reads values ------------------------------------------------------------------------------------


def _structure(prepared: Prepared, execution: Execution) -> Iterator[Judgement]:
    """Yield what is wrong with everything that is not a value."""
    status = execution.status
    if status.name != prepared.expected:
        why = f" ({status.reason})" if status.reason else ""
        yield _problem("status code", f"expected {prepared.expected}, the device answered {status.name}{why}")
    if execution.changed:
        yield _problem("inputs unchanged", f"the device modified {', '.join(execution.changed)}")
    for name, output in execution.memory.outputs.items():
        found = execution.memory.call.outputs.get(name)
        if prepared.values is None:
            if not output.untouched() or found is not output.view:
                why = "an empty input" if prepared.expected == SUCCESS.name else "a refused call"
                yield _problem(f"{why} leaves the output untouched", f"{name} was written")
        elif status.ok:
            yield from _output(name, output, found, execution.unwritten)


def _output(name: str, given: Output, found: object, unwritten: Array | None) -> Iterator[Judgement]:
    """Yield what is wrong with a written output's type, shape, guards and coverage."""
    if not isinstance(found, np.ndarray):
        yield _problem("output is an array", f"{name} is {type(found).__name__}, not a NumPy array")
        return
    if found.dtype != given.view.dtype:
        yield _problem("dtype", f"{name} has dtype {found.dtype}, expected {given.view.dtype}")
    if found.shape != given.view.shape:
        yield _problem("shape", f"{name} has shape {found.shape}, expected {given.view.shape}")
    if damaged := given.damaged():
        yield _problem("guards untouched", f"{damaged} elements outside {name} were written")
    if unwritten is not None:
        count = int(np.count_nonzero(unwritten))
        reason = f"{count} of {unwritten.size} elements of {name} were not written"
        yield Judgement(False, reason, "every element written", bad=unwritten)


def _problem(rule: str, reason: str) -> Judgement:
    return Judgement(False, reason, rule)


def _in_sum(problems: list[Judgement], values: Judgement | None) -> Judgement:
    """The structure layer in sum: the first problem decides, all are named."""
    metrics = {} if values is None else values.metrics
    if not problems:
        return Judgement(True, metrics=metrics)
    reasons = "; ".join(dict.fromkeys(problem.reason for problem in problems))
    return Judgement(False, reasons, problems[0].rule, metrics, problems[0].bad)
