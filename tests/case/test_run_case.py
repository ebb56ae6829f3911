"""run_case: the status of every wrong device, and that a right device passes."""

from __future__ import annotations

from dataclasses import replace

import misbehaving as m
import numpy as np
import pytest
from misbehaving import early, log_sigmoid, refused, softmax

from oracle import golden
from oracle.backends.cpu import Backend as Cpu
from oracle.case.expectations import Expectation
from oracle.case.one_case import run_case
from oracle.catalogue import default_dir, load
from oracle.record.codec import from_json, parse_object
from oracle.record.types import CaseRecord
from oracle.record.writer import dumps
from oracle.reporting.case_text import case_text
from oracle.settings.settings import Settings

STRIDED = log_sigmoid("strided", gradInput="strided:2", self="transposed", gradOutput="padded:3")

WRONG = [
    # device, case, status, words of the reason
    (m.WritesNothing, log_sigmoid(), "fail", "structure: 54 of 54 elements of gradInput were not written"),
    (m.SkipsTheTail, log_sigmoid(), "fail", "structure: 9 of 54 elements of gradInput were not written"),
    (m.SkipsTheTail, STRIDED, "fail", "structure: 9 of 54 elements of gradInput were not written"),
    (m.WritesPastTheEnd, log_sigmoid(), "fail", "structure: 1 elements outside gradInput were written"),
    (m.WritesBeforeTheBeginning, log_sigmoid(), "fail", "outside gradInput were written, all before its first element"),
    (m.IgnoresStrides, STRIDED, "fail", "elements outside gradInput were written"),
    (m.ModifiesAnInput, log_sigmoid(), "fail", "structure: the device modified self"),
    (m.WrongDtype, log_sigmoid(), "fail", "structure: gradInput has dtype float64, expected float32"),
    (m.WrongShape, log_sigmoid(), "fail", "structure: gradInput has shape (54,), expected (6, 9)"),
    (m.NotAnArray, log_sigmoid(), "fail", "structure: gradInput is NoneType, not a NumPy array"),
    (m.Refuses, log_sigmoid(), "fail", "the device answered ACLNN_ERR_INNER_NULLPTR (no kernel)"),
    (m.Accepts, refused(), "fail", "expected ACLNN_ERR_PARAM_INVALID, the device answered ACLNN_SUCCESS"),
    (m.WritesWhenRefused, refused(), "fail", "structure: out was written"),
    (m.WritesWhenRefused, early(), "fail", "structure: out was written"),
    (m.FlipsOneSign, log_sigmoid(), "fail", "standard: matched_ratio 0.98"),
    (m.Raises, log_sigmoid(), "error", "RuntimeError: the stream is gone"),
    (m.Exits, log_sigmoid(), "error", "SystemExit: 3"),
    (m.AnswersANumber, log_sigmoid(), "error", "TypeError: run() returned 0; it must return an oracle.Status, or None"),
    (m.AnswersResults, log_sigmoid(), "error", "TypeError: run() returned a dict; it must write into call.outputs and"),
    (m.Unsupporting, log_sigmoid(), "skip", "not on Sundays"),
    (m.SaysYes, log_sigmoid(), "error", "unsupported() returned True; it must return the reason, or None"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("device", "case", "status", "words"), WRONG, ids=lambda value: getattr(value, "__name__", None)
)
def test_a_wrong_device_is_noticed_for_what_it_does(device, case, status, words):
    line = run_case(case, device(), Settings())
    assert (line.status, words in line.reason) == (status, True), line.reason


@pytest.mark.parametrize("case", [log_sigmoid(), STRIDED, softmax(), refused(), early(), log_sigmoid("scalar", ())])
@pytest.mark.parametrize("numerics", ["exact", "kernel"])
def test_a_right_device_passes(case, numerics):
    line = run_case(case, Cpu(numerics=numerics), Settings())
    assert (line.status, line.reason) == ("pass", "")
    assert line.detail is None


def test_a_refused_call_is_judged_by_its_status_alone():
    line = run_case(refused(), Cpu(), Settings())
    assert list(line.verdicts) == ["structure"]
    assert line.budget_used is None


def test_each_layer_is_reported_apart_and_any_of_them_fails_the_case():
    line = run_case(log_sigmoid(), m.FlipsOneSign(), Settings())
    assert {name: layer.passed for name, layer in line.verdicts.items()} == {
        "structure": True,
        "standard": line.verdicts["standard"].passed,
        "strict": False,
    }
    only = run_case(log_sigmoid(), m.FlipsOneSign(), Settings(layers=("structure",)))
    assert (only.status, list(only.verdicts)) == ("pass", ["structure"])


def test_values_that_cannot_be_judged_fail_the_value_layers_too():
    line = run_case(log_sigmoid(), m.WrongShape(), Settings(layers=("standard", "strict")))
    assert line.status == "fail"
    assert line.verdicts["strict"].reason.startswith("not judged: gradInput has shape")


def test_nothing_to_judge_is_a_skip_never_a_pass():
    line = run_case(refused(), m.Accepts(), Settings(layers=("strict",)))
    assert line.status == "skip"


def test_a_result_that_equals_the_poison_is_written_all_the_same():
    """0xA5A5A5A5 as float32 is a possible answer of a device; the second run's poison differs."""

    class AnswersThePoison(m.Device):
        def spoil(self, call, out):
            out.reshape(-1)[3:5].view(np.uint32)[...] = 0xA5A5A5A5

    line = run_case(log_sigmoid(), AnswersThePoison(), Settings())
    assert line.verdicts["structure"].passed
    assert line.status == "fail"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"gen": "constant", "value": 0.0}, "all 54 elements of the golden are 0"),
        ({"gen": "constant", "value": float("nan")}, "54 of 54 elements of the golden are not finite"),
    ],
)
def test_a_golden_that_proves_nothing_is_an_error_unless_the_case_says_why(data, message):
    plain = log_sigmoid()
    case = replace(plain, inputs={**plain.inputs, "gradOutput": replace(plain.inputs["gradOutput"], data=data)})
    line = run_case(case, Cpu(), Settings())
    assert (line.status, message in line.reason) == ("error", True), line.reason
    assert run_case(replace(case, uninformative="on purpose"), Cpu(), Settings()).status == "pass"
    assert run_case(case, m.WritesNothing(), Settings()).status == "fail"  # the device is wrong, with or without proof


