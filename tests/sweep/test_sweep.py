"""The sweep covers every pair, proves the golden, finds wrong devices, and resumes at its last row."""

from __future__ import annotations

from itertools import cycle, product

import numpy as np
import pytest
from ordinary import one_of_each_kind, some

from oracle.backends import load
from oracle.cli import main
from oracle.model.errors import OracleError
from oracle.numerics.exact import enclosures
from oracle.numerics.exact.rationals import Undefined
from oracle.numerics.expressions import exp, log, maximum, sign, symbol, tanh, where
from oracle.operators import OPERATORS
from oracle.parallel import HERE
from oracle.sweep.engine import SCATTER, Progress, midpoints, run_on
from oracle.sweep.grid import Grid
from oracle.sweep.pairs import CODES, pairs, sweepable, varying

pytestmark = pytest.mark.slow

DTYPES = ("float16", "bfloat16")
OPS = ("aclnnLogSigmoidBackward", "aclnnBinaryCrossEntropyBackward", "aclnnSigmoidBackward")


def test_the_operands_that_vary_are_those_that_decide_and_the_main_one_has_the_columns():
    result = {op: tuple(p.name for p in varying(OPERATORS[op])) for op in OPS}
    assert result == {
        "aclnnLogSigmoidBackward": ("gradOutput", "self"),
        "aclnnBinaryCrossEntropyBackward": ("target", "self"),
        "aclnnSigmoidBackward": ("gradOutput", "output"),
    }
    assert set(OPS) <= set(sweepable())
    assert not {"aclnnSoftmaxBackward", "aclnnNLLLossBackward", "aclnnGluBackward", "aclnnSwiGlu"} & set(sweepable())


def run(todo, device, progress, rows, stop_after=100, checkpoint=lambda progress: None):
    return run_on(HERE, lambda: todo, lambda: device, progress, rows, stop_after, checkpoint)


def proof(op, dtype, rows=32, **more):
    return run(pairs(op, dtype, "ascend910b"), None, Progress({}), rows=rows, **more)


def test_every_row_comes_exactly_once():
    assert np.unique(np.arange(CODES) * SCATTER % CODES).size == CODES


@pytest.mark.parametrize(("op", "dtype"), some([*zip(OPS, cycle(DTYPES)), *zip(OPS, cycle(DTYPES[::-1]))], 2))
def test_the_golden_is_proved_on_a_part_of_the_pairs(op, dtype):
    progress = proof(op, dtype)
    assert (progress.wrong, progress.pairs) == (0, 32 * CODES)


ALONE = tuple(op for op in sweepable() if len(varying(OPERATORS[op])) == 1)


@pytest.mark.parametrize(("op", "dtype"), [*product(one_of_each_kind(ALONE), DTYPES)])
def test_the_golden_is_proved_on_every_value_of_one_operand(op, dtype):
    progress = proof(op, dtype, rows=1)
    assert (progress.wrong, progress.pairs) == (0, CODES)


@pytest.mark.parametrize("op", [op for op in one_of_each_kind(sweepable()) if op not in ALONE])
def test_a_row_of_every_operator_is_proved(op):
    progress = run(pairs(op, "float16", "ascend910b"), None, Progress({}, rows_done=1), rows=2)  # of an ordinary number
    assert (progress.wrong, progress.pairs) == (0, CODES)


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


@pytest.mark.parametrize(("op", "dtype"), some([*zip(OPS, cycle(DTYPES)), *zip(OPS, cycle(DTYPES[::-1]))], 3))
def test_a_right_device_passes_and_a_poor_one_does_not(op, dtype):
    todo = pairs(op, dtype, "ascend910b")
    assert run(todo, load("cpu", {"numerics": "kernel"}), Progress({}), rows=32).wrong == 0
    poor = run(todo, load("cpu", {"numerics": "native"}), Progress({}), rows=32)
    assert poor.wrong >= 100
    assert poor.worst
    assert all(code.startswith("0x") for e in poor.worst for code in e["codes"])


