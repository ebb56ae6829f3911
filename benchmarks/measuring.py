"""Calls of the catalogue that the benchmarks measure on, and the method: turns, medians, processor time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from oracle.case.prepare import Memory
from oracle.catalogue import load_all, select
from oracle.catalogue.data.case import Case
from oracle.catalogue.measure import elements
from oracle.model.aclnn import DEFAULT_SOC

ROUNDS = 7
BATCH = 0.02  # the least processor time of one measurement, in seconds
FEW = 200  # elements of a small case, about


@cache
def cases_of(op: str, dtype: str = "float32") -> tuple[Case, Case]:
    """Return a small case of an operator, about 200 elements, and a large one, a million elements if there is one."""
    result = [
        case
        for case in select(load_all(), soc=DEFAULT_SOC)
        if (case.op, case.dtype) == (op, dtype) and case.computes(DEFAULT_SOC) and not case.uninformative
        if all(plan is None or plan.view == "contiguous" for plan in (*case.inputs.values(), *case.outputs.values()))
    ]
    small = min(result, key=lambda case: (case.family != "first_look", abs(elements(case) - FEW)))
    return small, max(result, key=lambda case: (case.family == "large", case.tier != "full", elements(case)))


def memory_of(case: Case) -> Memory:
    """Return the memory of a case: its inputs, and its outputs before they are written."""
    return Memory.make(case, soc=DEFAULT_SOC, seed=0)


def medians(work: Mapping[str, Callable[[], Any]], rounds: int = ROUNDS) -> dict[str, float]:
    """Return the processor seconds of each piece of work: the median of batches that take turns."""
    spent: dict[str, list[float]] = {name: [] for name in work}
    batches = {name: batch_of(run) for name, run in work.items()}
    for _ in range(rounds):
        for name, run in work.items():
            spent[name].append(seconds(run, batches[name]))
    return {name: statistics.median(times) for name, times in spent.items()}


def seconds(run: Callable[[], Any], times: int = 1) -> float:
    """Return the processor time of one call, the mean of ``times`` calls."""
    started = time.process_time()
    for _ in range(times):
        run()
    return (time.process_time() - started) / times


def batch_of(run: Callable[[], Any]) -> int:
    """Return the number of calls that makes a measurement long enough."""
    run()  # the first call pays for what is made only once
    return max(1, round(BATCH / max(seconds(run), 1e-7)))
