"""What a report says about one record: matrix, clusters of failures, coverage, slowest and closest cases."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from ..model.platforms import PLATFORMS
from ..record.fields import Number
from ..record.reader import CaseRecord, Record
from ..record.types import GOOD
from .words import ORDER, seconds, verdict

DTYPE_ORDER = ("float32", "float16", "bfloat16", "float64")
# A number standing for itself: not part of a word (float32), of an identifier or of a dotted version.
_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:0x[0-9a-fA-F]+|\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|nan|inf)(?![\w])")


@dataclass(frozen=True)
class Cell:
    """A group of cases: how many ended how, and the worst share of the error budget among the judged ones."""

    counts: Mapping[str, int]
    worst: Number | None
    worst_id: str

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
    worst, worst_id = -math.inf, ""
    for case in cases:
        counts[case.status] += 1
        used = case.budget_used
        if used is None or case.status == "xfail":
            continue
        rank = math.inf if math.isnan(used) else float(used)
        if rank > worst:
            worst, worst_id = rank, case.id
    return Cell(dict(counts), worst if worst_id else None, worst_id)


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


@lru_cache(maxsize=100_000)
def shape_of(text: str) -> str:
    """A text with its numbers taken out, so that the same sentence about two cases is the same."""
    return _NUMBER.sub("N", text)


@dataclass(frozen=True)
class Cluster:
    """Failures that look alike: one operator, dtype, status, broken rule and pattern of bad elements."""

    number: int
    op: str
    dtype: str
    status: str
    rule: str
    pattern: str
    cases: Sequence[CaseRecord]

    @property
    def size(self) -> int:
        return len(self.cases)

    @cached_property
    def simplest(self) -> CaseRecord:
        """The case to look at first: the fewest elements, then the shortest id."""
        return min(self.cases, key=lambda c: (_elements(c), len(c.id), c.id))

    @cached_property
    def families(self) -> list[tuple[str, int]]:
        return Counter(case.family or "(no family)" for case in self.cases).most_common()

    @property
    def family_words(self) -> str:
        """The families with their counts, at most six of them."""
        words = [f"{name} {n:,}" for name, n in self.families[:6]]
        return ", ".join(words) + (f" and {len(self.families) - 6} more" if len(self.families) > 6 else "")

    @cached_property
    def causes(self) -> list[str]:
        """Likely causes, the most frequent first."""
        return [
            cause
            for cause, _ in Counter(c.detail.cause for c in self.cases if c.detail and c.detail.cause).most_common()
        ]

    @cached_property
    def worst(self) -> Number | None:
        return cell(self.cases).worst


def _elements(case: CaseRecord) -> float:
    return math.inf if case.detail is None or case.detail.total is None else case.detail.total


def clusters(cases: Iterable[CaseRecord]) -> list[Cluster]:
    """Group everything that went wrong; the most severe status first, then the largest group."""
    groups: defaultdict[tuple[str, str, str, str, str], list[CaseRecord]] = defaultdict(list)
    for case in cases:
        if not case.ok:
            rule, pattern = _kind(case)
            groups[case.op, case.dtype, case.status, shape_of(rule), shape_of(pattern)].append(case)
    rank = {status: i for i, status in enumerate(ORDER)}
    ordered = sorted(groups.items(), key=lambda item: (rank[item[0][2]], -len(item[1]), item[0]))
    return [
        Cluster(number, op, dtype, status, _common(found, 0), _common(found, 1), found)
        for number, ((op, dtype, status, _, _), found) in enumerate(ordered, 1)
    ]


def _kind(case: CaseRecord) -> tuple[str, str]:
    """The broken rule and the pattern; a case without detail (a crash) is told by its reason's first line."""
    rule, pattern = (case.detail.rule, case.detail.pattern) if case.detail else ("", "")
    return rule or case.reason.partition("\n")[0][:200] or "no reason recorded", pattern


def _common(cases: Sequence[CaseRecord], part: int) -> str:
    """The text all cases share, with N for each number that differs between them."""
    texts = list({_kind(case)[part] for case in cases})
    columns = zip(*(_NUMBER.findall(text) for text in texts), strict=True)
    numbers = iter([found[0] if len(set(found)) == 1 else "N" for found in columns])
    return _NUMBER.sub(lambda _: next(numbers), texts[0])