def test_an_interrupted_sweep_goes_on_and_ends_with_the_same_counts(tmp_path):
    path = tmp_path / "state.json"
    whole = proof(OPS[0], "bfloat16", rows=16)
    first = proof(OPS[0], "bfloat16", rows=8)
    first.save(path)
    second = run(pairs(OPS[0], "bfloat16", "ascend910b"), None, Progress.load(path, {}), rows=16)
    assert (second.pairs, second.wrong, second.settled_exactly) == (whole.pairs, whole.wrong, whole.settled_exactly)


def test_progress_of_another_sweep_is_refused(tmp_path):
    path = tmp_path / "state.json"
    Progress({"dtype": "float16"}).save(path)
    with pytest.raises(OracleError, match=r"dtype: 'float16' there, 'bfloat16' now"):
        Progress.load(path, {"dtype": "bfloat16"})
    path.write_text("{")
    with pytest.raises(OracleError, match="--restart"):
        Progress.load(path, {})


BEGUN = '{\n "identity": {\n  "op": "aclnn'


@pytest.mark.parametrize(
    ("text", "status", "message"),
    [
        (BEGUN, 0, ""),
        (BEGUN + 'X"}, "unheard": 1}', 0, ""),
        ("", 0, ""),
        ("{", 0, ""),
        ('{"kind":"run","schema":1}', 2, "s.json: no progress of a sweep, so --restart keeps it; name another --state"),
        ('{"identity":{"name":"mine"}}', 2, "--restart keeps it"),
        ("\xff" * 300, 2, "--restart keeps it"),
        (" " * 300 + "[]", 2, "--restart keeps it"),
        (None, 2, "s.json: is no file, and progress needs one; name another --state"),
    ],
)
def test_restart_removes_a_sweeps_progress_and_nothing_else(tmp_path, capsys, text, status, message):
    state = tmp_path / "s.json"
    state.mkdir() if text is None else state.write_text(text, encoding="latin-1")
    line = ["sweep", OPS[2], "--dtype", "float16", "--rows", "1", "--state", str(state), "--quiet"]
    assert main(line) == 2
    assert ("give --restart" in capsys.readouterr().err) == (not status)
    assert main([*line, "--restart"]) == status
    assert message in capsys.readouterr().err
    assert text is None or (state.read_text(encoding="latin-1") == text) == bool(status)


@pytest.mark.parametrize("state", ["/proc/s.json", "file/s.json"])
def test_progress_that_cannot_be_written_is_told_before_the_sweep(tmp_path, monkeypatch, capsys, state):
    from oracle.sweep import engine

    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    monkeypatch.setattr(engine, "visit", lambda *part: pytest.fail("the sweep began"))
    assert main(["sweep", OPS[2], "--dtype", "float16", "--rows", "1", "--state", state, "--quiet"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"aclnn-oracle: {state}: ")
    assert line.endswith("name another --state")


def test_command_line(tmp_path, capsys):
    state = str(tmp_path / "s.json")
    line = ["sweep", OPS[0], "--dtype", "float16", "--rows", "8", "--state", state, "--quiet"]
    assert main(line) == 0
    assert "0 wrong" in capsys.readouterr().out
    assert main([*line, "--backend", "cpu", "--backend-option", "numerics=native", "--restart"]) == 1
    for wrong in (["--dtype", "float32"], ["--rows", "0"], ["--backend", "nope"], ["--soc", "x"]):
        assert main([*line, "--restart", *wrong]) == 2
    assert main(["sweep", "aclnnSoftmaxBackward", "--dtype", "float16", "--state", state]) == 2
    text = capsys.readouterr().err
    assert "aclnnSoftmaxBackward is not elementwise" in text
    assert "aclnnLogSigmoidBackward" in text


def test_attributes_have_their_usual_values_unless_the_sweep_sets_them(blended, tmp_path, capsys):
    assert pairs(blended.OPERATOR.name, "float16", "ascend910b").attributes == {
        "scale": 1.0, "slope": 0.5, "twice": False, "mode": "plain", "how": 0
    }  # fmt: skip
    line = ["sweep", blended.OPERATOR.name, "--dtype", "bfloat16", "--rows", "8", "--quiet"]
    line += ["--state", str(tmp_path / "s.json"), "--attr", "scale=0.3", "--attr", "twice=true", "--attr", "how=sum"]
    assert main(line) == 0
    assert "0 wrong" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("how=mean", "divides by the number"),
        ("size=3", "has no attribute 'size'"),
        ("scale=much", "'much'; it must be a number"),
        ("slope=inf", "slope is not finite"),
    ],
)
def test_attributes_that_cannot_be_are_refused(blended, tmp_path, capsys, wrong, message):
    line = ["sweep", blended.OPERATOR.name, "--dtype", "float16", "--rows", "8", "--quiet"]
    assert main([*line, "--state", str(tmp_path / "s.json"), "--attr", wrong]) == 2
    assert message in capsys.readouterr().err


