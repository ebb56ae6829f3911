"""The contents of a report about one record, and its form in Markdown."""

from __future__ import annotations

import math
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..model.aclnn import PLATFORMS
from ..model.classes import grouped
from ..model.errors import escaped
from ..record.codec import Number
from ..record.reader import Record
from ..record.types import CaseRecord, RunHeader, scores
from .clusters import DTYPE, DTYPE_ORDER, Cell, Cluster, clusters, dtype_order, group, ranked, shared_text, sum_of
from .language.translate import ENGLISH, Language, Phrase, Text, _, _n, shape
from .language.words import NAME, NONE, clip, equation, figure, index, judged, percent, seconds, verdict

# The end of the expectation's text, and the beginning of the verdict, in the reason of an expected failure.
_VERDICT = re.compile(r": (?:structure|standard|strict): ")
_MEASURED = re.compile(r" \(.*$", re.DOTALL)  # the measurement after an expectation's sentence


@dataclass(frozen=True)
class Excused:
    """Expected failures or skips for one reason: the expectation's sentence without its measured figures.

    ``statements``: the complete reasons, each with its number of cases.
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
        """How many of the cases each layer rejects; only layers that reject some."""
        return Cell(self.cases).objections

    @cached_property
    def worst(self) -> Number | None:
        result = [ranked(case.budget_used) for case in self.cases if case.budget_used is not None]
        return max(result, default=None)


def excused(cases: Iterable[CaseRecord]) -> list[Excused]:
    """Group expected failures, then skips, by their reasons without figures and dtypes; the largest group first."""
    told = []
    for case in cases:
        if case.status in ("xfail", "skip"):
            reason = _VERDICT.split(case.reason, maxsplit=1)[0] or "(no reason recorded)"
            told.append((case, reason, _MEASURED.sub("", reason) if case.status == "xfail" else reason))
    result = []
    for (status, _form), members in grouped(told, lambda t: (t[0].status, shape(DTYPE.sub("…", t[2])))).items():
        said = list(dict.fromkeys(text for _, _, text in members))
        message = shared_text(said if len(said) == 1 else [DTYPE.sub("…", text) for text in said])
        statements = dict(Counter(reason for _, reason, _ in members).most_common())
        result.append(Excused(status, message, [case for case, *_ in members], statements))
    return sorted(result, key=lambda group: (group.status != "xfail", -group.size))


@dataclass(frozen=True)
class Summary:
    """All contents of a report about one record, computed once."""

    record: Record

    @cached_property
    def verdict(self) -> Text:
        return verdict(self.record)

    @cached_property
    def layers(self) -> dict[str, tuple[int, int]]:
        """(accepted, judged) for each layer, independent of the other layers."""
        return scores(self.record.cases)

    @cached_property
    def matrix(self) -> dict[str, dict[str, Cell]]:
        """Cells by operator and dtype."""
        return group(self.record.cases, lambda case: (case.op, case.dtype))

    def cell_of(self, op: str, dtypes: Sequence[str]) -> Cell | None:
        """Return the sum of an operator's cells of some dtypes; None if there are none."""
        return sum_of(self.matrix.get(op, {}), dtypes)

    @cached_property
    def scores(self) -> Mapping[tuple[str, str], dict[str, tuple[int, int]]]:
        """(accepted, judged) of each layer by operator and dtype."""
        cells = grouped(self.record.cases, lambda case: (case.op, case.dtype))
        return {key: scores(cases) for key, cases in cells.items()}

    @cached_property
    def coverage(self) -> dict[str, dict[str, dict[str, Cell]]]:
        """Cells by operator, family and dtype."""
        by_op = grouped(self.record.cases, lambda case: case.op)
        return {op: group(cases, lambda case: (case.family, case.dtype)) for op, cases in by_op.items()}

    def holes(self, op: str) -> list[tuple[str, str]]:
        """Return pairs of family and dtype without a case, among the operator's dtypes in the run."""
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
        """Dtypes that exist only to be refused: none of their cases has values to judge, and none died."""
        valued, died = set(), set()
        for case in self.record.cases:
            if case.budget_used is not None or not case.verdicts.keys() <= {"structure"}:
                valued.add(case.dtype)
            elif case.status in ("error", "crash", "timeout", "notrun") or case.dtype in DTYPE_ORDER[:3]:
                died.add(case.dtype)
        return frozenset(set(self.dtypes) - valued - died)

    def slowest(self, n: int) -> list[CaseRecord]:
        return sorted(self.record.cases, key=lambda c: -or_zero(c.duration_s))[:n]

    def closest(self, n: int) -> list[CaseRecord]:
        """Return the passing cases with the largest kernel share; without shares in the record, the largest
        part of the error budget."""
        passing = [case for case in self.record.cases if case.status == "pass" and case.budget_used]
        return sorted(passing, key=lambda case: (-or_zero(case.kernel_share), -or_zero(case.budget_used)))[:n]

    @cached_property
    def time(self) -> dict[str, float]:
        """Seconds over all cases: in the golden, in the backend, and in the rest (data, verdict, overhead)."""
        golden = sum(or_zero(case.golden_s) for case in self.record.cases)
        backend = sum(or_zero(case.backend_s) for case in self.record.cases)
        whole = sum(or_zero(case.duration_s) for case in self.record.cases)
        return {"golden": golden, "backend": backend, "other": max(0.0, whole - golden - backend)}

    @cached_property
    def facts(self) -> list[tuple[Text, str]]:
        """What ran, and on what device, as names with values; empty values are omitted."""
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
    """Return the columns of a matrix: one per dtype; two or more refused dtypes together are the last column.

    A dtype that one run judges by value is not a refused dtype of another run.
    """
    dtypes = dtype_order(dtype for summary in summaries for dtype in summary.dtypes)
    used = {dtype for summary in summaries for dtype in set(summary.dtypes) - summary.refused}
    folded = tuple(dtype for dtype in dtypes if dtype not in used)
    if len(folded) < 2 or not used:
        return [(dtype,) for dtype in dtypes]
    return [*((dtype,) for dtype in dtypes if dtype in used), folded]


