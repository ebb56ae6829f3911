"""Measure the time of cases: the source of the constants in oracle/catalogue/measure.py.

    python benchmarks/case_cost.py [OPERATOR ...]

The time is processor time of this process, so that other programs on the machine matter little. One line per operator:
the median of small cases, the time per element of large ones, and the total estimate / the total time.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from oracle.backends.cpu import Backend
from oracle.case.one_case import run_case
from oracle.catalogue import select
from oracle.catalogue.data.case import Case
from oracle.catalogue.loader import load_default
from oracle.catalogue.measure import constants, cost, elements
from oracle.operators.answers.registry import operator_named
from oracle.settings.settings import Settings

USUAL = ("gelu_backward", "relu", "softmax", "softmax_backward", "rms_norm", "nll_loss", "nll_loss_backward")
SMALL, LARGE = (0, 2_000), (20_000, 1 << 18)  # elements: time constant, time grows with size
EACH = 40  # cases of each size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("operators", nargs="*", default=USUAL)
    settings, backend = Settings(), Backend()

    def seconds(case: Case) -> float:
        began = time.process_time()
        run_case(case, backend, settings)
        return time.process_time() - began

    for name in parser.parse_args().operators:
        op = operator_named(name)
        cases = [c for c in select(load_default((op.name,)), tier="standard") if c.computes(settings.soc)]
        random.Random(0).shuffle(cases)
        small, large = ([c for c in cases if low <= elements(c) < high][:EACH] for low, high in (SMALL, LARGE))
        for case in small[:3]:
            seconds(case)  # the first cases pay for what is made only once
        took = {case.id: seconds(case) for case in (*small, *large)}
        first = statistics.median(took[c.id] for c in small)
        further = statistics.median((took[c.id] - first) / elements(c) for c in large) if large else float("nan")
        off = sum(map(cost, (*small, *large))) / sum(took.values())
        print(f"{op.slug:24} {1e3 * first:.2f} ms, {further:.2g} s an element; estimated {constants(op.name)}, "
              f"{off:.2f} of what all {len(took)} took")  # fmt: skip


if __name__ == "__main__":
    main()