X, Y = symbol("x"), symbol("y")
FORMULAS = {
    "a function of both": exp(-abs(X * Y)) / (1 + exp(-abs(X * Y))),
    "a branch on both": where(abs(X - Y) < 1, X - Y, sign(X - Y)),
    "a branch on one": where((X > 0) & (X < 3), Y * tanh(X), Y),
    "a cancellation": (1 - 1 / (1 + exp(-X))) * X * Y,
    "a quotient by zero": Y / X,
    "a logarithm of both": log(maximum(X * X + Y * Y, 1)),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_bounds_hold_the_exact_value_or_are_infinite(name):
    codes = np.concatenate([np.arange(0, 1 << 16, 1021), np.array([0, 0x3C00, 0x4000, 0x7BFF, 0x7C00, 0x8000, 0xC400])])
    values = codes.astype(np.uint16).view(np.float16).astype(np.float64)
    low, high = Grid(FORMULAS[name], "y", "x", values, {}).bounds(np.arange(0, len(codes), 5))
    wide = 0
    for row, y in enumerate(values[::5]):
        for column, x in enumerate(values):
            if not (np.isfinite(x) and np.isfinite(y)):
                assert np.isnan(low[row, column])
                continue
            try:
                result = enclosures.enclose(FORMULAS[name], {"x": x, "y": y}, 200)
            except Undefined:
                assert low[row, column] == -np.inf
                continue
            assert low[row, column] <= result.high
            assert high[row, column] >= result.low
            wide += not high[row, column] - low[row, column] <= 2.0**-28 * abs(float(result.high)) + 1e-100
    assert wide <= low.size // 50, wide


@pytest.mark.parametrize(
    ("op", "words", "status", "says"),
    [
        ("Relu", "--backend misbehaving:WritesNothing", 1, "got nan"),
        ("Relu", "--backend misbehaving:Raises", 2, "sweep: misbehaving:Raises: RuntimeError: the stream is gone"),
        ("Relu", "--backend misbehaving:Leaves", 2, "misbehaving:Leaves: the device's process ended: exit status 7"),
        (
            "Relu",
            "--backend misbehaving:Unsupporting",
            2,
            "misbehaving:Unsupporting does not take aclnnRelu: not on Sunda",
        ),
        ("Relu", "--backend misbehaving:AnswersANumber", 2, "run() returned 0"),
        ("Hardtanh", "--attr clipValueMin=nan --backend cpu", 1, "nothing was judged"),  # that is not green
    ],
)
def test_a_device_that_fails_or_judges_nothing_ends_the_sweep_with_one_line(
    tmp_path, monkeypatch, capsys, op, words, status, says
):
    monkeypatch.chdir(tmp_path)
    assert main(["sweep", f"aclnn{op}", "--dtype", "float16", "--quiet", *words.split()]) == status
    text = capsys.readouterr()
    assert says in text.out + text.err
