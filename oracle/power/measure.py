"""The score of a catalogue, and of the huge tier."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from itertools import chain, groupby

import numpy as np

from ..case.huge import outcome_of_answer, too_large
from ..case.huge_memory import POISON, HugeMemory, bytes_of
from ..case.judge import Outcome
from ..case.prepare import word
from ..catalogue import select
from ..catalogue.data.case import Case
from ..defects.base.device import Defect
from ..defects.base.right import SOCS
from ..defects.one_change.layouts import Wrapping, wrapping
from ..defects.registry import defects, sampled
from ..model.aclnn import SUCCESS, platform
from ..model.call import Array
from ..model.classes import greedy_cover, grouped
from ..model.dtypes import DTYPES
from ..operators import OPERATORS, compute, references
from ..operators.answers.parts import along
from ..operators.answers.registry import register
from ..parallel import workers
from ..settings.settings import Settings
from .trial import Answer, Hit, WorkItem, run

PER_SHARE = 300  # least number of wrong kernels that share a case's data and reference
PER_PROCESS = 4  # shares per process, so that no process waits long for the last share of another
Progress = Callable[[str, int, int], None]  # (finished part, done, all)


@dataclass(frozen=True)
class Plan:
    """The plan of a score: ``cases`` before any selection by SoC; ``soc`` None runs each defect where it is wrong."""

    cases: tuple[Case, ...]
    settings: Settings = field(default_factory=Settings)
    soc: str | None = None
    seeds: range = range(5)  # of the right kernels
    jobs: int = 2
    cluster: str | None = None  # a Dask scheduler's address, instead of processes here
    only: str = ""
    full_matrix: bool = False
    wrong: bool = True
    sample: int | None = None  # seed of a sample that replaces the registry's kernels: wrong under three conditions

    @property
    def operators(self) -> list[str]:
        return sorted({case.op for case in self.cases})

    def defects(self) -> list[Defect]:
        """Return the wrong kernels of the catalogue's operators, on the wanted SoC, with the wanted ids."""
        if not self.wrong:
            return []
        given = defects if self.sample is None else partial(sampled, seed=self.sample)
        result = [d for op in self.operators for d in given(op) if d.soc(self.soc) is not None]
        return [d for d in result if not self.only or self.only in d.id or fnmatchcase(d.id, self.only)]

    def shares(self) -> list[WorkItem]:
        """Return the work: wrong kernels with the long parts first, then right kernels seed by seed."""
        result = sorted(wrong_shares(self, self.defects()), key=lambda share: -share.weight)
        return [*result, *self._right_shares()]

    def _right_shares(self) -> Iterable[WorkItem]:
        socs = (self.soc,) if self.soc else SOCS
        served = [case for case in self.cases if all(is_computed(case, soc) for soc in socs)]
        planned = {op: tuple(case for case in served if case.op == op) for op in self.operators}
        for seed in self.seeds:
            for op, cases in planned.items():
                yield WorkItem(op, replace(self.settings, seed=seed), cases, socs=socs)


def cases_of(cases: Iterable[Case], op: str, soc: str) -> tuple[Case, ...]:
    """Return the cases of an operator on a SoC that the registry's kernels can compute."""
    return tuple(case for case in select(cases, soc=soc) if case.op == op and is_computed(case, soc))


def is_computed(case: Case, soc: str) -> bool:
    """Return whether the registry's kernels can answer a case: they compute only floats. A call that must be refused,
    or is empty, may have any operands, because no value matters. Operands with a declared integer type are read as
    numbers."""
    plans = [(p, plan) for p in OPERATORS[case.op].operands if (plan := case.inputs.get(p.name)) is not None]
    valueless = not case.computes(soc) or any(0 in plan.shape for _, plan in plans)
    return valueless or all(p.is_whole or not DTYPES[plan.dtype].is_whole for p, plan in plans)


