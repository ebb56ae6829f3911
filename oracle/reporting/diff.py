"""The difference of two records, compared case by case, never by totals."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..record.codec import Number
from ..record.reader import Record
from ..record.types import CaseRecord, shows_numbers
from ..system.strictjson import finite
from .language.translate import ENGLISH, Language, Listing, Phrase, Text, _
from .language.words import clip, percent, plain, verdict
from .summary import code, escape, table

BUDGET_FACTOR = 1.5
BUDGET_FLOOR = 0.1  # below a tenth of the bound, a change comes from the data, not from the kernel
# Every group of changes: its name, and what it means.
_GROUPS = {
    "newly failing": (_("newly failing"), _("ended well or did not exist before, and does not end well now")),
    "not reached": (_("not reached"), _("the new run stopped before them")),
    "fixed": (_("fixed"), _("did not pass before and passes now")),
    "changed": (_("changed"), _("another status, neither newly failing nor fixed")),
    "budget regressions": (_("budget regressions"), _("same status, but much more of the error budget used")),
    "added": (_("added"), _("only in the new record, and ends well")),
    "removed": (_("removed"), _("only in the old record")),
}
NAME, MEANING = ({group: row[k] for group, row in _GROUPS.items()} for k in range(2))


@dataclass(frozen=True, slots=True)
class Change:
    """One case of two records. ``old``, ``new``: its line in each; None if that record does not have it."""

    id: str
    old: CaseRecord | None
    new: CaseRecord | None
    lost: bool = False  # the new run stopped before this case

    @property
    def group(self) -> str:
        """The change's group in NAME; "" if the statuses are the same."""
        old, new = self.old, self.new
        if self.before == self.after:
            return ""
        if self.after == "notrun":
            return "not reached"
        if new is None:
            return "removed"
        if old is None:
            return "added" if new.ok else "newly failing"
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
        return self.new.reason if self.new is not None else ""

    @property
    def first_reason(self) -> str:
        """The first line of the reason, short enough for a list."""
        return clip(self.reason.partition("\n")[0], 160)

    @property
    def budget_before(self) -> Number | None:
        return None if self.old is None else self.old.budget_used

    @property
    def budget_after(self) -> Number | None:
        return None if self.new is None else self.new.budget_used

    @property
    def growth(self) -> float:
        """New budget divided by old budget; 1 if one of them is unknown."""
        old, new = self.budget_before, self.budget_after
        if old is None or new is None or old == new or math.isnan(old):
            return 1.0
        if math.isnan(new) or old == 0:
            return math.inf
        return float(new) / float(old)


