"""A worker that is lost says nothing of the device: its case is not run, and --resume repeats it."""

from __future__ import annotations

from ordinary import in_full_alone
from small import HEAD

from oracle.record.reader import read

CATALOGUE = f"""{HEAD}\
  some:
    why: something to run in a test
    dtype: float32
    shape: [[1], [2], [3], [4], [5], [6], [7], [8]]
"""
ENDS_ONCE = """\
import os
from pathlib import Path
from oracle.place import Bench

run_case = Bench.run_case
def ends(self, case, *others):
    if "-5" in case.id and "PYTEST_XDIST_WORKER" in os.environ and not Path("ended").exists():
        Path("ended").touch()
        os._exit(1)
    return run_case(self, case, *others)
Bench.run_case = ends
"""


@in_full_alone
def test_a_case_whose_worker_is_lost_is_not_run_and_resume_repeats_it(pytester, monkeypatch):
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)  # of the run that this test is in
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:hypothesispytest")
    pytester.makefile(".yaml", log_sigmoid_backward=CATALOGUE)
    pytester.makeconftest(ENDS_ONCE)
    result = pytester.runpytest_subprocess("-n", "1", "--record", "r.jsonl")
    assert result.ret == 1
    record = read(pytester.path / "r.jsonl")
    assert record.complete
    assert {status: count for status, count in record.counts.items() if count} == {"pass": 7, "notrun": 1}
    (lost,) = (case for case in record.cases if case.status == "notrun")
    assert lost.reason.endswith("ended while it had this case; --resume repeats it")
    assert pytester.runpytest_subprocess("--resume", "r.jsonl").ret == 0
    assert read(pytester.path / "r.jsonl").counts["pass"] == 8
