"""Reading run records: JSON lines, written as a run goes, one line per case.

First line ``{"type": "run", "schema": 1, ...}``, then ``{"type": "case", ...}`` lines, last ``{"type": "end", ...}``.
A record without its last line is a run that died: it still reads, and the planned cases that have no line count as
``notrun``. A half-written last line is what dying while writing leaves: it is tolerated and named in ``notes``.
Anything else that is malformed is an OracleError ``file:line``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ..model.errors import OracleError
from .codec import from_json
from .fields import Fields, Number, parse_object
from .types import (
    GOOD,
    STATUSES,
    CaseRecord,
    Detail,
    LayerVerdict,
    RunEnd,
    RunHeader,
    WorstElement,
    budget_of,
    split_id,
)

__all__ = [
    "CaseRecord",
    "Detail",
    "LayerVerdict",
    "Record",
    "RunHeader",
    "WorstElement",
    "budget_of",
    "read",
    "split_id",
]


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
    header = RunHeader.of(first)
    cases: dict[str, CaseRecord] = {}
    reruns: Counter[str] = Counter()
    end: RunEnd | None = None
    for line in lines:
        if end is not None:
            raise OracleError(f"{line.where}: a line after the end line; keep one run in one record")
        kind = line.data.get("type")
        if kind == "case":
            case = from_json(CaseRecord, line)
            if case.id in cases:
                reruns[cases.pop(case.id).status] += 1
            cases[case.id] = case
        elif kind == "end":
            end = RunEnd.of(line)
        else:
            raise OracleError(
                f"{line.where}: unknown line type {kind!r}; a record has one run line, case lines and an end"
            )
    duration = None if end is None else end.duration_s
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
        except (ValueError, RecursionError):
            half = f"line {len(raw) + 1} is half-written ({len(tail)} bytes) and is left out"
    return (_parse(line, f"{path}:{number}") for number, line in enumerate(raw, 1) if line.strip()), half


def _parse(line: bytes, where: str) -> Fields:
    try:
        return parse_object(line.decode("utf-8"), where)
    except UnicodeDecodeError:
        raise OracleError(f"{where}: not UTF-8 text; is this a run record?") from None


def _notes(record: Record, end: RunEnd | None, half: str, reruns: Mapping[str, int]) -> Iterator[str]:
    planned, recorded = record.header.planned, len(record.cases)
    if record.header.shard:
        number, _, count = record.header.shard.partition("/")
        yield f"Of the {count} shards of the run only {number} is here."
    if half:
        yield half[0].upper() + half[1:] + "."
    if end is None:
        yield f"The record has no last line: the run died after {recorded:,} of {planned:,} planned cases."
    elif record.missing:
        yield f"The run ended, but {record.missing:,} of {planned:,} planned cases have no line."
    if recorded > planned:
        yield f"{recorded:,} cases were recorded but only {planned:,} were planned."
    if reruns:
        before = ", ".join(f"{n:,} {status}" for status, n in reruns.items())
        yield f"{sum(reruns.values()):,} cases were recorded again; the last line counts (before: {before})."
    if end is not None:
        yield from _count_notes(record, end)


def _count_notes(record: Record, end: RunEnd) -> Iterator[str]:
    """The end line repeats the counts; they must agree with the cases."""
    for status, said in end.counts.items():
        if said != record.counts[status]:
            yield f"The end line says {said:,} {status}; the case lines give {record.counts[status]:,}."
