"""Shrinking: the reduced case still fails with the same rule, is small, and runs as a script of its own."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import processes
import pytest
from misbehaving import Device, Makes, ModifiesAnInput, ReadsAsContiguous, WrongDtype
from ordinary import in_full_alone

from oracle.case.one_case import run_case
from oracle.catalogue import default_dir, load, select
from oracle.catalogue.data.case import Case, TensorPlan
from oracle.cli import main
from oracle.defects.registry import defects
from oracle.model.errors import OracleError
from oracle.operators import OPERATORS, compute, validate
from oracle.place import Bench
from oracle.power.failures import failures, rate_of
from oracle.reduce.script import script
from oracle.reduce.shrink import _plainness, shrink, shrink_with
from oracle.settings.settings import Settings

pytestmark = pytest.mark.slow


@cache
def cases(op: str) -> list[Case]:
    """Return small cases, so that a script's time is mostly that of the interpreter."""
    result = load(default_dir() / f"{OPERATORS[op].slug}.yaml")
    return [c for c in result if all(p is None or math.prod(p.shape) <= 2**9 for p in c.inputs.values())]


class ShortSum(Makes):
    """Softmax sums only the first 64 elements of a row."""

    def make(self, call, result, held):
        dim = call.attrs["dim"]
        g, y = (np.atleast_1d(call.inputs[n]).astype(np.float64) for n in ("gradOutput", "output"))
        part = np.take(g * y, np.arange(min(64, g.shape[dim])), axis=dim)
        return (g * y - y * part.sum(axis=dim, keepdims=True)).reshape(result.shape)


class IgnoresNothing(Makes):
    """NLLLossBackward writes -1 into rows that it should leave unchanged."""

    def make(self, call, result, held):
        ignored = call.attrs["ignoreIndex"]
        if result.ndim == 2 and 0 <= ignored < result.shape[1]:
            result[np.atleast_1d(call.inputs["target"]) == ignored, ignored] = -1
        return result


class Refuses(Device):
    """Refuses axes of 5 and more."""

    def run(self, call):
        if any(n >= 5 for n in call.inputs["gradOutput"].shape):
            return validate(replace(call, attrs={**call.attrs, "dim": 99}))
        return super().run(call)


class Raises(Makes):
    def make(self, call, result, held):
        if call.inputs["output"].shape[-1] > 8:
            raise ValueError("too wide")
        return result


def backend_of(device: type[Device]) -> str:
    return f"{device.__module__}:{device.__name__}"


@cache
def failing(op: str, device: type[Device]) -> Case:
    """Return the first small case of an operator that a device fails."""
    for case in cases(op):
        strided = any(p is not None and p.view != "contiguous" for p in case.inputs.values())
        if strided or device is not ReadsAsContiguous:
            line = run_case(case, device(), Settings())
            if line.status in ("fail", "error"):
                return case
    raise AssertionError(f"{device.__name__} fails nothing")


def sizes(case: Case) -> list[int]:
    return [math.prod(p.shape) for p in case.inputs.values() if p is not None]


WRONG = [
    (ShortSum, "aclnnSoftmaxBackward", 65),
    (IgnoresNothing, "aclnnNLLLossBackward", 1),
    (ReadsAsContiguous, "aclnnLogSigmoidBackward", 4),
    (ReadsAsContiguous, "aclnnBinaryCrossEntropyBackward", 4),
    (ModifiesAnInput, "aclnnLogSigmoidBackward", 1),
    (WrongDtype, "aclnnSoftmaxBackward", 1),
    (Refuses, "aclnnSoftmaxBackward", 5),
    (Raises, "aclnnSoftmaxBackward", 9),
]
IDS = [f"{device.__name__}-{op}" for device, op, _ in WRONG]


@pytest.mark.parametrize(("device", "op", "largest"), WRONG, ids=IDS)
def test_what_is_left_fails_alike_and_is_minimal(device, op, largest):
    settings = Settings(backend=backend_of(device))
    case = failing(op, device)
    before = run_case(case, device(), settings)
    shrunk = shrink(case, device(), settings)
    after = run_case(shrunk.case, device(), settings)
    assert (after.status, after.detail.rule) == (before.status, before.detail.rule)
    assert max(sizes(shrunk.case)) <= largest
    assert run_case(shrunk.case, Device(), settings).status == "pass"


