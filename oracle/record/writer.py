"""Writing a run record line by line, and merging the records of a run's shards into one."""

from __future__ import annotations

import json
import os
import re
import stat
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from itertools import chain, combinations, groupby
from pathlib import Path
from typing import Any

from ..model.classes import grouped
from ..model.errors import OracleError, writing
from ..system.cache import replace as replace_file
from ..system.strictjson import finite
from .codec import from_json, parse_object
from .reader import Lines, Record, case_lines, counts_of, cut, differences, lines_of, spent
from .types import GOOD, CaseRecord, Group, RunEnd, RunHeader, judged_of, line_of, unjudged_of

NAMED = 3  # operators that a sentence about several names

# The file of a record: one run appends lines one by one. Lines stay in memory while they cannot be written to the disk.


class Appending:
    """A file that lines are appended to. ``held``: lines not written yet. ``trouble``: why, after a write failed.

    Every append first tries the held lines again. So when the disk has room again, it gets all lines in order. The
    partial line of a failed write is cut off.
    """

    def __init__(self, path: Path) -> None:
        """Open a file and lock it. Raises OSError, and OracleError if another run has locked it."""
        self.path = path
        self.held: list[str] = []
        self.trouble = ""
        self._descriptor = self._open()
        self._size = os.fstat(self._descriptor).st_size

    def _open(self) -> int:
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
        try:
            _lock(descriptor, self.path)
        except BaseException:
            os.close(descriptor)
            raise
        result = os.fstat(descriptor)
        self._identity = result.st_dev, result.st_ino
        return descriptor

    def append(self, line: str) -> None:
        """Write a line, or hold it if that fails."""
        self.held.append(line)
        try:
            self._make_sure()
            while self.held:
                self._write(f"{self.held[0]}\n".encode())
                del self.held[0]
        except OSError as error:
            self.trouble = error.strerror or str(error)

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._descriptor, left) :]
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._descriptor, self._size)
            raise
        self._size += len(data)

    def _make_sure(self) -> None:
        """Open the file again if a device has closed our descriptor or reused its number for another file."""
        try:
            result = os.fstat(self._descriptor)
            if (result.st_dev, result.st_ino) == self._identity:
                return
        except OSError:
            pass
        self._descriptor = self._open()

    def whole(self) -> bool | None:
        """Return whether the path still leads to this file, with exactly the written content; None if another file lies
        there."""
        try:
            result = self.path.stat()
        except OSError:
            return False
        if not stat.S_ISREG(result.st_mode):  # a pipe or a terminal: its content cannot be checked
            return True
        return result.st_size == self._size if (result.st_dev, result.st_ino) == self._identity else None

    def give_up(self) -> None:
        """Release the lock. The file stays open, so that no other file can get the same identity."""
        with suppress(ImportError, OSError):
            import fcntl

            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        with suppress(OSError):  # a device may have closed it
            os.close(self._descriptor)


def require_unlocked(path: Path) -> None:
    """Raise OracleError if another run is writing the file."""
    if path.is_file():
        descriptor = os.open(path, os.O_RDWR)
        try:
            _lock(descriptor, path)
        finally:
            os.close(descriptor)


def _lock(descriptor: int, path: Path) -> None:
    """Lock a file until it is closed, if the platform and the file system support that."""
    try:
        import fcntl
    except ImportError:  # Windows
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise OracleError(f"{path}: another run is writing it; give this one another file") from None
    except OSError:  # a file system without locks
        return


# Writing a run record: JSON lines, written one by one, so that a run that dies keeps its finished lines.