def or_zero(value: Number | None) -> float:
    """Return a number; 0 if it is unknown or not finite."""
    return 0.0 if value is None or not math.isfinite(value) else float(value)


# The command that runs one case again, for cases without one in their record line.


def suffix(header: RunHeader) -> str:
    """Return the options after the case id: from the run line's own list, or else from its other fields."""
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
    """Return the recorded replay command of a case, or one made from the run line."""
    if case.detail is not None and case.detail.replay:
        return case.detail.replay
    return f"aclnn-oracle replay {shlex.quote(case.id)} {suffix(header)}".rstrip()


# A summary in Markdown, for a pull request.

CLUSTERS = 12  # the HTML report shows more
EXCUSED = 12
_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~])")


def escape(text: str) -> str:
    """Return a text that Markdown shows unchanged, on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(escaped(text).split()))


def code(text: str) -> str:
    """Return a code span for a table cell, for any text."""
    if not text:
        return NONE
    line = " ".join(escaped(text).split())
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", line)), default=0))
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}".replace("|", "\\|")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a pipe table; the cells are already Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def aligned(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table for a terminal, with aligned columns."""
    grid = [head, *rows]
    widths = [max(len(row[k]) for row in grid) for k in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in grid
    )


def render(records: Sequence[Record], language: Language = ENGLISH) -> str:
    """Return the summary: verdicts, failures, environment, matrix, expected failures, notes, commands to repeat."""
    return Writer(language).render([Summary(record) for record in records])


