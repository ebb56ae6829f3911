"""The difference of two records, case by case and never by totals."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..record.fields import Number
from ..record.reader import CaseRecord, Record
from .markdown import code, escape, table
from .words import clip, percent, plain, verdict

BUDGET_FACTOR = 1.5
BUDGET_FLOOR = 0.1  # below a tenth of the bound a change is the noise of the data, not of the kernel
GROUPS = ("newly failing", "fixed", "changed", "budget regressions", "added", "removed")
MEANING = {
    "newly failing": "ended well or did not exist before, and does not end well now",
    "fixed": "did not pass before and passes now",
    "changed": "another status, neither newly failing nor fixed",
    "budget regressions": "same status, but much more of the error budget used",
    "added": "only in the new record, and ends well",
    "removed": "only in the old record",
}


@dataclass(frozen=True, slots=True)
class Change:
    """One case in both records; None on the side that does not have it."""

    id: str
    old: CaseRecord | None
    new: CaseRecord | None
    lost: bool = False  # the new run died before this case

    @property
    def group(self) -> str:
        """The group of GROUPS the change belongs to, or "" if nothing is different."""
        old, new = self.old, self.new
        if new is None:
            return "removed" if not self.lost else "newly failing" if old is not None and old.ok else "changed"
        if old is None:
            return "added" if new.ok else "newly failing"
        if old.status == new.status:
            return ""
        if old.ok and not new.ok:
            return "newly failing"
        return "fixed" if new.status == "pass" and old.status != "skip" else "changed"

    @property
    def before(self) -> str:
        return "absent" if self.old is None else self.old.status

    @property
    def after(self) -> str:
        return self.new.status if self.new else "notrun" if self.lost else "absent"

    @property
    def reason(self) -> str:
        if self.lost:
            return "the new run stopped before this case"
        return self.new.reason if self.new is not None else ""

    @property
    def first_reason(self) -> str:
        """The reason's first line, short enough for a list."""
        return clip(self.reason.partition("\n")[0], 160)

    @property
    def budget_before(self) -> Number | None:
        return None if self.old is None else self.old.budget_used

    @property
    def budget_after(self) -> Number | None:
        return None if self.new is None else self.new.budget_used

    @property
    def growth(self) -> float:
        """New budget over old budget; 1 where either is unknown."""
        old, new = self.budget_before, self.budget_after
        if old is None or new is None or old == new or math.isnan(old):
            return 1.0
        if math.isnan(new) or old == 0:
            return math.inf
        return float(new) / float(old)


@dataclass(frozen=True)
class Difference:
    """Two records compared. ``factor`` and ``floor`` say what a budget regression is."""

    old: Record
    new: Record
    factor: float = BUDGET_FACTOR
    floor: float = BUDGET_FLOOR

    @cached_property
    def groups(self) -> dict[str, list[Change]]:
        """Changes by group, every group of GROUPS present; the order of the records within each."""
        found: dict[str, list[Change]] = {name: [] for name in GROUPS}
        for change in self._changes():
            name = change.group or ("budget regressions" if self._worse(change) else "")
            if name:
                found[name].append(change)
        found["budget regressions"].sort(key=lambda change: -change.growth)
        return found

    def _changes(self) -> Iterator[Change]:
        died = self.new.missing > 0
        for case in self.old.cases:
            new = self.new.by_id.get(case.id)
            yield Change(case.id, case, new, lost=new is None and died)
        for case in self.new.cases:
            if case.id not in self.old.by_id:
                yield Change(case.id, None, case)

    def _worse(self, change: Change) -> bool:
        used = change.budget_after  # "not <": a budget that is not a number is not below the floor
        return used is not None and not used < self.floor and change.growth > self.factor

    @property
    def ok(self) -> bool:
        """Whether nothing newly fails."""
        return not self.groups["newly failing"]

    @property
    def unchanged(self) -> int:
        """Cases in both records with nothing to say about them."""
        return len(self.old.by_id.keys() | self.new.by_id.keys()) - sum(map(len, self.groups.values()))

    @property
    def sentence(self) -> str:
        counts = [f"{len(found):,} {name}" for name, found in self.groups.items() if found]
        return f"{', '.join(counts) or 'No case differs'}; {self.unchanged:,} unchanged."

    @cached_property
    def notes(self) -> list[str]:
        """What makes the two runs less comparable, in sentences."""
        old, new = self.old.header, self.new.header
        pairs: Sequence[tuple[str, object, object, str]] = (
            ("backends", old.backend, new.backend, ""),
            ("SoCs", old.soc, new.soc, "other rules may apply"),
            ("standards", old.standard, new.standard, ""),
            ("layers", ",".join(old.layers), ",".join(new.layers), ""),
            ("tiers", old.tier, new.tier, ""),
            ("seeds", old.seed, new.seed, "the data differ, and so do the budgets"),
            (
                "catalogues",
                old.catalogue_sha256[:12],
                new.catalogue_sha256[:12],
                "a case may have changed",
            ),
        )
        notes = [
            f"The {what} differ: {_or_none(a)} and {_or_none(b)}{f' ({why})' if why else ''}."
            for what, a, b, why in pairs
            if a != b
        ]
        for name, record in (("old", self.old), ("new", self.new)):
            notes += [f"The {name} record: {note}" for note in record.notes]
        return notes

    def describe(self, name: str) -> str:
        """Say what a group holds, with the figures that define it."""
        if name != "budget regressions":
            return MEANING[name]
        return f"{MEANING[name]}: over {self.factor:g} times, and at least {percent(self.floor)} of the bound"


