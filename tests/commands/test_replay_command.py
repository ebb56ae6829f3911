"""aclnn-oracle replay: its report of a pass and of a failure, and that its own command repeats it."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time

import processes
import pytest

from oracle import cli
from oracle.catalogue import default_dir

CASE = "log_sigmoid_backward/first_look[float32-6x35-buffer]"
NEAR = "silu_backward/zero_crossing[float32-20x33-near]"
WRONG = f"replay {CASE} --backend misbehaving:FlipsOneSign"


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_an_unknown_id_suggests_close_ones(capsys):
    assert cli.main(["replay", CASE.replace("6x35", "6x36")]) == 2
    assert f"  {CASE}\n" in capsys.readouterr().err


@pytest.mark.parametrize(("words", "status", "says"), [
    (f"replay {CASE}", 0, [f"aclnnLogSigmoidBackward  PASS  {CASE}\n", "structure passed", "standard  passed",
        "strict    passed", "budget used:", "seconds: golden"]),
    (f"{WRONG} --seed 4", 1, ["FAIL", "strict    FAILED", "expected/actual bits", "ULPs", "one element, [0, 0]",
        "wrong sign", f"replay   aclnn-oracle replay '{CASE}' --backend misbehaving:FlipsOneSign --seed 4"]),
    (f"replay {NEAR} --backend misbehaving:WrongStep", 1,
        ["a step of the formula is wrong: `1 - (1 / (exp((-self)) + 1))` becomes `1 + "]),
])  # fmt: skip
def test_replay_tells_everything_of_a_pass_and_of_a_failure(capsys, words, status, says):
    assert cli.main(words.split()) == status
    text = capsys.readouterr().out
    assert [each for each in says if each not in text] == []


def test_the_replay_command_of_a_failure_replays_it(capsys):
    cli.main([*WRONG.split(), "--overflow", "saturate"])
    first = capsys.readouterr().out
    (line,) = [row for row in first.splitlines() if row.startswith("  replay")]
    assert cli.main(shlex.split(line)[2:]) == 1
    strip = [row for row in first.splitlines() if "seconds" not in row]
    assert [row for row in capsys.readouterr().out.splitlines() if "seconds" not in row] == strip


@pytest.mark.slow
def test_an_interrupt_exits_130(tmp_path):
    text = (default_dir() / "log_sigmoid_backward.yaml").read_text().replace("  first_look:", "  hangs:", 1)
    (tmp_path / "log_sigmoid_backward.yaml").write_text(text)
    words = ["replay", CASE.replace("first_look", "hangs"), "--catalogue", ".", "--backend", "misbehaving:Dies"]
    path = os.pathsep.join(map(str, (processes.TESTS, processes.ROOT)))
    command = "import sys, oracle.cli; print('up', flush=True); sys.exit(oracle.cli.main())"
    process = subprocess.Popen(
        [sys.executable, "-c", command, *words], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path, "TELLS_THAT_IT_HANGS": str(tmp_path / "hangs")}, text=True,
    )  # fmt: skip
    while not (tmp_path / "hangs").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=180)
    assert (process.returncode, err) == (130, "aclnn-oracle: interrupted\n")
