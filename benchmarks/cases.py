"""The cost of cases: processor time of small and large ones, in units of a bare pytest item and of one NumPy pass.

    python benchmarks/cases.py [--every 97] [--json FILE] [--against FILE]

The cpu backend runs every 97th case of the standard tier, seven times, in turns with the unit of measurement. The
table shows the medians of the ratios. With --against, the exit status is 1 if a ratio is 25 % worse than the earlier
one. Ratios are compared because seconds depend on the machine.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from oracle.backends.cpu import Backend
from oracle.case.one_case import run_case
from oracle.catalogue import load_all, select
from oracle.catalogue.data.case import Case
from oracle.catalogue.measure import elements
from oracle.settings.settings import Settings

ROUNDS = 7
SMALL, LARGE = 4_096, 50_000  # elements of the largest tensor
WORSE = 1.25
ITEMS = 1_000
PASS = 1 << 16  # elements of one pass


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=97, help="run one in so many cases")
    parser.add_argument("--json", type=Path, help="write the ratios")
    parser.add_argument("--against", type=Path, help="compare them with earlier ones")
    args = parser.parse_args()
    result = measured(args.every)
    for name, ratio in result.items():
        print(f"{name:28} {ratio:8.2f}")
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + "\n")
    if not args.against:
        return 0
    before = json.loads(args.against.read_text())
    worse = [name for name, ratio in result.items() if ratio > WORSE * before[name]]
    for name in worse:
        print(f"{name}: {result[name]:.2f}, {result[name] / before[name]:.2f} of what {args.against} has")
    return 1 if worse else 0


def measured(every: int) -> dict[str, float]:
    """Return the ratios by name."""
    chosen = select(load_all(), tier="standard", soc=Settings(backend="cpu").soc)[::every]
    small = [case for case in chosen if elements(case) <= SMALL]
    large = [case for case in chosen if elements(case) > LARGE]
    size = sum(map(elements, large))
    values = np.linspace(0, 1, PASS)
    rows = []
    run_all(chosen)  # the first case of a kind pays for all of them
    for _ in range(ROUNDS):
        item = bare_item()
        one_pass = seconds(lambda: [np.multiply(values, values) for _ in range(400)]) / 400 / PASS
        of_small = seconds(lambda: run_all(small)) / len(small)
        of_large = seconds(lambda: run_all(large)) / size
        rows.append((of_small / item, of_large / one_pass))
    columns = zip(*rows, strict=True)
    names = ("small case / pytest item", "element / one NumPy pass")
    return {name: round(statistics.median(column), 3) for name, column in zip(names, columns, strict=True)}


def run_all(cases: list[Case]) -> None:
    """Run cases as a worker does, less what pytest adds."""
    backend, settings = Backend(), Settings(backend="cpu")
    for case in cases:
        assert run_case(case, backend, settings).status in ("pass", "skip"), case.id


def seconds(work: Callable[[], object]) -> float:
    """Return the processor time that some work takes."""
    start = time.process_time()
    work()
    return time.process_time() - start


def bare_item() -> float:
    """Return the processor time of a pytest item that does nothing."""
    spent = []
    with tempfile.TemporaryDirectory() as folder:
        for count in (1, ITEMS):
            file = Path(folder) / f"test_{count}.py"
            head = f"import pytest\n@pytest.mark.parametrize('k', range({count}))\n"
            file.write_text(head + "def test_nothing(k): pass\n")
            before = getrusage(RUSAGE_CHILDREN)
            command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null", str(file)]
            subprocess.run(command, check=True, capture_output=True, cwd=folder)
            after = getrusage(RUSAGE_CHILDREN)
            spent.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return (spent[1] - spent[0]) / (ITEMS - 1)


if __name__ == "__main__":
    sys.exit(main())
