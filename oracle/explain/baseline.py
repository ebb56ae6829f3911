"""The failures of a record as expectations of the next run: few entries that match all failures and no passing case."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..record.reader import Record
from ..record.types import CaseRecord
from .groups import ENDED, Part, parts
from .where import Where, words_of

_HEAD = """\
# Failures of {label}, {started}, as expectations: `aclnn-oracle run --expectations FILE` fails only for new failures.
# Give every entry its reason. An entry that no longer fails is an xpass: the run then names it.
"""


@dataclass(frozen=True)
class Entry:
    """An entry: cases with ids that match the patterns, and that the choice selects, end in a status."""

    patterns: tuple[str, ...]
    choice: str
    status: str
    text: str
    cases: tuple[str, ...]


def baseline(record: Record) -> Iterator[Entry]:
    """Yield one entry for each group of failures, by its condition if that matches no passing case."""
    ended = [case for case in record.cases if case.status not in ("skip", "notrun")]
    for part in parts(record.cases):
        if part.status in ENDED:
            yield _entry(part, ended)


def _entry(part: Part, ended: Sequence[CaseRecord]) -> Entry:
    wanted = {case.id for case in part.cases}
    cause = part.causes[0] if part.causes else part.limit
    if part.where is not None:
        choice = words_of(part.where.conditions)
        slugs = dict.fromkeys(case.id.partition("/")[0] for case in part.cases)
        where = Where.of(choice)
        about = {case.id for case in ended if case.id.partition("/")[0] in slugs and where.of_record(case)}
        if about == wanted:
            return Entry(tuple(f"{slug}/*" for slug in slugs), choice, part.status, cause, tuple(wanted))
    return Entry(tuple(_patterns(wanted, ended)), "", part.status, cause, tuple(wanted))


def _patterns(wanted: set[str], ended: Iterable[CaseRecord]) -> Iterator[str]:
    """Yield patterns that match only the wanted ids: a family, a family and dtype, or the id itself."""
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
    """Return the text of the expectations file."""
    head = record.header
    lines = [_HEAD.format(label=record.label, started=head.started or "no date")]
    for entry in entries:
        ids = [json.dumps(pattern, ensure_ascii=False) for pattern in entry.patterns]
        text = entry.text or "say why"
        lines.append(f"- id: {ids[0]}" if len(ids) == 1 else "- id:\n" + "\n".join(f"    - {each}" for each in ids))
        lines += [f"  where: {json.dumps(entry.choice)}"] if entry.choice else []
        reason, count = json.dumps(f"TODO: {text}", ensure_ascii=False), len(entry.cases)
        lines += [
            f"  status: {entry.status}",
            f"  soc: [{head.soc}]",
            f"  reason: {reason}  # {count} case{'s' * (count > 1)}",
        ]
    return "\n".join(lines) + "\n"
