"""The coverage of combined conditions of calls by cases, and the score of the conditions that the report names.

A kernel with a wrong sign under a condition fails some cases of a catalogue. These are contrasted with the cases that
it passes, and neighbouring calls are run, as in a normal run. The condition found is right if it selects the same calls
as the kernel's own condition, out of 1,000 random calls. Half of these are drawn freely, and half next to the
catalogue's cases, because free calls seldom meet three conditions together. Two kinds of calls are not compared: those
with a size in a gap in which no case shows the limit, and those whose right answer has no visible sign.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from ..case.one_case import outcome_on, run_case
from ..case.prepare import Memory
from ..catalogue.data.case import Case, TensorPlan, make_buffer, specs_of
from ..catalogue.data.layout import arrange
from ..catalogue.expand.drawing import RandomCalls, takes
from ..catalogue.measure import Dimension
from ..defects.base.device import Defect, Device, never, own_output, right_device
from ..defects.condition_pairs.factors import (
    Condition,
    Factor,
    class_factors,
    factors_of,
    is_class,
    is_layout,
    layout_factors,
)
from ..defects.condition_pairs.pairs import MILLION, MOST_NAMED, fresh, meeting
from ..defects.registry import defects
from ..explain.conditions import Contrast, contrast, holding, sentence
from ..explain.detail import described
from ..explain.facts import Fact, facts_of
from ..explain.neighbours import CallHistory, neighbour
from ..model.aclnn import DEFAULT_SOC
from ..model.call import Array, Call
from ..model.classes import grouped
from ..model.dtypes import dtype_of
from ..model.errors import OracleError
from ..operators import OPERATORS, operator, written
from ..operators.definition.operator import Operator
from ..settings.settings import Settings
from .measure import cases_of, is_computed
from .summary import wilson
from .trial import PlainRun, plain_runs, size_of

# ---- conditions of calls that meet in some case: alone, in pairs and in triples --------------------------------------
#
# The conditions are the values of the factors of calls (:mod:`oracle.defects.condition_pairs.factors`): dtype, rank,
# size, the form in memory of each operand, attributes. Separate lines combine classes of shapes with these, and classes
# of layouts (a tensor's offset in its storage, the order of its elements) with dtype and attributes. Two conditions are
# feasible unless an operator's class says why no call meets both. Three are feasible if every two of them are.

Combination = tuple[Condition, ...]
KINDS = ("one condition", "two conditions", "a dtype and two conditions", "three conditions")
BY_CLASS = (
    "a class of shapes and a condition",
    "a class of shapes, a dtype and a condition",
    "a class of shapes and two conditions",
)
BY_LAYOUT = (
    "a class of layouts and a condition",
    "a class of layouts, a dtype and a condition",
    "a class of layouts and two conditions",
)
THREES = (KINDS[-1], BY_CLASS[-1], BY_LAYOUT[-1])


def interactions(cases: Iterable[Case]) -> list[Dimension]:
    """Return the lines :data:`KINDS` and :data:`BY_LAYOUT` for each operator of the cases, and :data:`BY_CLASS` if its
    shapes have classes."""
    known = (case for case in cases if case.computes(DEFAULT_SOC)
             and all(plan and 0 not in plan.shape for plan in case.outputs.values()))  # fmt: skip
    by_op = grouped(known, lambda case: case.op)
    return [line for name, op in OPERATORS.items() if name in by_op for line in _of(op, by_op[name])]


def _of(op: Operator, cases: Sequence[Case]) -> list[Dimension]:
    calls = [call_described(op, case) for case in cases]
    plain, layouts = factors_of(op), layout_factors(op)
    shapes = [*plain, *class_factors(op)]
    return [
        *_lines(op, calls, plain, KINDS, (list(meeting(op, plain, 1)), *_twos_and_threes(op, plain, bool))),
        *_lines(op, calls, shapes, BY_CLASS, _twos_and_threes(op, shapes, is_class)),
        *_lines(op, calls, layouts, BY_LAYOUT, _twos_and_threes(op, layouts, is_layout)),
    ]


def _twos_and_threes(
    op: Operator, factors: Sequence[Factor], counts: Callable[[Condition], bool]
) -> tuple[list[Combination], ...]:
    """Return the conditions that can meet, at least one selected by ``counts``: two; a dtype and two; three others."""
    two, three = ([met for met in meeting(op, factors, n) if any(map(counts, met))] for n in (2, 3))
    return two, [met for met in three if met[0][0] == "dtype"], [met for met in three if met[0][0] != "dtype"]


def _lines(
    op: Operator,
    calls: Sequence[Call],
    factors: Sequence[Factor],
    kinds: Sequence[str],
    needed: Iterable[Sequence[Combination]],
) -> list[Dimension]:
    """Return a line for each kind of combination that calls of an operator need."""
    known = {name: set(values) for name, _, values in factors}
    rows = [
        Dimension(op.name, kind, tuple(map(_described, result)), between=" with ")
        for kind, result in zip(kinds, needed, strict=True)
        if result
    ]
    for call in calls:
        labels = [(name, label(call)) for name, label, _ in factors]
        here = _described(tuple((name, value) for name, value in labels if value in known[name]))
        for row in rows:
            row.seen.update(combinations(here, len(row.needed[0])))
    return rows


def _described(met: Combination) -> tuple[str, ...]:
    return tuple(map(" ".join, met))


def call_described(op: Operator, case: Case) -> Call:
    """Return a case's call for labels. They read shapes, strides and dtypes; only class indices have real values."""
    inputs = {
        name: None if plan is None else _laid_out(case, name, plan, op.by_name[name].holds("classes"))
        for name, plan in case.inputs.items()
    }
    outputs = {name: _laid_out(case, name, plan, False) for name, plan in case.outputs.items() if plan is not None}
    return Call(case.op, DEFAULT_SOC, inputs, dict(case.attrs), dict(outputs), specs_of(case))


