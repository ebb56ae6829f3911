"""The sweep sees every pair, proves the golden, finds wrong devices, and goes on where it stopped."""

from __future__ import annotations

import numpy as np
import pytest

from oracle.backends import load
from oracle.cli import main
from oracle.model.errors import OracleError
from oracle.sweep.engine import SCATTER, Progress, midpoints, run
from oracle.sweep.pairs import CODES, PAIRS, pairs

DTYPES = ("float16", "bfloat16")
OPS = tuple(PAIRS)


def proof(op, dtype, rows=32, **more):
    return run(pairs(op, dtype, "ascend910b"), None, Progress({}), rows=rows, **more)


def test_every_row_comes_exactly_once():
    assert np.unique(np.arange(CODES) * SCATTER % CODES).size == CODES


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_golden_is_proved_on_a_part_of_the_pairs(op, dtype):
    progress = proof(op, dtype)
    assert (progress.wrong, progress.pairs) == (0, 32 * CODES)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_golden_that_is_one_ulp_off_anywhere_is_found(op, dtype, monkeypatch):
    from oracle.sweep import engine

    def off_by_one(call, numerics):
        out = right(call, numerics=numerics)
        finite = np.flatnonzero(np.isfinite(out))
        spot = np.unravel_index(finite[finite.size // 3], out.shape)
        out.view(np.uint16)[spot] ^= 1
        return out

    right = engine.compute
    monkeypatch.setattr(engine, "compute", off_by_one)
    assert proof(op, dtype, rows=32).wrong == 1


@pytest.mark.parametrize("dtype", DTYPES)
def test_midpoints_are_halfway_to_the_neighbours(dtype):
    every = pairs(OPS[0], dtype, "ascend910b").every
    finite = every[np.isfinite(every.astype(np.float32))]
    below, above = midpoints(finite)
    values = np.unique(finite.astype(np.float64))
    low, high = np.unique(below), np.unique(above)
    assert np.array_equal(low[1:], (values[1:] + values[:-1]) / 2)
    assert np.array_equal(high[:-1], (values[1:] + values[:-1]) / 2)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", OPS)
def test_a_right_device_passes_and_a_poor_one_does_not(op, dtype):
    todo = pairs(op, dtype, "ascend910b")
    assert run(todo, load("cpu", {"numerics": "kernel"}), Progress({}), rows=32).wrong == 0
    poor = run(todo, load("cpu", {"numerics": "native"}), Progress({}), rows=32)
    assert poor.wrong >= 100
    assert poor.worst
    assert all(e["first"].startswith("0x") for e in poor.worst)


def test_an_interrupted_sweep_goes_on_and_ends_with_the_same_counts(tmp_path):
    path = tmp_path / "state.json"
    whole = proof(OPS[0], "bfloat16", rows=64)
    first = proof(OPS[0], "bfloat16", rows=32)
    first.save(path)
    second = run(pairs(OPS[0], "bfloat16", "ascend910b"), None, Progress.load(path, {}), rows=64)
    assert (second.pairs, second.wrong, second.settled_exactly) == (whole.pairs, whole.wrong, whole.settled_exactly)


def test_progress_of_another_sweep_is_refused(tmp_path):
    path = tmp_path / "state.json"
    Progress({"dtype": "float16"}).save(path)
    with pytest.raises(OracleError, match=r"dtype: 'float16' there, 'bfloat16' now"):
        Progress.load(path, {"dtype": "bfloat16"})
    path.write_text("{")
    with pytest.raises(OracleError, match="--restart"):
        Progress.load(path, {})


def test_command_line(tmp_path, capsys):
    state = str(tmp_path / "s.json")
    line = ["sweep", OPS[0], "--dtype", "float16", "--rows", "32", "--state", state, "--quiet"]
    assert main(line) == 0
    assert "0 wrong" in capsys.readouterr().out
    assert main([*line, "--backend", "cpu", "--backend-option", "numerics=native", "--restart"]) == 1
    for wrong in (["--dtype", "float32"], ["--rows", "0"], ["--backend", "nope"], ["--soc", "x"]):
        assert main([*line, "--restart", *wrong]) == 2
    assert main(["sweep", "aclnnSoftmaxBackward", "--dtype", "float16", "--state", state]) == 2
    assert "aclnnLogSigmoidBackward" in capsys.readouterr().err
