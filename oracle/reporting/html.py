"""The HTML report: one self-contained file that opens from ``file://`` without a network.

The verdict, the matrix and the failures are rendered here and can be read with scripts off. The case list lives as
columns in a JSON block and is drawn a page at a time by the script; full views exist for cases that did not pass.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2

from ..model.errors import OracleError
from ..record.fields import Number
from ..record.reader import CaseRecord, Record, read, split_id
from ..record.types import STATUSES
from . import words
from .diff import Difference
from .replay import command_for, suffix
from .save import save
from .summary import Summary, dtype_order

FULL_VIEWS = 500  # full case views in the file, shared out fairly among the clusters; the record has the others
CLUSTERS = 100
MEMBERS = 12
EXCUSED = 60
REASON = 400


@dataclass(frozen=True)
class RunView:
    """One record as the template sees it. ``label`` is unique in the report."""

    number: int
    label: str
    summary: Summary

    @property
    def record(self) -> Record:
        return self.summary.record

    @cached_property
    def shown(self) -> dict[str, CaseRecord]:
        """The cases with a full view: in turn one of each cluster, the simplest first, and one expected failure."""
        queues = [[c.simplest, *(x for x in c.cases if x is not c.simplest)] for c in self.summary.clusters]
        queues.append([case for case in self.record.cases if case.status == "xfail"])
        in_turn = (case for row in zip_longest(*queues) for case in row if case is not None)
        return {case.id: case for case in islice(in_turn, FULL_VIEWS)}

    @cached_property
    def inline(self) -> frozenset[str]:
        """Cases whose full view stands in the failures section already."""
        return frozenset(cluster.simplest.id for cluster in self.summary.clusters[:CLUSTERS])

    @property
    def shares(self) -> list[tuple[str, int, float]]:
        """Every status that occurs, with its count and its share of the planned cases."""
        counts, planned = self.record.counts, self.record.planned
        return [(s, counts[s], counts[s] / planned) for s in reversed(words.ORDER) if counts[s]]


def write(records: Sequence[Path], output: Path) -> None:
    """Write the report of one or more record files. Raises OracleError for a record that cannot be read."""
    save(output, render([read(path) for path in records]))


def render(records: Sequence[Record]) -> str:
    """Return the report as one HTML text. With several records each is compared with the first."""
    if not records:
        raise OracleError("a report needs at least one run record")
    runs = _runs(records)
    table = CaseTable(runs)
    script = _asset("report.js")
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            runs=runs,
            title=_title(runs),
            dtypes=dtype_order(dtype for run in runs for dtype in run.summary.dtypes),
            operators=list(dict.fromkeys(op for run in runs for op in run.summary.matrix)),
            differences=[(run, Difference(records[0], run.record)) for run in runs[1:]],
            row_of=table.row_of,
            data=json_block(table.columns()),
            style=_asset("report.css"),
            script=script,
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
            clusters_shown=CLUSTERS,
            members_shown=MEMBERS,
            excused_shown=EXCUSED,
        )
    )


def _runs(records: Sequence[Record]) -> list[RunView]:
    labels = [record.label for record in records]
    unique = [f"{x} ({r.path.stem})" if labels.count(x) > 1 else x for x, r in zip(labels, records, strict=True)]
    unique = [f"{x} #{i}" if unique.count(x) > 1 else x for i, x in enumerate(unique, 1)]
    return [RunView(i, x, Summary(r)) for i, (x, r) in enumerate(zip(unique, records, strict=True))]


def _title(runs: Sequence[RunView]) -> str:
    if len(runs) == 1:
        return runs[0].summary.verdict
    good = sum(run.record.ok for run in runs)
    return f"{len(runs)} runs, all conform." if good == len(runs) else f"{good} of {len(runs)} runs conform."


def json_block(value: object) -> str:
    """JSON that may stand inside a script element: no "<", so neither ``</script>`` nor ``<!--`` can occur."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


class Strings:
    """A table of strings; equal strings are kept once."""

    def __init__(self) -> None:
        self.items: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self.items.setdefault(text, len(self.items))

    @property
    def all(self) -> list[str]:
        return list(self.items)


