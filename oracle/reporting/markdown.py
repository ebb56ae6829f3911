"""A summary in Markdown, to paste into a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ..record.fields import Number
from ..record.reader import CaseRecord, Record, RunHeader
from .replay import command_for
from .summary import Cell, Cluster, Summary, dtype_order
from .words import NONE, clip, equation, figure, index, percent

CLUSTERS = 12  # more belongs into the HTML report
_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~])")


def escape(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def code(text: str) -> str:
    """A code span that may stand in a table cell, whatever the text holds."""
    if not text:
        return NONE
    line = " ".join(text.split())
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", line)), default=0))
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}".replace("|", "\\|")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A pipe table; cells are Markdown already."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def render(records: Sequence[Record]) -> str:
    """Return the summary of the records: verdicts, matrix, failures, the tightest case, how to repeat."""
    summaries = [Summary(record) for record in records]
    parts = [_verdicts(summaries), _environment(summaries), _matrix(summaries)]
    for summary in summaries:
        parts += _failures(summary, named=len(summaries) > 1)
    parts += [_notes(summaries), _repeat(summaries)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _verdicts(summaries: Sequence[Summary]) -> str:
    def one(summary: Summary) -> str:
        mark = "✅" if summary.record.ok else "❌"
        return f"### {mark} {escape(summary.record.label)}: {summary.verdict}\n\n{equation(summary.record)}"

    return "\n\n".join(map(one, summaries))


def _environment(summaries: Sequence[Summary]) -> str:
    def column(summary: Summary) -> dict[str, str]:
        return {**summary.facts, "catalogue": summary.record.header.catalogue_sha256[:12]}

    columns = [column(summary) for summary in summaries]
    names = dict.fromkeys(name for found in columns for name in found)
    rows = [[name, *(escape(found.get(name, "")) or NONE for found in columns)] for name in names]
    return table(["", *(escape(s.record.label) for s in summaries)], rows)


def _matrix(summaries: Sequence[Summary]) -> str:
    """Operator x dtype: passed/judged, and the worst error in percent of its bound."""
    dtypes = dtype_order(dtype for s in summaries for dtype in s.dtypes)
    several = len(summaries) > 1
    rows = [
        [
            escape(op),
            *[escape(s.record.label)] * several,
            *(_cell(s.matrix[op].get(dtype)) for dtype in dtypes),
        ]
        for op in dict.fromkeys(op for s in summaries for op in s.matrix)
        for s in summaries
        if op in s.matrix
    ]
    if not rows:
        return ""
    head = ["operator", *["run"] * several, *map(escape, dtypes)]
    return table(head, rows) + "\n\nPassed / judged, and the worst error in percent of its bound."


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return NONE
    text = f"{cell.passed:,}/{cell.judged:,}"
    if cell.worst is not None:
        text += f" · {percent(cell.worst)}"
    others = ", ".join(f"{n:,} {status}" for status, n in cell.others)
    return f"{'**' if cell.bad else ''}{text}{'**' if cell.bad else ''}{f' ({others})' if others else ''}"


def _failures(summary: Summary, *, named: bool) -> list[str]:
    if not summary.clusters:
        return []
    bad = sum(len(cluster.cases) for cluster in summary.clusters)
    where = f" on {escape(summary.record.label)}" if named else ""
    parts = [f"#### {bad:,} not passed{where}, in {len(summary.clusters):,} kinds"]
    parts += [_cluster(cluster, summary.record.header) for cluster in summary.clusters[:CLUSTERS]]
    if len(summary.clusters) > CLUSTERS:
        parts.append(f"… and {len(summary.clusters) - CLUSTERS:,} more kinds; see the HTML report.")
    return parts


def _cluster(cluster: Cluster, header: RunHeader) -> str:
    case = cluster.simplest
    what = " · ".join(escape(clip(p, 200)) for p in (cluster.op, cluster.dtype, cluster.rule, cluster.pattern) if p)
    lines = [f"{cluster.number}. **{len(cluster.cases):,} {cluster.status}**: {what}"]
    if cluster.causes:
        lines.append(f"   Likely cause: {escape(', '.join(cluster.causes[:3]))}")
    lines.append(f"   Simplest: {code(case.id)}")
    worst = _worst(case)
    if worst:
        lines.append(f"   {worst}")
    lines.append(f"   Replay: {code(command_for(case, header))}")
    return "  \n".join(lines)


def _worst(case: CaseRecord) -> str:
    if case.detail is None or not case.detail.worst:
        return ""
    w = case.detail.worst[0]

    def shown(value: Number | None, hexadecimal: str) -> str:
        return figure(value) + (f" ({escape(hexadecimal)})" if hexadecimal else "")

    return (
        f"Worst: {escape(case.detail.output)}{escape(index(w.index))} expected {shown(w.expected, w.expected_hex)}, "
        f"actual {shown(w.actual, w.actual_hex)}, allowed error {figure(w.bound)}"
    )


def _notes(summaries: Sequence[Summary]) -> str:
    return "\n".join(f"- {escape(f'{s.record.path.name}: {note}')}" for s in summaries for note in s.record.notes)


def _repeat(summaries: Sequence[Summary]) -> str:
    commands = [s.record.header.command for s in summaries if s.record.header.command]
    return "Repeat:\n\n```bash\n" + "\n".join(c.replace("```", "` ` `") for c in commands) + "\n```" if commands else ""
