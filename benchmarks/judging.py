"""The speed of verdicts: all three layers against numpy.testing.assert_allclose(float32, float64) on the same data.

    python benchmarks/judging.py                     the table, under a minute

``ratio`` is the time of the three layers / the time of assert_allclose (below 1: faster). It is the median of
interleaved runs of one thread; the reference (golden, value, bound) is given. MiB: peak scratch memory, as Python's
allocator tracing measures it. The layers judge a 16-bit output as it is; assert_allclose gets it as float32.
Limits: 2.0 and 64 MiB at 2^22 elements, 300 us for 1000 elements. Exit status 1 if a limit is exceeded.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from oracle.case.judge import judge_values
from oracle.model.call import Call
from oracle.operators import Reference, reference
from oracle.settings.settings import Settings

DTYPES = {"float32": np.float32, "bfloat16": ml_dtypes.bfloat16, "float16": np.float16}
RATIO, SCRATCH, SMALL = 2.0, 64.0, 300e-6


def call_of(dtype: str, size: int) -> Call:
    """Return a LogSigmoid call."""
    r = np.random.default_rng(0)
    g, x = r.normal(size=size).astype(DTYPES[dtype]), (4 * r.normal(size=size)).astype(DTYPES[dtype])
    inputs, outputs = {"gradOutput": g, "self": x, "buffer": x}, {"gradInput": np.empty_like(x)}
    return Call("aclnnLogSigmoidBackward", "ascend910b", inputs, {}, outputs)


def answer(dtype: str, size: int) -> tuple[Reference, np.ndarray]:
    """Return the reference of that call and the answer of a float32 kernel."""
    call = call_of(dtype, size)
    g, x = (call.inputs[name].astype(np.float32) for name in ("gradOutput", "self"))
    return reference(call), (g / (1 + np.exp(x))).astype(DTYPES[dtype])


def interleaved(first: Callable[[], Any], second: Callable[[], Any], repeats: int) -> tuple[float, float]:
    """Return the median time of the first function, and the median of the ratios first / second."""
    first(), second()
    times: list[tuple[float, float]] = []
    for _ in range(repeats):
        marks = [time.perf_counter()]
        for run in (first, second):
            run()
            marks.append(time.perf_counter())
        times.append((marks[1] - marks[0], marks[2] - marks[1]))
    return statistics.median(a for a, _ in times), statistics.median(a / b for a, b in times)


def scratch(run: Callable[[], Any]) -> float:
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1000,65536,4194304", help="elements (default 1000,65536,4194304)")
    parser.add_argument("--repeats", type=int, default=11)
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    rows, missed = [], 0
    print(f"{'dtype':10}{'elements':>10}{'ratio':>8}{'us':>10}{'MiB':>7}")
    for dtype in DTYPES:
        for size in map(int, args.sizes.split(",")):
            known, actual = answer(dtype, size)
            wide, value = actual.astype(np.float32), known.value.astype(np.float64)

            def layers(known: Reference = known, actual: np.ndarray = actual) -> Any:
                _, result = judge_values(known, actual, Settings())
                assert all(layer.passed for layer in result.values()), result

            def allclose(wide: np.ndarray = wide, value: np.ndarray = value) -> None:
                np.testing.assert_allclose(wide, value, rtol=0.01, atol=0.01)

            seconds, ratio = interleaved(layers, allclose, args.repeats if size > 10_000 else 20 * args.repeats)
            row = {"dtype": dtype, "elements": size, "ratio": ratio, "seconds": seconds, "mib": scratch(layers)}
            rows.append(row)
            late = (size == 1 << 22 and dtype == "float32" and ratio > RATIO) or row["mib"] > SCRATCH
            late |= size == 1000 and seconds > SMALL
            missed += late
            print(f"{dtype:10}{size:10}{ratio:8.2f}{seconds * 1e6:10.0f}{row['mib']:7.1f}{'  above its limit' * late}")
    if args.json:
        args.json.write_text(json.dumps({"numpy": np.__version__, "rows": rows}, indent=1))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
