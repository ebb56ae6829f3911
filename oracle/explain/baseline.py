"""The failures of a record as expectations: few entries that are about all failures and about no case that passed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..record.reader import Record
from ..record.types import CaseRecord
from .groups import Part, parts
from .where import Where, words_of

EXPECTED = ("fail", "error", "crash", "timeout")  # statuses that an entry can expect
_HEAD = """\
# Failures of {label}, {started}, as expectations: `aclnn-oracle run --expectations FILE` fails only for what is new.
# Give every entry its reason. An entry that no longer fails is an xpass: the run then names it.
"""


@dataclass(frozen=True)
class Entry:
    """An entry: cases whose ids match the patterns, of them those of the choice, end in a status."""

    patterns: tuple[str, ...]
    choice: str
    status: str
    told: str
    cases: tuple[str, ...]


def baseline(record: Record) -> Iterator[Entry]:
    """Yield the entries, one for each group of failures where its condition is about no case that passed."""
    ended = [case for case in record.cases if case.status not in ("skip", "notrun")]
    for part in parts(record.cases):
        if part.status in EXPECTED:
            yield _entry(part, ended)


def _entry(part: Part, ended: Sequence[CaseRecord]) -> Entry:
    wanted = {case.id for case in part.cases}
    cause = part.causes[0] if part.causes else ""
    if part.where is not None:
        choice = words_of(part.where.conditions)
        slugs = dict.fromkeys(case.id.partition("/")[0] for case in part.cases)
        where = Where.of(choice)
        about = {case.id for case in ended if case.id.partition("/")[0] in slugs and where.of_record(case)}
        if about == wanted:
            return Entry(tuple(f"{slug}/*" for slug in slugs), choice, part.status, cause, tuple(wanted))
    return Entry(tuple(_patterns(wanted, ended)), "", part.status, cause, tuple(wanted))


def _patterns(wanted: set[str], ended: Iterable[CaseRecord]) -> Iterator[str]:
    """Yield patterns that match the wanted ids and no other: of a family, of a family and type, or the id itself."""
    by_prefix: dict[str, list[str]] = {}
    for case in ended:
        family = case.id.partition("[")[0]
        for prefix in (f"{family}[", f"{family}[{case.dtype}-"):
            if case.id.startswith(prefix):
                by_prefix.setdefault(prefix, []).append(case.id)
    left = set(wanted)
    for prefix in sorted(by_prefix, key=len):
        own = set(by_prefix[prefix])
        if len(own) > 1 and own <= wanted and own & left:
            yield f"{prefix}*"
            left -= own
    yield from sorted(left)


def baseline_text(record: Record, entries: Iterable[Entry]) -> str:
    """Return the file."""
    head = record.header
    lines = [_HEAD.format(label=record.label, started=head.started or "no date")]
    for entry in entries:
        ids = [json.dumps(pattern, ensure_ascii=False) for pattern in entry.patterns]
        told = entry.told or "say why"
        lines.append(f"- id: {ids[0]}" if len(ids) == 1 else "- id:\n" + "\n".join(f"    - {each}" for each in ids))
        lines += [f"  where: {json.dumps(entry.choice)}"] if entry.choice else []
        reason = json.dumps(f"TODO: {told}", ensure_ascii=False)
        lines += [
            f"  status: {entry.status}",
            f"  soc: [{head.soc}]",
            f"  reason: {reason}  # {len(entry.cases)} cases",
        ]
    return "\n".join(lines) + "\n"
