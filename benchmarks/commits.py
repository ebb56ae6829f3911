"""Compare the standard tier of some operators with another commit of this repository.

    python benchmarks/commits.py COMMIT [OPERATOR ...] [--rounds N]

For each operator: the processor time of `aclnn-oracle run` by one process, start and report included. The two commits
take turns; the median of N runs each (3), after a first one that fills the caches. A ratio above 1: this checkout is
faster.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOUR = ("binary_cross_entropy_backward", "nll_loss_backward", "softmax_backward", "log_sigmoid_backward")
MAIN = "import sys; from oracle.cli import main; sys.exit(main())"


def seconds(tree: Path, folder: Path, operator: str) -> float:
    """Return the processor time of one run of an operator by the code of a tree."""
    settings = {"PYTHONPATH": str(tree), "XDG_CACHE_HOME": str(folder / "cache"), "OMP_NUM_THREADS": "1"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-c", MAIN, "run", "--op", operator, "-q", "-n", "0"],
        cwd=folder, env={**os.environ, **settings}, stdout=subprocess.DEVNULL, check=True,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit")
    parser.add_argument("operators", nargs="*", default=FOUR)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        other = Path(temporary, "other")
        subprocess.run(["git", "clone", "-q", ROOT, other], check=True)
        subprocess.run(["git", "checkout", "-q", args.commit], cwd=other, check=True)
        trees = {tree: Path(temporary, name) for tree, name in ((ROOT, "own"), (other, "theirs"))}
        for folder in trees.values():
            folder.mkdir()
        for operator in args.operators:
            took: dict[Path, list[float]] = {tree: [] for tree in trees}
            for _ in range(args.rounds + 1):
                for tree, folder in trees.items():
                    took[tree].append(seconds(tree, folder, operator))
            own, theirs = (statistics.median(took[tree][1:]) for tree in (ROOT, other))
            print(f"{operator:30} {own:6.1f} s, {args.commit} {theirs:6.1f} s, ratio {theirs / own:.2f}", flush=True)


if __name__ == "__main__":
    main()
