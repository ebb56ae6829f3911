"""Injected faults: every action does what docs/emulator.md says, at the named call, and nothing else."""

from __future__ import annotations

import signal

import numpy as np
import pytest
from emulated import Job, call, drive

OP = "aclnnLogSigmoidBackward"
GUARD = 8  # elements before and behind the output in its storage


def job(timeout: int = 20000) -> Job:
    """gradInput = 2 * sigmoid(-0) = 1, in the middle of a storage of sevens."""
    out = np.full(16 + 2 * GUARD, 7, np.float32)[GUARD:-GUARD]
    params = {
        "gradOutput": np.full(16, 2, np.float32),
        "self": np.zeros(16, np.float32),
        "buffer": np.zeros(1, np.float32),
    }
    return Job(OP, params | {"gradInput": out}, timeout=timeout)


def run(tree, faults, count=1, **options):
    return call(tree, [job(**options) for _ in range(count)], FAULTS=faults)


def storage(answer):
    return answer.storage("gradInput", np.float32)


RIGHT = np.asarray([7] * GUARD + [1] * 16 + [7] * GUARD, np.float32)
INSIDE = slice(GUARD, -GUARD)


@pytest.mark.parametrize(("action", "wrong"), [("wrong", 1), ("zeros", 16), ("nan", 16), ("stale", 16)])
def test_wrong_values_inside_the_output(tree, action, wrong):
    (answer,) = run(tree, f"{OP}={action}")
    assert (answer.launch, answer.sync) == (0, 0)
    assert np.count_nonzero(storage(answer) != RIGHT) == wrong
    assert np.array_equal(storage(answer)[:GUARD], RIGHT[:GUARD])
    assert np.array_equal(storage(answer)[-GUARD:], RIGHT[-GUARD:])
    if action == "stale":
        assert np.all(storage(answer) == 7)
    if action == "nan":
        assert np.all(np.isnan(storage(answer)[INSIDE]))


@pytest.mark.parametrize(("action", "hit"), [("underrun", slice(None, GUARD)), ("overrun", slice(-GUARD, None))])
def test_stray_writes_outside_the_output(tree, action, hit):
    (answer,) = run(tree, f"{OP}={action}")
    changed = storage(answer) != RIGHT
    assert np.all(changed[hit])
    assert np.count_nonzero(changed) == GUARD


def test_a_changed_input(tree):
    (answer,) = run(tree, f"{OP}=input")
    assert np.array_equal(storage(answer), RIGHT)
    assert np.count_nonzero(answer.storage("gradOutput", np.float32) != 2) == 1


@pytest.mark.parametrize("code", [507015, 507035, 507014])
def test_a_deferred_fault_of_any_code(tree, code):
    first, second = run(tree, f"{OP}#1=fault:{code}", count=2)
    assert (first.status, first.launch, first.sync) == (0, 0, code)
    assert "injected fault" in first.message
    assert np.array_equal(storage(second), RIGHT)  # the driver has reset the device


def test_a_slow_kernel_and_latency_run_into_a_short_timeout_only(tree):
    assert [run(tree, f"{OP}=slow:200", timeout=t)[0].sync for t in (20, 20000)] == [507046, 0]
    assert run(tree, "", timeout=20)[0].sync == 0
    assert call(tree, [job(timeout=20)], LATENCY_US="300000")[0].sync == 507046


def test_a_crash_ends_the_process_by_a_signal(tree):
    done = drive(tree, [job(), job()], FAULTS=f"{OP}#2=crash")
    assert done.returncode == -signal.SIGSEGV
    assert len(done.stdout.splitlines()) == 1


def test_calls_fail_with_the_code_at_the_number(tree):
    assert [a.status for a in run(tree, f"{OP}GetWorkspaceSize#2=561003", count=3)] == [0, 561003, 0]
    assert [a.status for a in run(tree, f"{OP}GetWorkspaceSize#2+=561003", count=3)] == [0, 561003, 561003]
    assert [a.launch for a in run(tree, f"{OP}=361001", count=2)] == [361001, 361001]


def test_a_call_that_says_success_and_does_nothing(tree):
    first, second = run(tree, f"{OP}#1=0", count=2)
    assert (first.launch, first.sync) == (0, 0)
    assert np.all(storage(first) == 7)
    assert np.array_equal(storage(second), RIGHT)


@pytest.mark.parametrize("pattern", ["aclrtMalloc#3", "aclrtMall*#3"])
def test_an_allocation_fails(tree, pattern):
    done = drive(tree, [job()], FAULTS=f"{pattern}=207001")
    assert "aclrtMalloc failed with 207001: EL0004: [aclrtMalloc] injected fault" in done.stderr


def test_several_faults_at_once_and_the_first_that_fits_decides(tree):
    faults = f"{OP}#1=zeros; {OP}=nan;{OP}GetWorkspaceSize#3=561000"
    first, second, third = run(tree, faults, count=3)
    assert np.all(storage(first)[INSIDE] == 0)
    assert np.all(np.isnan(storage(second)[INSIDE]))
    assert third.status == 561000


def test_a_misspelt_fault_is_refused_at_the_start(tree):
    done = drive(tree, [job()], FAULTS=f"{OP}=explode")
    assert done.returncode != 0
    assert "unknown action; known: wrong zeros nan" in done.stderr


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("FAULT", "aclrtMalloc=1", "ACLNN_EMULATOR_FAULT is none of the emulator's; known after ACLNN_EMULATOR_: SOC"),
        ("LATENCY_US", "1ms", "ACLNN_EMULATOR_LATENCY_US is '1ms', not a whole number from 0"),
        ("MEMORY_MB", "-1", "ACLNN_EMULATOR_MEMORY_MB is '-1', not a whole number"),
        ("OP_TIMEOUT_MS", "9" * 30, "not a whole number from 0 to 1000000000"),
        ("DEVICES", "65", "not a whole number from 0 to 64"),
        ("CANN", "7", "ACLNN_EMULATOR_CANN is '7'; known: 8.5, 9.0, 9.1, 9.2, master"),
        ("TRACE", "/dev/null/trace", "ACLNN_EMULATOR_TRACE=/dev/null/trace cannot be written"),
    ],
)
def test_a_variable_that_cannot_be_right_is_refused_at_the_start(tree, name, value, message):
    done = drive(tree, [job()], **{name: value})
    assert "aclInit failed with 100000" in done.stderr
    assert message in done.stderr


def test_the_trace_shows_calls_arguments_and_runs(tree, tmp_path):
    trace = tmp_path / "trace"
    call(tree, [job()], TRACE=str(trace))
    text = trace.read_text()
    assert f"{OP}GetWorkspaceSize(gradOutput=float32(16,), self=float32(16,), buffer=float32(1,), " in text
    assert "gradInput=float32(16,) offset 8) -> 0" in text
    assert f"ran {OP} on device 0, stream 1" in text
    assert "aclrtMalloc() -> 0" in text
