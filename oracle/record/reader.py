"""Reading run records: JSON lines, written as a run goes, one line a case.

First line ``{"type": "run", "schema": 1, ...}``, then ``{"type": "case", ...}`` lines, last ``{"type": "end", ...}``.
A record without its last line is a run that died: it still reads, and the planned cases that have no line count as
``notrun``. A half-written last line is what dying while writing leaves: it is tolerated and named in ``notes``.
Anything else that is malformed is an OracleError ``file:line``.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path

from ..model.errors import OracleError
from ..reporting.fields import Fields, Number, parse_object
from .statuses import GOOD, SCHEMA, STATUSES

_ID = re.compile(r"(?P<prefix>(?P<slug>[^/\[\]]+)/(?P<family>[^\[\]]+))(?P<tail>\[.*)?$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class RunHeader:
    """The first line: what ran, on what, from which command.

    ``replay_arguments``: the options that ``aclnn-oracle replay ID`` needs to do the same; ``extra`` holds whatever
    else the writer knew.
    """

    backend: str
    backend_options: Mapping[str, str]
    soc: str
    standard: str
    versions: Mapping[str, str]
    catalogue_sha256: str
    command: str
    started: str
    planned: int
    seed: int | None
    tier: str
    layers: tuple[str, ...]
    replay_arguments: tuple[str, ...]
    extra: Mapping[str, str]


_HEADER_KEYS = frozenset({"type", "schema"} | {f.name for f in fields(RunHeader)})


@dataclass(frozen=True, slots=True)
class LayerVerdict:
    """What one layer (structure, standard, strict) said of a case."""

    passed: bool
    reason: str
    metrics: Mapping[str, Number]


@dataclass(frozen=True, slots=True)
class WorstElement:
    """One element: its index, the golden, what the device gave, the allowed error, both bit patterns.

    ``budget``: error / allowed error, 1 at the bound. Measured from the unrounded value where the record says so, else
    from the golden.
    """

    index: tuple[int, ...]
    expected: Number | None
    actual: Number | None
    bound: Number | None
    expected_hex: str
    actual_hex: str
    ulp: Number | None
    budget: Number | None


@dataclass(frozen=True, slots=True)
class Detail:
    """What is known of a case that did not pass.

    ``error_map``: worst error / bound of consecutive equal slices of the flattened output (1 is at the bound).
    """

    rule: str
    output: str
    worst: tuple[WorstElement, ...]
    ulp_histogram: Mapping[str, Number]
    bad: int | None
    total: int | None
    pattern: str
    cause: str
    inputs: Mapping[str, str]
    attrs: Mapping[str, str]
    error_map: tuple[Number, ...]
    traceback: str
    replay: str


@dataclass(frozen=True, slots=True)
class CaseRecord:
    """One case line."""

    id: str
    op: str
    dtype: str
    status: str
    reason: str
    verdicts: Mapping[str, LayerVerdict]
    metrics: Mapping[str, Number]
    budget_used: Number | None
    duration_s: Number | None
    golden_s: Number | None
    backend_s: Number | None
    worker: str
    device: str
    detail: Detail | None

    @property
    def ok(self) -> bool:
        return self.status in GOOD

    @property
    def family(self) -> str:
        """The case family of a catalogue id (``op/family[parameters]``), or "" for an id of another shape."""
        return split_id(self.id)[1]


def split_id(case_id: str) -> tuple[str, str, str]:
    """Return (``op/family``, ``family``, ``[parameters]``) of a case id; ("", "", id) if it has another shape."""
    match = _ID.match(case_id)
    return (match["prefix"], match["family"], match["tail"] or "") if match else ("", "", case_id)


@dataclass(frozen=True)
class Record:
    """A whole record. ``notes`` says in sentences what is unusual about it; nothing is dropped in silence."""

    path: Path
    header: RunHeader
    cases: Sequence[CaseRecord]
    complete: bool
    duration_s: Number | None
    notes: Sequence[str] = field(default=())

    @cached_property
    def by_id(self) -> Mapping[str, CaseRecord]:
        return {case.id: case for case in self.cases}

    @property
    def missing(self) -> int:
        """Planned cases that have no line: the run stopped before them."""
        return max(0, self.header.planned - len(self.cases))

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """Cases per status, every status present; they add up to ``planned``."""
        counted = Counter(case.status for case in self.cases)
        counted["notrun"] += self.missing
        return {status: counted[status] for status in STATUSES}

    @property
    def planned(self) -> int:
        return sum(self.counts.values())

    @property
    def ok(self) -> bool:
        """Whether every planned case ended pass, skip or xfail and the run came to its end."""
        return self.complete and all(n == 0 for status, n in self.counts.items() if status not in GOOD)

    @property
    def devices(self) -> tuple[str, ...]:
        return tuple(sorted({case.device for case in self.cases if case.device}))

    @property
    def label(self) -> str:
        return " · ".join(part for part in (self.header.backend, self.header.soc) if part)


def read(path: str | Path) -> Record:
    """Read a run record. Raises OracleError (with file and line) for anything that is not one."""
    path = Path(path)
    lines, half = _lines(path)
    first = next(lines, None)
    if first is None or first.data.get("type") != "run":
        found = f"{half or 'nothing'}" if first is None else f"type {first.data.get('type')!r}"
        raise OracleError(f'{path}:1: a run record starts with a {{"type": "run"}} line; found {found}')
    header = _header(first)
    cases: dict[str, CaseRecord] = {}
    reruns: Counter[str] = Counter()
    end: Fields | None = None
    for line in lines:
        if end is not None:
            raise OracleError(f"{line.where}: a line after the end line; keep one run in one record")
        kind = line.data.get("type")
        if kind == "case":
            case = _case(line)
            if case.id in cases:
                reruns[cases.pop(case.id).status] += 1
            cases[case.id] = case
        elif kind == "end":
            end = line
        else:
            raise OracleError(
                f"{line.where}: unknown line type {kind!r}; a record has one run line, case lines and an end"
            )
    duration = None if end is None else end.number("duration_s")
    record = Record(path, header, tuple(cases.values()), end is not None, duration)
    notes = tuple(_notes(record, end, half, reruns))
    return Record(path, header, record.cases, record.complete, duration, notes)


def _lines(path: Path) -> tuple[Iterator[Fields], str]:
    """Return the parsed lines, and a sentence about a half-written last line ("" if there is none)."""
    try:
        raw = path.read_bytes().split(b"\n")
    except OSError as error:
        raise OracleError(f"{path}: cannot read the run record: {error.strerror or error}") from None
    tail, half = raw.pop(), ""  # what follows the last newline: nothing, or a line without its end
    if tail.strip():
        try:
            json.loads(tail)
            raw.append(tail)
        except ValueError:
            half = f"line {len(raw) + 1} is half-written ({len(tail)} bytes) and is left out"
    return (_parse(line, f"{path}:{number}") for number, line in enumerate(raw, 1) if line.strip()), half


def _parse(line: bytes, where: str) -> Fields:
    try:
        return parse_object(line.decode("utf-8"), where)
    except UnicodeDecodeError:
        raise OracleError(f"{where}: not UTF-8 text; is this a run record?") from None
    except OracleError:
        raise
    except ValueError as error:
        raise OracleError(f"{where}: not a line of JSON ({error})") from None


def _header(line: Fields) -> RunHeader:
    schema = line.data.get("schema")
    if schema != SCHEMA:
        raise OracleError(f"{line.where}: record schema {schema!r}; this version reads schema {SCHEMA}")
    planned = line.count("planned")
    if planned is None:
        raise OracleError(f"{line.where}: field 'planned' is missing; without it lost cases cannot be counted")
    extra = {
        key: value for key, value in line.data.items() if key not in _HEADER_KEYS and value not in (None, "", [], {})
    }
    return RunHeader(
        backend=line.text("backend", None),
        backend_options=line.mapping("backend_options").text_map(),
        soc=line.text("soc"),
        standard=line.text("standard"),
        versions=line.mapping("versions").text_map(),
        catalogue_sha256=line.text("catalogue_sha256"),
        command=line.text("command"),
        started=line.text("started"),
        planned=planned,
        seed=line.count("seed"),
        tier=line.text("tier"),
        layers=line.words("layers"),
        replay_arguments=line.words("replay_arguments"),
        extra=Fields(extra, line.where).text_map(),
    )


def _case(line: Fields) -> CaseRecord:
    status = line.text("status", None)
    if status not in STATUSES:
        raise OracleError(f"{line.where}: unknown status {status!r}; known: {', '.join(STATUSES)}")
    verdicts = line.mapping("verdicts")
    return CaseRecord(
        id=line.text("id", None),
        op=line.text("op"),
        dtype=line.text("dtype"),
        status=status,
        reason=line.text("reason"),
        verdicts={name: _verdict(verdicts.mapping(name)) for name in verdicts.data if verdicts.data[name] is not None},
        metrics=line.mapping("metrics").number_map(),
        budget_used=line.number("budget_used"),
        duration_s=line.number("duration_s"),
        golden_s=line.number("golden_s"),
        backend_s=line.number("backend_s"),
        worker=line.text("worker"),
        device=line.text("device"),
        detail=_detail(line.mapping("detail")) if line.data.get("detail") else None,
    )


def _verdict(verdict: Fields) -> LayerVerdict:
    return LayerVerdict(verdict.flag("passed"), verdict.text("reason"), verdict.mapping("metrics").number_map())


def _detail(detail: Fields) -> Detail:
    return Detail(
        rule=detail.text("rule"),
        output=detail.text("output"),
        worst=tuple(_worst(row) for row in detail.rows("worst")),
        ulp_histogram=detail.mapping("ulp_histogram").number_map(),
        bad=detail.count("bad"),
        total=detail.count("total"),
        pattern=detail.text("pattern"),
        cause=detail.text("cause"),
        inputs=detail.mapping("inputs").text_map(),
        attrs=detail.mapping("attrs").text_map(),
        error_map=detail.numbers("error_map"),
        traceback=detail.text("traceback"),
        replay=detail.text("replay"),
    )


def _worst(row: Fields) -> WorstElement:
    expected, actual, bound = row.number("expected"), row.number("actual"), row.number("bound")
    budget = row.number("budget")
    return WorstElement(
        index=tuple(int(i) for i in row.numbers("index")),
        expected=expected,
        actual=actual,
        bound=bound,
        expected_hex=row.text("expected_hex"),
        actual_hex=row.text("actual_hex"),
        ulp=row.number("ulp"),
        budget=budget_of(expected, actual, bound) if budget is None else budget,
    )


def budget_of(expected: Number | None, actual: Number | None, bound: Number | None) -> float | None:
    """|actual - expected| / bound; inf where one of the two is not finite, None where a figure is missing."""
    if expected is None or actual is None or bound is None:
        return None
    error = abs(float(actual) - float(expected))
    if not math.isfinite(error):
        return 0.0 if actual == expected else math.inf
    return error / float(bound) if bound else (math.inf if error else 0.0)


def _notes(record: Record, end: Fields | None, half: str, reruns: Mapping[str, int]) -> Iterator[str]:
    planned, told = record.header.planned, len(record.cases)
    if half:
        yield half[0].upper() + half[1:] + "."
    if end is None:
        yield f"The record has no last line: the run died after {told:,} of {planned:,} planned cases."
    elif record.missing:
        yield f"The run ended, but {record.missing:,} of {planned:,} planned cases have no line."
    if told > planned:
        yield f"{told:,} cases were recorded but only {planned:,} were planned."
    if reruns:
        before = ", ".join(f"{n:,} {status}" for status, n in reruns.items())
        yield f"{sum(reruns.values()):,} cases were recorded again; the last line counts (before: {before})."
    if end is not None:
        yield from _count_notes(record, end)


def _count_notes(record: Record, end: Fields) -> Iterator[str]:
    """The end line repeats the counts, under ``counts`` or as keys of its own; they must agree with the cases."""
    told = end.mapping("counts") if end.data.get("counts") else end
    for status in STATUSES:
        said = told.count(status)
        if said is not None and said != record.counts[status]:
            yield f"The end line says {said:,} {status}; the case lines give {record.counts[status]:,}."
