"""Cells of a report's matrix: a group of cases, how many of them ended how, and the worst error among them."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ..record.fields import Number
from ..record.reader import CaseRecord
from ..record.types import GOOD
from .language.words import ORDER, known, objections

DTYPE_ORDER = ("float32", "float16", "bfloat16", "float64")


@dataclass(frozen=True)
class Cell:
    """A group of cases: how many ended how, and the worst error among the judged ones.

    ``worst`` is in units of the bound; ``worst_share`` is the kernel's own part of it, None where no case has one.
    ``objections``: how many cases each layer rejects, expected or not, only layers that reject any.
    """

    counts: Mapping[str, int]
    worst: Number | None
    worst_id: str
    worst_share: Number | None = None
    objections: Mapping[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return sum(self.counts.values())

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
        """Every status but pass, worst first."""
        return [(status, self.counts[status]) for status in ORDER[:-1] if self.counts.get(status)]


def cell(cases: Iterable[CaseRecord]) -> Cell:
    """Sum up a group. A case that is expected to fail does not set the worst error."""
    counts: Counter[str] = Counter()
    objecting: Counter[str] = Counter()
    worst, worst_id, shares = -math.inf, "", []
    for case in cases:
        counts[case.status] += 1
        objecting.update(objections(case))
        if case.status == "xfail":
            continue
        if case.kernel_share is not None:
            shares.append(ranked(case.kernel_share))
        if case.budget_used is not None and ranked(case.budget_used) > worst:
            worst, worst_id = ranked(case.budget_used), case.id
    told = {name: objecting[name] for name in known(objecting)}
    return Cell(dict(counts), worst if worst_id else None, worst_id, max(shares, default=None), told)


def merge(cells: Sequence[Cell]) -> Cell:
    """One cell out of several."""
    if len(cells) == 1:
        return cells[0]
    counts: Counter[str] = Counter()
    objecting: Counter[str] = Counter()
    for each in cells:
        counts.update(each.counts)
        objecting.update(each.objections)
    worst = max((each for each in cells if each.worst is not None), key=lambda each: each.worst or 0.0, default=None)
    shares = [each.worst_share for each in cells if each.worst_share is not None]
    told = {name: objecting[name] for name in known(objecting)}
    where = (None, "") if worst is None else (worst.worst, worst.worst_id)
    return Cell(dict(counts), *where, max(shares, default=None), told)


def sum_of(cells: Mapping[str, Cell], names: Iterable[str]) -> Cell | None:
    """The sum of the cells that have some names, None where there are none."""
    found = [cells[name] for name in names if name in cells]
    return merge(found) if found else None


def ranked(value: Number) -> float:
    """An error to compare by: one that is not a number is worse than any."""
    return math.inf if math.isnan(value) else float(value)


def group(cases: Iterable[CaseRecord], key: Callable[[CaseRecord], tuple[str, str]]) -> dict[str, dict[str, Cell]]:
    """Return a table of cells by the two parts of ``key``, rows in the order of first appearance."""
    members: defaultdict[str, defaultdict[str, list[CaseRecord]]] = defaultdict(lambda: defaultdict(list))
    for case in cases:
        row, column = key(case)
        members[row][column].append(case)
    return {row: {column: cell(found) for column, found in columns.items()} for row, columns in members.items()}


def dtype_order(dtypes: Iterable[str]) -> list[str]:
    """The floating-point types everybody expects first, the others by name."""
    rank = {name: i for i, name in enumerate(DTYPE_ORDER)}
    return sorted(set(dtypes), key=lambda name: (rank.get(name, len(rank)), name))
