"""The search: calls are drawn, those with unvisited conditions preferred, and run until the time is over.

Of a few draws the one is run that shows most conditions, and pairs of them, which no earlier call had. A failure is
reduced as any other; failures that break the same rule in the same way are one.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from ..catalogue.data.case import Case
from ..catalogue.expand.drawing import Drawer, Word, words
from ..explain.conditions import Fact, facts_of
from ..explain.contrast import contrast, counted, sentence
from ..model.errors import OracleError
from ..operators.definition.operator import Operator
from ..record.types import CaseRecord
from ..reduce.shrink import shrink_with
from ..settings.settings import Settings

RunCase = Callable[[Case], CaseRecord]
OFFERED = 2  # draws of which the one with most that is new is run
KEPT = 3  # failures of an operator that are reduced; after these it is searched no more
RUNS = 150  # of a reduction
CONTRASTED = 600  # passing calls that failing ones are contrasted with


@dataclass(frozen=True)
class Failure:
    """A failing call: as it was drawn, and as small as it still fails."""

    case: Case
    reduced: Case
    record: CaseRecord


@dataclass
class Searched:
    """What became of one operator: calls run, conditions and pairs of them visited, and the failures."""

    op: str
    calls: int = 0
    visited: set[tuple[Word, ...]] = field(default_factory=set)
    failures: list[Failure] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    judged: list[tuple[Mapping[str, Fact], bool]] = field(default_factory=list)  # what calls are, and whether they fail

    def contrast(self) -> str:
        """What tells the failing calls from the passing ones, "" where nothing does."""
        found = contrast([facts for facts, _ in self.judged], np.array([bad for _, bad in self.judged], bool))
        return "" if found is None else f"{sentence(found.conditions)}: {counted(found)}"


class Search:
    """Searches some operators by turns."""

    def __init__(self, operators: Sequence[Operator], settings: Settings, run: RunCase) -> None:
        self.settings, self.run = settings, run
        self.drawers = [Drawer(op, settings.soc, settings.cann or "", settings.seed) for op in operators]
        self.found = {op.name: Searched(op.name) for op in operators}
        self._keys: set[tuple[str, ...]] = set()

    def seek(self, seconds: float) -> Iterator[Searched]:
        """Run calls until the time is over, by turns; yield an operator's state after each turn."""
        end = time.monotonic() + seconds
        drawers = [drawer for drawer in self.drawers if drawer.dtypes]
        while drawers and time.monotonic() < end:
            for drawer in tuple(drawers):
                state = self.found[drawer.op.name]
                turn = time.monotonic() + 1.0
                while time.monotonic() < min(turn, end) and len(state.failures) < KEPT:
                    if not self._step(drawer, state):
                        drawers.remove(drawer)
                        break
                yield state
                if len(state.failures) >= KEPT and drawer in drawers:
                    drawers.remove(drawer)

    def _step(self, drawer: Drawer, state: Searched) -> bool:
        """Run one call; False where none could be drawn."""
        best: tuple[int, Case, set[tuple[Word, ...]]] | None = None
        for _ in range(OFFERED):
            case = drawer.draw()
            if case is None:
                continue
            new = _conditions(words(case)) - state.visited
            if best is None or len(new) > best[0]:
                best = len(new), case, new
        if best is None:
            return False
        _, case, new = best
        state.visited |= new
        state.calls += 1
        record = self.run(case)
        if record.status == "skip":
            state.skipped[record.reason] += 1
            return True
        if not record.ok or len(state.judged) < CONTRASTED:
            state.judged.append((facts_of(record), not record.ok))
        if not record.ok:
            self._failed(case, record, state)
        return True

    def _failed(self, case: Case, record: CaseRecord, state: Searched) -> None:
        """Reduce a failure of a new kind."""
        key = (case.op, record.status, record.detail.rule if record.detail else record.reason[:40], case.dtype)
        if key in self._keys:
            return
        self._keys.add(key)
        try:
            shrunk = shrink_with(self.run, case, self.settings, runs=RUNS)
            reduced, record = shrunk.case, shrunk.record
        except OracleError:  # it does not fail twice, or an error of this package: kept as it is
            reduced = case
        state.failures.append(Failure(case, reduced, record))


def _conditions(of: Iterable[Word]) -> set[tuple[Word, ...]]:
    """Conditions and pairs of them."""
    known = [(subject, str(value)) for subject, value in of]
    return {*((word,) for word in known), *combinations(known, 2)}
