"""A failing case handed over as a script that is known to fail: reduced, run, and only then given away.

The trials run in a child process. Where the case ends it (a crash, a silence), every trial gets a process of its own:
memory that one trial damaged would otherwise end another one. The finished script is run as its reader will run it. If
it does not fail, the whole case is tried as a script; if that does not fail either, nothing is handed over.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path

from ..catalogue.data.case import Case
from ..model.errors import bounded
from ..place.bench import Bench
from ..record.types import CaseRecord
from ..settings.settings import Settings
from .script import script
from .shrink import ShrunkCase, State, shrink_with, whole

GONE = ("crash", "timeout")  # ends of a case after which its process is of no use
LIMIT = 300.0  # seconds for the finished script where the settings have none


@dataclass(frozen=True)
class Handover:
    """What a failing case became. ``text``: the script, "" where none fails; ``told``: what its run gave."""

    shrunk: ShrunkCase
    text: str
    told: str


class Trials:
    """Runs a case again and again on a bench, after a crash each time in a fresh process."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.fresh = False

    def run(self, case: Case) -> CaseRecord:
        """Run a case, as :func:`.shrink.shrink_with` asks for it."""
        if self.fresh:
            self.bench.restart()
        record = self.bench.run_case(case)
        self.fresh |= record.status in GONE
        return record


def hand_over(case: Case, bench: Bench) -> Handover:
    """Reduce a failing case and prove its script. Raises OracleError where there is nothing to reduce."""
    if case.before is not None:  # the forward is not asked again: its results are literals from here on
        made = State.of(case, bench.settings.seed, bench.operands_after(case))
        case = replace(made.ready(), before=None)
    trials = Trials(bench)
    shrunk = shrink_with(trials.run, case, bench.settings)
    failed, told = _proved(shrunk)
    if not failed:
        shrunk, reduced = whole(case, shrunk.record, bench.settings, runs=shrunk.runs), told
        failed, told = _proved(shrunk)
        if not failed:
            return Handover(shrunk, "", f"the reduced case: {reduced}; the whole case: {told}")
        told += "; the case could not be reduced"
    return Handover(shrunk, script(shrunk, proof=told), told)


def _proved(shrunk: ShrunkCase) -> tuple[bool, str]:
    """Run a script as its reader will, and say how it ended and whether that is the failure."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "failure.py"
        path.write_text(script(shrunk), encoding="utf-8")
        limit = shrunk.settings.timeout or LIMIT
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join(word for word in sys.path if word))
        try:
            done = subprocess.run(
                [sys.executable, str(path)], stdin=subprocess.DEVNULL, capture_output=True, env=environment,
                timeout=limit, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return shrunk.record.status == "timeout", f"no answer in {limit:g} s"
    out, err = (text.decode("utf-8", "replace") for text in (done.stdout, done.stderr))
    last = bounded((err.strip() or out.strip()).rpartition("\n")[2], 200)
    return fails(shrunk.record, done.returncode, out, err), f"exit status {done.returncode}: {last}"


def fails(record: CaseRecord, code: int, out: str, err: str) -> bool:
    """Whether a script's run shows the failure of its case, and not merely some failure."""
    if record.status == "crash":
        return code not in (0, 1)
    if record.status == "error":
        return code != 0 and record.reason.partition(":")[0] in err
    return code == 1 and "WRONG" in out


@contextmanager
def output_kept_free() -> Iterator[None]:
    """Let what a backend or its process prints go to standard error: standard output is the script's."""
    sys.stdout.flush()
    saved = os.dup(1)
    try:
        os.dup2(2, 1)
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(saved, 1)
        os.close(saved)


def in_a_process(settings: Settings) -> Settings:
    """Return settings whose device has a process of its own, unless --no-isolate."""
    return settings if settings.isolate is False else replace(settings, isolate=True)
