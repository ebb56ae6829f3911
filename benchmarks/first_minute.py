"""The waiting times of a newcomer: the first command, the first run, the first golden, the first failure.

    python benchmarks/first_minute.py [--install] [--json FILE]

The processor time of each command and of all its child processes, as a ratio to ``python -c "import numpy"``: the
median of three. Every command starts with an empty cache folder of its own, except those marked "again". With
``--install`` the first step is ``pip install`` of this checkout into a fresh environment, download included; otherwise
this interpreter runs the commands.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 3
WRONG = """
class Device:
    name = "wrong"

    def run(self, call):
        for out in call.outputs.values():
            out[...] = 1
"""
GOLDEN = """
import numpy as np, oracle
x = np.ones((4, 8), np.float32)
oracle.golden("aclnnTanhBackward", gradOutput=x, output=x)
"""
ORACLE = ("-m", "oracle.cli")
# A description, the words after the interpreter, the expected exit status.
STEPS: Mapping[str, tuple[tuple[str, ...], int]] = {
    "import numpy": (("-c", "import numpy"), 0),
    "--help": ((*ORACLE, "--help"), 0),
    "info": ((*ORACLE, "info"), 0),
    "list --op relu": ((*ORACLE, "list", "--op", "relu"), 0),
    "first golden": (("-c", GOLDEN), 0),
    "smoke of one operator": ((*ORACLE, "run", "--op", "tanh_backward", "--tier", "smoke", "-q"), 0),
    "first failure": (
        (*ORACLE, "run", "--op", "tanh_backward", "--tier", "smoke", "-q", "--backend", "wrong:Device", "-x"),
        1,
    ),
    "smoke of all operators": ((*ORACLE, "run", "--tier", "smoke", "-q"), 0),
}
AGAIN = ("smoke of one operator", "smoke of all operators")  # these keep results for the next run


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--install", action="store_true", help="measure pip install too, and use what it installs")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"measurements of each step (default: {ROUNDS})")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the seconds there")
    args = parser.parse_args()
    result: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "wrong.py").write_text(WRONG, encoding="utf-8")
        python = sys.executable
        if args.install:
            venv.create(folder / "venv", with_pip=True)
            python = str(folder / "venv" / "bin" / "python")
            result["pip install"] = spent([python, "-m", "pip", "install", "-q", str(ROOT)], folder, folder / "pip", 0)
        for step, (words, status) in STEPS.items():
            own, again = [], []
            for number in range(args.rounds):
                cache = folder / f"{step} {number}".replace(" ", "_")
                own.append(spent([python, *words], folder, cache, status))
                if step in AGAIN:
                    again.append(spent([python, *words], folder, cache, status))
            result[step] = statistics.median(own)
            if again:
                result[f"{step}, again"] = statistics.median(again)
    print(f"{'':<32}{'seconds':>8}{'ratio':>8}")
    for step, seconds in result.items():
        print(f"{step:<32}{seconds:>8.2f}{seconds / result['import numpy']:>8.1f}")
    if args.json is not None:
        args.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0


def spent(command: list[str], folder: Path, cache: Path, status: int) -> float:
    """Return the processor seconds of a command and its children. Raises RuntimeError on another exit status."""
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    before = _children()
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, "XDG_CACHE_HOME": str(cache), "PYTHONPATH": path},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    after = _children()
    if done.returncode != status:
        raise RuntimeError(f"{' '.join(command)}: status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return after - before


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
