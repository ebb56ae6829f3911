"""What a report says about one record: matrix, clusters of failures, coverage, slowest and closest cases."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ..model.platforms import PLATFORMS
from ..record.fields import Number
from ..record.reader import CaseRecord, Record
from ..record.types import GOOD
from .language import FIGURE, Text, _, shape
from .layers import known, objections, scores, share
from .words import ORDER, seconds, verdict

DTYPE_ORDER = ("float32", "float16", "bfloat16", "float64")
# Where the reason of an expected failure stops being the expectation's and becomes the verdict's.
_VERDICT = re.compile(r": (?:structure|standard|strict): ")
_MEASURED = re.compile(r" \(.*$", re.DOTALL)  # how an expectation says what was measured, after its sentence
_DTYPE = re.compile(r"\b(?:b?float|u?int|complex)\d+\b|\bbool\b")


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
        if (own := share(case)) is not None:
            shares.append(_rank(own))
        if case.budget_used is not None and _rank(case.budget_used) > worst:
            worst, worst_id = _rank(case.budget_used), case.id
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


def _rank(value: Number) -> float:
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


@dataclass(frozen=True)
class Cluster:
    """Failures that look alike: of one operator and status, with one likely cause; without one, of one dtype and
    broken rule. ``dtype`` names all there are; ``pattern`` is empty where they differ."""

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
    def family_words(self) -> Text:
        """The families with their counts, at most six of them."""
        words = ", ".join(f"{name} {n:,}" for name, n in self.families[:6])
        more = len(self.families) - 6
        if more <= 0:
            return Text("{families}", params={"families": words})
        return _("{families} and {more} more", families=words, more=more)

    @cached_property
    def _told(self) -> list[str]:
        """The likely cause of most of its cases, as each says it; nothing where none has the majority."""
        told = [case.detail.cause for case in self.cases if case.detail and case.detail.cause]
        found = Counter(map(shape, told)).most_common(1)
        if not found or 2 * found[0][1] <= self.size:
            return []
        return [cause for cause in told if shape(cause) == found[0][0]]

    @property
    def causes(self) -> list[str]:
        """The likely cause that the majority of its cases share, if there is one."""
        return [_shared(self._told)] if self._told else []

    @property
    def cause_share(self) -> str:
        """How many of its cases have that cause."""
        return f"{len(self._told):,} / {self.size:,}"

    @cached_property
    def cell(self) -> Cell:
        return cell(self.cases)

    @property
    def worst(self) -> Number | None:
        return self.cell.worst

    @cached_property
    def layers(self) -> list[tuple[str, int, int]]:
        """(layer, cases it rejects, cases it judged): who objects, and who does not."""
        return [(name, judged - accepted, judged) for name, (accepted, judged) in scores(self.cases).items()]


def _elements(case: CaseRecord) -> float:
    return math.inf if case.detail is None or case.detail.total is None else case.detail.total


def clusters(cases: Iterable[CaseRecord]) -> list[Cluster]:
    """Group everything that went wrong; the most severe status first, then the largest group."""
    groups: defaultdict[tuple[str, str, str, str], list[CaseRecord]] = defaultdict(list)
    for case in cases:
        if not case.ok:
            cause = _bug(case.detail.cause) if case.detail else ""
            dtype, rule = ("", cause) if cause else (case.dtype, shape(_kind(case)[0]))
            groups[case.op, dtype, case.status, rule].append(case)
    rank = {status: i for i, status in enumerate(ORDER)}
    ordered = sorted(groups.items(), key=lambda item: (rank[item[0][2]], -len(item[1]), item[0]))
    return [
        Cluster(
            number, op, ", ".join(dtype_order(c.dtype for c in found)), status, _rule(found), _pattern(found), found
        )
        for number, ((op, _, status, _), found) in enumerate(ordered, 1)
    ]


def _bug(cause: str) -> str:
    """What the causes of one bug have in common: memory that is read wrongly is read so by whatever operand."""
    return "as if" if " as if " in cause or "strides" in cause else shape(cause)


def _kind(case: CaseRecord) -> tuple[str, str]:
    """The broken rule and the pattern; a case without detail (a crash) is told by its reason's first line."""
    rule, pattern = (case.detail.rule, case.detail.pattern) if case.detail else ("", "")
    return rule or case.reason.partition("\n")[0][:200] or "no reason recorded", pattern


