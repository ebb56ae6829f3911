"""Right kernels on every case: what a verdict flags here is a false alarm.

A case's data and what the kernels compute of them are made once for all SoCs. The plain kernel takes the whole road
with its memory checks; the others write through the same steps, so only their values can be wrong. These are judged
together first: stores are monotone and every rule asks for small errors, so an output made of each element's worst
answer that passes proves that all pass (:func:`worst_of`). Where it does not, each answer is judged by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from ..case.judge import judge_values
from ..case.memory import Memory
from ..case.one_case import outcome_on
from ..case.outcome import Outcome, outcome_of_layers
from ..case.prepare import Prepared
from ..catalogue import Case, make_inputs
from ..defects.base.base import Right
from ..defects.base.device import kernel_type, store_result
from ..defects.base.right import flushing
from ..defects.registry import right_kernels
from ..model.call import Array, Call
from ..model.errors import OracleError
from ..model.platforms import platform
from ..operators import Reference, operator, references, writes
from ..settings.settings import Settings
from .share import Answer, Hit, Share, cheap_first, failed_layers

GOLDEN = "right/exact"  # the golden itself, which no kernel computes


def run_right(share: Share, answer: Answer) -> None:
    """Judge the right kernels of a share on its cases, on every SoC where a case is planned."""
    for case in cheap_first(share.cases):
        try:
            _on_every_soc(case, share, answer)
        except OracleError as error:
            answer.unusable[case.id] = str(error)


def _on_every_soc(case: Case, share: Share, answer: Answer) -> None:
    """Judge one case. A reference depends on the SoC by kernel type and by what is flushed, and is made once."""
    inputs, specs = make_inputs(case, seed=share.settings.seed)
    made: dict[tuple[str, frozenset[str]], Mapping[str, Reference]] = {}
    computed: dict[str, Computed] = {}
    for soc in (s for s in share.socs if not case.soc or s in case.soc):
        settings = replace(share.settings, soc=soc)
        memory = Memory(case, soc, inputs, specs)
        if not case.computes(soc) or not writes(memory.call) or _ends_early(memory.call):
            _judge_steps(Prepared.make(case, settings, memory), answer)
            continue
        kind = kernel_type(memory.call, {**memory.call.inputs, **memory.call.attrs})
        made_for = kind, platform(soc).flushes
        if made_for not in made:
            made[made_for] = references(memory.call)
        prepared = Prepared(case, settings, memory, made[made_for])
        for output in prepared.values:
            if output not in computed:
                computed[output] = Computed(memory.call, output)
            _judge_values(prepared, computed[output], kind, answer)
            _judge_flushing(prepared, output, answer)


def _ends_early(call: Call) -> bool:
    return operator(call.op).ends_early({**call.inputs, **call.attrs})


class Computed:
    """What the right kernels of an output compute of one case's data: float32 or float64 values, before any store."""

    def __init__(self, call: Call, output: str) -> None:
        self.output = output
        first = operator(call.op).output
        self.kernels = [right for right in right_kernels(call.op) if (right.output or first) == output]
        self.values = values_of(self.kernels, call)
        self.judged_whole = False
        self.proved: set[str] = set()  # kernel types for which all stored values are finite and pass

    @cached_property
    def ends(self) -> tuple[Array, Array] | None:
        """Each element's smallest and largest value; None where some are not finite."""
        first, *others = sorted(self.values, key=lambda values: values.itemsize)  # float64 last: one cast, not many
        low = high = first
        with np.errstate(invalid="ignore"):
            for values in others:
                low, high = np.minimum(low, values), np.maximum(high, values)
            return (low, high) if np.isfinite(low).all() and np.isfinite(high).all() else None


def values_of(kernels: Iterable[Right], call: Call) -> list[Array]:
    """Return what kernels compute of a call's inputs, before any store. Raises OracleError where one fails."""
    wide = {n: v.astype(np.float32) if _floats(v) else v for n, v in call.inputs.items()}
    given: dict[str, Any] = {**call.attrs, **wide}
    found = []
    with np.errstate(all="ignore"):
        for right in kernels:
            try:
                found.append(np.asarray(right.kernel(given, platform(call.soc))))
            except Exception as error:  # of PyTorch, say: the other cases' results are not lost with it
                raise OracleError(f"{right.id} fails: {type(error).__name__}: {error}") from error
    return found


