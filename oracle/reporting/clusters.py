"""Groups of cases: the cells of a report's matrix, and similar failures."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..model.classes import grouped
from ..record.codec import Number
from ..record.reader import Record
from ..record.types import GOOD, CaseRecord, Group, known, objections, scores
from .language.translate import FIGURE, Text, _, shape
from .language.words import ORDER

# Cells of a report's matrix: a group of cases, their statuses, and the worst error among them.

DTYPE = re.compile(r"\b(?:b?float|u?int|complex)\d+\b|\bbool\b")
DTYPE_ORDER = ("float32", "float16", "bfloat16", "float64")


@dataclass(frozen=True)
class Cell:
    """A group of cases. A case that is expected to fail does not set the worst error."""

    cases: Sequence[CaseRecord]

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """Cases per status."""
        return Counter(case.status for case in self.cases)

    @cached_property
    def objections(self) -> Mapping[str, int]:
        """How many cases each layer rejects, expected or not; only layers that reject some."""
        objecting = Counter(name for case in self.cases for name in objections(case))
        return {name: objecting[name] for name in known(objecting)}

    @cached_property
    def _worst(self) -> tuple[float | None, str]:
        errors = ((ranked(case.budget_used), case.id) for case in self.cases
                  if case.budget_used is not None and case.status != "xfail")  # fmt: skip
        return max(errors, key=lambda error: error[0], default=(None, ""))

    @property
    def worst(self) -> float | None:
        """The worst error in units of its bound; None if no case has one."""
        return self._worst[0]

    @property
    def worst_id(self) -> str:
        return self._worst[1]

    @cached_property
    def worst_share(self) -> float | None:
        """The kernel's own part of the worst error; None if no case has one."""
        cases = (case for case in self.cases if case.status != "xfail")
        return max((ranked(case.kernel_share) for case in cases if case.kernel_share is not None), default=None)

    @property
    def total(self) -> int:
        return len(self.cases)

    @property
    def judged(self) -> int:
        return self.total - self.counts.get("skip", 0)

    @property
    def passed(self) -> int:
        return self.counts.get("pass", 0)

    @property
    def bad(self) -> int:
        return sum(n for status, n in self.counts.items() if status not in GOOD)

    @property
    def others(self) -> list[tuple[str, int]]:
        """Every status except pass, worst first."""
        return [(status, self.counts[status]) for status in ORDER[:-1] if self.counts.get(status)]


def sum_of(cells: Mapping[str, Cell], names: Iterable[str]) -> Cell | None:
    """Return the sum of the cells with the given names; None if there are none."""
    chosen = [cells[name] for name in names if name in cells]
    if len(chosen) < 2:
        return chosen[0] if chosen else None
    return Cell([case for each in chosen for case in each.cases])


def ranked(value: Number) -> float:
    """Return an error for comparisons: NaN is worse than any number."""
    return math.inf if math.isnan(value) else float(value)


def group(cases: Iterable[CaseRecord], key: Callable[[CaseRecord], tuple[str, str]]) -> dict[str, dict[str, Cell]]:
    """Return a table of cells by the two parts of ``key``, rows in the order of first appearance."""
    table: dict[str, dict[str, Cell]] = {}
    for (row, column), members in grouped(cases, key).items():
        table.setdefault(row, {})[column] = Cell(members)
    return table


def dtype_rank(name: str) -> tuple[int, str]:
    """Return a dtype's place: first the common floating-point types, then the others by name."""
    return ((*DTYPE_ORDER, name).index(name), name)


def dtype_order(dtypes: Iterable[str]) -> list[str]:
    """Return dtypes in the order of their places."""
    return sorted(set(dtypes), key=dtype_rank)


# Similar failures in groups: a reader looks at them first.