def _laid_out(case: Case, name: str, plan: TensorPlan, valued: bool) -> Array:
    """Return a tensor in its layout; if its values do not matter, all elements share one place in memory."""
    if valued:
        return make_buffer(plan, case.id, name, seed=0).view
    one = np.empty(1, dtype_of(plan.dtype).numpy)
    strides = [stride * one.itemsize for stride in arrange(plan.shape, plan.view).strides]
    return np.lib.stride_tricks.as_strided(one, plan.shape, strides, writeable=False)


# ---- the score of the conditions -------------------------------------------------------------------------------------

EACH = 24  # kernels of an operator; the smoke tier notices only few of most of them
RANDOM = 1000  # calls on which two conditions are compared
LARGEST = 1 << 17  # elements of the largest case that is run
RIGHT, WRONG, NONE, NO_FAILING_CASE = OUTCOMES = ("right", "wrong", "none", "no case fails")


@dataclass(frozen=True)
class FoundCondition:
    """The condition found for a kernel. ``off``: the number of random calls for which it is wrong."""

    defect: Defect
    outcome: str
    claim: str = ""
    off: int = 0
    calls: int = 0  # run in addition to the cases


@dataclass
class Score:
    """The conditions found for all kernels."""

    named: list[FoundCondition] = field(default_factory=list)

    def count(self, outcome: str) -> int:
        return sum(each.outcome == outcome for each in self.named)

    @property
    def failing(self) -> int:
        """The number of kernels that fail a case; no condition can be found for the others."""
        return len(self.named) - self.count(NO_FAILING_CASE)

    def to_json(self) -> dict[str, Any]:
        counts = {outcome: self.count(outcome) for outcome in OUTCOMES}
        return {**counts, "right_interval": wilson(self.count(RIGHT), self.failing),
                "kernels": [{"kernel": each.defect.id, "outcome": each.outcome, "said": each.claim, "off": each.off,
                             "calls": each.calls} for each in self.named]}  # fmt: skip


def sentence_of(score: Score) -> str:
    """Return the score in a sentence."""
    low, high = wilson(score.count(RIGHT), score.failing)
    shares = ", ".join(f"{outcome} {score.count(outcome)} ({100 * score.count(outcome) / max(1, score.failing):.1f} %)"
                       for outcome in (RIGHT, WRONG, NONE))  # fmt: skip
    return (f"conditions of {score.failing} kernels: {shares}; right in {low:.1f} to {high:.1f} % with 95 % confidence;"
            f" {score.count(NO_FAILING_CASE)} further kernels fail no case")  # fmt: skip


def score(
    operators: Sequence[str], cases: tuple[Case, ...], settings: Settings, *, seed: int, many: int, only: str = ""
) -> Score:
    """Score ``EACH`` kernels for ``many`` operators, half from the registry and half fresh, all drawn by a seed."""
    result = Score()
    for op in random.Random(seed).sample(operators, min(many, len(operators))):
        kernels = [defect for defect in drawn(op, settings.soc, EACH, seed) if only in defect.id]
        trial = Trial.of(op, cases, settings, seed) if kernels else None
        result.named += [trial.named(defect) for defect in kernels] if trial is not None and trial.plains else []
    return result


