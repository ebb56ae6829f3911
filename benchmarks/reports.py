"""What a report costs: reading a record of 30,000 cases and writing its HTML, against json.loads of the same lines.

    python benchmarks/reports.py [--cases 30000]

The median ratio of seven runs by turns, in processor time, with the seconds and the megabytes beside it.
"""

from __future__ import annotations

import argparse
import json
import statistics
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
    args = parser.parse_args()
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


def seconds(work: Callable[[], object]) -> float:
    """Return the processor time of a call."""
    started = time.process_time()
    work()
    return time.process_time() - started


if __name__ == "__main__":
    sys.exit(main())
