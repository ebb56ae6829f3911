"""The distance of the goldens from the memory limit: bytes per element, elements per second, share of a copy's speed.

    python benchmarks/roofline.py                    the table, two minutes
    python benchmarks/roofline.py --op aclnnGeluBackward --dtype bfloat16
    python benchmarks/roofline.py --judged           also the cost of a golden with value and strict bound, in goldens

A golden reads every operand once and writes its output once. No kernel can be faster than a copy of the same number of
bytes by the same number of threads (half read, half written). Both take turns; the share is the median of seven rounds.
One thread is measured in processor time, several in wall time, which needs a quiet machine. The case is the operator's
large case of the catalogue. Its time includes the proof of rounding. The engine is the compiled one if numba is there.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from warm import restarted

if __name__ == "__main__":
    restarted()
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from measuring import ROUNDS, cases_of, memory_of

import oracle
from oracle.numerics.compiled.engine import installed
from oracle.operators import OPERATORS, reference

TURN = 0.05  # seconds


class Row(NamedTuple):
    """An operator's row for one number of threads."""

    op: str
    threads: int
    bytes_per_element: float
    elements_per_second: float
    share: float
    judged: float = 0.0  # the time of a golden with its value and strict bound, in goldens


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--op", action="append", choices=tuple(OPERATORS), metavar="NAME", help="default: all")
    parser.add_argument("--dtype", choices=("float32", "float16", "bfloat16"), default="float32")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--judged", action="store_true", help="measure goldens with their value and strict bound too")
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    os.environ["ACLNN_ORACLE_ENGINE"] = "compiled" if installed() else "numpy"
    heads = "".join(f" elements per second, {n} threads | share of a copy |" for n in args.threads)
    heads += " with its bound, in goldens |" * args.judged
    print(f"| operator | bytes per element |{heads.replace('1 threads', '1 thread')}")
    print("|---|---|" + "---|---|" * len(args.threads) + "---|" * args.judged)
    rows: list[Row] = []
    for op in args.op or OPERATORS:
        result = [measured(op, args.dtype, threads, judged=args.judged) for threads in args.threads]
        cells = "".join(f" {row.elements_per_second / 1e6:.3g} M | {row.share:.0%} |" for row in result)
        cells += f" {result[0].judged:.2g} |" * args.judged
        print(f"| {op} | {result[0].bytes_per_element:.3g} |{cells}", flush=True)
        rows += result
    if args.json:
        args.json.write_text(json.dumps([row._asdict() for row in rows], indent=1) + "\n")
    return 0


def measured(op: str, dtype: str, threads: int, *, judged: bool) -> Row:
    """Measure an operator's golden against a copy, and the time of everything that a verdict needs."""
    os.environ["ACLNN_ORACLE_THREADS"] = str(threads)
    call = memory_of(cases_of(op, dtype)[1]).call
    outputs = [array for array in call.outputs.values() if array is not None]
    moved = sum(array.nbytes for array in (*call.inputs.values(), *outputs) if array is not None)
    size = max(array.size for array in (*call.inputs.values(), *outputs) if array is not None)
    with ThreadPoolExecutor(threads) as pool:
        work = [lambda: oracle.golden(call), copy_of(moved, threads, pool), *([lambda: reference(call)] * judged)]
        golden, copied, *known = turns(threads, *work)
    share = statistics.median(c / g for g, c in zip(golden, copied, strict=True))
    times = [statistics.median(k / g for g, k in zip(golden, each, strict=True)) for each in known]
    return Row(op, threads, moved / size, size / statistics.median(golden), share, *times)


def copy_of(moved: int, threads: int, pool: ThreadPoolExecutor) -> Callable[[], Any]:
    """Return a function that copies ``moved`` bytes in all (read and written), by several threads."""
    source, target = (np.ones((threads, moved // 2 // threads), np.uint8) for _ in range(2))
    if threads == 1:
        return lambda: np.copyto(target, source)
    return lambda: list(pool.map(np.copyto, target, source))


def turns(threads: int, *work: Callable[[], Any]) -> list[list[float]]:
    """Return the seconds of each piece of work in every round."""
    clock = time.process_time if threads == 1 else time.perf_counter
    times = []
    for run in work:
        run()
        started = clock()
        run()
        times.append(max(1, round(TURN / (clock() - started))))
    spent: list[list[float]] = [[] for _ in work]
    for _ in range(ROUNDS):
        for run, count, result in zip(work, times, spent, strict=True):
            started = clock()
            for _ in range(count):
                run()
            result.append((clock() - started) / count)
    return spent


if __name__ == "__main__":
    sys.exit(main())
