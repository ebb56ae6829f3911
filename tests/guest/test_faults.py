"""A device fault affects only its own case: no other case changes or is lost, and no run with a fault is good.

The table of faults is in faults.py. ACLNN_TEST_FAULTS=1 runs all of it, also through pytest, alone and with two
workers; without it only a part runs.
"""

from __future__ import annotations

import os
import sys
import textwrap
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import processes
import pytest
from faults import FAULTS, SLEEPER
from misbehaving import log_sigmoid
from ordinary import FULL, in_full_alone
from small_catalogues import LOG_SIGMOID as HEAD

from oracle.case.prepare import Prepared
from oracle.place import Bench
from oracle.record.reader import read
from oracle.record.types import CaseRecord
from oracle.settings.settings import Settings

pytestmark = pytest.mark.slow

WHOLE = "ACLNN_TEST_FAULTS" in os.environ
# One fault for each way in which it could reach another case.
SLICE = ("surrogate_raised", "interrupts", "answers_an_end", "writes_later", "leaves_later", "leaves_an_orphan",
         "dies_beside_a_session", "writes_everywhere", "sets_a_near_alarm", "no_descriptors", "patches_numpy",
         "no_imports")  # fmt: skip
alone = pytest.mark.skipif(not (FULL or WHOLE), reason="the bench above meets the same faults: .ci/full runs it")
NAMES = list(FAULTS) if WHOLE else list(SLICE)


def wrong(name: str, line: CaseRecord) -> list[str]:
    """Return the differences between a case's record and the table's row for its fault."""
    said = " ".join([line.reason, *line.notes])
    right = line.status == FAULTS[name].status and FAULTS[name].message in said
    return [] if right else [f"{name}: {line.status} {said[:300]!r}"]


def test_a_fault_is_a_status_of_its_case_and_nothing_of_it_survives():
    cases = [log_sigmoid(each) for name in NAMES for each in (name, f"after_{name}")]
    with closing(Bench(Settings(backend="faults:Faulty", timeout=5.0))) as bench:
        lines = [bench.run_case(case, None, then) for case, then in zip(cases, [*cases[1:], None], strict=True)]
    assert [problem for name, line in zip(NAMES, lines[::2], strict=True) for problem in wrong(name, line)] == []
    after = dict(zip(NAMES, lines[1::2], strict=True))
    assert {name: (line.status, line.reason, line.notes) for name, line in after.items()} == dict.fromkeys(
        NAMES, ("pass", "", ())
    )
    assert _left() == []


def _left() -> list[Path]:
    """Return the processes that a fault has left behind."""
    return [path.parent for path in Path("/proc").glob("[0-9]*/cmdline") if _sleeps(path)]


def _sleeps(path: Path) -> bool:
    try:
        return SLEEPER[-1].encode() in path.read_bytes()
    except OSError:  # the process has ended
        return False


FAMILY = "  {name}:\n    why: a fault of a device\n    tier: smoke\n    dtype: float32\n    shape: [[6, 9]]\n"


@pytest.mark.parametrize(
    "mode", [pytest.param([], id="alone", marks=alone), pytest.param(["-n", "2"], id="-n 2", marks=alone)]
)
def test_planned_is_the_sum_of_the_statuses_and_every_other_case_passes(mode, tmp_path):
    others = [f"after_{name}" for name in NAMES]
    families = [each for pair in zip(NAMES, others, strict=True) for each in pair]
    text = HEAD + "".join(FAMILY.format(name=name) for name in families)
    (tmp_path / "log_sigmoid_backward.yaml").write_text(text)
    words = ["-q", "--backend", "faults:Faulty", "--record", "r.jsonl", "--timeout-per-case", "5", *mode]
    done = processes.python("-m", "pytest", *words, cwd=tmp_path)
    message = textwrap.shorten(done.stdout + done.stderr, 4000)
    assert done.returncode == 1, message
    assert "INTERNALERROR" not in message, message
    record = read(tmp_path / "r.jsonl")
    assert record.complete, message
    assert record.planned == len(families) == len(record.cases)
    status = {name: record.by_id[f"log_sigmoid_backward/{name}[float32-6x9]"].status for name in families}
    assert status == {**{name: FAULTS[name].status for name in NAMES}, **dict.fromkeys(others, "pass")}
    assert _left() == []


def cheat(way: str, *, isolate: bool | None) -> str:
    """Return the status of a case whose device looks for the golden instead of computing it."""
    case = log_sigmoid(way, (5, 20 + len(way)))  # a shape that no other test has left in memory
    with closing(Bench(Settings(backend="misbehaving:Cheats", isolate=isolate))) as bench:
        return bench.run_case(case).status


@pytest.mark.parametrize("way", ["frames", "gc", "freed"])
def test_a_device_that_looks_for_the_golden_finds_none(way):
    assert cheat(way, isolate=None) == "fail"


@pytest.mark.parametrize("way", ["frames", "gc"])
def test_in_the_process_of_the_judge_it_would_find_it(way):
    assert cheat(way, isolate=False) == "pass"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux shows a process its own memory as a file")
def test_the_memory_of_the_device_holds_no_golden(monkeypatch, tmp_path):
    case = log_sigmoid("memory", (5, 20 + len("memory")))
    prepared = Prepared.make(case, Settings())
    golden, given = prepared.references["gradInput"].golden, prepared.memory.inputs["self"]
    wanted = {"float32": golden.astype(np.float32), "float64": golden.astype(np.float64), "inputs": given}
    for name, array in wanted.items():  # inverted, so that reading the file itself is not a find
        (tmp_path / name).write_bytes(bytes(byte ^ 0xFF for byte in array.tobytes()[:64]))
    monkeypatch.setenv("CHEATS_WITH", str(tmp_path))
    assert cheat("memory", isolate=None) == "fail"
    assert (tmp_path / "found").read_text().split() == ["inputs"]  # the search itself works: it finds the inputs


@in_full_alone
def test_a_process_that_is_killed_between_two_cases_costs_none():
    with closing(Bench(Settings(backend="faults:Faulty"))) as bench:
        for number in range(3):
            assert bench.run_case(log_sigmoid(f"plain{number}")).status == "pass"
            os.kill(bench._backend._process._keeper.pid, 9)
            time.sleep(0.05)
        assert bench.run_case(log_sigmoid("last")).status == "pass"