def test_a_layout_stays_only_where_it_matters():
    settings = Settings()
    case = failing("aclnnLogSigmoidBackward", ReadsAsContiguous)
    views = {n: p.view for n, p in shrink(case, ReadsAsContiguous(), settings).case.inputs.items() if p is not None}
    assert [n for n, view in views.items() if view != "contiguous"] == ["self"]
    plain = failing("aclnnSoftmaxBackward", ShortSum)
    strided = replace(plain, inputs={n: replace(p, view="strided:2") for n, p in plain.inputs.items()})
    small = shrink(strided, ShortSum(), settings).case
    assert all(p.view == "contiguous" for p in small.inputs.values())


def test_a_transposed_operand_is_reduced_although_one_axis_cannot_be_transposed():
    """The former bug: the candidate without the other axis ended the search with an error."""
    wrong = next(d for d in defects("aclnnL1LossBackward") if d.id == "layout/l1_loss_backward/self row strides")
    cases = tuple(select(load(default_dir() / "l1_loss_backward.yaml"), tier="smoke"))
    (result,) = failures([wrong], cases, Settings(), each=1)
    assert rate_of([result]).share == 1


def test_values_become_plain():
    settings = Settings()
    case = failing("aclnnNLLLossBackward", IgnoresNothing)
    shrunk = shrink(case, IgnoresNothing(), settings).case
    assert all(list(p.data["values"]) == [0] * len(p.data["values"]) for p in shrunk.inputs.values())


@pytest.mark.parametrize("runs", [2, 5, 20])
def test_the_budget_of_runs_is_kept(runs):
    settings = Settings()
    case = failing("aclnnSoftmaxBackward", ShortSum)
    count = 0

    def run(candidate):
        nonlocal count
        count += 1
        return run_case(candidate, ShortSum(), settings)

    assert shrink_with(run, case, settings, runs=runs).runs == count <= runs


class IgnoresSlope(Makes):
    def make(self, call, result, held):
        return compute(replace(call, attrs={**call.attrs, "slope": 0.0}))


def test_attributes_get_their_usual_values_and_broadcasting_operands_follow(blended):
    case = blended.case(shape=(5, 7), gradient=(7,), scale=-3.75, slope=1e3, twice=True, mode="fast", how=2)
    shrunk = shrink(case, IgnoresSlope(), Settings())
    assert dict(shrunk.case.attrs) == {p.name: p.plain for p in blended.OPERATOR.parameters if p.kind == "attr"}
    assert [p.shape for p in shrunk.case.inputs.values()] == [(1,), (1,), (0,)]


def test_attributes_of_every_type_stand_in_the_script(blended, tmp_path):
    case = blended.case(scale=None, slope=math.inf, twice=True, mode="fast")
    text = script(replace(shrink(blended.case(slope=2.0), IgnoresSlope(), Settings()), case=case))
    assert "ATTRS = {'scale': None, 'slope': inf, 'twice': True, 'mode': 'fast', 'how': 0}" in text
    compile(text, "script.py", "exec")


def test_a_script_registers_an_operator_from_outside_for_a_device_that_asks_about_it(blended, tmp_path):
    shrunk = shrink(blended.case(slope=2.0), IgnoresSlope(), Settings())
    text = script(replace(shrunk, settings=replace(shrunk.settings, operators=("blended:OPERATOR",))))
    assert "    OPERATORS.add('blended:OPERATOR')\n" in text
    compile(text, "script.py", "exec")


def test_a_case_that_passes_has_nothing_to_reduce():
    case = cases("aclnnSoftmaxBackward")[0]
    with pytest.raises(OracleError, match="nothing to reduce: it ended pass"):
        shrink(case, Device(), Settings())


@in_full_alone
def test_a_device_that_crashes_is_reduced_in_its_child(tmp_path, monkeypatch):
    (tmp_path / "crashing.py").write_text(
        "import os\nclass Device:\n    name = 'crashing'\n"
        "    def run(self, call):\n        if call.inputs['output'].shape[-1] > 3: os._exit(3)\n",
        "utf-8",
    )
    monkeypatch.chdir(tmp_path)
    settings = Settings(backend="crashing:Device", isolate=True)
    case = next(c for c in cases("aclnnSoftmaxBackward") if "first_look" in c.id)
    with closing(Bench(settings)) as bench:
        shrunk = shrink_with(bench.run_case, case, settings, runs=30)
    assert shrunk.record.status == "crash"
    assert shrunk.case.inputs["output"].shape[-1] == 4


