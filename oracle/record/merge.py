"""One record of the records of a run's shards."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from ..model.errors import OracleError
from .reader import Record
from .resume import differences
from .types import CaseRecord, RunEnd, RunHeader
from .writer import dumps


def merged(records: Sequence[Record], *, partial: bool = False) -> list[str]:
    """Return the lines of the record that the records of all shards make together.

    ``partial`` allows shards to be missing: the record then says which it holds. A shard that died leaves its planned
    cases without lines, and the whole without its last line. Raises OracleError for records that do not belong
    together, naming what differs, and for missing shards.
    """
    shards = _shards(records)
    first = records[0]
    for record in records[1:]:
        found = differences(first.header, record.header, except_for=("shard",))
        if found:
            raise OracleError(f"{record.path} does not belong to {first.path}: {'; '.join(found)}")
    count = next(iter(shards.values()))
    missing = [number for number in range(1, count + 1) if number not in shards]
    if missing and not partial:
        raise OracleError(f"{_told(missing, count)}; --partial merges the others")
    whole = [dumps(_header(records, "" if not missing else f"{_span(sorted(shards))}/{count}"))]
    whole += [dumps(case) for case in _cases(records)]
    if all(record.complete for record in records):
        counts = {status: sum(record.counts[status] for record in records) for status in first.counts}
        whole.append(dumps(RunEnd(counts, _duration(records))))
    return whole


def _shards(records: Sequence[Record]) -> dict[int, int]:
    """Return N by K of every record. Raises OracleError for one that is no shard, or one that is there twice."""
    shards: dict[int, int] = {}
    paths: dict[int, Record] = {}
    for record in records:
        found = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", record.header.shard)
        if found is None:
            what = record.header.shard or "the record of a whole run"
            raise OracleError(f"{record.path}: {what}; merge joins the records of run --shard K/N")
        number, count = int(found[1]), int(found[2])
        if number in shards and shards[number] == count:
            raise OracleError(f"shard {number}/{count} is there twice: {paths[number].path} and {record.path}")
        if shards and count not in shards.values():
            first = records[0]
            raise OracleError(f"{record.path} is shard {record.header.shard}, {first.path} shard {first.header.shard}")
        shards[number], paths[number] = count, record
    return shards


def _told(missing: Sequence[int], count: int) -> str:
    shards, are = ("shards", "are") if len(missing) > 1 else ("shard", "is")
    return f"{shards} {_span(missing)} of {count} {are} missing"


def _span(numbers: Sequence[int]) -> str:
    """Write sorted numbers with their runs: 1-3,7."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _cases(records: Sequence[Record]) -> list[CaseRecord]:
    """Return all cases. Raises OracleError for one that two shards have."""
    found: dict[str, Record] = {}
    cases = []
    for record in records:
        for case in record.cases:
            if case.id in found:
                raise OracleError(f"{case.id} is in {found[case.id].path} and in {record.path}: not shards of one run")
            found[case.id] = record
            cases.append(case)
    return cases


def _header(records: Sequence[Record], shard: str) -> RunHeader:
    first = min(records, key=lambda record: record.header.started).header
    planned = sum(record.planned for record in records)
    versions = {name: _joined(records, name) for name in first.versions}
    return replace(first, planned=planned, shard=shard, versions=versions)


def _joined(records: Sequence[Record], name: str) -> str:
    """The version of the machines that ran the shards; all of them where they differ."""
    return ", ".join(sorted({record.header.versions.get(name, "none") for record in records}))


def _duration(records: Sequence[Record]) -> float:
    """From the first start to the last end, as far as the clocks of the machines agree."""
    starts, ends = [], []
    for record in records:
        try:
            start = datetime.fromisoformat(record.header.started)
        except ValueError:
            continue
        starts.append(start)
        ends.append(start + timedelta(seconds=float(record.duration_s or 0)))
    return round((max(ends) - min(starts)).total_seconds(), 3) if starts else 0.0
