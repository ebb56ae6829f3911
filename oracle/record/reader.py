"""Reading run records, and preparing a record that another run continues.

The first line is ``{"type": "run", "schema": 1, ...}``, then come ``{"type": "case", ...}`` lines, and the last line is
``{"type": "end", ...}``. A record without its last line comes from a run that died. It can still be read; planned cases
without a line count as ``notrun``. A run that dies while it writes leaves a half-written last line, which is tolerated
and reported in ``notes``. Other malformed lines raise an OracleError ``file:line``, unless ``salvage`` is set.
"""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

from ..model.classes import grouped
from ..model.errors import OracleError
from ..system.process import collector_paused
from .codec import Fields, Number, clipped, from_json, parse_object
from .types import (
    GIVEN,
    GOOD,
    STATUSES,
    CaseRecord,
    Group,
    RunEnd,
    RunHeader,
    brief_of,
    describe_changes,
    judged_of,
    unjudged_of,
)

_RULE = 'a run record starts with a {"type": "run"} line, as `aclnn-oracle run` writes it'
CATALOGUE = b"aclnn_oracle:"  # the beginning of a line in every catalogue file, and of no line in a record


@dataclass(frozen=True)
class Record:
    """A whole record. ``notes`` describes its peculiarities in sentences: every omission is reported."""

    path: Path
    header: RunHeader
    cases: Sequence[CaseRecord]
    complete: bool
    duration_s: Number | None
    notes: Sequence[str] = field(default=())
    groups: Sequence[Group] = field(default=())
    reruns: Mapping[str, int] = field(default_factory=dict)  # ids with several lines: how many of the lines are ignored
    never_ran: int | None = None  # by the last line

    @cached_property
    def judged(self) -> int:
        """How many values were compared with a golden."""
        return judged_of(self.cases)

    @cached_property
    def unjudged(self) -> list[str]:
        """The operators with cases that ran and no judged value, if values were to be judged."""
        return unjudged_of(self.header, self.cases)

    @cached_property
    def by_id(self) -> Mapping[str, CaseRecord]:
        return {case.id: case for case in self.cases}

    @property
    def missing(self) -> int:
        """How many planned cases have no line, because the run stopped before them."""
        return max(0, self.header.planned - len(self.cases))

    @property
    def lacks_lines(self) -> bool:
        """Whether cases without a line ran, by the last line."""
        return self.never_ran is not None and self.never_ran < self.missing

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """Cases per status, with every status; their sum is ``planned``."""
        return counts_of(self.cases, self.header.planned)

    @property
    def stopped(self) -> str:
        """A sentence about how many cases the run stopped before; "" if every case has a line."""
        return f"the run stopped before {self.missing:,} of its {self.planned:,} cases" if self.missing else ""

    @property
    def planned(self) -> int:
        return sum(self.counts.values())

    @property
    def ok(self) -> bool:
        """Whether every planned case ended pass, skip or xfail, the run is complete, and values of every operator were
        judged."""
        ended = self.complete and all(n == 0 for status, n in self.counts.items() if status not in GOOD)
        return ended and not self.unjudged

    @property
    def devices(self) -> tuple[str, ...]:
        return tuple(sorted({case.device for case in self.cases if case.device}))

    @property
    def label(self) -> str:
        return " · ".join(part for part in (self.header.backend, self.header.soc) if part)


def counts_of(cases: Collection[CaseRecord], planned: int) -> Mapping[str, int]:
    """Return the number of cases per status, with every status; planned cases without a line are ``notrun``."""
    counted = Counter(case.status for case in cases)
    counted["notrun"] += max(0, planned - len(cases))
    return {status: counted[status] for status in STATUSES}


@collector_paused()
def read(path: str | Path, *, salvage: bool = False, brief: bool = False) -> Record:
    """Read a run record. Raises OracleError (with file and line) if the file is not a run record.

    ``salvage``: omit lines that cannot be read, and count them in the notes; the first line must be good.
    ``brief``: omit the fields of passing cases that no page shows (:func:`brief_of`). A record of a million cases then
    takes a third of the memory.
    """
    return lines_of(Path(path), salvage=salvage, brief=brief).record()


def lines_of(path: Path, *, salvage: bool = False, brief: bool = False) -> Lines:
    """Return the parsed lines of a file; see :func:`read`."""
    try:
        with path.open("rb") as file:
            return _said(path, file, salvage, brief)
    except OSError as error:
        raise OracleError(f"{path}: cannot read the run record: {error.strerror or error}") from None


