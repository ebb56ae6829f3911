"""The failures of a run in few groups.

The failures of an operator are contrasted with its passing cases (:mod:`.conditions`). If one condition does not cover
them all, smaller sets are contrasted: first the failures with the same cause, then the failures without a
condition. Finally, groups of several operators are merged if they have the same cause, or no cause and the same
condition.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..model.call import Array
from ..model.classes import grouped
from ..operators import OPERATORS
from ..record.reader import Record
from ..record.types import CaseRecord, CaseStatus, Group
from ..reporting.clusters import DTYPE, dtype_order, shared_text, simplest
from ..reporting.language.translate import shape
from ..reporting.language.words import index
from ..reporting.summary import command_for
from .conditions import CLEAR, FULL, Condition, Contrast, contrast, holding, measured, sentence
from .diagnosis import VAGUE, family_of
from .facts import Fact, asks_status, common_limit, facts_of, shared_value
from .scaled import BY_A_FACTOR
from .simulations import AS_IF, EITHER, OR, READ_AS

ENDED = ("fail", "error", "crash", "timeout")  # the statuses that conditions and expectations can explain
MOST_GROUPS = 4  # found by conditions, for failures of one operator with the same status and no cause
OFTEN = 0.05  # share of an operator's failures that a cause must explain to get its own group
SHARE = 0.2  # share of a group's failures that must have its cause, if nearly all others have none
ROUNDED = "rounded to"
GENERAL = ("intermediate results are rounded", "errors as of intermediate")  # said of few elements: no other cause
WORSE = 3.0  # most exceptions of a common condition, relative to the groups' own conditions


@dataclass(frozen=True)
class Population:
    """The comparable cases of one operator, with their facts, and which of them failed."""

    cases: Sequence[CaseRecord]
    facts: Sequence[Mapping[str, Fact]]
    bad: Array

    @classmethod
    def of(cls, cases: Iterable[CaseRecord], status: str, asks: bool) -> Population:
        """Take the failures of one status and the passing cases that are comparable to them.

        ``asks``: take the cases that check only their status; else the cases with results: no refused or empty call."""
        ended = [
            case
            for case in cases
            if (case.status == status and asks_status(case) == asks)
            or (case.status == "pass" and (asks_status(case) if asks else case.elements is not None))
        ]
        return cls(ended, [facts_of(case) for case in ended], np.array([case.status == status for case in ended], bool))

    def failures(self, chosen: Array) -> list[CaseRecord]:
        return [case for case, is_one in zip(self.cases, chosen & self.bad, strict=True) if is_one]


class Step(NamedTuple):
    """A wrong step of the formula as a group's cause, which ``explained`` of the ``tried`` failures show."""

    cause: str
    explained: int
    tried: int


@dataclass(frozen=True)
class Part:
    """Failures of one or several operators that form one group. ``members``: a mask for each population. ``step``: the
    wrong step of the formula that most of the tried failures show. ``limit``: that of an operand, as text."""

    status: CaseStatus
    populations: tuple[Population, ...]
    members: tuple[Array, ...]
    where: Contrast | None
    step: Step | None = None
    limit: str = ""

    @cached_property
    def cases(self) -> list[CaseRecord]:
        """The failures."""
        result = zip(self.populations, self.members, strict=True)
        return [case for population, chosen in result for case in population.failures(chosen)]

    @cached_property
    def causes(self) -> list[str]:
        """The most common cause, as each failure states it. At least half of the failures must have it, or nearly all
        failures with a cause: views and few elements often allow no claim. Of two causes that are as common, neither
        counts."""
        texts = agreed([case.detail.cause for case in self.cases if case.detail and case.detail.cause])
        (most, count), (_, next_count) = [*Counter(map(key_of, texts)).most_common(2), ("", 0), ("", 0)][:2]
        if count == next_count:
            return []
        others = sum(key_of(cause) != most and not (ROUNDED in most and cause.startswith(GENERAL)) for cause in texts)
        few = max(2.0, SHARE * len(self.cases)) if count >= CLEAR * (count + others) else math.inf
        least = min(few, len(self.cases) / 2)
        result = [cause for cause in texts if key_of(cause) == most] if count >= least else []
        return [] if result and 2 * self._passing_with(result[0]) >= len(result) else result

    def _passing_with(self, cause: str) -> int:
        """Return how many passing cases contradict a cause: under the group's condition, they have more than one
        element, and the reduction that the device is said to misread."""
        reduction = OPERATORS[self.cases[0].op].reduction if self.cases[0].op in OPERATORS else None
        if reduction is None or f"the attribute {reduction.name} {READ_AS}" not in cause or len(self.populations) > 1:
            return 0
        population, conditions = self.populations[0], () if self.where is None else self.where.conditions
        misread = {case.attrs.get(reduction.name) for case in self.cases}
        return sum(
            case.status == "pass"
            and (case.elements or 0) > 1
            and case.attrs.get(reduction.name) in misread
            and all(condition.holds(facts) for condition in conditions)
            for case, facts in zip(population.cases, population.facts, strict=True)
        )

    @cached_property
    def cause(self) -> str:
        """The most common cause as one sentence; "" if there is none."""
        return shared_cause(self.causes)

    @cached_property
    def rule(self) -> str:
        """The rule that most failures break, with a letter for each figure that differs between them."""
        return shared_text([rule_of(case) for case in self.cases])

    @cached_property
    def value(self) -> str:
        """The value, as text, that an operand has at every wrong element; "" if there is no such value."""
        return shared_value(self.cases)

    @property
    def key(self) -> tuple[str, str, str]:
        """The key that groups to be merged have in common, for any operator. A group without cause and condition is
        merged only with groups of its operator and rule."""
        if self.step is not None:
            return self.status, self.step.cause, ""
        if self.limit:
            return self.status, "", f"{self.cases[0].op} {self.limit}"
        if self.causes and 2 * len(self.causes) >= len(self.cases):
            return self.status, key_of(self.causes[0]), ""
        where = sentence(self.where.conditions) if self.where else ""
        return self.status, "", where or f"{self.cases[0].op} {self.rule}"