def test_determinism_compares_bits():
    settings = Settings(determinism=3)
    assert run_case(log_sigmoid(), Cpu(), settings).status == "pass"
    line = run_case(log_sigmoid(), m.Drifts(), settings)
    assert "structure: run 2: 1 of 54 elements differ" in line.reason
    assert line.detail.pattern == "one element, [1, 1]"


def test_determinism_takes_every_nan_for_the_same():
    class Signs(Cpu):
        sign = 1.0

        def run(self, call):
            status = super().run(call)
            np.copysign(call.outputs["gradInput"], self.sign, out=call.outputs["gradInput"])
            self.sign = -self.sign
            return status

    plain = log_sigmoid()
    nan = replace(plain.inputs["gradOutput"], data={"gen": "constant", "value": float("nan")})
    case = replace(plain, inputs={**plain.inputs, "gradOutput": nan}, uninformative="on purpose")
    assert run_case(case, Signs(), Settings(determinism=2)).status == "pass"
    assert run_case(plain, Signs(), Settings(determinism=2, layers=("structure",))).status == "fail"


def test_determinism_notices_a_device_that_answers_in_memory_of_its_own():
    class Keeps(m.Drifts):
        kept = None

        def run(self, call):
            super().run(call)
            self.kept = call.outputs["gradInput"].copy() if self.kept is None else self.kept
            self.kept[...], call.outputs["gradInput"] = call.outputs["gradInput"], self.kept

    line = run_case(log_sigmoid(), Keeps(), Settings(determinism=2, layers=("structure",)))
    assert "structure: run 2: 1 of 54 elements differ" in line.reason


@pytest.mark.parametrize(
    ("device", "words"),
    [
        (m.LayoutMatters, "a contiguous layout: 1 of 54 elements differ"),
        (m.BatchMatters, "a slice of the batch: 1 of 27 elements differ"),
    ],
)
def test_invariance_compares_bits_of_layouts_and_slices(device, words):
    settings = Settings(invariance=True, layers=("structure",))
    assert run_case(STRIDED, Cpu(), settings).status == "pass"
    assert words in run_case(STRIDED, device(), settings).reason
    assert run_case(STRIDED, device(), Settings(layers=("structure",))).status == "pass"


def test_the_third_party_gets_the_same_inputs():
    settings = Settings(standard="dual-L1", third_party="cpu:native", layers=("standard",))
    line = run_case(log_sigmoid(), Cpu(), settings)
    assert line.status == "pass", line.reason