def _rule(cases: Sequence[CaseRecord]) -> str:
    """The rule that most cases break, with N for each figure that differs between them."""
    return _most([_kind(case)[0] for case in cases])[0]


def _pattern(cases: Sequence[CaseRecord]) -> str:
    """The pattern that all cases share, with N for each figure that differs between them; "" if they share none."""
    told, count = _most([_kind(case)[1] for case in cases])
    return told if count == len(cases) else ""


def _most(texts: Sequence[str]) -> tuple[str, int]:
    """The most frequent text but for its figures, and how often it is there."""
    (form, count), *_ = Counter(map(shape, texts)).most_common(1)
    return _shared([text for text in texts if shape(text) == form]), count


def _shared(texts: Sequence[str]) -> str:
    texts = list(dict.fromkeys(texts))
    columns = zip(*(FIGURE.findall(text) for text in texts), strict=True)
    figures = iter([found[0] if len(set(found)) == 1 else "N" for found in columns])
    return FIGURE.sub(lambda _: next(figures), texts[0])


@dataclass(frozen=True)
class Excused:
    """Expected failures or skips for one reason: the expectation's sentence, without the figures it was measured by.

    ``statements``: the whole reasons, each with its number of cases.
    """

    status: str
    reason: str
    cases: Sequence[CaseRecord]
    statements: Mapping[str, int]

    @property
    def size(self) -> int:
        return len(self.cases)

    @cached_property
    def operators(self) -> dict[str, int]:
        return dict(Counter(case.op for case in self.cases).most_common())

    @cached_property
    def objections(self) -> dict[str, int]:
        """How many of the cases each layer rejects, only layers that reject any."""
        return cell(self.cases).objections  # type: ignore[return-value]

    @cached_property
    def worst(self) -> Number | None:
        found = [_rank(case.budget_used) for case in self.cases if case.budget_used is not None]
        return max(found, default=None)


def excused(cases: Iterable[CaseRecord]) -> list[Excused]:
    """Group expected failures, then skips, by what they say before figures and types; the largest group first."""
    groups: defaultdict[tuple[str, str], list[tuple[str, CaseRecord]]] = defaultdict(list)
    for case in cases:
        if case.status in ("xfail", "skip"):
            reason = _VERDICT.split(case.reason, maxsplit=1)[0] or "(no reason recorded)"
            said = _MEASURED.sub("", reason) if case.status == "xfail" else reason
            groups[case.status, shape(_DTYPE.sub("…", said))].append((reason, case))
    found = []
    for (status, _form), members in groups.items():
        statements = Counter(reason for reason, _case in members)
        said = [_MEASURED.sub("", text) if status == "xfail" else text for text in statements]
        told = _shared(said if len(set(said)) == 1 else [_DTYPE.sub("…", text) for text in said])
        found.append(Excused(status, told, [case for _reason, case in members], dict(statements.most_common())))
    return sorted(found, key=lambda group: (group.status != "xfail", -group.size))