def _floats(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind not in "biu"


def _judge_steps(prepared: Prepared, answer: Answer) -> None:
    """A call that is refused or ends early: every right kernel takes the same steps."""
    kernels = right_kernels(prepared.case.op)
    answer.judged += len(kernels)
    _tell(prepared, answer, (r.id for r in kernels), outcome_on(prepared, kernels[0].device))


def _judge_values(prepared: Prepared, computed: Computed, kind: str, answer: Answer) -> None:
    """Judge all right kernels of an output, and the golden, on one case on one SoC; finite results are the same on
    every SoC."""
    call, kernels, reference = prepared.memory.call, computed.kernels, prepared.references[computed.output]
    golden = reference.golden
    answer.judged += len(kernels) + 1
    if not computed.judged_whole:
        _tell(prepared, answer, [kernels[0].id], outcome_on(prepared, kernels[0].device))
        computed.judged_whole = True
    if kind in computed.proved:
        return
    ends = computed.ends and [store_result(values, call, computed.output) for values in computed.ends]
    if ends and _pass(prepared, reference, [*ends, golden]):
        if not prepared.settings.saturates:
            computed.proved.add(kind)
        return
    told: dict[bytes, Outcome] = {}
    values = zip(kernels, computed.values, strict=True)
    answers = [(right.id, store_result(found, call, computed.output)) for right, found in values]
    for id, actual in [*answers, (GOLDEN, golden)]:
        key = actual.tobytes()
        if key not in told:
            told[key] = _outcome(prepared, reference, actual)
        _tell(prepared, answer, [id], told[key])


def _judge_flushing(prepared: Prepared, output: str, answer: Answer) -> None:
    """Judge the SoC's own kernel where its instructions flush subnormal numbers, as they do there."""
    call, reference = prepared.memory.call, prepared.references[output]
    kernels = flushing(operator(call.op).of(output)) if platform(call.soc).flushes else ()
    answer.judged += len(kernels)
    for right, values in zip(kernels, values_of(kernels, call), strict=True):
        _tell(prepared, answer, [right.id], _outcome(prepared, reference, store_result(values, call, output)))


def _tell(prepared: Prepared, answer: Answer, ids: Iterable[str], outcome: Outcome) -> None:
    if outcome.status != "pass":
        soc, case = prepared.settings.soc, prepared.case.id
        answer.hits += [Hit(id, case, failed_layers(outcome), outcome.reason, soc) for id in ids]


def _outcome(prepared: Prepared, reference: Reference, actual: Array) -> Outcome:
    _, layers = judge_values(reference, actual, prepared.settings)
    return outcome_of_layers({name: layers[name] for name in prepared.settings.layers if name in layers})


# ---- all at once -----------------------------------------------------------------------------------------------------


def _pass(prepared: Prepared, reference: Reference, answers: list[Array]) -> bool:
    """Whether the worst of some answers pass, and prove with it that each does; False proves nothing."""
    settings = elementwise(prepared.settings)
    worst = worst_of(reference, answers)
    if settings is None or worst is None:
        return False
    _, layers = judge_values(reference, worst, settings)
    return all(layers[name].passed for name in settings.layers if name in layers)


def elementwise(settings: Settings) -> Settings | None:
    """Return settings whose standard grows stricter with every element's error, and is no laxer than the given ones.

    The mixed standards are so with the limit of the largest error taken element by element: a kernel whose every
    element respects its own limit also respects the limit at its largest error.
    """
    if "standard" not in settings.layers:
        return settings
    if not settings.standard.startswith("mixed") or settings.standard_options:
        return None
    return replace(settings, standard_options=(("anchor", "per_element"),))


def worst_of(reference: Reference, answers: list[Array]) -> Array | None:
    """Return each element's answer that lies farthest from the reference's value.

    None where the errors alone do not decide: values that are not finite, elements that must equal the golden and do
    not, a host that rounds to a narrower type first.
    """
    low = high = answers[0]
    if low.dtype.kind == "c" or reference.on_the_way or reference.coarser not in ("", str(low.dtype)):
        return None
    with np.errstate(invalid="ignore"):
        for found in answers[1:]:
            low, high = np.minimum(low, found), np.maximum(high, found)
        middle = (high.astype(np.float64) + low.astype(np.float64)) / 2  # infinite or NaN where either is
    if not np.isfinite(middle).all() or not np.isfinite(reference.value).all():
        return None
    if reference.exact is not None and ((low != high) & reference.exact).any():
        return None
    return np.asarray(np.where(middle >= reference.value, high, low))