@dataclass(frozen=True)
class Difference:
    """The comparison of two records. ``factor`` and ``floor`` define a budget regression."""

    old: Record
    new: Record
    factor: float = BUDGET_FACTOR
    floor: float = BUDGET_FLOOR

    @cached_property
    def groups(self) -> dict[str, list[Change]]:
        """Changes by group, with every group of NAME; in each group in the order of the records."""
        result: dict[str, list[Change]] = {name: [] for name in NAME}
        for change in self._changes():
            name = change.group or ("budget regressions" if self._worse(change) else "")
            if name:
                result[name].append(change)
        result["budget regressions"].sort(key=lambda change: -change.growth)
        return result

    def _changes(self) -> Iterator[Change]:
        for case in self.old.cases:
            new = self.new.by_id.get(case.id)
            if new is not None or not self.is_part:
                yield Change(case.id, case, new, lost=new is None and self.new.missing > 0)
        for case in self.new.cases:
            if case.id not in self.old.by_id:
                yield Change(case.id, None, case)

    @property
    def is_part(self) -> bool:
        """Whether the new run chose some of the old run's cases: then its missing cases are not "removed"."""
        old, new = self.old.header, self.new.header
        return bool(new.chosen or new.shard) and (new.chosen, new.shard) != (old.chosen, old.shard)

    @property
    def left_out(self) -> int:
        """How many of the old run's cases are not in the new run, if that is only a part."""
        return sum(case.id not in self.new.by_id for case in self.old.cases) if self.is_part else 0

    def _worse(self, change: Change) -> bool:
        used = change.budget_after  # "not <": NaN is not below the floor
        return used is not None and not used < self.floor and change.growth > self.factor

    @property
    def ok(self) -> bool:
        """Whether no case newly fails, the new run reached the cases of the old one, every operator with numbers judged
        in the old run still has some, and the records have a case in common."""
        stopped = self.groups["not reached"] or (self.is_part and self.new.missing)
        return not (self.groups["newly failing"] or stopped or self.no_longer_judged or self.is_disjoint)

    @property
    def is_disjoint(self) -> bool:
        """Whether both records have cases, and none in common: nothing is compared."""
        ids, others = self.old.by_id.keys(), self.new.by_id.keys()
        return bool(ids and others) and ids.isdisjoint(others)

    @cached_property
    def no_longer_judged(self) -> list[str]:
        """The operators without judged numbers in the new run, although the old run judged some in cases of both: the
        device now skips them."""
        if not self.new.unjudged:
            return []
        before = {case.op for case in self.old.cases if case.id in self.new.by_id and shows_numbers(case)}
        return [op for op in self.new.unjudged if op in before]

    @property
    def unchanged(self) -> int:
        """Cases in both records that belong to no group."""
        both = self.old.by_id.keys() | self.new.by_id.keys()
        return len(both) - self.left_out - sum(map(len, self.groups.values()))

    @property
    def sentence(self) -> Text:
        counts = [
            _("{count} {what}", count=len(result), what=NAME[name]) for name, result in self.groups.items() if result
        ]
        if not counts:
            return _("No case differs; {same} unchanged.", same=self.unchanged)
        return _("{list}; {same} unchanged.", list=Listing(counts), same=self.unchanged)

    @cached_property
    def notes(self) -> list[Text]:
        """Sentences about what makes the two runs less comparable."""
        old, new = self.old.header, self.new.header

        def known(name: str) -> tuple[Any, Any]:  # older records name none
            one, other = getattr(old, name), getattr(new, name)
            return one or other, other or one

        one_gate, other_gate = (",".join(layers) for layers in known("gate"))
        rules, data = _(" (other rules may apply)"), _(" (the data differ, and so do the budgets)")
        same = old.backend == new.backend
        options = [(_("backend options"), old.options or "-", new.options or "-", "")] if same else []
        pairs: Sequence[tuple[Text, object, object, Text | str]] = (
            (_("backends"), old.backend, new.backend, ""),
            *options,
            (_("SoCs"), old.soc, new.soc, rules),
            (_("versions of CANN"), *known("cann"), rules),
            (_("rules for subnormal numbers"), *known("subnormals"), rules),
            (_("standards"), old.standard, new.standard, ""),
            (_("layers"), ",".join(old.layers), ",".join(new.layers), ""),
            (_("gates"), one_gate, other_gate, ""),
            (_("tiers"), old.tier, new.tier, ""),
            (_("seeds"), old.seed, new.seed, data),
            (_("catalogues"), old.catalogue_sha256[:12], new.catalogue_sha256[:12], _(" (a case may have changed)")),
        )
        notes = [
            _("The {what} differ: {old} and {new}{why}.", what=what, old=_or_none(a), new=_or_none(b), why=why)
            for what, a, b, why in pairs
            if a != b
        ]
        if self.left_out:
            notes.append(_("The new run is a part ({chosen}): {n} cases of the old one are not in it.",
                           chosen=" ".join(filter(None, (new.chosen, new.shard and f"--shard {new.shard}"))),
                           n=self.left_out))  # fmt: skip
        if self.no_longer_judged:
            notes.append(_("The new run judged no number of {operators}; the old one did.",
                           operators=Listing(self.no_longer_judged)))  # fmt: skip
        if self.is_disjoint:
            notes.append(_("The two records have no case in common."))
        notes += [_("The old record: {note}", note=Phrase(note)) for note in self.old.notes]
        notes += [_("The new record: {note}", note=Phrase(note)) for note in self.new.notes]
        return notes

    def describe(self, name: str) -> Text:
        """Describe a group, with the figures that define it."""
        if name != "budget regressions":
            return MEANING[name]
        return _("{meaning}: over {factor} times, and at least {floor} of the bound", meaning=MEANING[name],
                 factor=f"{self.factor:g}", floor=percent(self.floor))  # fmt: skip