@dataclass(frozen=True)
class Summary:
    """Everything a report shows about one record, computed once."""

    record: Record

    @cached_property
    def verdict(self) -> Text:
        return verdict(self.record)

    @cached_property
    def layers(self) -> dict[str, tuple[int, int]]:
        """Per layer (accepted, judged), each for itself."""
        return scores(self.record.cases)

    @cached_property
    def matrix(self) -> dict[str, dict[str, Cell]]:
        """Cells by operator and dtype."""
        return group(self.record.cases, lambda case: (case.op, case.dtype))

    def cell_of(self, op: str, dtypes: Sequence[str]) -> Cell | None:
        """The sum of an operator's cells of some dtypes, None where it has none."""
        found = self.matrix.get(op, {})
        cells = [found[dtype] for dtype in dtypes if dtype in found]
        return merge(cells) if cells else None

    @cached_property
    def _by_cell(self) -> Mapping[tuple[str, str], list[CaseRecord]]:
        found: defaultdict[tuple[str, str], list[CaseRecord]] = defaultdict(list)
        for case in self.record.cases:
            found[case.op, case.dtype].append(case)
        return found

    def scores_of(self, op: str, dtype: str) -> dict[str, tuple[int, int]]:
        """Per layer (accepted, judged) of an operator's cases of a type."""
        return scores(self._by_cell.get((op, dtype), []))

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
    def excused(self) -> list[Excused]:
        return excused(self.record.cases)

    @cached_property
    def dtypes(self) -> list[str]:
        return dtype_order(case.dtype for case in self.record.cases)

    @cached_property
    def refused(self) -> frozenset[str]:
        """Data types that exist only to be refused: none of their cases has values to judge, and none died."""
        valued, died = set(), set()
        for case in self.record.cases:
            if case.budget_used is not None or not case.verdicts.keys() <= {"structure"}:
                valued.add(case.dtype)
            elif case.status in ("error", "crash", "timeout", "notrun") or case.dtype in DTYPE_ORDER[:3]:
                died.add(case.dtype)
        return frozenset(set(self.dtypes) - valued - died)

    def slowest(self, n: int) -> list[CaseRecord]:
        return sorted(self.record.cases, key=lambda c: -_finite(c.duration_s))[:n]

    def closest(self, n: int) -> list[CaseRecord]:
        """Passing cases whose kernel's own share is the largest; those that use most of their error budget where the
        record has no shares."""
        passing = [case for case in self.record.cases if case.status == "pass" and case.budget_used]
        return sorted(passing, key=lambda case: (-_finite(share(case)), -_finite(case.budget_used)))[:n]

    @cached_property
    def time(self) -> dict[str, float]:
        """Seconds over all cases: in the golden, in the backend, and the rest (data, verdict, overhead)."""
        golden = sum(_finite(case.golden_s) for case in self.record.cases)
        backend = sum(_finite(case.backend_s) for case in self.record.cases)
        whole = sum(_finite(case.duration_s) for case in self.record.cases)
        return {"golden": golden, "backend": backend, "other": max(0.0, whole - golden - backend)}

    @cached_property
    def facts(self) -> list[tuple[Text, str]]:
        """What ran on what, each with its name; what the record does not say is left out."""
        head, record = self.record.header, self.record
        product = PLATFORMS.get(head.soc)
        workers = {case.worker for case in record.cases if case.worker}
        known = [
            (_("backend"), head.backend),
            (_("options"), ", ".join(f"{key}={value}" for key, value in head.backend_options.items())),
            (_("device"), ", ".join(record.devices)),
            (_("SoC"), head.soc if product is None else f"{head.soc} ({product.product})"),
            (_("CANN rules"), head.cann),
            (_("standard"), head.standard),
            (_("layers"), ", ".join(head.layers)),
            (_("gate"), ", ".join(head.gate) if head.gate != head.layers else ""),
            (_("rules of"), head.authority if head.authority == "document" else ""),
            (_("overflow"), head.overflow),
            (_("subnormal numbers"), head.subnormals),
            (_("third party"), head.third_party or ""),
            (_("tier"), head.tier),
            (_("seed"), "" if head.seed is None else str(head.seed)),
            (_("started"), head.started),
            (_("duration"), "" if record.duration_s is None else seconds(record.duration_s)),
            (_("workers"), str(len(workers)) if len(workers) > 1 else ""),
            (_("suite"), f"aclnn-oracle {head.versions['aclnn-oracle']}" if "aclnn-oracle" in head.versions else ""),
            (_("versions"), ", ".join(f"{k} {v}" for k, v in head.versions.items() if k != "aclnn-oracle")),
            (_("catalogue"), head.catalogue_sha256),
            (_("record"), record.path.name),
        ]
        return [(name, value) for name, value in known if value]


def columns(summaries: Sequence[Summary]) -> list[tuple[str, ...]]:
    """Columns of a matrix: a dtype each, and last those that exist only to be refused, together, where there are some.

    A dtype that one run judges by value is not refused in another.
    """
    dtypes = dtype_order(dtype for summary in summaries for dtype in summary.dtypes)
    used = {dtype for summary in summaries for dtype in set(summary.dtypes) - summary.refused}
    folded = tuple(dtype for dtype in dtypes if dtype not in used)
    if len(folded) < 2 or not used:
        return [(dtype,) for dtype in dtypes]
    return [*((dtype,) for dtype in dtypes if dtype in used), folded]


def _finite(value: Number | None) -> float:
    return 0.0 if value is None or not math.isfinite(value) else float(value)
