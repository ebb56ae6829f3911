"""What a report says about one record: matrix, clusters of failures, coverage, slowest and closest cases."""

from __future__ import annotations

import math
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..model.platforms import PLATFORMS
from ..record.fields import Number
from ..record.reader import CaseRecord, Record, RunHeader
from .cells import DTYPE_ORDER, Cell, cell, dtype_order, group, ranked, sum_of
from .clusters import Cluster, clusters, shared_text
from .language.translate import Text, _, shape
from .language.words import scores, seconds, verdict

# Where the reason of an expected failure stops being the expectation's and becomes the verdict's.
_VERDICT = re.compile(r": (?:structure|standard|strict): ")
_MEASURED = re.compile(r" \(.*$", re.DOTALL)  # how an expectation says what was measured, after its sentence
_DTYPE = re.compile(r"\b(?:b?float|u?int|complex)\d+\b|\bbool\b")


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
    def objections(self) -> Mapping[str, int]:
        """How many of the cases each layer rejects, only layers that reject any."""
        return cell(self.cases).objections

    @cached_property
    def worst(self) -> Number | None:
        found = [ranked(case.budget_used) for case in self.cases if case.budget_used is not None]
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
        told = shared_text(said if len(set(said)) == 1 else [_DTYPE.sub("…", text) for text in said])
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
        return sum_of(self.matrix.get(op, {}), dtypes)

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
        return clusters(self.record)

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
        return sorted(passing, key=lambda case: (-_finite(case.kernel_share), -_finite(case.budget_used)))[:n]

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


# The command that runs one case again, for cases whose record line does not carry one.


def suffix(header: RunHeader) -> str:
    """The options after the case id: those the run line names, or what can be told from its other fields."""
    if header.replay_arguments:
        return shlex.join(header.replay_arguments)
    options = [
        ("--backend", header.backend),
        *(("--backend-option", f"{key}={value}") for key, value in header.backend_options.items()),
        ("--soc", header.soc),
        ("--standard", header.standard),
        ("--seed", "" if header.seed is None else str(header.seed)),
    ]
    return " ".join(f"{name} {shlex.quote(value)}" for name, value in options if value)


def command_for(case: CaseRecord, header: RunHeader) -> str:
    """The recorded replay command of a case, or one made from the run line."""
    if case.detail is not None and case.detail.replay:
        return case.detail.replay
    return f"aclnn-oracle replay {shlex.quote(case.id)} {suffix(header)}".rstrip()