def drawn(op: str, soc: str, many: int, seed: int) -> Iterator[Defect]:
    """Yield ``many`` kernels of an operator with a condition that a sentence can name, drawn by a seed."""
    known = [d for d in defects(op) if soc in d.socs and not d.equivalent and is_named(d)]
    yield from random.Random(f"{seed}/{op}").sample(known, min(many // 2, len(known)))
    yield from (defect for defect in fresh(operator(op), seed, many - many // 2) if soc in defect.socs)


def is_named(defect: Defect) -> bool:
    """Return whether a registry kernel is wrong under at most three conditions that a sentence can name, on sizes that
    are run. A rank with a range of sizes is two conditions, and so is an axis with its sign. No sentence describes
    whether an ignored class occurs."""
    if defect.device.negates is never or MILLION in defect.id:
        return False
    axis, ignored = (operator(defect.op).attribute(role) for role in ("axis", "ignore index"))
    met = defect.id.split("/", 2)[2].split(" with ")
    if ignored and any(each.startswith(f"{ignored.name} ") for each in met):
        return False
    return sum(1 + each.startswith(("shape ", f"{axis.name} " if axis else "shape ")) for each in met) <= MOST_NAMED


@dataclass
class Trial:
    """The cases of an operator with a right kernel's answers, and random calls, shared by all kernels."""

    settings: Settings
    plains: list[PlainRun]
    facts: list[Mapping[str, Fact]]
    calls: list[Call]
    others: list[Mapping[str, Fact]]  # of the random calls

    @classmethod
    def of(cls, op: str, cases: tuple[Case, ...], settings: Settings, seed: int) -> Trial:
        few = (case for case in cases_of(cases, op, settings.soc)
               if case.computes(settings.soc, settings.cann) and size_of(case) <= LARGEST)  # fmt: skip
        plains = [plain for plain in plain_runs(few, settings, {}) if plain.launched]
        given = [plain.prepared.case for plain in plains]
        drawn = list(_random_calls(op, given, settings, seed)) if given else []
        return cls(settings, plains, [facts_of(described(case)) for case in given],
                   [call for call, _ in drawn], [facts for _, facts in drawn])  # fmt: skip

    def named(self, defect: Defect) -> FoundCondition:
        """Find the condition of a kernel's failures, and compare it with the kernel's own."""
        wrong = defect.device.negates
        bad = [
            wrong(plain.call) and outcome_on(plain.prepared, defect.device).status == "fail" for plain in self.plains
        ]
        if not any(bad):
            return FoundCondition(defect, NO_FAILING_CASE)
        run = partial(_fails, settings=self.settings, device=defect.device)
        known = CallHistory([p.prepared.case for p in self.plains], list(self.facts), bad, run, self.settings.soc,
                      self.settings.cann or "")  # fmt: skip
        known.ask()
        result = contrast(*known.thinned())
        if result is None:
            return FoundCondition(defect, NONE, calls=known.calls)
        off = self.disagreements(result, defect)
        return FoundCondition(defect, WRONG if off else RIGHT, sentence(result.conditions), off, known.calls)

    def disagreements(self, found: Contrast, defect: Defect) -> int:
        """Return the number of random calls for which the condition and the kernel disagree."""
        said = holding(found.conditions, self.others)
        differs = said != np.array([defect.device.negates(call) for call in self.calls], bool)
        is_open = np.logical_or.reduce([_in_gap(condition.fact, condition.gap, self.others)
                                        for condition in found.conditions])  # fmt: skip
        return sum(has_sign(self.calls[number], defect.device) for number in np.flatnonzero(differs & ~is_open))


def has_sign(call: Call, device: Device) -> bool:
    """Return whether a wrong sign of a device's output is visible: some right element is a number other than 0."""
    op = operator(call.op).of(own_output(device, call))
    given = call.outputs[op.output]
    if given is None or op.output not in written(call):
        return False
    answer = right_device(op).result(call, np.asarray(given)).astype(np.float64)
    return bool(((answer != 0) & ~np.isnan(answer)).any())


def _in_gap(fact: str, gap: tuple[int, int] | None, facts: Sequence[Mapping[str, Fact]]) -> Array:
    """Return a mask of the calls with a size in the gap: between two sizes in which no case shows the limit."""
    least, most = gap or (0, 0)
    return np.array([least < int(each.get(fact, 0)) < most if gap else False for each in facts], bool)


def _fails(case: Case, settings: Settings, device: Any) -> bool | None:
    return {"pass": False, "fail": True}.get(run_case(case, device, settings).status)


def _random_calls(
    op: str, cases: Sequence[Case], settings: Settings, seed: int
) -> Iterator[tuple[Call, Mapping[str, Fact]]]:
    drawer, draw = RandomCalls(operator(op), settings.soc, settings.cann or "", seed), random.Random(f"{seed}/{op}")
    made: Counter[bool] = Counter()
    for number in range(100 * RANDOM):
        nearby = bool(number % 2)
        if made[nearby] >= RANDOM // 2:
            continue
        case = drawer.draw()
        if nearby and case is not None:
            case = neighbour(draw.choice(cases), [case], draw, f"{operator(op).slug}/random[{seed}-{number}]")
        if case is None or not takes(case, settings.soc, settings.cann or "") or not is_computed(case, settings.soc):
            continue
        try:
            call = Memory.make(case, soc=settings.soc, seed=seed).call
        except OracleError:  # values that this shape cannot have
            continue
        made[nearby] += 1
        yield call, facts_of(described(case))
