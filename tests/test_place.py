"""A child process per backend: a death is a crash, a hang is a timeout, and the next case still runs."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from misbehaving import log_sigmoid
from ordinary import in_full_alone

from oracle.explain.diagnosis import family_of
from oracle.guest.process import Process
from oracle.model.errors import OracleError
from oracle.place import Bench
from oracle.record.types import CaseRecord, Detail
from oracle.settings.settings import Settings


def lines(device, *names, **settings):
    """Return the record of a case of each name, on a device of misbehaving.py."""
    with closing(Bench(Settings(backend=f"misbehaving:{device}", **settings))) as bench:
        return [bench.run_case(log_sigmoid(name)) for name in names]


def test_of_many_failures_in_a_row_without_a_cause_few_are_asked_for_one(monkeypatch):
    asked = []

    def failing(case, *where, explained=True):
        asked.append(explained)
        cause = "a cause" if len(asked) == 49 else ""
        return CaseRecord(case.id, case.op, "float32", "fail", detail=Detail(cause=cause))

    monkeypatch.setattr("oracle.place.run_case", failing)
    bench = Bench(Settings(), _backend=object())
    monkeypatch.setattr(bench, "open", lambda: None)
    for _ in range(110):
        bench.further(log_sigmoid("plain"))
    assert asked[:41] == [True] * 41
    assert asked[41:49] == [False] * 7 + [True]
    assert asked[49:90] == [True] * 41, "one that has a cause begins anew"


def test_only_a_case_of_the_run_is_tried_in_a_second_process(monkeypatch):
    started = []
    monkeypatch.setattr(Process, "__init__", _counting(started, Process.__init__))
    counts = []
    with closing(Bench(Settings(backend="misbehaving:Invents"))) as bench:
        for run in (bench.run_case, bench.further, bench.run_case):  # a process' first case needs no second process
            assert run(log_sigmoid("plain")).status == "fail"
            counts.append(len(started))
    assert counts == [1, 1, 2]


def _counting(started, begin):
    def counted(self, settings):
        started.append(settings)
        begin(self, settings)

    return counted


LEAVES = """
from misbehaving import log_sigmoid
from oracle.settings.settings import Settings
from oracle.place import Bench

bench = Bench(Settings(backend="misbehaving:Dies", timeout=100.0))
bench.open()
keeper = bench._backend._process._keeper.pid
print(keeper, *open(f"/proc/{keeper}/task/{keeper}/children").read().split(), flush=True)
bench.run_case(log_sigmoid("hangs"))
"""


@in_full_alone
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux alone tells a process that its parent is gone")
def test_a_device_that_hangs_is_let_go_when_its_run_is_killed():
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", LEAVES], env=env, stdout=subprocess.PIPE, text=True) as run:
        keeper, child = map(int, run.stdout.readline().split())
        time.sleep(1)  # until the device hangs
        run.kill()
    deadline = time.monotonic() + 20
    left = {Path(f"/proc/{keeper}"), Path(f"/proc/{child}")}
    while any(map(Path.exists, left)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(Path.exists, left))


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the words are glibc's")
def test_what_the_c_library_says_of_a_damaged_heap_is_kept_and_passed_on(capfd):
    plain, frees, after = lines("DamagesTheHeap", "plain", "frees", "after", isolate=True)
    assert [line.status for line in (plain, frees, after)] == ["pass", "crash", "pass"]
    assert frees.reason == "the device's process ended: signal 6 (SIGABRT); its last words: free(): invalid pointer"
    assert family_of(frees.detail.cause) == "outside"
    assert "a line of a log\nfree(): invalid pointer" in capfd.readouterr().err


def test_a_device_that_calls_itself_broken_gets_a_new_process_for_the_next_case():
    result = lines("Breaks", "one", "breaks", "two", isolate=True)
    assert [line.status for line in result] == ["pass", "error", "pass"]


def test_a_device_that_does_not_come_back_makes_errors_and_loses_no_case(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = lines("StaysAway", "dies", "two", "three", isolate=True)
    assert [line.status for line in result] == ["crash", "error", "error"]
    assert "FileExistsError" in result[2].reason


@pytest.mark.parametrize("isolate", [True, False])
def test_a_device_that_does_not_open_or_close_is_told_in_one_line(isolate):
    with pytest.raises(
        OracleError, match="backend misbehaving:DoesNotOpen could not be opened: OSError: set-up failed"
    ):
        Bench(Settings(backend="misbehaving:DoesNotOpen", isolate=isolate)).open()
    bench = Bench(Settings(backend="misbehaving:DoesNotClose", isolate=isolate))
    bench.open()
    with pytest.raises(OracleError, match="backend device could not be closed: OSError: still busy"):
        bench.close()


def test_a_process_that_dies_while_it_ends_is_told():
    bench = Bench(Settings(backend="misbehaving:DiesAtTheEnd", isolate=True))
    bench.open()
    with pytest.raises(OracleError, match=r"ended with signal 9 \(SIGKILL\) after closing"):
        bench.close()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux limits what a process may allocate")
def test_a_case_that_needs_more_memory_than_allowed_is_an_error_and_the_others_run():
    result = lines("Allocates", "one", "large", "two", max_memory=2 << 30)
    assert [line.status for line in result] == ["pass", "error", "pass"]
    assert "MemoryError" in result[1].reason


@in_full_alone
def test_a_backend_that_is_not_loaded_in_time_is_told():
    bench = Bench(Settings(backend="misbehaving:LoadsForEver", isolate=True, backend_timeout=2.0))
    with pytest.raises(OracleError, match=r"LoadsForEver was not loaded within 2 s \(--timeout-per-case\)"):
        bench.open()


def test_close_ends_a_child_that_is_idle_at_once():
    bench = Bench(Settings(backend="misbehaving:Device", isolate=True))
    bench.open()
    started = time.monotonic()
    bench.close()
    assert time.monotonic() - started < 4