@dataclass(frozen=True)
class Summary:
    """Everything a report shows about one record, computed once."""

    record: Record

    @cached_property
    def verdict(self) -> str:
        return verdict(self.record)

    @cached_property
    def matrix(self) -> dict[str, dict[str, Cell]]:
        """Cells by operator and dtype."""
        return group(self.record.cases, lambda case: (case.op, case.dtype))

    @cached_property
    def coverage(self) -> dict[str, dict[str, dict[str, Cell]]]:
        """Cells by operator, family and dtype."""
        by_op: defaultdict[str, list[CaseRecord]] = defaultdict(list)
        for case in self.record.cases:
            by_op[case.op].append(case)
        return {op: group(cases, lambda case: (case.family, case.dtype)) for op, cases in by_op.items()}

    def holes(self, op: str) -> list[tuple[str, str]]:
        """Pairs of family and dtype without a case, among the dtypes the run has for the operator at all."""
        own = dtype_order(self.matrix[op])
        return [(family, d) for family, cells in self.coverage[op].items() for d in own if d not in cells]

    @cached_property
    def clusters(self) -> list[Cluster]:
        return clusters(self.record.cases)

    @cached_property
    def excused(self) -> list[tuple[str, str, dict[str, int]]]:
        """Expected failures, then skips, as (status, reason, cases by operator), the most cases first."""
        reasons: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        for case in self.record.cases:
            if case.status in ("xfail", "skip"):
                reasons[case.status, case.reason or "(no reason recorded)"][case.op] += 1
        ordered = sorted(reasons.items(), key=lambda item: (item[0][0] != "xfail", -item[1].total()))
        return [(status, reason, dict(counted)) for (status, reason), counted in ordered]

    @cached_property
    def dtypes(self) -> list[str]:
        return dtype_order(case.dtype for case in self.record.cases)

    def slowest(self, n: int) -> list[CaseRecord]:
        return sorted(self.record.cases, key=lambda c: -_finite(c.duration_s))[:n]

    def closest(self, n: int) -> list[CaseRecord]:
        """Passing cases that use most of their error budget."""
        passing = [case for case in self.record.cases if case.status == "pass" and case.budget_used]
        return sorted(passing, key=lambda case: -_finite(case.budget_used))[:n]

    @cached_property
    def time(self) -> dict[str, float]:
        """Seconds over all cases: in the golden, in the backend, and the rest (data, verdict, overhead)."""
        golden = sum(_finite(case.golden_s) for case in self.record.cases)
        backend = sum(_finite(case.backend_s) for case in self.record.cases)
        whole = sum(_finite(case.duration_s) for case in self.record.cases)
        return {"golden": golden, "backend": backend, "other": max(0.0, whole - golden - backend)}

    @cached_property
    def facts(self) -> dict[str, str]:
        """What ran on what, by name; what the record does not say is left out."""
        head, record = self.record.header, self.record
        product = PLATFORMS.get(head.soc)
        workers = {case.worker for case in record.cases if case.worker}
        known = {
            "backend": head.backend,
            "options": ", ".join(f"{key}={value}" for key, value in head.backend_options.items()),
            "device": ", ".join(record.devices),
            "SoC": head.soc if product is None else f"{head.soc} ({product.product})",
            "standard": head.standard,
            "layers": ", ".join(head.layers),
            "overflow": head.overflow,
            "third party": head.third_party or "",
            "tier": head.tier,
            "seed": "" if head.seed is None else str(head.seed),
            "started": head.started,
            "duration": "" if record.duration_s is None else seconds(record.duration_s),
            "workers": str(len(workers)) if len(workers) > 1 else "",
            "suite": f"aclnn-oracle {head.versions['aclnn-oracle']}" if "aclnn-oracle" in head.versions else "",
            "versions": ", ".join(f"{k} {v}" for k, v in head.versions.items() if k != "aclnn-oracle"),
            "catalogue": head.catalogue_sha256,
            "record": record.path.name,
        }
        return {name: value for name, value in known.items() if value}


def _finite(value: Number | None) -> float:
    return 0.0 if value is None or not math.isfinite(value) else float(value)
