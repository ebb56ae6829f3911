"""A device that ends the process of the run from below does not end it well."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from small import HEAD

from oracle.guest.watch import CASE, End, sentence_of, status_of

HERE = Path(__file__).parents[1]
PATHS = os.pathsep.join([str(HERE), str(HERE.parent)])


def told(*, ended: bool = False, status: int = 0, case: str = "") -> bytes:
    return bytes([ended, status]) + case.encode() + bytes(8)


def exited(code: int) -> int:
    return code << 8


def test_an_end_that_was_not_reached_is_never_good_and_names_the_case() -> None:
    for code in (0, 1, 3, 5):
        end = End(told(case="a/b[c]"), exited(code))
        assert status_of(end) == 1
        assert f"exit status {code} in or after the case a/b[c]:" in sentence_of(end)
    assert "before the first case" in sentence_of(End(told(), exited(0)))
    assert "signal 11 (SIGSEGV)" in sentence_of(End(told(case="a"), signal.SIGSEGV))
    assert len(told()) > CASE


def test_an_end_that_was_reached_has_the_program_s_own_status() -> None:
    for code in (0, 1, 2, 130):
        end = End(told(ended=True, status=code), exited(code))
        assert (status_of(end), sentence_of(end)) == (code, "")
    assert status_of(End(told(ended=True, status=1), exited(0))) == 1  # a library left while Python was closing
    assert status_of(End(told(ended=True, status=255), exited(2))) == 2  # an exception: Python chose the status


def test_a_signal_that_the_user_sent_is_no_device_s_fault() -> None:
    assert sentence_of(End(told(case="a"), signal.SIGTERM, frozenset({signal.SIGTERM}))) == ""


PROGRAM = """\
import ctypes, os, signal, sys, time
from oracle.guest import watch
watch.watch()
watch.running("a/b[c]")
{do}
watch.ended(0)
"""


def program(do: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(do=do)], env={**os.environ, "PYTHONPATH": PATHS}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are watched on Linux")
def test_a_watched_program_ends_as_it_would_alone_but_for_an_end_from_below() -> None:
    ends = {
        "pass": 0,
        "sys.exit(7)": 1,  # the end was not reached, and nothing told of it
        "watch.ended(7); sys.exit(7)": 7,
        "ctypes.PyDLL(None)._exit(0)": 1,
        "os.kill(os.getpid(), signal.SIGKILL)": -signal.SIGKILL,
        "watch.ended(3); ctypes.PyDLL(None)._exit(0)": 3,
    }
    running = {do: program(do) for do in ends}
    for do, process in running.items():
        err = process.communicate()[1]
        assert (process.returncode, "a/b[c]" in err) == (ends[do], "ended(" not in do and do != "pass"), (do, err)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are watched on Linux")
def test_signals_reach_the_program_and_it_does_not_outlive_who_was_started() -> None:
    for sent in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        process = program("print(os.getpid(), flush=True); time.sleep(600)")
        child = int(process.stdout.readline())
        assert child != process.pid
        process.send_signal(sent)
        err = process.communicate()[1]  # the child holds the other ends of these pipes: it is gone too
        assert process.returncode == -sent
        assert "a device" not in err


FAMILY = (
    "  leaves_from_below:\n    why: a fault of a device\n    tier: smoke\n    dtype: float32\n    shape: [[6, 9]]\n"
)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are watched on Linux")
@pytest.mark.parametrize("command", ["oracle.cli run", "pytest"])
def test_a_run_that_its_device_ends_from_below_has_failed(command, tmp_path) -> None:
    (tmp_path / "log_sigmoid_backward.yaml").write_text(HEAD + FAMILY)
    (tmp_path / "conftest.py").write_text("import numpy\n")  # its threads do not matter
    words = [*command.split(), "log_sigmoid_backward.yaml", "--backend", "faults:Faulty", "-q"]
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=tmp_path, env={**os.environ, "PYTHONPATH": PATHS}, text=True,
        capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    assert "in or after the case log_sigmoid_backward/leaves_from_below[float32-6x9]" in done.stderr