def plain(value: Any) -> Any:
    """Return a value for strict JSON: NumPy scalars as Python's, non-finite numbers as their names."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, (str, bool)) or value is None:
        return value
    if hasattr(value, "item"):  # a NumPy scalar
        value = value.item()
    return finite(value) if isinstance(value, float) else value


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def dumps(said: RunHeader | CaseRecord | Group | RunEnd) -> str:
    """Return one line of the record."""
    return dumps_object(line_of(said))


def dumps_object(line: Mapping[str, Any]) -> str:
    """Return a JSON object as one line of strict JSON."""
    try:
        text = _encode(line)
    except (TypeError, ValueError):  # it contains NumPy scalars or non-finite numbers
        text = _encode(plain(line))
    # a path byte that is not UTF-8 is a lone surrogate: JSON can have it as an escape, a file cannot have it as itself
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()


class RecordWriter:
    """The record of one run. It keeps every case in memory and, with a path, writes every line at once.

    ``planned`` is known when the first line is written. From then on it equals the sum of the statuses. ``said``: all
    lines so far.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.started = time.monotonic()
        self.kept: Path | None = None  # the new place of the record that was there before
        self.trouble = ""  # why a line was written late, or not at all
        self.unwritten: list[str] = []  # lines that could not be written until the end
        self._file: Appending | None = None
        self._ended: Appending | None = None  # the same file, once its last line is written

    def begin(self, planned: int, header: RunHeader) -> None:
        """Write the run line, with the time and the planned count. An existing record is renamed and kept.

        Raises OracleError if the file cannot be written, exists and is no record, or belongs to another run.
        """
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        line = dumps(replace(header, started=now, planned=planned))
        self.said = Lines(self.path or Path(), RunHeader.of(parse_object(line, "the run's first line")))
        self.started = time.monotonic()
        if self.path is None:
            return
        with writing(f"--record {self.path}"):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            require_unlocked(self.path)
            self.kept = _moved_aside(self.path)
            self._file = Appending(self.path)
        self._write(line)
        if self._file.held:
            raise OracleError(f"--record {self.path}: cannot be written: {self._file.trouble}")

    def go_on(self, record: Record) -> None:
        """Continue a record after its last case. Raises OracleError if it cannot be written, or another run is writing
        it."""
        with writing(f"--resume {record.path}"):
            require_unlocked(record.path)
            self.started = time.monotonic() - spent(record)
            cut(record.path)
            self._file = Appending(record.path)
        self.said = lines_of(record.path)

    def case(self, text: str) -> CaseRecord:
        """Write a case line, as :func:`dumps` made it, and return the case."""
        self._write(text)
        case = from_json(CaseRecord, parse_object(text, "a case's report"))
        self.said.case(case)
        return case

    @property
    def left(self) -> int:
        """How many planned cases have no line, or a line with the status notrun."""
        return self.counts()["notrun"]

    def counts(self) -> Mapping[str, int]:
        """Return the number of cases per status, with every status; their sum is the planned count."""
        return counts_of(self.said.cases.values(), self.said.header.planned)

    def unrun(self) -> list[str]:
        """Return a sentence for operators with only skipped cases, and the same reason for most: none was tested."""
        by_op = grouped(self.said.cases.values(), lambda case: case.op)
        skipped = {op: cases for op, cases in by_op.items() if all(case.status == "skip" for case in cases)}
        reasons = {op: [r for r, _ in Counter(c.reason for c in own).most_common()] for op, own in skipped.items()}
        sentences = []
        for alike in grouped(skipped, lambda op: reasons[op][0].replace(op, "")).values():
            names = ", ".join(alike[:NAMED]) + (f", … (+{len(alike) - NAMED})" if len(alike) > NAMED else "")
            count = sum(len(skipped[op]) for op in alike)
            others = {reason for op in alike for reason in reasons[op][1:]}
            more = f" (and {len(others)} other {'reasons' if len(others) > 1 else 'reason'})" if others else ""
            reason = reasons[alike[0]][0]
            sentences.append(f"{names}: all {count:,} cases were skipped, nothing was tested: {reason}{more}")
        return sentences

    @property
    def good(self) -> bool:
        """Whether every planned case ended pass, skip or xfail, and values of every operator were judged."""
        bad = any(n for status, n in self.counts().items() if status not in GOOD)
        return not bad and not unjudged_of(self.said.header, self.said.cases.values())

    def record(self) -> Record:
        """Return the record so far, including lines that are not written to the file yet."""
        return self.said.record()

    def explain(self, groups: Sequence[Group]) -> None:
        """Write the groups of the failures after the last case."""
        self.said.groups = list(groups)
        for group in groups:
            self._write(dumps(group))

    def end(self) -> None:
        """Write the last line and close; a second call does nothing."""
        if self._file is None:
            return
        judged = judged_of(self.said.cases.values())
        self.said.end = RunEnd(self.counts(), round(time.monotonic() - self.started, 3), judged)
        self._write(dumps(self.said.end))
        self.unwritten, self.trouble = self._file.held, self._file.trouble
        self._file.give_up()
        self._ended, self._file = self._file, None

    def make_sure(self) -> str:
        """Check after the end of the record that its file exists and is whole; if not, write it again from memory.

        Return a remark or "". Raises OracleError if the record is not at its path."""
        ended, self._ended = self._ended, None
        if ended is None:
            return ""
        whole = ended.whole()
        ended.close()
        if whole or self.unwritten:
            return ""
        text = "".join(f"{line}\n" for line in map(dumps, self.said.all()))
        target = ended.path
        while whole is None and target.exists():  # another program's file: do not overwrite it
            target = target.with_name(f"{target.stem}.again{target.suffix}")
        try:
            replace_file(target, text)
            if target.stat().st_size != len(text.encode(errors="backslashreplace")):
                raise OSError("its content is not the written text")
        except OSError as error:
            why = error.strerror or str(error)
            raise OracleError(
                f"--record {ended.path}: is gone or changed, and cannot be written again: {why}"
            ) from None
        if target != ended.path:
            raise OracleError(f"--record {ended.path}: another file lies there now; the record was written to {target}")
        return f"--record {target}: was removed or changed while the run went on; it was written again from memory"

    def _write(self, line: str) -> None:
        if self._file is not None:
            self._file.append(line)
            self.trouble = self._file.trouble