def _said(path: Path, file: BinaryIO, salvage: bool, brief: bool) -> Lines:
    """Read line by line: a record of a million cases has half a GiB."""
    said, half = None, ""
    for number, line in enumerate(file, 1):
        where = f"{path}:{number}"
        line = line.removeprefix(BOM_UTF8) if number == 1 else line  # some editors write this mark
        if not line.strip():
            continue
        if not line.endswith(b"\n") and not _is_whole(line):  # it is the last line
            half = f"line {number} is half-written ({len(line)} bytes) and is left out"
            break
        line = line.removesuffix(b"\n")
        if said is None:
            said = Lines(path, RunHeader.of(_first(path, line, where, file)), brief=brief)
            continue
        try:
            said.take(_parse(line, where))
        except OracleError as error:
            if not salvage:
                raise OracleError(f"{error} (`aclnn-oracle report --salvage` leaves such lines out)") from None
            said.garbled.append(number)
    if said is None:
        raise OracleError(f"{path}:1: {_RULE}; found {half or 'nothing'}")
    said.half = half
    return said


class Lines:
    """The parsed lines of a record, read or written so far. ``half``: a sentence about a half-written last line."""

    def __init__(self, path: Path, header: RunHeader, *, brief: bool = False) -> None:
        self.path, self.header, self.brief = path, header, brief
        self.half = ""
        self.cases: dict[str, CaseRecord] = {}
        self.reruns: Counter[str] = Counter()
        self.before: Counter[str] = Counter()  # statuses of the lines that are ignored
        self.groups: list[Group] = []
        self.end: RunEnd | None = None
        self.garbled: list[int] = []  # numbers of the omitted lines

    def take(self, line: Fields) -> None:
        """Add a line. Raises OracleError, and adds nothing, if a record cannot have this line."""
        kind = line.data.get("type")
        if self.end is not None:
            raise OracleError(f"{line.where}: a line after the end line; keep one run in one record")
        if kind == "case":
            self.case(brief_of(line) if self.brief else from_json(CaseRecord, line))
        elif kind == "group":
            self.groups.append(from_json(Group, line))
        elif kind == "end":
            self.end = RunEnd.of(line)
        else:
            text = f"{line.where}: unknown line type {kind!r}; a record has a run line, cases, groups and an end"
            raise OracleError(text)

    def case(self, case: CaseRecord) -> None:
        """Add a case; of two lines with the same id (a rerun) the later one is used."""
        if case.id in self.cases:
            self.reruns[case.id] += 1
            self.before[self.cases.pop(case.id).status] += 1
        self.cases[case.id] = case

    def all(self) -> Iterator[RunHeader | CaseRecord | Group | RunEnd]:
        """Yield the content of every line; of two lines with the same id, the later one."""
        yield self.header
        yield from self.cases.values()
        yield from self.groups
        if self.end is not None:
            yield self.end

    @property
    def changes(self) -> Mapping[str, Sequence[str]]:
        """The changes that a device made in its process, with the ids of the cases."""
        pairs = ((change, case.id) for case in self.cases.values() for change in case.notes)
        return {change: [case_id for _, case_id in own] for change, own in grouped(pairs, lambda p: p[0]).items()}

    @property
    def given(self) -> list[str]:
        """A sentence on the operators with outputs that the strict layer does not fully judge, if there are any."""
        every = self.cases.values()
        result = dict.fromkeys(c.op for c in every if any(GIVEN in v.metrics for v in c.verdicts.values()))
        return [f"The strict layer does not judge {', '.join(result)}: a given function."] if result else []

    def record(self) -> Record:
        duration = None if self.end is None else self.end.duration_s
        record = Record(self.path, self.header, tuple(self.cases.values()), self.end is not None, duration,
                        groups=tuple(self.groups), reruns=self.reruns,
                        never_ran=None if self.end is None else self.end.counts.get("notrun"))  # fmt: skip
        return replace(record, notes=tuple(_notes(record, self)))


def _first(path: Path, line: bytes, where: str, others: Iterable[bytes]) -> Fields:
    """Return the first line of a record. Raises OracleError if it is not a run line."""
    try:
        first = _parse(line, where)
    except OracleError as error:
        if any(each.startswith(CATALOGUE) for each in (line, *others)):
            text = f"{path}: a catalogue of cases, not a run record; `aclnn-oracle run {path}` runs it and writes one"
            raise OracleError(text) from None
        raise OracleError(f"{error}; {_RULE}") from None
    if first.data.get("type") != "run":
        raise OracleError(f"{path}:1: {_RULE}; found type {first.data.get('type')!r}")
    return first