# the script -----------------------------------------------------------------------------------------------------------


def executed(text: str, folder: Path, *, without_oracle: bool = False) -> subprocess.CompletedProcess[str]:
    path = folder / "failure.py"
    path.write_text(text, "utf-8")
    hide = "import sys; sys.modules['oracle'] = None; " if without_oracle else "import sys; "
    code = f"{hide}sys.argv = ['failure.py']; import runpy; runpy.run_path({str(path)!r}, run_name='__main__')"
    return processes.python("-c", code, cwd=folder, path=[processes.TESTS, *sys.path])


# Each takes half a minute: one of them in CI, all in `.ci/full`.
SCRIPTS = slice(1, None, 2) if "ACLNN_TEST_SCRIPTS" in os.environ else slice(1, 2)


@pytest.mark.parametrize(("device", "op", "largest"), WRONG[SCRIPTS], ids=IDS[SCRIPTS])
def test_the_script_finds_the_failure_and_passes_a_right_device(device, op, largest, tmp_path):
    settings = Settings(backend=backend_of(device))
    text = script(shrink(failing(op, device), device(), settings))
    wrong = executed(text, tmp_path)
    assert wrong.returncode == 1, wrong.stderr
    assert "WRONG" in wrong.stdout or "ValueError: too wide" in wrong.stderr
    right = executed(text.replace(backend_of(device), "misbehaving:Device"), tmp_path)
    assert right.returncode == 0, right.stdout + right.stderr
    assert right.stdout.endswith("right\n")


ZEROING = "class Device:\n    name = 'zeroing'\n    def run(self, call):\n        call.outputs['out'][...] = 0\n"


def test_the_script_needs_numpy_and_the_backend_only(tmp_path):
    (tmp_path / "zeroing.py").write_text(ZEROING, "utf-8")
    settings = Settings(backend="zeroing:Device")
    case = next(c for c in cases("aclnnSoftmaxBackward") if "first_look" in c.id and c.dtype == "float32")
    zeros = Makes(lambda call, result, held: 0 * result)
    made = executed(script(shrink(case, zeros, settings)), tmp_path, without_oracle=True)
    assert made.returncode == 1, made.stderr
    assert "WRONG out[" in made.stdout


def test_a_large_case_is_packed(tmp_path):
    settings = Settings(backend="test_shrink:ShortSum")
    plan = TensorPlan((5000,), "bfloat16", {"gen": "normal"})
    first = next(c for c in cases("aclnnSoftmaxBackward") if not c.expect)
    case = replace(first, inputs=dict.fromkeys(first.inputs, plan), outputs={"out": plan}, attrs={"dim": 0})
    text = script(shrink(case, ShortSum(), settings, runs=2))
    assert "unpacked(" in text
    assert executed(text, tmp_path).returncode == 1


def test_replay_shrinks(tmp_path, monkeypatch, capsys):
    (tmp_path / "zeroing.py").write_text(ZEROING, "utf-8")
    monkeypatch.chdir(tmp_path)
    case = next(c for c in cases("aclnnSoftmaxBackward") if "first_look" in c.id and c.dtype == "float32")
    assert main(["replay", case.id, "--backend", "zeroing:Device", "--shrink", "--no-isolate"]) == 1
    captured = capsys.readouterr()
    assert "reduced in" in captured.err
    assert executed(captured.out, tmp_path).returncode == 1
    assert "Run so far    exit status 1" in captured.out
    assert main(["replay", case.id, "--shrink", "--no-isolate"]) == 2
    captured = capsys.readouterr()
    assert (captured.out, "nothing to reduce: it ended pass" in captured.err) == ("", True)


def test_plainness_orders_values():
    order = [[0.0], [1.0], [0.5], [2.0], [3.0], [0.1], [math.inf]]
    costs = [_plainness(np.asarray(v)) for v in order]
    assert costs == sorted(costs)
    assert _plainness(np.asarray([math.nan])) == costs[-1]