def _moved_aside(path: Path) -> Path | None:
    """Rename an existing record by its start time, to make room for a new one. Return its new path, or None.

    A link (``latest``) is only a name and is deleted. Raises OracleError for a file that is no run record.
    """
    if path.is_symlink():
        path.unlink()
        return None
    head = head_of_earlier(path, "--record")
    if head is None:
        return None
    moment = re.sub(r"\D", "", str(head.get("started", ""))[:19]) or "before"
    kept, number = path.with_name(f"{path.stem}.{moment}{path.suffix}"), 1
    while kept.exists():
        number += 1
        kept = path.with_name(f"{path.stem}.{moment}-{number}{path.suffix}")
    path.rename(kept)
    return kept


def head_of_earlier(path: Path, option: str) -> dict[str, Any] | None:
    """Return the first line of the record that an option's file replaces; None if it replaces nothing. Raises
    OracleError for a file that is no run record."""
    if not path.exists() or not path.stat().st_size:
        return None
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        first = file.readline()
    try:
        head: dict[str, Any] = json.loads(first)
        if head["type"] != "run":
            raise ValueError(head["type"])
    except (ValueError, TypeError, KeyError):
        raise OracleError(f"{option} {path}: is there and is no run record; it is not overwritten") from None
    return head


def moved_records(records: Iterable[Record]) -> list[Path]:
    """Return the paths of records that :func:`_moved_aside` renamed, if one of the same shard replaced them."""
    places = [(record.path, record.path.resolve(), record.header.shard) for record in records]
    shards = {path: shard for _, path, shard in places}
    result = []
    for given, path, shard in places:
        stem, _, moment = path.stem.rpartition(".")
        if not stem or not re.fullmatch(r"(\d{14}|before)(-\d+)?", moment):
            continue
        if shards.get(path.with_name(f"{stem}{path.suffix}")) == shard:
            result.append(given)
    return result


