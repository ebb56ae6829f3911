"""The case list as columns: what is the same in all runs once, then what each run found. The script reads it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...record.fields import Number
from ...record.reader import CaseRecord, split_id
from ...record.types import LAYERS, STATUSES
from ...system.strictjson import finite
from ..language import words
from ..language.words import known, objections
from ..summary import Summary, suffix

REASON = 400


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
    """The cases of all runs, (label, summary) each; rows in the order of first appearance."""

    def __init__(self, runs: Sequence[tuple[str, Summary]]) -> None:
        self.runs = runs
        self.cases: dict[str, CaseRecord] = {}
        for _name, summary in runs:
            for case in summary.record.cases:
                self.cases.setdefault(case.id, case)
        self.row_of = {case_id: row for row, case_id in enumerate(self.cases)}
        found = {name for _name, summary in runs for case in summary.record.cases for name in case.verdicts}
        self.layers = known({*LAYERS, *found})

    def columns(self) -> dict[str, Any]:
        """Return the block the script reads; numbers that are not finite are strings."""
        prefixes, families, ops, dtypes, reasons = Strings(), Strings(), Strings(), Strings(), Strings()
        cases: dict[str, list[Any]] = {"prefix": [], "family": [], "tail": [], "op": [], "dtype": []}
        for case in self.cases.values():
            prefix, family, tail = split_id(case.id)
            row = (prefixes(prefix), families(family), tail, ops(case.op), dtypes(case.dtype))
            for name, value in zip(cases, row, strict=True):
                cases[name].append(value)
        runs = [self._run(label, summary, reasons) for label, summary in self.runs]
        return {
            "schema": 2,
            "statuses": STATUSES,
            "order": words.ORDER,
            "layers": self.layers,
            "prefixes": prefixes.all,
            "families": families.all,
            "ops": ops.all,
            "dtypes": dtypes.all,
            "cases": cases,
            "runs": runs,
            "reasons": reasons.all,
        }

    def _run(self, label: str, summary: Summary, reasons: Strings) -> dict[str, Any]:
        """What one run found. ``layers`` has a bit for each layer that rejects the case."""
        cluster_of = {case.id: cluster.number for cluster in summary.clusters for case in cluster.cases}
        names = ("status", "err", "share", "ms", "reason", "cluster", "layers")
        columns: dict[str, list[Any]] = {name: [] for name in names}
        number = {status: i for i, status in enumerate(STATUSES)}
        bit = {layer: 1 << i for i, layer in enumerate(self.layers)}
        for case_id in self.cases:
            case = summary.record.by_id.get(case_id)
            if case is None:
                row: tuple[Any, ...] = (-1, None, None, None, -1, 0, 0)
            else:
                row = (
                    number[case.status],
                    three(case.budget_used),
                    three(case.kernel_share),
                    three(None if case.duration_s is None else 1000 * case.duration_s),
                    reasons(words.clip(case.reason, REASON)) if case.reason else -1,
                    cluster_of.get(case_id, 0),
                    sum(bit[layer] for layer in objections(case)),
                )
            for name, value in zip(columns, row, strict=True):
                columns[name].append(value)
        if all(value is None for value in columns["share"]):
            columns["share"] = []  # a record without it
        return {"label": label, "replay": suffix(summary.record.header), **columns}


def three(value: Number | None) -> Number | str | None:
    """Three significant digits, which is what the list shows."""
    if value is None:
        return None
    if not math.isfinite(value):
        return finite(value)
    short = float(f"{value:.3g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short
