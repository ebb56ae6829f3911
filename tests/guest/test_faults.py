"""Whatever a device does, it costs its own case: no other case changes, none is lost, and no run that had one is good.

The table of faults is in faults.py. ACLNN_TEST_FAULTS=1 runs the whole of it through pytest too, in four modes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from faults import FAULTS, SLEEPER
from misbehaving import log_sigmoid
from small import HEAD

from oracle.guest.kill import COOKIE
from oracle.numerics.floats.environment import State
from oracle.place.bench import Bench
from oracle.record.reader import read
from oracle.record.types import CaseRecord
from oracle.settings.settings import Settings

HERE = Path(__file__).parents[1]
APART = ("surrogate_raised", "sets_signals", "writes_to_the_pipe", "dies_beside_a_session")


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    monkeypatch.syspath_prepend(str(HERE))


def wrong(name: str, line: CaseRecord, status: str | None) -> list[str]:
    """Return what is not as the table says of a fault's case."""
    said = " ".join([line.reason, *line.notes])
    silent = status == "pass" != FAULTS[name].apart
    right = line.status == status and (silent or FAULTS[name].told in said)
    return [] if right else [f"{name}: {line.status} {said[:300]!r}"]


def lines_of(bench: Bench, names: list[str]) -> dict[str, CaseRecord]:
    return {name: bench.run_case(log_sigmoid(name)) for name in names}


def test_in_the_process_of_the_run_a_fault_is_a_status_of_its_case_and_the_process_stays_as_it_was(capfd):
    names = [name for name, fault in FAULTS.items() if fault.here is not None]
    bench = Bench(Settings(backend="faults:Faulty"))
    before, arithmetic = (sys.stdout, sys.path[:], Path.cwd(), dict(os.environ)), State.now()
    lines = lines_of(bench, [*names, "plain"])
    bench.close()
    arithmetic.restore()  # what a device sets of it stays so for the device
    assert [told for name in names for told in wrong(name, lines[name], FAULTS[name].here)] == []
    assert (lines["plain"].status, lines["plain"].notes) == ("pass", ())
    assert before == (sys.stdout, sys.path, Path.cwd(), dict(os.environ))
    os.write(1, b"still open")
    assert capfd.readouterr().out == "still open"


def test_in_a_process_of_its_own_a_fault_is_a_status_of_its_case_and_nothing_of_it_survives():
    names = list(FAULTS) if "ACLNN_TEST_FAULTS" in os.environ else list(APART)
    bench = Bench(Settings(backend="faults:Faulty", isolate=True, timeout=10.0 if "hangs" in names else None))
    try:
        lines = lines_of(bench, [*names, "plain"])
    finally:
        bench.close()
    assert [told for name in names for told in wrong(name, lines[name], FAULTS[name].apart)] == []
    assert lines["plain"].status == "pass"
    if Path("/proc/self/environ").exists():
        mine = {**os.environ}.get(COOKIE)
        left = [p for p in Path("/proc").glob("[0-9]*/environ") if _is_ours(p)]
        assert mine is None
        assert left == []


def _is_ours(environ: Path) -> bool:
    """Whether a process is one that a fault has left behind."""
    try:
        return f"{COOKIE}=".encode() in environ.read_bytes() and SLEEPER[-1].encode() in (
            environ.with_name("cmdline").read_bytes()
        )
    except OSError:
        return False


FAMILY = "  {name}:\n    why: a fault of a device\n    tier: smoke\n    dtype: float32\n    shape: [[6, 9]]\n"


@pytest.mark.skipif("ACLNN_TEST_FAULTS" not in os.environ, reason="minutes: ACLNN_TEST_FAULTS=1 (.ci/run --full)")
@pytest.mark.parametrize("mode", [[], ["--isolate"], ["-n", "2"], ["-n", "2", "--isolate"]], ids=" ".join)
def test_planned_is_the_sum_of_the_statuses_in_every_mode(mode, tmp_path):
    apart = "--isolate" in mode
    alone = [name for name, fault in FAULTS.items() if fault.here is None and not apart]
    together = [name for name in FAULTS if name not in alone and (apart or name != "hangs")]
    for number, names in enumerate([together, *([name] for name in alone if name != "hangs")]):
        folder = tmp_path / str(number)
        folder.mkdir()
        text = HEAD + "".join(FAMILY.format(name=name) for name in ["before", *names, "plain"])
        (folder / "log_sigmoid_backward.yaml").write_text(text)
        limit = ["--timeout-per-case", "20"] if apart else []
        words = ["-q", "--backend", "faults:Faulty", "--record", "r.jsonl", *mode, *limit]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *words], cwd=folder, capture_output=True, text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parent)])}, timeout=500,
            check=False,
        )  # fmt: skip
        told = textwrap.shorten(done.stdout + done.stderr, 4000)
        assert done.returncode != 0, (names, told)
        assert "INTERNALERROR" not in told, (names, told)
        record = read(folder / "r.jsonl")
        assert record.planned == record.header.planned == len(names) + 2, (names, told)
        if number == 0:
            assert record.complete, told
            status = {name: record.by_id[f"log_sigmoid_backward/{name}[float32-6x9]"] for name in [*names, "plain"]}
            expected = {name: FAULTS[name].apart if apart else FAULTS[name].here for name in names}
            assert {name: status[name].status for name in names} == expected
            assert status["plain"].status == "pass"