def wrong_shares(plan: Plan, wrong: Sequence[Defect], cases: tuple[Case, ...] | None = None) -> Iterable[WorkItem]:
    """Yield shares of wrong kernels, each on one SoC on which it is wrong. Their number is only what the processes
    need, because nearly every share makes the data and references of all cases again."""
    per_share = PER_SHARE if plan.cluster else max(PER_SHARE, -(-len(wrong) // (PER_PROCESS * plan.jobs)))
    groups = grouped(wrong, lambda defect: (defect.op, str(defect.soc(plan.soc))))
    for (op, soc), own in sorted(groups.items()):
        ids = [defect.id for defect in own]
        planned = cases_of(plan.cases if cases is None else cases, op, soc)
        parts = -(-len(ids) // per_share)
        for k in range(parts):  # neighbours, which have similar costs, go to different parts
            part = tuple(ids[k::parts])
            yield WorkItem(op, replace(plan.settings, soc=soc), planned, part, plan.full_matrix, sample=plan.sample)


@dataclass
class Score:
    """The result of a plan. ``complete`` is False after an interruption; ``unfinished`` then counts the shares."""

    plan: Plan
    answers: list[Answer] = field(default_factory=list)
    unfinished: int = 0
    cpu_elsewhere: float = 0.0  # seconds of processor time on cases outside the plan
    elsewhere: dict[str, Hit] = field(default_factory=dict)  # survivors -> the built-in case that notices them
    seconds: float = 0.0

    @property
    def complete(self) -> bool:
        return not self.unfinished

    @property
    def hits(self) -> list[Hit]:
        """The noticed wrong kernels, each with a case that notices it."""
        return [hit for answer in self.answers if answer.share.ids for hit in answer.hits]

    @property
    def first(self) -> dict[str, Hit]:
        """The first case that notices each wrong kernel."""
        return {id: hits[0] for id, hits in grouped(self.hits, lambda hit: hit.id).items()}

    @property
    def alarms(self) -> list[tuple[WorkItem, Hit]]:
        """The flagged right kernels."""
        return [(a.share, hit) for a in self.answers if not a.share.ids for hit in a.hits if hit.case not in a.unusable]

    @property
    def tried(self) -> list[Defect]:
        """The wrong kernels with a finished share."""
        ids = {i for answer in self.answers for i in answer.share.ids}
        return [d for d in self.plan.defects() if d.id in ids]

    @property
    def survivors(self) -> list[Defect]:
        """The wrong kernels that no case notices and that are not equivalent to a right one."""
        first = self.first
        return [d for d in self.tried if d.id not in first and not d.equivalent]

    @property
    def unusable(self) -> dict[str, str]:
        return {case: why for answer in self.answers for case, why in answer.unusable.items()}

    def hits_by_case(self) -> dict[str, set[str]]:
        """Return the wrong kernels that each case notices: all with the full matrix, else only the first detections."""
        return {case: {hit.id for hit in hits} for case, hits in grouped(self.hits, lambda hit: hit.case).items()}

    def essential(self) -> list[str]:
        """Return few cases that together notice every noticed kernel, chosen greedily for each operator: the case that
        adds most comes first."""
        hits, result = self.hits_by_case(), list[str]()
        for _, some in groupby(sorted(hits), key=lambda case: case.partition("/")[0]):  # kernels have one operator
            cases = list(some)
            result += (cases[k] for k in greedy_cover([hits[case] for case in cases]))
        return result

    def unique(self) -> Counter[str]:
        """Return, for each case, the number of wrong kernels that only this case notices (full matrix)."""
        hits = self.hits_by_case()
        times = Counter(chain.from_iterable(hits.values()))
        return Counter({case: n for case, ids in hits.items() if (n := sum(times[id] == 1 for id in ids))})


def measure(plan: Plan, progress: Progress | None = None) -> Score:
    """Run a plan. KeyboardInterrupt ends it early, with the results so far."""
    started = time.perf_counter()
    score = Score(plan)
    _dispatch(score, plan.shares(), progress)
    score.seconds = time.perf_counter() - started
    return score


def look_elsewhere(score: Score, cases: tuple[Case, ...], progress: Progress | None = None) -> None:
    """Find, for each survivor, a case among ``cases`` that notices it. KeyboardInterrupt ends the search early."""
    survivors = score.survivors
    if not survivors or not cases:
        return
    started = time.perf_counter()
    plan = replace(score.plan, full_matrix=False)
    side = Score(plan)
    _dispatch(side, list(wrong_shares(plan, survivors, cases)), progress)
    score.elsewhere.update(side.first)
    score.unfinished = side.unfinished
    score.seconds += time.perf_counter() - started
    score.cpu_elsewhere = sum(answer.cpu for answer in side.answers)


def _dispatch(score: Score, shares: list[WorkItem], progress: Progress | None) -> None:
    jobs = score.plan.jobs if len(shares) > 1 else 1
    try:
        with workers(jobs, score.plan.cluster, prepare=partial(register, OPERATORS.added)) as pool:
            for answer in pool.as_completed(run, shares):
                _gather(score, answer, len(shares), progress)
    except KeyboardInterrupt:
        score.unfinished = len(shares) - len(score.answers)


def _gather(score: Score, answer: Answer, count: int, progress: Progress | None) -> None:
    score.answers.append(answer)
    if progress is not None:
        share = answer.share
        if share.ids:
            what = f"{len(share.ids)} wrong kernels on {share.settings.soc}"
        else:
            cases = sorted({hit.case for hit in answer.hits})  # a long run shows them at once
            flagged = f"{len(answer.hits)} false alarms{' by ' + ', '.join(cases) if cases else ''}"
            what = f"right kernels, seed {share.settings.seed}, {flagged}"
        progress(f"{share.op}: {what}, {answer.seconds:.1f} s", len(score.answers), count)


# The score of the huge tier against kernels with places that wrap at 32 bits.
#
# The cases repeat a block, and so does a right answer. It is computed once, written along the output, and spoilt by one
# kernel after the other.


@dataclass
class HugeScore:
    """The results of the kernels in ``tried``. ``noticed``: the first case that notices each kernel, and why.
    ``flagged``: why a right answer fails a case. ``skipped``: why a case was not run."""

    tried: list[Wrapping] = field(default_factory=list)
    noticed: dict[str, tuple[str, str]] = field(default_factory=dict)  # by the kernel's operator and name
    flagged: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    @property
    def survivors(self) -> list[Wrapping]:
        return [kernel for kernel in self.tried if key(kernel) not in self.noticed]


def key(kernel: Wrapping) -> str:
    """Return a kernel's unique name among the kernels of all operators."""
    return f"{kernel.op}: {kernel.name}"


def score(
    cases: Iterable[Case], settings: Settings, *, bits: int = 31, tell: Callable[[str], None] = lambda line: None
) -> HugeScore:
    """Score cases of the huge tier, small ones first. ``bits``: the kernels wrap at 2^bits."""
    result, left = HugeScore(), dict[str, list[Wrapping]]()
    for case in sorted(cases, key=bytes_of):
        if case.op not in left:
            left[case.op] = list(wrapping(OPERATORS[case.op], bits))
            result.tried += left[case.op]
        if not left[case.op] or not case.is_on(settings.soc):
            continue
        if reason := too_large(case, settings):
            result.skipped[case.id] = reason
            continue
        left[case.op] = _unnoticed(case, left[case.op], settings, result)
        tell(f"{case.id}: {len(left[case.op])} kernels of {case.op} are not noticed yet")
    return result


def _unnoticed(case: Case, kernels: list[Wrapping], settings: Settings, result: HugeScore) -> list[Wrapping]:
    """Run kernels on a case and return the unnoticed ones."""
    memory = HugeMemory.make(case, soc=platform(settings.soc).soc, seed=settings.seed, under=settings.under)
    expected = references(memory.block)
    right = {name: compute(memory.block, output=name) for name in memory.outputs}
    before = {n: np.frombuffer(word(POISON, o.view.dtype), o.view.dtype)[0] for n, o in memory.outputs.items()}

    def answered(kernel: Wrapping | None) -> Outcome | None:
        """Judge a right answer after a kernel has spoilt it; None if the call does not reach its limit."""
        for name, output in memory.outputs.items():
            output.clear()
            _write(memory, name, right[name])
        if kernel is not None and not kernel.spoil(memory.call, before):
            return None
        return outcome_of_answer(memory, SUCCESS, expected, settings)

    plain = answered(None)
    assert plain is not None
    if plain.status != "pass":
        result.flagged[case.id] = plain.reason
        return kernels
    left = []
    for kernel in kernels:
        outcome = answered(kernel)
        if outcome is None or outcome.status == "pass":
            left.append(kernel)
        else:
            result.noticed[key(kernel)] = case.id, outcome.reason
    return left


def _write(memory: HugeMemory, name: str, block: Array) -> None:
    """Write a block's answer repeatedly along an output."""
    axis = memory.axes[name]
    for piece in memory.cut.pieces():
        along(memory.outputs[name].view, axis, piece)[...] = along(block, axis, slice(0, piece.stop - piece.start))
