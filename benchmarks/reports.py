"""What a report costs: reading a record of 30,000 cases and writing its HTML, against json.loads of the same lines.

    python benchmarks/reports.py [--cases 30000] [--commands]

The median ratio of seven runs by turns, in processor time, with the seconds and the megabytes beside it. ``--commands``
runs `report`, `diff` and `history` on records of that length instead: processor time and memory of each.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import synthetic

from oracle.reporting.html import page

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
            (seconds(lambda: [json.loads(line) for line in lines]), seconds(lambda: page.write([record], report)))
            for _ in range(ROUNDS)
        ]
        ratio = statistics.median(written / read for read, written in pairs)
        spent = statistics.median(written for _, written in pairs)
        print(f"{args.cases} cases: {ratio:.1f} times json.loads, {spent:.2f} s, {report.stat().st_size / 1e6:.1f} MB")
    return 0


def commands(cases: int) -> int:
    """Print what every command costs that reads whole records."""
    with tempfile.TemporaryDirectory() as name:
        folder, planned = Path(name), synthetic.catalogue(cases)
        record = synthetic.write(folder / "a.jsonl", planned)
        shutil.copy(record, folder / "b.jsonl")
        print(f"{cases} cases, {record.stat().st_size / 1e6:.0f} MB a record")
        for words in ("report a.jsonl -o a.html", "diff a.jsonl b.jsonl", "history . -o h.html"):
            started = subprocess.Popen(
                [sys.executable, "-m", "oracle.cli", *words.split()], cwd=folder, stdout=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )  # fmt: skip
            _, status, used = os.wait4(started.pid, 0)
            spent = used.ru_utime + used.ru_stime
            print(f"{words:<28} status {status >> 8}  {spent:6.1f} s  {used.ru_maxrss / 1024:6.0f} MiB")
    return 0


def seconds(work: Callable[[], object]) -> float:
    """Return the processor time of a call."""
    started = time.process_time()
    work()
    return time.process_time() - started


if __name__ == "__main__":
    sys.exit(main())
