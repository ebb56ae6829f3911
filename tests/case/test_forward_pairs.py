"""A gradient after its forward operator: judged on the output of the device's own forward, as training uses it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from oracle import OracleError, Status
from oracle.backends.cpu import Backend as Cpu
from oracle.case.one_case import run_case
from oracle.catalogue.data.case import Case, TensorPlan, make_inputs
from oracle.catalogue.expand.drawing import RandomCalls
from oracle.catalogue.plan.statuses import after, case_before, pairs_named
from oracle.commands.run import find_case
from oracle.operators import OPERATORS
from oracle.run.session import Run
from oracle.settings.settings import Settings, settings_of

PAIRS = [(forward.name, op.name) for op in OPERATORS.values() for forward in op.forwards]
SOFTMAX = Case(
    id="softmax/plain[float32]", op="aclnnSoftmax", family="plain", why="a test", tier="standard", dtype="float32",
    inputs={"self": TensorPlan((5, 7), "float32", {"gen": "normal"}, "strided:2")}, attrs={"dim": -1},
    outputs={"out": TensorPlan((5, 7), "float32", None, "padded:3")},
)  # fmt: skip
PAIR = after(SOFTMAX, OPERATORS["aclnnSoftmaxBackward"])


class WrongBefore(Cpu):
    """A device with a right gradient and a softmax of half the right values."""

    name = "wrong before"

    def run(self, call):
        status = super().run(call)
        if call.op == "aclnnSoftmax":
            call.outputs["out"] *= 0.5
        return status


class RightOutput(WrongBefore):
    """A device with a softmax of half the right values; its gradient compensates for that."""

    name = "makes up for it"

    def run(self, call):
        if call.op == "aclnnSoftmaxBackward":
            call.inputs = {**call.inputs, "output": call.inputs["output"] * np.float32(2)}
        return super().run(call)


class RefusesBefore(Cpu):
    def run(self, call):
        return Status(561103, "no memory") if call.op == "aclnnSoftmax" else super().run(call)


class LacksBefore(Cpu):
    def unsupported(self, call):
        return "not here" if call.op == "aclnnSoftmax" else ""


@pytest.mark.parametrize(("forward", "gradient"), PAIRS)
def test_every_operand_of_the_gradient_comes_from_somewhere(forward, gradient):
    op, before = OPERATORS[gradient], OPERATORS[forward]
    (way,) = (each for each in op.forwards if each.name == forward)
    assert set(way.results.values()) <= set(before.outputs)
    needed = {p.name for p in op.inputs() if not p.optional} - {op.gradient, *way.results}
    assert {way.inputs.get(name, name) for name in needed} | set(way.inputs.values()) <= set(before.names("input"))
    given = set(before.names("attr")) | set({} if way.attributes is None else way.attributes({"alpha": 1.0}))
    assert set(op.names("attr")) <= given


@pytest.mark.parametrize(("forward", "gradient"), PAIRS)
def test_a_right_device_passes(forward, gradient):
    drawn = RandomCalls(OPERATORS[forward], "ascend910b", "9.1", 3)
    cases = [case for case in (drawn.draw() for _ in range(12)) if case is not None]
    ended = [run_case(after(case, OPERATORS[gradient]), Cpu(), Settings()) for case in cases]
    assert {record.status for record in ended} <= {"pass", "skip"}, [record.reason for record in ended]
    assert sum(record.status == "pass" for record in ended) >= 2


def test_the_gradient_is_judged_on_the_result_that_it_gets():
    assert run_case(SOFTMAX, WrongBefore(), Settings()).status == "fail"
    assert run_case(PAIR, WrongBefore(), Settings()).status == "pass"
    assert run_case(PAIR, RightOutput(), Settings()).status == "fail"


@pytest.mark.parametrize(
    ("device", "case", "status", "words"),
    [
        (RefusesBefore, PAIR, "error", "aclnnSoftmax, which comes before, answered"),
        (LacksBefore, PAIR, "skip", "aclnnSoftmax, which comes before: not here"),
        (Cpu, after(replace(SOFTMAX, outputs={"out": TensorPlan((5, 7), "float64")}),
                    OPERATORS["aclnnSoftmaxBackward"]), "skip", "refuses what aclnnSoftmax takes"),
    ],
)  # fmt: skip
def test_a_pair_that_does_not_reach_its_gradient_says_why(device, case, status, words):
    record = run_case(case, device(), Settings())
    assert (record.status, words in record.reason) == (status, True), record.reason


def test_the_operands_lie_as_the_forward_left_them():
    assert PAIR.inputs["output"].view == "padded:3"
    assert (PAIR.inputs["gradOutput"].shape, PAIR.outputs["out"].shape) == ((5, 7), (5, 7))


@pytest.mark.parametrize("name", ["softmax", "aclnnSoftmax", "softmax_backward", "aclnnSoftmaxBackward"])
def test_either_name_chooses_the_pair(name):
    assert pairs_named(name) == [("aclnnSoftmax", "aclnnSoftmaxBackward")]
    settings = settings_of({"oracle_pair": [name]})
    assert settings.only == ("aclnnSoftmax",)
    assert settings.chosen == ["--pair", "aclnnSoftmax"]  # a record is resumed by either name


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"oracle_pair": ["gelu"]}, "--pair gelu: no gradient reads a result of aclnnGelu"),
        ({"oracle_pair": ["gelly"]}, "unknown operator 'gelly'"),
        ({"oracle_pair": ["tanh"], "oracle_op": ["relu"]}, "give one of them"),
        ({"oracle_pair": ["tanh"], "oracle_tier": "huge"}, "leave --pair out"),
    ],
)
def test_a_choice_without_a_pair_is_refused(given, words):
    with pytest.raises(OracleError, match=words):
        settings_of(given)


CATALOGUE = """\
aclnn_oracle: 1
operator: aclnnSoftmax
classes: {only: []}
defaults: {main: self, inputs: {self: normal 0 1}, output: {}}
families:
  a: {why: what a pair is made of, dtype: float32, shape: [[3, 4]], attrs: {dim: 0}}
  b:
    why: a call that is refused
    dtype: float32
    shape: [[3, 4]]
    attrs: {dim: 4}
    expect: ACLNN_ERR_PARAM_INVALID
"""


def test_a_run_has_every_call_of_the_forward_and_the_gradient_after_it(tmp_path):
    file = tmp_path / "softmax.yaml"
    file.write_text(CATALOGUE)
    cases = Run(settings_of({"oracle_pair": ["softmax"]})).cases(file)
    first = "softmax/a[float32-3x4-dim=0]"
    assert [case.id for case in cases] == [first, f"softmax_backward/after[{first}]"]
    assert case_before(cases[1].id) == ("softmax_backward", first)
    assert find_case(cases[1].id, file) == cases[1]


def test_only_a_device_has_the_data():
    with pytest.raises(OracleError, match="only run and replay have one"):
        make_inputs(PAIR, seed=0)