# Merging the records of a run's shards into one.


def merged(records: Sequence[Record], path: Path, *, partial: bool = False) -> tuple[Record, Iterator[str]]:
    """Return the record at ``path`` that the records of all shards make together, and its lines: every case as in its
    shard.

    ``partial`` allows missing shards: the record then names the shards that it contains. If a shard died, its remaining
    planned cases have no lines, and the merged record has no last line. Raises OracleError for missing shards, and for
    records that do not belong together, with their differences.
    """
    count, shards = _shards(records)
    first = records[0]
    for record in records[1:]:
        result = differences(first.header, record.header, except_for=("shard",))
        if result:
            raise OracleError(f"{record.path} does not belong to {first.path}: {'; '.join(result)}")
    missing = [number for number in range(1, count + 1) if number not in shards]
    if missing and not partial:
        shards_are = ("shard {} of {} is", "shards {} of {} are")[len(missing) > 1]
        raise OracleError(f"{shards_are.format(_span(missing), count)} missing; --partial merges the others")
    _require_distinct(records)
    said = Lines(path, _header(records, "" if not missing else f"{_span(sorted(shards))}/{count}"))
    said.cases = {case.id: case for record in records for case in record.cases}
    if all(record.complete for record in records):
        counts = {status: sum(record.counts[status] for record in records) for status in first.counts}
        said.end = RunEnd(counts, _duration(records), sum(record.judged for record in records))
    last = [] if said.end is None else [dumps(said.end)]
    lines = chain([dumps(said.header)], chain.from_iterable(map(case_lines, records)), last)
    return said.record(), (f"{line}\n" for line in lines)


def _shards(records: Sequence[Record]) -> tuple[int, Mapping[int, Record]]:
    """Return N, and the records by K. Raises OracleError for a record that is no shard of N, or for a duplicate."""
    shards: dict[int, Record] = {}
    whole = 0
    for record in records:
        result = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", record.header.shard)
        if result is None:
            what = record.header.shard or "the record of a whole run"
            raise OracleError(f"{record.path}: {what}; merge joins the records of run --shard K/N")
        number, count = int(result[1]), int(result[2])
        whole = whole or count
        if count != whole:
            first = records[0]
            raise OracleError(f"{record.path} is shard {record.header.shard}, {first.path} shard {first.header.shard}")
        if number in shards:
            raise OracleError(f"shard {number}/{count} is there twice: {shards[number].path} and {record.path}")
        shards[number] = record
    return whole, shards


def _span(numbers: Sequence[int]) -> str:
    """Return sorted numbers as ranges: 1-3,7."""
    runs = [[n for _, n in run] for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])]
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _require_distinct(records: Sequence[Record]) -> None:
    """Raise OracleError if two shards contain the same case."""
    for one, other in combinations(records, 2):
        for case_id in one.by_id.keys() & other.by_id.keys():
            raise OracleError(f"{case_id} is in {one.path} and in {other.path}: not shards of one run")


def _header(records: Sequence[Record], shard: str) -> RunHeader:
    first = min(records, key=lambda record: record.header.started).header
    planned = sum(record.planned for record in records)
    versions = {  # all versions if they differ on the machines that ran the shards
        name: ", ".join(sorted({record.header.versions.get(name, "none") for record in records}))
        for name in first.versions
    }
    command = re.sub(r" --(oracle-)?shard[ =]\d+/\d+\b", "", first.command)  # of the whole run
    return replace(first, planned=planned, shard=shard, versions=versions, command=command)


def _duration(records: Sequence[Record]) -> float:
    """Return the seconds from the first start to the last end, as far as the machines' clocks agree."""
    starts, ends = [], []
    for record in records:
        try:
            start = datetime.fromisoformat(record.header.started)
        except ValueError:
            continue
        starts.append(start)
        ends.append(start + timedelta(seconds=float(record.duration_s or 0)))
    return round((max(ends) - min(starts)).total_seconds(), 3) if starts else 0.0
