"""The cost of a report: reading a record of 30,000 cases and writing its HTML, against json.loads of the same lines.

    python benchmarks/reports.py [--cases 30000] [--commands]

The output is the median ratio of seven runs in turns, in processor time, with the seconds and the megabytes.
``--commands`` instead runs `report`, `history`, `diff` and `merge` on records of that length: processor time and memory
of each.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import synthetic

from oracle.record.reader import read
from oracle.reporting import formats

ROUNDS = 7


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=30_000, help="lines of the record")
    parser.add_argument("--commands", action="store_true", help="processor time and memory of each command")
    args = parser.parse_args()
    if args.commands:
        return commands(args.cases)
    with tempfile.TemporaryDirectory() as folder:
        record = synthetic.write(Path(folder) / "run.jsonl", synthetic.catalogue(args.cases))
        lines = record.read_text(encoding="utf-8").splitlines()
        report = Path(folder) / "report.html"
        pairs = [
            (
                seconds(lambda: [json.loads(line) for line in lines]),
                seconds(lambda: formats.write([read(record, brief=True)], report)),
            )
            for _ in range(ROUNDS)
        ]
        ratio = statistics.median(written / read for read, written in pairs)
        spent = statistics.median(written for _, written in pairs)
        print(f"{args.cases} cases: {ratio:.1f} times json.loads, {spent:.2f} s, {report.stat().st_size / 1e6:.1f} MB")
    return 0


def commands(cases: int) -> int:
    """Print the cost of every command that reads whole records."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:  # a command's memory begins with its parent's
            pool.submit(write, folder, cases).result()
        print(f"{cases} cases, {(folder / 'a.jsonl').stat().st_size / 1e6:.0f} MB a record")
        for words in ("report a.jsonl -o a.html", "history . -o h.html", "diff a.jsonl a.jsonl", "merge 1 2 -o m"):
            started = subprocess.Popen(
                [sys.executable, "-m", "oracle.cli", *words.split()], cwd=folder, stdout=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )  # fmt: skip
            _, status, used = os.wait4(started.pid, 0)
            spent = used.ru_utime + used.ru_stime
            print(f"{words:<28} status {status >> 8}  {spent:6.1f} s  {used.ru_maxrss / 1024:6.0f} MiB")
    return 0


def write(folder: Path, cases: int) -> None:
    """Write a record, and its cases as two shards."""
    planned = [as_a_run_writes(case) for case in synthetic.catalogue(cases)]
    synthetic.write(folder / "a.jsonl", planned)
    for k in (1, 2):
        synthetic.write(folder / str(k), planned[k - 1 :: 2], shard=f"{k}/2")


def as_a_run_writes(case: dict[str, Any]) -> dict[str, Any]:
    """Return a passing case with all keys that a run writes; the figures differ in every case."""
    used = case["budget_used"]
    figures = {"matched_ratio": 1.0, "max_abs_error": used * 1e-4, "max_abs_error_limit": 0.1, "special_mismatch": 0.0,
               "v1_matched_ratio": 1.0, "v1_max_abs_error_limit": 0.1, "v1_passed": 1.0, "per_element_passed": 1.0,
               "special_count_passed": 1.0}  # fmt: skip
    metrics = {"structure": {}, "standard": figures, "strict": {"budget_used": used}}
    shape = case["id"].partition("-")[2].partition("-")[0].replace("x", ",")
    return {
        **case, "metrics": figures, "elements": 231, "reduced": 33, "magnitude": used * 7, "kernel_share": used / 2,
        "verdicts": {name: {"passed": True, "reason": "", "metrics": found} for name, found in metrics.items()},
        "ulps": {"0": 129, "1": 80, "2": int(used * 22)}, "authority": "document", "attrs": {"dim": -1},
        "inputs": {"gradOutput": f"{case['dtype']}[{shape}] normal", "output": f"{case['dtype']}[{shape}] softmax"},
        "outputs": {"out": f"{case['dtype']}[{shape}]"},
    }  # fmt: skip


def seconds(work: Callable[[], object]) -> float:
    """Return the processor time of a call."""
    started = time.process_time()
    work()
    return time.process_time() - started


if __name__ == "__main__":
    sys.exit(main())