def key_of(cause: str) -> str:
    """Return the text that the causes of one bug have in common, for any dtype. All wrong readings of memory have one
    text, and so have all of an attribute."""
    if any(words in cause for words in ("read as if", "written as if", "strides")):
        return "as if"
    return DTYPE.sub("…", shape((cause.partition(BY_A_FACTOR)[2] or cause).partition(READ_AS)[0]))


def rule_of(case: CaseRecord) -> str:
    """Return the broken rule; for a case without detail (a crash), its reason's first line."""
    rule = case.detail.rule if case.detail else ""
    return rule or case.reason.partition("\n")[0][:200] or "no reason recorded"


def groups(record: Record) -> list[Group]:
    """Return the groups of a record's failures, the largest first."""
    return [group_of(part, record) for part in parts(record.cases)]


def explained(record: Record) -> Record:
    """Return a record with the groups of its failures: as its run wrote them, or made from its cases."""
    return record if record.groups or record.ok else replace(record, groups=tuple(groups(record)))


def parts(cases: Sequence[CaseRecord]) -> list[Part]:
    """Divide failures into groups, the largest first."""
    by_op = grouped(cases, lambda case: case.op)
    result = [part for own in by_op.values() for part in _of_operator(own)]
    return merged(result)


def _of_operator(cases: Sequence[CaseRecord]) -> Iterator[Part]:
    kinds: dict[tuple[CaseStatus, bool], None] = dict.fromkeys(
        (case.status, asks_status(case)) for case in cases if not case.ok
    )
    for status, asks in kinds:
        population = Population.of(cases, status, asks)
        chosen = population.bad
        if status in ENDED:
            yield from _divided(population, chosen, status)
        else:
            yield Part(status, (population,), (chosen,), None)


def _divided(population: Population, chosen: Array, status: CaseStatus) -> list[Part]:
    """Return one group if one value or one condition covers all failures. Else return one group for a limit of an
    operand and for each cause, and divide the rest by a value or by conditions, then by the broken rule."""

    def part(own: Array, where: Contrast | None = None) -> Part:
        return Part(status, (population,), (own,), where)

    everything = part(chosen)
    if everything.value:
        return [everything]
    result, left = [], chosen.copy()
    if (limited := _beyond_limit(everything)) is not None:
        result.append(limited)
        left &= ~limited.members[0]
    whole = _contrasted(population, left)
    if whole is not None and whole.failed >= max(CLEAR * whole.inside, FULL * np.count_nonzero(left)):  # one bug
        result.append(part(left & whole.holds, whole))
        left &= ~whole.holds
        if not left.any():
            return result
    without_cause = np.array([not (case.detail and case.detail.cause) for case in population.cases], bool)
    for own in _by_cause(population, left):
        own &= left
        where = _contrasted(population, own)
        if where is not None:
            where = _widened(where, population, left)
            own |= left & where.holds & without_cause
            kept = own | ~population.bad
            where = replace(measured(where.conditions, where.holds[kept], own[kept], where.bits), holds=where.holds)
        result.append(part(own, where))
        left &= ~own
    rest = part(left)
    if rest.value:
        return [*result, rest]
    for _ in range(MOST_GROUPS):
        where = _contrasted(population, left)
        if where is None:
            break
        result.append(part(left & where.holds, where))
        left &= ~where.holds
    for numbers in grouped(np.flatnonzero(left).tolist(), lambda k: shape(rule_of(population.cases[k]))).values():
        own = np.zeros(left.shape, bool)
        own[numbers] = True
        result.append(part(own))
    return result


