"""The history of many records: trends per operator and dtype, the first record of each failure, and flaky cases.

Records are compared only within a series: the same backend and options, on the same SoC, by the same standard.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ...model.classes import grouped
from ...model.errors import OracleError
from ...record.codec import Number
from ...record.reader import Record, read
from ...record.types import LAYERS
from ..clusters import Cluster, dtype_rank
from ..language.translate import ENGLISH, Language, Text, _
from ..language.words import NONE, percent
from ..summary import Summary
from .page import Bilingual, render_page
from .pictures import LEFT, WIDTH, Panel, axis, height_of, mark

SHOWN = 200  # flaky cases, and clusters of current failures


@dataclass(frozen=True)
class Since:
    """A kind of failure of the newest record, and the record of the series in which it first appeared."""

    cluster: Cluster
    first: Record
    runs: int

    @property
    def new(self) -> bool:
        return self.runs == 1


@dataclass(frozen=True)
class Flaky:
    """A case that ended differently although nothing that decides its result was changed."""

    id: str
    statuses: Sequence[tuple[Record, str]]


@dataclass(frozen=True)
class Series:
    """The records of one backend, SoC and standard, the oldest first."""

    label: str
    records: Sequence[Record]

    @cached_property
    def summaries(self) -> list[Summary]:
        return [Summary(record) for record in self.records]

    @property
    def newest(self) -> Summary:
        return self.summaries[-1]

    @cached_property
    def cells(self) -> list[tuple[str, str]]:
        """Operators with the dtypes that any of their records judges by value."""
        result = {(op, dtype) for s in self.summaries for op, cells in s.matrix.items() for dtype in cells
                 if dtype not in s.refused}  # fmt: skip
        return sorted(result, key=lambda cell: (cell[0], dtype_rank(cell[1])))

    def layer_trend(self, op: str, dtype: str) -> dict[str, list[float | None]]:
        """Return for each layer the share of cases it accepts, one value per record; None if it judged no case."""
        rows = [summary.scores.get((op, dtype), {}) for summary in self.summaries]
        names = [name for name in LAYERS if any(name in scores for scores in rows)]
        pairs = {name: [scores.get(name, (0, 0)) for scores in rows] for name in names}
        return {name: [accepted / judged if judged else None for accepted, judged in pairs[name]] for name in names}

    def worst_trend(self, op: str, dtype: str) -> list[Number | None]:
        """Return the worst kernel share of every record; the worst share of the bound if a record has no shares."""
        cells = [summary.cell_of(op, (dtype,)) for summary in self.summaries]
        return [None if c is None else c.worst if c.worst_share is None else c.worst_share for c in cells]

    @cached_property
    def panels(self) -> list[tuple[Panel, Panel]]:
        """Two pictures for each operator and dtype: the layers' acceptance, and the worst error."""
        return [(layer_panel(*key, self.layer_trend(*key)), worst_panel(*key, self.worst_trend(*key)))
                for key in self.cells]  # fmt: skip

    @cached_property
    def present(self) -> list[Since]:
        """Every kind of failure of the newest record, with the first record of its unbroken presence."""
        return [Since(cluster, *self._since(cluster)) for cluster in self.newest.clusters]

    def _since(self, cluster: Cluster) -> tuple[Record, int]:
        first, runs = self.records[-1], 1
        for record in reversed(self.records[:-1]):
            result = [case for each in cluster.cases if (case := record.by_id.get(each.id)) is not None]
            if not result:  # another shard, or a run of a few cases, without these cases
                continue
            if all(case.ok for case in result):
                break
            first, runs = record, runs + 1
        return first, runs

    @cached_property
    def flaky(self) -> list[Flaky]:
        """Cases with different statuses in records of equal catalogue, seed, versions and options."""

        def conditions(record: Record) -> tuple[object, ...]:
            head = record.header
            versions = tuple(sorted(head.versions.items()))
            return head.catalogue_sha256, head.seed, versions, head.layers, head.cann, head.replay_arguments

        groups = grouped(self.records, conditions).values()
        return [result for records in groups if len(records) > 1 for result in _flaky(records)]

    @property
    def title(self) -> Text:
        if len(self.records) == 1:
            return _("One record only: no trend yet.")
        if self.flaky:
            return _("Flaky cases: {flaky}. Kinds of failure that are present: {kinds}.", flaky=len(self.flaky),
                     kinds=len(self.present))  # fmt: skip
        return _("No flaky case. Kinds of failure that are present: {kinds}.", kinds=len(self.present))


