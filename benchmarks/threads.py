"""The gain of several threads: wall time of a float32 golden by one thread / by several; compiled if numba is there.

    python benchmarks/threads.py                     four operators, 2^20, 2^22 and 2^24 elements; 20 seconds
    python benchmarks/threads.py --threads 4

The two take turns; the ratio is the median of nine rounds. It needs a machine without other load.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from warm import restarted

if __name__ == "__main__":
    restarted()

import numpy as np

import oracle
from oracle.numerics.compiled.engine import installed

ROUNDS = 9
SIZES = (20, 22, 24)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2, help="beside one (default 2)")
    args = parser.parse_args()
    os.environ["ACLNN_ORACLE_ENGINE"] = "compiled" if installed() else "numpy"
    print("| operator | " + " | ".join(f"2^{power}" for power in SIZES) + " |\n|---|" + "---|" * len(SIZES))
    for op in ("LogSigmoid", "Silu", "BinaryCrossEntropy", "Softmax"):
        gains = [gain(golden_of(f"aclnn{op}Backward", 1 << power), args.threads) for power in SIZES]
        print(f"| {op} | " + " | ".join(f"{each:.2f}" for each in gains) + " |", flush=True)
    return 0


def golden_of(op: str, size: int) -> Callable[[], Any]:
    """Return a function that makes a golden of ``size`` elements; a row has 1,024."""
    random = np.random.default_rng(0)
    gradient, share = (random.uniform(0.001, 0.999, size).astype(np.float32) for _ in range(2))
    rows = (-1, 1024)
    operands: Mapping[str, Any] = {
        "aclnnLogSigmoidBackward": {"gradOutput": gradient, "self": share, "buffer": share},
        "aclnnSiluBackward": {"gradOutput": gradient, "self": share},
        "aclnnBinaryCrossEntropyBackward": {
            "gradOutput": gradient, "self": share, "target": gradient, "reduction": 0,
        },
        "aclnnSoftmaxBackward": {"gradOutput": gradient.reshape(rows), "output": share.reshape(rows) / 512, "dim": -1},
    }[op]  # fmt: skip
    return lambda: oracle.golden(op, **operands)


def gain(golden: Callable[[], Any], threads: int) -> float:
    """Return the wall time of one thread / that of several."""
    spent: dict[int, list[float]] = {1: [], threads: []}
    for number in range(ROUNDS + 1):
        for count, times in spent.items():
            os.environ["ACLNN_ORACLE_THREADS"] = str(count)
            start = time.perf_counter()
            golden()
            if number:  # the first call pays for what is made only once
                times.append(time.perf_counter() - start)
    return statistics.median(spent[1]) / statistics.median(spent[threads])


if __name__ == "__main__":
    sys.exit(main())