def test_the_seed_changes_the_data_and_nothing_else_does():
    def budget(seed):
        return run_case(log_sigmoid(), Cpu(), Settings(seed=seed)).metrics

    assert budget(0) == budget(0) != budget(1)


@pytest.mark.parametrize("device", [m.WritesNothing, m.FlipsOneSign, m.Raises, m.NotAnArray, m.Refuses])
def test_a_failure_is_one_screen_of_strict_json(device):
    line = run_case(STRIDED, device(), Settings())
    message = case_text(from_json(CaseRecord, parse_object(dumps(line), "here")))
    assert message == case_text(line)
    assert len(message.splitlines()) <= 40
    assert max(map(len, message.splitlines())) <= 200
    assert line.id in message
    assert line.reason in message
    assert "aclnn-oracle replay 'log_sigmoid_backward/strided[float32]'" in message


def test_the_detail_names_worst_elements_pattern_and_inputs():
    record = run_case(log_sigmoid(), m.FlipsOneSign(), Settings(layers=("strict",), seed=1))
    detail = record.detail
    assert detail.rule == "|actual - value| <= bound"
    assert [row.index for row in detail.worst] == [(0, 0)]
    worst = detail.worst[0]
    assert worst.actual == -worst.expected
    assert int(worst.expected_hex, 16) ^ int(worst.actual_hex, 16) == 1 << 31
    assert detail.cause == "wrong sign"
    assert (detail.bad, detail.total) == (1, 54)
    assert sum(detail.ulp_histogram.values()) == 54
    assert record.inputs["self"] == "float32[6,9] normal"


def one_ulp_off(call, result, held):
    """The golden with one element moved to the next number: outside float16's strict bound, inside the standard."""
    (moved,) = golden(call).values()
    moved[0, 0] = np.nextafter(moved[0, 0], moved.dtype.type(np.inf))
    return moved


def test_a_layer_outside_the_gate_shows_its_verdict_and_decides_nothing():
    case = log_sigmoid(dtype="float16")
    failed = run_case(case, m.Makes(one_ulp_off), Settings(seed=1))
    assert (failed.status, failed.reason.partition(":")[0]) == ("fail", "strict")
    assert (failed.kernel_share or 0) > 1
    passed = run_case(case, m.Makes(one_ulp_off), Settings(gate=("structure", "standard"), seed=1))
    assert (passed.status, passed.reason.startswith("outside the gate: strict: ")) == ("pass", True)
    assert [name for name, layer in passed.verdicts.items() if not layer.passed] == ["strict"]
    expected = Expectation(case.id, ("fail",), "a rounding", "here:1")
    assert expected.counted(passed).status == "pass"
    assert expected.counted(failed).status == "xfail"


def test_a_device_that_answers_as_the_newest_release_is_right_under_its_version_and_wrong_under_the_next():
    """ascend950: the answer to an empty softmax follows a commit that is in no release."""
    soc, old = "ascend950", Cpu()
    changed = [c for c in load(default_dir() / "softmax_backward.yaml") if not c.soc or soc in c.soc]
    changed = [c for c in changed if c.expected(soc, "9.1") != c.expected(soc, "master")]
    assert len(changed) == 8

    class Released:
        name, answers_status = "released", True

        def run(self, call):
            return old.run(replace(call, cann="9.1"))

    for case in changed:
        assert run_case(case, Released(), Settings(soc=soc, cann="9.1")).status == "pass"
        assert run_case(case, Released(), Settings(soc=soc, cann="master")).status == "fail"


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_the_kernels_own_share_is_0_for_the_golden_and_at_most_1_for_a_right_kernel(dtype):
    for case in (log_sigmoid(dtype=dtype), softmax((5, 40))):
        exact = run_case(case, Cpu(numerics="exact"), Settings())
        assert exact.kernel_share == pytest.approx(0, abs=1e-6)
        kernel = run_case(case, Cpu(numerics="kernel"), Settings())
        assert kernel.kernel_share == pytest.approx(0.5, abs=0.5)


@pytest.mark.parametrize("shape", [(3, 0), (0,)])
def test_another_array_of_no_elements_is_no_result(shape):
    line = run_case(log_sigmoid(shape=shape), m.ReplacesAnEmptyOutput(), Settings())
    assert (line.status, line.reason) == ("pass", "")