@dataclass(frozen=True)
class Cluster:
    """Failures that are one group of the record. If the record has no groups: similar failures of one operator and
    status, with one likely cause, or without a cause with one dtype and broken rule. ``op`` and ``dtype`` list all of
    the cases; ``pattern`` is empty if the cases differ in it."""

    number: int
    op: str
    dtype: str
    status: str
    rule: str
    pattern: str
    cases: Sequence[CaseRecord]
    group: Group | None = None

    @property
    def size(self) -> int:
        return len(self.cases)

    @cached_property
    def simplest(self) -> CaseRecord:
        """The case to look at first: the fewest elements, then the shortest id."""
        return min(self.cases, key=lambda c: (elements_of(c), len(c.id), c.id))

    @property
    def where(self) -> str:
        """The condition that these cases have in common and passing cases do not fulfil; "" if there is none."""
        return "" if self.group is None else self.group.where

    @property
    def shrink(self) -> str:
        """The command that makes the simplest case smaller; "" in a record without groups."""
        return "" if self.group is None else self.group.shrink

    @property
    def counts(self) -> Text:
        """The group's counts of cases under its condition and elsewhere."""
        group = self.group
        assert group is not None
        return _("fails in {failed} of {inside}; passes in {passed} of {outside} elsewhere", failed=group.failed,
                 inside=group.inside, passed=group.passed, outside=group.outside)  # fmt: skip

    @property
    def family_words(self) -> Text:
        """The families with their counts, at most six of them."""
        families = Counter(case.family or "(no family)" for case in self.cases).most_common()
        words = ", ".join(f"{name} {n:,}" for name, n in families[:6])
        more = len(families) - 6
        if more <= 0:
            return Text("{families}", params={"families": words})
        return _("{families} and {more} more", families=words, more=more)

    @cached_property
    def _majority_cause(self) -> list[str]:
        """The likely cause of most of its cases, as each case states it; empty if no cause has the majority."""
        causes = [case.detail.cause for case in self.cases if case.detail and case.detail.cause]
        result = Counter(map(shape, causes)).most_common(1)
        if not result or 2 * result[0][1] <= self.size:
            return []
        return [cause for cause in causes if shape(cause) == result[0][0]]

    @property
    def causes(self) -> list[str]:
        """The likely cause that the majority of its cases share, if there is one."""
        if self.group is not None:
            return [self.group.cause] if self.group.cause else []
        return [shared_text(self._majority_cause)] if self._majority_cause else []

    @property
    def explained(self) -> int:
        """How many of its cases have that cause."""
        return len(self._majority_cause) if self.group is None else self.group.explained

    @property
    def is_explained(self) -> bool:
        """Whether at least half of its cases have that cause."""
        return 0 < self.size <= 2 * self.explained

    @property
    def cause_share(self) -> str:
        """The count of cases with that cause, and of all cases."""
        return f"{self.explained:,} / {self.size:,}"

    @cached_property
    def cell(self) -> Cell:
        return Cell(self.cases)

    @cached_property
    def layers(self) -> list[tuple[str, int, int]]:
        """(layer, cases it rejects, cases it judges) for each layer."""
        return [(name, judged - accepted, judged) for name, (accepted, judged) in scores(self.cases).items()]


def elements_of(case: CaseRecord) -> float:
    """Return how many elements a failed case's output has; infinity if the record does not say."""
    return math.inf if case.detail is None or case.detail.total is None else case.detail.total


def clusters(record: Record) -> list[Cluster]:
    """Return the groups of a record, the largest first; of a record without groups, its similar failures."""
    if not record.groups:
        return alike(record.cases)
    return [
        _cluster(number, ", ".join(group.operators), group.status, result, group)
        for number, group in enumerate(record.groups, 1)
        if (result := [record.by_id[case_id] for case_id in group.cases if case_id in record.by_id])
    ]


def _cluster(number: int, op: str, status: str, cases: Sequence[CaseRecord], group: Group | None = None) -> Cluster:
    dtypes = ", ".join(dtype_order(case.dtype for case in cases))
    return Cluster(number, op, dtypes, status, rule_of(cases), _pattern(cases), cases, group)


def alike(cases: Iterable[CaseRecord]) -> list[Cluster]:
    """Group similar cases that went wrong: the most severe status first, then the largest group."""

    def likeness(case: CaseRecord) -> tuple[str, str, str, str]:
        cause = bug_of(case.detail.cause) if case.detail else ""
        dtype, rule = ("", cause) if cause else (case.dtype, shape(_kind(case)[0]))
        return case.op, dtype, case.status, rule

    groups = grouped((case for case in cases if not case.ok), likeness)
    ordered = sorted(groups.items(), key=lambda item: (ORDER.index(item[0][2]), -len(item[1]), item[0]))
    return [_cluster(number, op, status, own) for number, ((op, _, status, _), own) in enumerate(ordered, 1)]


def bug_of(cause: str) -> str:
    """Return the text that the causes of one bug have in common: a wrong reading of memory, for any operand."""
    return "as if" if " as if " in cause or "strides" in cause else shape(cause)


def _kind(case: CaseRecord) -> tuple[str, str]:
    """Return the broken rule and the pattern; for a case without detail (a crash), its reason's first line."""
    rule, pattern = (case.detail.rule, case.detail.pattern) if case.detail else ("", "")
    return rule or case.reason.partition("\n")[0][:200] or "no reason recorded", pattern


def rule_of(cases: Sequence[CaseRecord]) -> str:
    """Return the rule that most cases break, with N for each figure that differs between them."""
    return _most([_kind(case)[0] for case in cases])[0]


def _pattern(cases: Sequence[CaseRecord]) -> str:
    """Return the pattern that all cases share, with N for each figure that differs; "" if they share none."""
    text, count = _most([_kind(case)[1] for case in cases])
    return text if count == len(cases) else ""


def _most(texts: Sequence[str]) -> tuple[str, int]:
    """Return the most frequent text, figures ignored, and how often it occurs."""
    return shared_text(texts), max(Counter(map(shape, texts)).values())


def shared_text(texts: Sequence[str]) -> str:
    """Return one text for several: the most frequent one, figures ignored, with N for each figure that differs."""
    ((form, _),) = Counter(map(shape, texts)).most_common(1)
    texts = list(dict.fromkeys(text for text in texts if shape(text) == form))
    columns = zip(*(FIGURE.findall(text) for text in texts), strict=True)
    figures = iter([result[0] if len(set(result)) == 1 else "N" for result in columns])
    return FIGURE.sub(lambda _: next(figures), texts[0])
