"""A summary in Markdown, to paste into a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ..model.errors import fit
from ..record.fields import Number
from ..record.reader import CaseRecord, Record, RunHeader
from .cells import Cell
from .clusters import Cluster
from .language.translate import ENGLISH, Language, Phrase, _, _n
from .language.words import NAME, NONE, clip, equation, figure, index, judged, percent
from .summary import Excused, Summary, columns, command_for

CLUSTERS = 12  # more belongs into the HTML report
EXCUSED = 12
_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~])")


def escape(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(fit(text).split()))


def code(text: str) -> str:
    """A code span that may stand in a table cell, whatever the text holds."""
    if not text:
        return NONE
    line = " ".join(fit(text).split())
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", line)), default=0))
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}".replace("|", "\\|")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A pipe table; cells are Markdown already."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def render(records: Sequence[Record], language: Language = ENGLISH) -> str:
    """Return the summary of the records: verdicts, matrix, failures, the tightest case, how to repeat."""
    return Writer(language).render([Summary(record) for record in records])


class Writer:
    """The summary in one language. What is not a sentence (ids, figures, commands, names of layers) is the same."""

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
            told = (
                f"### {mark} {escape(summary.record.label)}: {self.say(summary.verdict)}\n\n{equation(summary.record)}"
                f" · {self.say(judged(summary.record))}"
            )
            layers = " · ".join(f"{name} {a:,}/{n:,}" for name, (a, n) in summary.layers.items())
            accepted = self.say(_("Accepted by each layer: {layers}", layers=layers))
            return f"{told}\n\n{accepted}" if layers else told

        return "\n\n".join(map(one, summaries))

    def environment(self, summaries: Sequence[Summary]) -> str:
        facts = [{self.say(name): value for name, value in summary.facts} for summary in summaries]
        catalogue = self.say(_("catalogue"))
        found = [{**named, catalogue: summary.record.header.catalogue_sha256[:12]}
                 for named, summary in zip(facts, summaries, strict=True)]  # fmt: skip
        names = dict.fromkeys(name for named in found for name in named)
        rows = [[name, *(escape(named.get(name, "")) or NONE for named in found)] for name in names]
        return table(["", *(escape(s.record.label) for s in summaries)], rows)

    def matrix(self, summaries: Sequence[Summary]) -> str:
        """Operator x dtype: passed/judged, and the worst error in percent of its bound."""
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
        names = [escape(", ".join(dtypes)) if len(dtypes) == 1 else self.refused(dtypes) for dtypes in shown]
        head = [self.say(_("operator")), *[self.say(_("run"))] * several, *names]
        cells = [cell for s in summaries for row in s.matrix.values() for cell in row.values()]
        if any(cell.worst_share is not None for cell in cells):
            told = self.say(_("Passed / judged, and the kernel's own share of the worst error: beyond the unavoidable "
                              "rounding, of what a right kernel may lose."))  # fmt: skip
        else:
            told = self.say(_("Passed / judged, and the worst error in percent of its bound."))
        folded = next((dtypes for dtypes in shown if len(dtypes) > 1), ())
        if folded:
            told += " " + self.say(_("Refused dtypes: {dtypes}.", dtypes=escape(", ".join(folded))))
        return table(head, rows) + "\n\n" + told

    def refused(self, dtypes: Sequence[str]) -> str:
        return self.say(_("refused dtypes ({count})", count=len(dtypes)))

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
        parts += [self.cluster(cluster, summary.record.header) for cluster in summary.clusters[:CLUSTERS]]
        if len(summary.clusters) > CLUSTERS:
            more = len(summary.clusters) - CLUSTERS
            parts.append(self.say(_("… and {more} more kinds; see the HTML report.", more=more)))
        return parts

    def cluster(self, cluster: Cluster, header: RunHeader) -> str:
        case, say = cluster.simplest, self.say
        kind = [cluster.op, cluster.dtype, say(Phrase(cluster.rule)), say(Phrase(cluster.pattern))]
        what = " · ".join(escape(clip(part, 200)) for part in kind if part)
        lines = [f"{cluster.number}. **{len(cluster.cases):,} {say(NAME[cluster.status])}**: {what}"]
        objecting = ", ".join(f"{name} {n:,}/{judged:,}" for name, n, judged in cluster.layers if n)
        causes = "".join(escape(f"{say(Phrase(cause))} ({cluster.cause_share})") for cause in cluster.causes)
        told = [
            say(_("Rejected by: {layers}", layers=objecting)) if objecting else "",
            say(_("On the authority of: {whose}", whose=escape(case.authority))) if case.authority else "",
            say(_("Where: {where}", where=escape(say(Phrase(cluster.where))))) if cluster.where else "",
            escape(say(cluster.counts)) if cluster.where else "",
            say(_("Likely cause: {causes}", causes=causes)) if causes else "",
            say(_("Simplest: {case}", case=code(case.id))),
            self.worst(case),
            say(_("Shrink: {command}", command=code(cluster.shrink or command_for(case, header)))),
        ]
        lines += [f"   {line}" for line in told if line]
        return "  \n".join(lines)

    def worst(self, case: CaseRecord) -> str:
        if case.detail is None or not case.detail.worst:
            return ""
        w = case.detail.worst[0]
        element = escape(case.detail.output + index(w.index))
        expected, actual = _value(w.expected, w.expected_hex), _value(w.actual, w.actual_hex)
        told = _("Worst: {element} expected {expected}, actual {actual}, allowed error {bound}", element=element,
                 expected=expected, actual=actual, bound=figure(w.bound))  # fmt: skip
        return self.say(told)

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
        told = [(s.record.path.name, self.say(Phrase(note))) for s in summaries for note in s.record.notes]
        return "\n".join(f"- {escape(f'{name}: {note}')}" for name, note in told)

    def repeat(self, summaries: Sequence[Summary]) -> str:
        commands = [s.record.header.command for s in summaries if s.record.header.command]
        text = "\n".join(c.replace("```", "` ` `") for c in commands)
        title = self.say(_("Repeat:"))
        return f"{title}\n\n```bash\n{text}\n```" if commands else ""


def _value(value: Number | None, hexadecimal: str) -> str:
    return figure(value) + (f" ({escape(hexadecimal)})" if hexadecimal else "")