def _or_none(value: object) -> Text | str:
    return str(value) if value not in (None, "") else _("(not recorded)")


def text(diff: Difference, *, limit: int = 0, language: Language = ENGLISH) -> str:
    """Return the difference for a terminal; ``limit`` cases per group (0: all)."""
    say = language.say
    sides = ((_("old"), diff.old), (_("new"), diff.new))
    lines = [f"{say(name)}  {record.path}  {record.label}: {say(verdict(record))}" for name, record in sides]
    lines += [say(_("note {note}", note=note)) for note in diff.notes]
    for name, result in diff.groups.items():
        if result:
            lines += ["", f"{say(NAME[name])} ({len(result):,}): {say(diff.describe(name))}"]
            lines += [f"  {_line(change, language)}" for change in (result[:limit] if limit else result)]
            if limit and len(result) > limit:
                lines.append("  " + say(_("... and {more} more (--limit 0 shows all)", more=len(result) - limit)))
    return "\n".join([*lines, "", say(diff.sentence)]) + "\n"


def _line(change: Change, language: Language) -> str:
    parts = [change.id, f"{change.before} -> {change.after}"]
    if not change.group:
        before, after = percent(change.budget_before), percent(change.budget_after)
        parts.append(language.say(_("{before} -> {after} of the bound", before=before, after=after)))
    if change.group == "newly failing" and change.reason:
        parts.append(f"({language.say(Phrase(change.first_reason))})")
    return plain("  ".join(parts))


def markdown(diff: Difference, *, limit: int = 50, language: Language = ENGLISH) -> str:
    """Return the difference in Markdown, for a pull request."""
    say = language.say
    sides = [
        (say(name), code(r.header.backend), code(r.header.soc), code(r.path.name), say(verdict(r)))
        for name, r in ((_("old"), diff.old), (_("new"), diff.new))
    ]
    parts = [f"### {'✅' if diff.ok else '❌'} {say(diff.sentence)}"]
    head = ("", say(_("backend")), "SoC", say(_("record")), say(_("verdict")))
    parts.append(table(head, sides))
    parts += [f"- {escape(say(note))}" for note in diff.notes]
    for name, result in diff.groups.items():
        if result:
            said = (say(text) for text in (NAME[name], diff.describe(name)))
            title, meaning = (text[:1].upper() + text[1:] for text in said)
            parts.append(f"#### {title} ({len(result):,})\n\n{meaning}.")
            parts.append(_rows(result[:limit] if limit else result, language))
            if limit and len(result) > limit:
                parts.append(say(_("… and {more} more.", more=len(result) - limit)))
    return "\n\n".join(parts) + "\n"


def _rows(found: Sequence[Change], language: Language) -> str:
    names = (_("case"), _("before"), _("after"), _("budget before"), _("budget after"), _("reason"))
    rows = [
        (code(c.id), c.before, c.after, percent(c.budget_before), percent(c.budget_after),
         escape(language.say(Phrase(c.first_reason))))
        for c in found
    ]  # fmt: skip
    return table([language.say(name) for name in names], rows)


def to_json(diff: Difference) -> str:
    """Return the difference for programs; budgets that are not finite are strings, as in a record."""
    groups: dict[str, list[dict[str, Any]]] = {
        name.replace(" ", "_"): [
            {"id": c.id, "old": c.before, "new": c.after, "reason": c.reason,
             "old_budget": _or_null(c.budget_before), "new_budget": _or_null(c.budget_after)}
            for c in result
        ]
        for name, result in diff.groups.items()
    }  # fmt: skip
    whole = {
        "ok": diff.ok,
        "old": str(diff.old.path),
        "new": str(diff.new.path),
        "budget_factor": diff.factor,
        "budget_floor": diff.floor,
        "notes": [str(note) for note in diff.notes],
        "unchanged": diff.unchanged,
        **groups,
    }
    return json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _or_null(value: Number | None) -> Number | str | None:
    return None if value is None else finite(value)