class Writer:
    """The summary in one language. Ids, figures, commands and names of layers are the same in every language."""

    def __init__(self, language: Language) -> None:
        self.say = language.say

    def render(self, summaries: Sequence[Summary]) -> str:
        parts = [self.verdicts(summaries)]
        for summary in summaries:
            parts += self.failures(summary, named=len(summaries) > 1)
        parts += [self.environment(summaries), self.matrix(summaries)]
        for summary in summaries:
            parts += self.excused(summary, named=len(summaries) > 1)
        parts += [self.notes(summaries), self.repeat(summaries)]
        return "\n\n".join(part for part in parts if part) + "\n"

    def verdicts(self, summaries: Sequence[Summary]) -> str:
        def one(summary: Summary) -> str:
            mark = "✅" if summary.record.ok else "❌"
            text = (
                f"### {mark} {escape(summary.record.label)}: {self.say(summary.verdict)}\n\n{equation(summary.record)}"
                f" · {self.say(judged(summary.record))}"
            )
            layers = " · ".join(f"{self.say(Phrase(name))} {a:,}/{n:,}" for name, (a, n) in summary.layers.items())
            accepted = self.say(_("Accepted by each layer: {layers}", layers=layers))
            return f"{text}\n\n{accepted}" if layers else text

        return "\n\n".join(map(one, summaries))

    def environment(self, summaries: Sequence[Summary]) -> str:
        facts = [{self.say(name): value for name, value in summary.facts} for summary in summaries]
        catalogue = self.say(_("catalogue"))
        result = [{**named, catalogue: summary.record.header.catalogue_sha256[:12]}
                 for named, summary in zip(facts, summaries, strict=True)]  # fmt: skip
        names = dict.fromkeys(name for named in result for name in named)
        rows = [[name, *(escape(named.get(name, "")) or NONE for named in result)] for name in names]
        return table(["", *(escape(s.record.label) for s in summaries)], rows)

    def matrix(self, summaries: Sequence[Summary]) -> str:
        """Return operator x dtype: passed/judged, and the worst error in percent of its bound."""
        shown = columns(summaries)
        several = len(summaries) > 1
        rows = [
            [escape(op), *[escape(s.record.label)] * several, *(self.cell(s.cell_of(op, dtypes)) for dtypes in shown)]
            for op in dict.fromkeys(op for s in summaries for op in s.matrix)
            for s in summaries
            if op in s.matrix
        ]
        if not rows:
            return ""
        names = [escape(dtypes[0]) if len(dtypes) == 1 else
                 self.say(_("refused dtypes ({count})", count=len(dtypes))) for dtypes in shown]  # fmt: skip
        head = [self.say(_("operator")), *[self.say(_("run"))] * several, *names]
        cells = [cell for s in summaries for row in s.matrix.values() for cell in row.values()]
        if any(cell.worst_share is not None for cell in cells):
            text = self.say(_("Passed / judged, and the kernel's own share of the worst error: beyond the unavoidable "
                              "rounding, of what a right kernel may lose."))  # fmt: skip
        else:
            text = self.say(_("Passed / judged, and the worst error in percent of its bound."))
        folded = next((dtypes for dtypes in shown if len(dtypes) > 1), ())
        if folded:
            text += " " + self.say(_("Refused dtypes: {dtypes}.", dtypes=escape(", ".join(folded))))
        return table(head, rows) + "\n\n" + text

    def cell(self, cell: Cell | None) -> str:
        if cell is None:
            return NONE
        text = f"{cell.passed:,}/{cell.judged:,}"
        worst = cell.worst if cell.worst_share is None else cell.worst_share
        if worst is not None:
            text += f" · {percent(worst)}"
        rejected = [f"{self.say(Phrase(layer))} ✕{n:,}" for layer, n in cell.objections.items()]
        others = ", ".join([*(f"{n:,} {self.say(NAME[status])}" for status, n in cell.others), *rejected])
        return f"{'**' if cell.bad else ''}{text}{'**' if cell.bad else ''}{f' ({others})' if others else ''}"

    def failures(self, summary: Summary, *, named: bool) -> list[str]:
        if not summary.clusters:
            return []
        bad = sum(len(cluster.cases) for cluster in summary.clusters)
        kinds = _n("{n} kind", "{n} kinds", len(summary.clusters))
        where = escape(summary.record.label)
        title = (_("{bad} not passed on {where}, in {kinds}", bad=bad, where=where, kinds=kinds) if named
                 else _("{bad} not passed, in {kinds}", bad=bad, kinds=kinds))  # fmt: skip
        parts = [f"#### {self.say(title)}"]
        parts += [self.cluster(cluster) for cluster in summary.clusters[:CLUSTERS]]
        if len(summary.clusters) > CLUSTERS:
            more = len(summary.clusters) - CLUSTERS
            parts.append(self.say(_("… and {more} more kinds; see the HTML report.", more=more)))
        return parts

    def cluster(self, cluster: Cluster) -> str:
        case, group, whose, say = cluster.simplest, cluster.group, cluster.authority, self.say
        kind = [cluster.op, cluster.dtype, say(Phrase(group.what)), say(Phrase(cluster.pattern))]
        what = " · ".join(escape(clip(part, 200)) for part in kind if part)
        lines = [f"{cluster.number}. **{len(cluster.cases):,} {say(NAME[group.status])}**: {what}"]
        objecting = ", ".join(f"{say(Phrase(name))} {n:,}/{judged:,}" for name, n, judged in cluster.layers if n)
        causes = escape(f"{say(Phrase(group.cause))} ({say(cluster.cause_share)})") if group.cause else ""
        cause = [say(_("Likely cause: {causes}", causes=causes))] if causes else []
        where = [say(_("Where: {where}", where=escape(say(Phrase(group.where))))), escape(say(cluster.counts))]
        where = where if group.where else []
        texts = [
            *(cause + where if cluster.is_explained else where + cause),
            say(_("Rejected by: {layers}", layers=objecting)) if objecting else "",
            say(_("On the authority of: {whose}", whose=escape(say(Phrase(whose))))) if whose else "",
            say(_("Simplest: {case}", case=code(case.id))),
            self.worst(case),
            say(_("Shrink: {command}", command=code(group.shrink))) if group.shrink else "",
        ]
        lines += [f"   {line}" for line in texts if line]
        return "  \n".join(lines)

    def worst(self, case: CaseRecord) -> str:
        if case.detail is None or not case.detail.worst:
            return ""
        w = case.detail.worst[0]
        element = escape(case.detail.output + index(w.index))
        expected, actual = _value(w.expected, w.expected_hex), _value(w.actual, w.actual_hex)
        text = _("Worst: {element} expected {expected}, actual {actual}, allowed error {bound}", element=element,
                 expected=expected, actual=actual, bound=figure(w.bound))  # fmt: skip
        return self.say(text)

    def excused(self, summary: Summary, *, named: bool) -> list[str]:
        if not summary.excused:
            return []
        title = self.say(_("Expected failures and skips"))
        rows = [self.excuse(group) for group in summary.excused[:EXCUSED]]
        parts = [f"#### {title}" + (f": {escape(summary.record.label)}" if named else "")]
        parts.append(table([self.say(_("status")), self.say(_("cases")), self.say(_("reason"))], rows))
        if len(summary.excused) > EXCUSED:
            parts.append(self.say(_("… and {more} more reasons.", more=len(summary.excused) - EXCUSED)))
        return parts

    def excuse(self, group: Excused) -> list[str]:
        layers = ", ".join(f"{self.say(Phrase(layer))} ✕{n:,}" for layer, n in group.objections.items())
        count = f"{group.size:,}" + (f" ({layers})" if layers else "")
        return [self.say(NAME[group.status]), count, escape(clip(self.say(Phrase(group.reason)), 300))]

    def notes(self, summaries: Sequence[Summary]) -> str:
        texts = [(s.record.path.name, self.say(Phrase(note))) for s in summaries for note in s.record.notes]
        return "\n".join(f"- {escape(f'{name}: {note}')}" for name, note in texts)

    def repeat(self, summaries: Sequence[Summary]) -> str:
        commands = [s.record.header.command for s in summaries if s.record.header.command]
        text = "\n".join(c.replace("```", "` ` `") for c in commands)
        title = self.say(_("Repeat:"))
        return f"{title}\n\n```bash\n{text}\n```" if commands else ""


def _value(value: Number | None, hexadecimal: str) -> str:
    return figure(value) + (f" ({escape(hexadecimal)})" if hexadecimal else "")