def _or_none(value: object) -> str:
    return str(value) if value not in (None, "") else "(not recorded)"


def text(diff: Difference, *, limit: int = 0) -> str:
    """The difference for a terminal; ``limit`` cases a group (0: all)."""
    lines = [f"old  {diff.old.path}  {diff.old.label}: {verdict(diff.old)}"]
    lines += [f"new  {diff.new.path}  {diff.new.label}: {verdict(diff.new)}"]
    lines += [f"note {note}" for note in diff.notes]
    for name, found in diff.groups.items():
        if found:
            lines += ["", f"{name} ({len(found):,}): {diff.describe(name)}"]
            lines += [f"  {_line(change)}" for change in (found[:limit] if limit else found)]
            if limit and len(found) > limit:
                lines.append(f"  ... and {len(found) - limit:,} more (--limit 0 shows all)")
    return "\n".join([*lines, "", diff.sentence])


def _line(change: Change) -> str:
    parts = [change.id, f"{change.before} -> {change.after}"]
    if not change.group:
        parts.append(f"{percent(change.budget_before)} -> {percent(change.budget_after)} of the bound")
    if change.group == "newly failing" and change.reason:
        parts.append(f"({change.first_reason})")
    return plain("  ".join(parts))


def markdown(diff: Difference, *, limit: int = 50) -> str:
    """The difference to paste into a pull request."""
    sides = [
        (name, code(r.header.backend), code(r.header.soc), code(r.path.name), verdict(r))
        for name, r in (("old", diff.old), ("new", diff.new))
    ]
    parts = [f"### {'✅' if diff.ok else '❌'} {diff.sentence}"]
    parts.append(table(("", "backend", "SoC", "record", "verdict"), sides))
    parts += [f"- {escape(note)}" for note in diff.notes]
    for name, found in diff.groups.items():
        if found:
            parts.append(f"#### {name.capitalize()} ({len(found):,})\n\n{diff.describe(name).capitalize()}.")
            parts.append(_rows(found[:limit] if limit else found))
            if limit and len(found) > limit:
                parts.append(f"… and {len(found) - limit:,} more.")
    return "\n\n".join(parts) + "\n"


def _rows(found: Sequence[Change]) -> str:
    head = ("case", "before", "after", "budget before", "budget after", "reason")
    return table(
        head,
        [
            (code(c.id), c.before, c.after, percent(c.budget_before), percent(c.budget_after), escape(c.first_reason))
            for c in found
        ],
    )


def to_json(diff: Difference) -> str:
    """The difference for programs; budgets that are not finite are strings, as in a record."""
    groups: dict[str, list[dict[str, Any]]] = {
        name.replace(" ", "_"): [
            {
                "id": c.id,
                "old": c.before,
                "new": c.after,
                "reason": c.reason,
                "old_budget": _json_number(c.budget_before),
                "new_budget": _json_number(c.budget_after),
            }
            for c in found
        ]
        for name, found in diff.groups.items()
    }
    whole = {
        "ok": diff.ok,
        "old": str(diff.old.path),
        "new": str(diff.new.path),
        "budget_factor": diff.factor,
        "budget_floor": diff.floor,
        "notes": diff.notes,
        "unchanged": diff.unchanged,
        **groups,
    }
    return json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _json_number(value: Number | None) -> Number | str | None:
    return value if value is None or math.isfinite(value) else str(float(value))
