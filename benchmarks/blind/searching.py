"""Measure the search: the processor time until a drawn call fails, for wrong kernels that the standard tier misses.

    python -m benchmarks.blind.searching [--minutes 5] [--kernel 'aclnnTanh: ...' ...]

Without --kernel it takes the kernels of MISSED. The time is that of the process, with golden, kernel and verdict of
every call. The same seed draws the same calls on every machine.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from benchmarks.blind import SETS
from benchmarks.blind.kernel import CPU, Wrong
from oracle.case.one_case import run_case
from oracle.catalogue.data.case import Case
from oracle.catalogue.expand.drawing import RandomCalls
from oracle.operators import OPERATORS
from oracle.record.types import CaseRecord
from oracle.search import Search
from oracle.settings.settings import Settings

LAYERS = ("structure", "strict")  # as aclnn-oracle search
MISSED = Path(__file__).with_name("missed.txt")  # "operator: kernel", a line each


class Ended(Exception):
    """A call failed, or the time is over."""


def seek(kernel: Wrong, minutes: float) -> tuple[float, int, bool]:
    """Search until a call fails or the time is over; return minutes of processor time, calls, whether one failed."""
    settings = replace(Settings(), layers=LAYERS, gate=LAYERS)
    started, failed = time.process_time(), False

    def run(case: Case) -> CaseRecord:
        nonlocal failed
        record = run_case(case, kernel, settings)
        if not record.ok and not run_case(case, CPU, settings).ok:
            print(f"  a right kernel fails too: {case.inputs} {case.attrs} {record.reason}")
            return replace(record, status="pass")
        failed = not record.ok
        if failed or time.process_time() - started > 60 * minutes:
            raise Ended
        return record

    for case in (RandomCalls(OPERATORS[kernel.op], settings.soc, "", 1).draw() for _ in range(30)):
        if case is not None:  # compile loops, once per machine, before the time begins
            run_case(case, CPU, settings)
    started = time.process_time()
    search = Search([OPERATORS[kernel.op]], settings, run)
    with suppress(Ended):
        for _ in search.seek(math.inf):
            pass
    return (time.process_time() - started) / 60, search.found[kernel.op].calls, failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5.0, help="of processor time for a kernel (default 5)")
    parser.add_argument("--kernel", action="append", default=[], metavar="NAME", help="operator: kernel; repeatable")
    args = parser.parse_args()
    named = {f"{k.op}: {k.name}": k for kernels in SETS.values() for k in kernels if isinstance(k, Wrong)}
    wanted = args.kernel or MISSED.read_text("utf-8").splitlines()
    result = 0
    for name in wanted:
        minutes, calls, failed = seek(named[name], args.minutes)
        result += failed
        print(f"{name}: {'found' if failed else 'not found'} after {minutes:.2f} min, {calls:,} calls", flush=True)
    print(f"{result} of {len(wanted)} found")
    return 0


if __name__ == "__main__":
    sys.exit(main())