def _parse(line: bytes, where: str) -> Fields:
    try:
        return parse_object(line.decode("utf-8"), where)
    except UnicodeDecodeError:
        raise OracleError(f"{where}: not UTF-8 text; is this a run record?") from None


def _notes(record: Record, said: Lines) -> Iterator[str]:
    end, before = said.end, said.before
    planned, recorded = record.header.planned, len(record.cases)
    if record.header.shard:
        number, _, count = record.header.shard.partition("/")
        yield f"Of the {count} shards of the run only these are here: {number}."
    if said.half:
        yield said.half[0].upper() + said.half[1:] + "."
    if left := said.garbled:
        yield f"{len(left):,} lines cannot be read and are left out, the first of them line {left[0]:,}."
    if end is None:
        yield f"The record has no last line: the run died after {recorded:,} of {planned:,} planned cases."
    elif record.missing:
        yield f"The run ended, but {record.missing:,} of {planned:,} planned cases have no line."
    if recorded > planned:
        yield f"{recorded:,} cases were recorded but only {planned:,} were planned."
    if before:
        text = ", ".join(f"{n:,} {status}" for status, n in before.items())
        yield f"{before.total():,} cases were recorded again; the last line counts (before: {text})."
    for status, counted in () if end is None else end.counts.items():
        if counted != record.counts[status]:
            yield f"The end line says {counted:,} {status}; the case lines give {record.counts[status]:,}."
    yield from said.given
    yield from describe_changes(record.header.changed, said.changes)


def case_lines(record: Record) -> Iterator[str]:
    """Yield the lines of the cases as in the file, without newlines; of two lines of one case, the later one."""
    left = Counter(record.reruns)
    with record.path.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            if not (line.startswith('{"type":"case"') and line.endswith("\n")) and not _is_case(line):
                continue
            if left and left[case_id := str(json.loads(line)["id"])]:
                left[case_id] -= 1
            else:
                yield line.removesuffix("\n")


def _is_case(line: str) -> bool:
    """Return whether a line of a readable record is a case line; its keys can be in any order."""
    try:
        return bool(json.loads(line)["type"] == "case")
    except ValueError:  # an empty line, or a half-written last line
        return False


# Preparing a record that another run continues.


def spent(record: Record) -> float:
    """Return the seconds that a record's run took: by its last line, else until the last change of its file."""
    if record.duration_s is not None:
        return float(record.duration_s)
    try:
        started = datetime.fromisoformat(record.header.started).timestamp()
    except ValueError:
        return 0.0
    return max(0.0, record.path.stat().st_mtime - started)


AFTER = (b'{"type":"group"', b'{"type":"end"')  # the beginnings of lines after the last case


def cut(path: Path) -> None:
    """Remove all lines after the last case: groups, the end line, or a half-written line."""
    with path.open("r+b") as file:
        keep, unended = 0, False
        for line in file:
            unended = not line.endswith(b"\n")
            if line.replace(b" ", b"").startswith(AFTER) or (unended and not _is_whole(line)):
                unended = False
                break
            keep += len(line)
        file.truncate(keep)
        if unended:  # only the newline was missing
            file.seek(keep)
            file.write(b"\n")


def _is_whole(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


# Do two records belong to one run? Their cases must be the same, made and judged in the same way.


# Fields that may differ between the parts of one run; all other fields of the first line must be the same.
OWN = frozenset({"versions", "command", "started", "planned", "changed"})
# Versions that may differ: the results have the same bits under all of these.
FREE = frozenset({"python", "platform", "numpy", "ml_dtypes", "gmpy2", "pytest"})


def differences(old: RunHeader, new: RunHeader, *, except_for: Collection[str] = ()) -> list[str]:
    """Return the differences between the first lines of two records, in words; empty if they belong to one run."""
    names = [each.name for each in fields(RunHeader) if each.name not in OWN.union(except_for)]
    pairs = [(name, getattr(old, name), getattr(new, name)) for name in names]
    pairs += [(f"version of {name}", old.versions.get(name, "none"), new.versions.get(name, "none"))
              for name in sorted({*old.versions, *new.versions} - FREE)]  # fmt: skip
    return [f"{name}: {_short(a)} there, {_short(b)} here" for name, a, b in pairs if a != b]


def _short(value: Any) -> str:
    if isinstance(value, tuple):
        value = " ".join(value)
    elif isinstance(value, dict):
        value = ", ".join(f"{k} {v}" for k, v in value.items())
    return clipped(str(value) or "none")