def _beyond_limit(everything: Part) -> Part | None:
    """Return the failures whose wrong elements lie beyond a common limit, with the condition that they also need."""
    limit, (population,) = common_limit(everything.cases), everything.populations
    if limit is None:
        return None
    own = population.bad & np.array([limit.covers(case) for case in population.cases], bool)
    where = _contrasted(population, own, sized=False)
    if where is not None and not where.is_needed(int(np.count_nonzero(own))):
        where = None
    return replace(everything, members=(own,), where=where, limit=str(limit))


def _contrasted(population: Population, chosen: Array, *, sized: bool = True) -> Contrast | None:
    """Contrast some failures with the passing cases; the other failures are ignored. ``sized``: by sizes and values,
    too; large tensors have more of any values."""
    kept = chosen | ~population.bad
    facts = [each for each, is_kept in zip(population.facts, kept, strict=True) if is_kept]
    if not sized:
        facts = [{k: v for k, v in each.items() if isinstance(v, bool | str) and not k.startswith("the values")}
                 for each in facts]  # fmt: skip
    result = contrast(facts, chosen[kept])
    if result is None:
        return None
    return replace(result, holds=holding(result.conditions, population.facts))


def _widened(where: Contrast, population: Population, failures: Array) -> Contrast:
    """Return a condition without the parts that only keep failures of other causes out: without such a part, nearly as
    large a share of the cases under it fails. Not every failure of a bug shows the bug's cause."""

    def share(holds: Array) -> float:
        failed, passed = (int(np.count_nonzero(holds & some)) for some in (failures, ~population.bad))
        return failed / max(1, failed + passed)

    kept, least = list(where.conditions), CLEAR * share(where.holds)
    for condition in where.conditions:
        rest = [each for each in kept if each is not condition]
        if rest and share(holding(rest, population.facts)) >= least:
            kept = rest
    return replace(where, conditions=tuple(kept), holds=holding(kept, population.facts))


def _by_cause(population: Population, chosen: Array) -> list[Array]:
    """Return the failures of each cause that explains enough of them, the most frequent cause first."""
    causes = [
        key_of(cause) for cause in agreed([case.detail.cause if case.detail else "" for case in population.cases])
    ]
    counts = Counter(cause for cause, is_one in zip(causes, chosen, strict=True) if is_one and cause)
    least = max(2.0, OFTEN * np.count_nonzero(chosen))
    return [chosen & np.array([c == cause for c in causes], bool) for cause, n in counts.most_common() if n >= least]


# ---- the causes of a group in one sentence ---------------------------------------------------------------------------

_A_DIVISOR = re.compile(r"(the mean is divided by \S+ \()(.*)(\), not by .*)")


def agreed(causes: Sequence[str]) -> list[str]:
    """Return causes with the names of a wrong divisor that most of them allow: in one call several counts are equal."""
    found = {cause: divided for cause in causes if (divided := _A_DIVISOR.fullmatch(cause))}
    names = Counter(name for cause in causes if cause in found for name in found[cause][2].split(OR))
    best = [name for name, count in names.items() if count == max(names.values())]
    common = {c: OR.join(name for name in found[c][2].split(OR) if name in best) for c in found}
    return [f"{found[c][1]}{common[c]}{found[c][3]}" if common.get(c) else c for c in causes]


_A_FACTOR = re.compile(r"all wrong by the factor (\S+)")


def shared_cause(causes: Sequence[str]) -> str:
    """Return one sentence for the causes of a group: with a figure that all share, and every dtype in its place."""
    if not causes:
        return ""
    factors = {float(result[1]) for cause in causes if (result := _A_FACTOR.fullmatch(cause))}
    if len(factors) > 1:
        return f"all wrong by factors from {min(factors):g} to {max(factors):g}"
    read = [cause.partition(BY_A_FACTOR)[2] or cause for cause in causes]
    if all(cause.startswith("the attribute") and READ_AS in cause for cause in read) and set(read) & set(causes):
        name, _, values = read[0].partition(READ_AS)
        common = [v for v in values.split(OR) if all(v in c.partition(READ_AS)[2].split(OR) for c in read)]
        if common:
            return f"{name}{READ_AS}{OR.join(common)}"
    if all(AS_IF in cause for cause in causes):  # one bug: only an operand that every failure allows
        pairs = [cause.split(AS_IF, 1) for cause in causes]
        common = [name for name in pairs[0][0].split(EITHER) if all(name in of.split(EITHER) for of, _ in pairs)]
        causes = [f"{EITHER.join(common)}{AS_IF}{reading}" for _, reading in pairs] if common else causes
    places = zip(*map(DTYPE.findall, causes), strict=False)
    types = iter([" or ".join(dtype_order(place)) for place in places])
    return DTYPE.sub(lambda own: next(types, own[0]), shared_text(causes))


