"""Search for failing calls outside the catalogues: drawn from an operator's declaration, run, and saved on failure."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, islice
from typing import Any

import numpy as np

from .catalogue.data.case import Case, TensorPlan
from .catalogue.expand.drawing import RandomCalls, Word, words
from .catalogue.plan.planning import word
from .catalogue.portable import not_finite
from .explain.conditions import contrast, counted, sentence
from .explain.facts import Fact, facts_of
from .model.errors import OracleError
from .operators import OPERATORS
from .operators.definition.operator import Operator
from .record.types import OF_ORACLE, CaseRecord
from .reduce.shrink import shrink_with
from .settings.settings import Settings

# A found call as a family of a catalogue, so that any run can repeat it.

Found = tuple[Case, str]  # a call, and the reason for it


def catalogue_text(op: str, found: Iterable[Found]) -> str:
    """Return a catalogue of some calls of one operator, as YAML."""
    names = OPERATORS[op].names("input")
    lines = [
        "aclnn_oracle: 1",
        f"operator: {op}",
        f"defaults: {_flow({'inputs': dict.fromkeys(names, 'normal')})}",
        "families:",
    ]
    for number, (case, why) in enumerate(found, 1):
        lines.append(f"  found_{number}:")
        lines += [f"    {key}: {_flow(value)}" for key, value in _family(case, why).items()]
        outputs = {name: _tensor(plan) for name, plan in case.outputs.items() if plan is not None}
        lines.append(f"    output: {_flow(next(iter(outputs.values())) if len(outputs) == 1 else outputs)}")
    return "\n".join(lines) + "\n"


def _family(case: Case, why: str) -> dict[str, Any]:
    main = case.inputs[OPERATORS[case.op].main]
    assert main is not None  # a call that computes has its main operand
    return {
        "why": why,
        "tier": "smoke",
        "dtype": main.dtype,
        "shape": [list(main.shape)],
        "attrs": {name: word(v) if isinstance(v, tuple) else v for name, v in case.attrs.items()},
        "inputs": {name: None if plan is None else _tensor(plan) for name, plan in case.inputs.items()},
        "uninformative": "found by search: as small as it still fails",
    }


def _tensor(plan: TensorPlan) -> dict[str, Any]:
    said: dict[str, Any] = {**(plan.data or {}), "dtype": plan.dtype, "shape": list(plan.shape)}
    view, plus, begin = plan.view.partition("+")
    said |= {} if view == "contiguous" else {"view": view}
    return said | ({"offset": int(begin)} if plus else {})


def _flow(value: Any) -> str:
    """Return a value in YAML's flow style, with numbers in the form of YAML 1.2."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_flow(v)}" for key, v in value.items()) + "}"
    if isinstance(value, np.ndarray):
        return _flow(value.astype(np.float64 if value.dtype.kind not in "iub" else np.int64).tolist())
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float) and not math.isfinite(value):
        return not_finite(value)
    if isinstance(value, float):
        mantissa, e, exponent = repr(value).partition("e")
        return f"{mantissa if '.' in mantissa else mantissa + '.0'}{e}{exponent}" if e else mantissa
    if isinstance(value, int):
        return str(value)
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") + '"'


# The search draws calls, prefers those with unvisited conditions, and runs them until the time is over.
#
# Among a few draws it runs the call with the most new conditions and pairs of conditions. A failure is reduced like any
# other; failures that break the same rule in the same way count as one.

RunCase = Callable[[Case], CaseRecord]
OFFERED = 2  # draws per call; the draw with the most new conditions is run
PATIENCE = 25  # draws at most for one call: the host refuses most calls of some operators; if all, the search drops it
KEPT = 3  # failures of an operator that are reduced; then its search ends
RUNS = 150  # runs of one reduction
CONTRASTED = 600  # passing calls to compare failing ones with


@dataclass(frozen=True)
class Failure:
    """A failing call: as drawn, and reduced to the smallest call that still fails."""

    case: Case
    reduced: Case
    record: CaseRecord


@dataclass
class Searched:
    """The results for one operator: the number of calls, the visited conditions and their pairs, and the failures."""

    op: str
    calls: int = 0
    visited: set[tuple[Word, ...]] = field(default_factory=set)
    failures: list[Failure] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    judged: list[tuple[Mapping[str, Fact], bool]] = field(default_factory=list)  # a call's facts, and whether it fails

    def contrast(self) -> str:
        """Return the conditions that distinguish failing calls from passing ones; "" if there are none."""
        result = contrast([facts for facts, _ in self.judged], np.array([bad for _, bad in self.judged], bool))
        return "" if result is None else f"{sentence(result.conditions)}: {counted(result)}"


class Search:
    """Searches some operators in turn."""

    def __init__(self, operators: Sequence[Operator], settings: Settings, run: RunCase) -> None:
        self.settings, self.run = settings, run
        self.drawers = [RandomCalls(op, settings.soc, settings.cann or "", settings.seed) for op in operators]
        self.found = {op.name: Searched(op.name) for op in operators}
        #: Operators of which the SoC refuses every dtype.
        self.refused = {drawer.op.name for drawer in self.drawers if not drawer.dtypes}
        self._keys: set[tuple[str, ...]] = set()

    def seek(self, seconds: float) -> Iterator[Searched]:
        """Run calls until the time is over, one operator after another; yield an operator's state after each turn."""
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

    def _step(self, drawer: RandomCalls, state: Searched) -> bool:
        """Run one call; return False if no call could be drawn."""
        best: tuple[int, Case, set[tuple[Word, ...]]] | None = None
        for case in islice(filter(None, (drawer.draw() for _ in range(PATIENCE))), OFFERED):
            new = _conditions(words(case)) - state.visited
            if best is None or len(new) > best[0]:
                best = len(new), case, new
        if best is None:
            return False
        _, case, new = best
        state.visited |= new
        state.calls += 1
        record = self.run(case)
        if record.status == "skip" or record.reason.startswith(OF_ORACLE):  # no golden: the device is not to blame
            state.skipped[record.reason] += 1
            return True
        if not record.ok or len(state.judged) < CONTRASTED:
            state.judged.append((facts_of(record), not record.ok))
        if not record.ok:
            self._failed(case, record, state)
        return True

    def _failed(self, case: Case, record: CaseRecord, state: Searched) -> None:
        """Reduce a failure if it is of a new kind."""
        key = (case.op, record.status, record.detail.rule if record.detail else record.reason[:40], case.dtype)
        if key in self._keys:
            return
        self._keys.add(key)
        try:
            shrunk = shrink_with(self.run, case, self.settings, runs=RUNS)
            reduced, record = shrunk.case, shrunk.record
        except OracleError:  # it does not fail again, or an error of this package: kept unreduced
            reduced = case
        state.failures.append(Failure(case, reduced, record))


def _conditions(of: Iterable[Word]) -> set[tuple[Word, ...]]:
    """Return conditions and pairs of conditions."""
    known = [(subject, str(value)) for subject, value in of]
    return {*((word,) for word in known), *combinations(known, 2)}