def _flaky(records: Sequence[Record]) -> list[Flaky]:
    result = []
    for case_id in dict.fromkeys(case.id for record in records for case in record.cases):
        statuses = [(record, case.status) for record in records if (case := record.by_id.get(case_id)) is not None]
        if len({status for _record, status in statuses}) > 1:
            result.append(Flaky(case_id, statuses))
    return result


def series_of(records: Sequence[Record]) -> list[Series]:
    """Group records that can be compared. In a series the oldest record is first; the newest series is first."""
    ordered = sorted(records, key=lambda record: (record.header.started, record.path.name))
    groups = grouped(ordered, lambda r: (r.header.backend, r.header.options, r.header.soc, r.header.standard))
    result = [Series(" · ".join(filter(None, key)), members) for key, members in groups.items()]
    return sorted(result, key=lambda series: series.records[-1].header.started, reverse=True)


def read_all(folder: Path) -> tuple[list[Record], list[str]]:
    """Return every record below a folder, and a note for each .jsonl file that is no record and for each folder that
    cannot be read. A link to a record is not read twice."""
    if not folder.is_dir():
        raise OracleError(f"{folder}: not a folder; history reads the run records (.jsonl) below one")
    records: list[Record] = []
    notes: list[str] = []

    def unreadable(error: OSError) -> None:
        notes.append(f"{error.filename}: cannot read the folder: {error.strerror}")

    every = (Path(root, name) for root, _, names in os.walk(folder, onerror=unreadable) for name in names)
    for path in sorted({Path(os.path.realpath(path)) for path in every if path.suffix == ".jsonl"}):
        try:
            records.append(read(path, brief=True))
        except OracleError as error:
            if not path.match("index-*.jsonl"):  # such a file belongs to outputs that a run recorded
                notes.append(str(error))
    if not records:
        raise OracleError(f"{folder}: no run record (.jsonl) below it" + "".join(f"\n  {note}" for note in notes))
    return records, notes


def render(records: Sequence[Record], notes: Sequence[str] = (), language: Language = ENGLISH) -> str:
    """Return the history as one HTML text in both languages."""
    page = Bilingual(language)
    return render_page(
        "history.html.j2",
        page,
        script="history.js",
        data=lambda: page.for_script((_("copy"), _("copied"))),
        series=series_of(records),
        records=len(records),
        notes=notes,
        shown=SHOWN,
        percent=percent,
    )


STYLES = ("trend-0", "trend-1", "trend-2", "trend-3")  # solid, dashed, dotted, dash-dotted


def layer_panel(op: str, dtype: str, trend: Mapping[str, Sequence[float | None]]) -> Panel:
    """Return a picture of the share of cases that each layer accepts, from none (bottom) to all (top)."""
    lines = (_line(values, style) for style, values in zip(STYLES, trend.values(), strict=False))
    text = ", ".join(f"{name} {percent(values[0])} → {percent(values[-1])}" for name, values in trend.items())
    return Panel(op, dtype, axis() + "".join(lines), _("accepted: {list}", list=text))


def worst_panel(op: str, dtype: str, values: Sequence[Number | None]) -> Panel:
    """Return a picture of the worst error, logarithmic from 0.01 to 100 times the bound; the rule marks the bound."""
    points = [None if v is None else _log(v) for v in values]
    first, last = (percent(values[place]) if values else NONE for place in (0, -1))
    text = _("worst error of the bound: {before} → {last}", before=first, last=last)
    return Panel(op, dtype, axis() + mark(height_of(0.5)) + _line(points, STYLES[0]), text)


def _log(value: Number) -> float:
    """Return 0 at a hundredth of the bound, 0.5 at the bound, 1 at a hundred times the bound."""
    if not math.isfinite(value):
        return 1.0
    return 0.0 if value <= 0.01 else min(1.0, (math.log10(value) + 2) / 4)


def _line(points: Sequence[float | None], style: str) -> str:
    """Return a line over equally spaced records with a dot for each, broken at a record without a value."""
    step = (WIDTH - 2 * LEFT) / max(1, len(points) - 1)
    path, dots, pen = "", "", "M"
    for place, point in enumerate(points):
        if point is None:
            pen = "M"
            continue
        x, y = LEFT + place * step, height_of(point)
        path, pen = f"{path}{pen}{x:.1f} {y:.1f}", "L"
        dots += f'<rect class="dot" x="{x - 1.5:.1f}" y="{y - 1.5:.1f}" width="3" height="3"/>'
    return (f'<path class="{style}" d="{path}"/>' if path else "") + dots