# ---- over operators --------------------------------------------------------------------------------------------------


def merged(found: Iterable[Part]) -> list[Part]:
    """Return one group for all parts with the same key, the largest group first."""
    alike = grouped(found, lambda part: part.key).values()
    result = [own[0] if len(own) == 1 else _joined(own) for own in alike]
    return sorted(result, key=lambda part: -len(part.cases))


def _joined(alike: Sequence[Part]) -> Part:
    """Join parts with the same key, with the one of their conditions that fits all of them best."""
    pairs = [pair for part in alike for pair in zip(part.populations, part.members, strict=True)]
    own_pairs = grouped(pairs, lambda pair: id(pair[0])).values()  # parts of one operator have one population
    populations = tuple(same[0][0] for same in own_pairs)
    members = tuple(np.logical_or.reduce([chosen for _, chosen in same]) for same in own_pairs)
    known = {sentence(part.where.conditions): part.where.conditions for part in alike if part.where}
    tried = [over_all(conditions, populations, members) for conditions in known.values()]
    best = min(tried, key=lambda where: where.misses, default=None)
    own = sum(part.where.misses if part.where else len(part.cases) for part in alike)
    failures = sum(int(np.count_nonzero(chosen)) for chosen in members)
    if best is not None and best.misses > max(WORSE * own, failures / 2):
        best = None
    steps = [part.step for part in alike if part.step is not None]
    step = Step(steps[0].cause, sum(s.explained for s in steps), sum(s.tried for s in steps)) if steps else None
    return Part(alike[0].status, populations, members, best, step, alike[0].limit)


def over_all(chosen: Sequence[Condition], populations: Sequence[Population], members: Sequence[Array]) -> Contrast:
    """Return how well a condition fits the failures of several operators; other groups' failures are ignored."""
    holds, bad = [], []
    for population, own in zip(populations, members, strict=True):
        kept = own | ~population.bad
        holds.append(holding(chosen, population.facts)[kept])
        bad.append(own[kept])
    return measured(chosen, np.concatenate(holds), np.concatenate(bad))


# ---- the record's lines ----------------------------------------------------------------------------------------------


def group_of(part: Part, record: Record) -> Group:
    """Return a group as a line of the record."""
    smallest = simplest(part.cases)
    detail, where, size = smallest.detail, part.where, len(part.cases)
    if where is not None and len(part.causes) >= CLEAR * size and where.failed < FULL * size:
        where = None  # the group has a cause and also fails elsewhere: this condition is not the right one
    if where is not None and not where.outside:
        where = None  # no comparable case lies outside the condition, so it proves nothing
    value = "" if part.causes else part.value or part.limit
    cause = Step(part.cause or value, len(part.causes) or (size if value else 0), 0)
    if part.step is not None and family_of(cause.cause) in VAGUE:
        cause = part.step
    worst = detail.worst[0] if detail is not None and detail.worst else None
    counts = (0, 0, 0, 0) if where is None else (where.failed, where.inside, where.passed, where.outside)
    return Group(
        what=part.rule,
        where="" if where is None else sentence(where.conditions),
        **cause._asdict(),
        operators=tuple(sorted({case.op for case in part.cases})),
        status=part.status,
        failures=len(part.cases),
        failed=counts[0],
        inside=counts[1],
        passed=counts[2],
        outside=counts[3],
        smallest=smallest.id,
        cases=tuple(case.id for case in part.cases),
        input=", ".join([*(f"{name} {words}" for name, words in smallest.inputs.items()),
                         *(f"{name}={value}" for name, value in smallest.attrs.items())]),
        element="" if worst is None or detail is None else detail.output + index(worst.index),
        expected=None if worst is None else worst.expected,
        actual=None if worst is None else worst.actual,
        shrink="" if smallest.is_void or smallest.status in ("notrun", "xpass") else _shrink_command(smallest, record),
        apart=inexact_limits(where),
    )  # fmt: skip


def _shrink_command(case: CaseRecord, record: Record) -> str:
    """Return the command that makes a failing case smaller; "" for a recording, which has no smaller case."""
    if record.header.backend == "replay":
        return ""
    return f"{command_for(case, record.header)} --shrink"


def inexact_limits(where: Contrast | None) -> str:
    """Say which limits are not exact because no case lies next to them; "" if all limits are exact."""
    if where is None:
        return ""
    wide = [c for c in where.conditions if c.gap is not None and c.gap[1] - c.gap[0] > 1]
    return "; ".join(f"no case shows where between {c.gap[0]} and {c.gap[1]} {c.subject} begins to matter"
                     for c in wide if c.gap is not None)  # fmt: skip