class CaseTable:
    """The case list as columns: what is the same in all runs once, then what each run found."""

    def __init__(self, runs: Sequence[RunView]) -> None:
        self.runs = runs
        self.cases: dict[str, CaseRecord] = {}
        for run in runs:
            for case in run.record.cases:
                self.cases.setdefault(case.id, case)
        self.row_of = {case_id: row for row, case_id in enumerate(self.cases)}

    def columns(self) -> dict[str, Any]:
        """Return the block the script reads; numbers that are not finite are strings."""
        prefixes, families, ops, dtypes, reasons = Strings(), Strings(), Strings(), Strings(), Strings()
        cases: dict[str, list[Any]] = {"prefix": [], "family": [], "tail": [], "op": [], "dtype": []}
        for case in self.cases.values():
            prefix, family, tail = split_id(case.id)
            for name, value in zip(
                cases, (prefixes(prefix), families(family), tail, ops(case.op), dtypes(case.dtype)), strict=True
            ):
                cases[name].append(value)
        runs = [self._run(run, reasons) for run in self.runs]
        return {
            "schema": 1,
            "statuses": STATUSES,
            "order": words.ORDER,
            "prefixes": prefixes.all,
            "families": families.all,
            "ops": ops.all,
            "dtypes": dtypes.all,
            "cases": cases,
            "runs": runs,
            "reasons": reasons.all,
        }

    def _run(self, run: RunView, reasons: Strings) -> dict[str, Any]:
        cluster_of = {case.id: cluster.number for cluster in run.summary.clusters for case in cluster.cases}
        columns: dict[str, list[Any]] = {"status": [], "err": [], "ms": [], "reason": [], "cluster": []}
        number = {status: i for i, status in enumerate(STATUSES)}
        for case_id in self.cases:
            case = run.record.by_id.get(case_id)
            if case is None:
                row: tuple[Any, ...] = (-1, None, None, -1, 0)
            else:
                reason = -1 if not case.reason else reasons(words.clip(case.reason, REASON))
                milliseconds = None if case.duration_s is None else 1000 * case.duration_s
                row = (
                    number[case.status],
                    _three(case.budget_used),
                    _three(milliseconds),
                    reason,
                    cluster_of.get(case_id, 0),
                )
            for name, value in zip(columns, row, strict=True):
                columns[name].append(value)
        return {"label": run.label, "replay": suffix(run.record.header), **columns}


def _three(value: Number | None) -> Number | str | None:
    """Three significant digits, which is what the list shows."""
    if value is None:
        return None
    if not math.isfinite(value):
        return str(float(value))
    short = float(f"{value:.3g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


@dataclass(frozen=True)
class MapPart:
    """A stretch of the error map with one level: 0 no error ... 4 far beyond the bound, 5 not finite."""

    start: int
    length: int
    level: int


def map_parts(values: Sequence[Number]) -> list[MapPart]:
    """Merge neighbouring slices of an error map that have the same level."""
    parts: list[MapPart] = []
    for position, value in enumerate(values):
        level = 5 if not math.isfinite(value) else sum(value > limit for limit in (0.0, 0.5, 1.0, 10.0))
        if parts and parts[-1].level == level:
            parts[-1] = MapPart(parts[-1].start, parts[-1].length + 1, level)
        else:
            parts.append(MapPart(position, 1, level))
    return parts


def bars(histogram: dict[str, Number]) -> Iterator[tuple[str, Number, float]]:
    """Buckets with their share of the longest bar; logarithmic, for one wrong element in a million must show."""
    top = max((math.log1p(n) for n in histogram.values()), default=0.0)
    for name, n in histogram.items():
        yield name, n, (math.log1p(n) / top if top else 0.0)


def query(*atoms: str) -> str:
    """The address of the case list with a filter."""
    return "#q=" + quote(" ".join(atoms), safe="")


def atom(name: str, value: str) -> str:
    """A filter atom; a value with spaces or commas is quoted."""
    return f'{name}:"{value}"' if any(c in value for c in ' ,"') or not value else f"{name}:{value}"


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("oracle.reporting"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        percent=words.percent, seconds=words.seconds, figure=words.figure, short=words.short, index=words.index,
        clip=words.clip,
    )  # fmt: skip
    environment.globals.update(
        did=words.DID, meaning=words.MEANING, order=words.ORDER, equation=words.equation, query=query, atom=atom,
        bars=bars, map_parts=map_parts, split_id=split_id, command_for=command_for,
    )  # fmt: skip
    return environment


def _asset(name: str) -> str:
    return (resources.files("oracle.reporting") / "templates" / name).read_text(encoding="utf-8")
