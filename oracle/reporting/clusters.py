"""Groups of cases: the cells of a report's matrix, and similar failures."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, repeat

from ..model.classes import grouped
from ..record.codec import Number
from ..record.reader import Record
from ..record.types import GOOD, CaseRecord, Group, known, objections, scores
from .language.translate import FIGURE, LETTERS, Text, _, shape
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


# The groups of a record's failures, with their cases: a reader looks at them first.


@dataclass(frozen=True)
class Cluster:
    """A group of failures with its cases. ``pattern`` is empty if the cases differ in it."""

    number: int
    group: Group
    cases: Sequence[CaseRecord]

    @property
    def op(self) -> str:
        return ", ".join(self.group.operators)

    @property
    def dtype(self) -> str:
        return ", ".join(dtype_order(case.dtype for case in self.cases))

    @property
    def pattern(self) -> str:
        """The pattern that all cases share, with a letter for each figure that differs; "" if they share none."""
        patterns = [case.detail.pattern if case.detail else "" for case in self.cases]
        return shared_text(patterns) if len(set(map(shape, patterns))) == 1 else ""

    @property
    def size(self) -> int:
        return len(self.cases)

    @cached_property
    def simplest(self) -> CaseRecord:
        """The case to look at first."""
        return simplest(self.cases)

    @property
    def authority(self) -> str:
        """Whose rule most of its cases break; "" if no case has an authority."""
        return Counter(case.authority for case in self.cases).most_common(1)[0][0]

    @property
    def counts(self) -> Text:
        """The group's counts of cases under its condition and elsewhere."""
        group = self.group
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

    @property
    def is_explained(self) -> bool:
        """Whether at least half of its cases, or of the cases that were tried, have its cause."""
        return 0 < (self.group.tried or self.size) <= 2 * self.group.explained

    @property
    def cause_share(self) -> Text:
        """The count of cases with that cause, and of all cases, or of the cases that were tried."""
        if self.group.tried:
            return _("{n} of {all} tried", n=self.group.explained, all=self.group.tried)
        return Text("{n} / {all}", params={"n": self.group.explained, "all": self.size})

    @cached_property
    def cell(self) -> Cell:
        return Cell(self.cases)

    @cached_property
    def layers(self) -> list[tuple[str, int, int]]:
        """(layer, cases it rejects, cases it judges) for each layer."""
        return [(name, judged - accepted, judged) for name, (accepted, judged) in scores(self.cases).items()]


def simplest(cases: Iterable[CaseRecord]) -> CaseRecord:
    """Return the failure to look at first: its output has the fewest elements; of those, the shortest id."""

    def elements(case: CaseRecord) -> float:
        return math.inf if case.detail is None or case.detail.total is None else case.detail.total

    return min(cases, key=lambda case: (elements(case), len(case.id), case.id))


def clusters(record: Record) -> list[Cluster]:
    """Return the groups of a record's failures with their cases, the largest first. A record that a run did not write
    to its end has none: ``explain.groups.explained`` makes them."""
    with_cases = ((group, [record.by_id[name] for name in group.cases if name in record.by_id])
                  for group in record.groups)  # fmt: skip
    return [Cluster(number, group, cases) for number, (group, cases) in enumerate(with_cases, 1) if cases]


def shared_text(texts: Sequence[str]) -> str:
    """Return one text for several: the most frequent one, figures ignored, with a letter for each figure that differs:
    N, then M, L and K. Figures that are equal in every text have one letter."""
    ((form, _),) = Counter(map(shape, texts)).most_common(1)
    texts = list(dict.fromkeys(text for text in texts if shape(text) == form))
    columns = list(zip(*(FIGURE.findall(text) for text in texts), strict=True))
    differing = list(dict.fromkeys(column for column in columns if len(set(column)) > 1))
    letters = dict(zip(differing, chain(LETTERS, repeat(LETTERS[-1])), strict=False))
    figures = iter([letters.get(column, column[0]) for column in columns])
    return FIGURE.sub(lambda _: next(figures), texts[0])
