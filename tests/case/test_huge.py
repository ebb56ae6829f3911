"""The code of the huge tier, on cases with small tensors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from misbehaving import Makes, Then
from ordinary import in_full_alone

from oracle import OracleError, Status
from oracle.backends.cpu import Backend
from oracle.case.huge import describe_wrap
from oracle.case.huge_memory import BESIDE, Cut, HugeMemory, bytes_of
from oracle.case.one_case import run_case
from oracle.catalogue import default_dir, load, load_all
from oracle.catalogue.data.case import HUGE, Case
from oracle.operators import OPERATORS
from oracle.settings.settings import Settings, settings_of

SIZES = {
    "log_sigmoid": ("aclnnLogSigmoidBackward", "[1009]", "gradOutput: nonzero 0.5 4, self: normal 0 3, buffer: 1.0"),
    "softmax": ("aclnnSoftmaxBackward", "[257, 19]", "gradOutput: normal 0 1, output: uniform 0.1 0.9"),
    "nll": (
        "aclnnNLLLossBackward",
        "[211, 7]",
        "gradOutput: nonzero 0.5 4, self: 1.0, target: {gen: classes, count: $1, dtype: int64}, weight: nonzero 0.5 2, "
        "totalWeight: 1.0",
    ),
    "prelu": (
        "aclnnPreluBackward",
        "[3, 101, 5]",
        "gradOutput: uniform 0.5 4, self: normal 0 2, weight: nonzero 0.1 2",  # sums that do not cancel
    ),
}


@pytest.fixture
def cases(tmp_path):
    def make(name: str, view: str = "contiguous") -> Case:
        op, shape, inputs = SIZES[name]
        path = tmp_path / "own.yaml"
        path.write_text(
            f"aclnn_oracle: 1\noperator: {op}\nclasses: {{only: [output_dtypes_asked]}}\ndefaults:\n"
            f"  inputs: {{{inputs}}}\nfamilies:\n  own:\n    why: the way of the huge tier\n    tier: huge\n"
            f"    uninformative: few of the elements of a gradient by class differ from zero\n"
            f"    dtype: float16\n    shape: [{shape}]\n"
            + ("" if view == "contiguous" else f'    output: {{view: "{view}"}}\n')
        )
        (case,) = load(path, None, HUGE)
        return case

    return make


# dgamma sums over the axes that dx keeps; a gate's output is a part of its operand.
NOT_SLICED = {"aclnnRmsNormGrad", "aclnnNLLLoss", "aclnnNLLLoss2d", "aclnnGlu", "aclnnSwiGlu"} | {
    "aclnnCrossEntropyLoss", "aclnnCrossEntropyLossGrad", "aclnnLayerNormBackward", "aclnnGroupNormBackward",
}  # fmt: skip


@in_full_alone
def test_every_operator_has_huge_cases_that_can_be_judged_by_blocks_and_no_other_tier_plans_them():
    result = load_all(None, None, HUGE)
    assert {case.op for case in result} == set(OPERATORS) - NOT_SLICED
    for case in result:
        cut = Cut.of(case)
        assert (case.tier, cut.block % 2) == (HUGE, 1)
        assert cut.block in range(3, 1 << 23), case.id
        assert bytes_of(case) > BESIDE + (1 << 32), case.id
    for tier in (None, "full"):
        assert HUGE not in {case.tier for case in load(default_dir() / "nll_loss2d_backward.yaml", None, tier)}


@pytest.mark.parametrize("name", SIZES)
def test_a_right_device_passes_and_a_wrong_element_in_any_block_fails(cases, name):
    case = cases(name)
    assert run_case(case, Backend(), Settings(tier=HUGE)).status == "pass"
    output = next(iter(case.outputs))
    size = int(np.prod(case.outputs[output].shape))
    for place in (0, size // 2, size - 1):

        def spoil(call, place=place):
            call.outputs[output].reshape(-1)[place] += 7

        record = run_case(case, Then(spoil), Settings(tier=HUGE))
        assert record.status == "fail"
        assert f"the first is element {place:,}" in record.verdicts["strict"].reason
        flat = np.ravel_multi_index(record.detail.worst[0].index, case.outputs[output].shape)
        assert (flat, record.detail.bad, record.detail.total) == (place, 1, size)


def test_what_is_not_a_value_is_told_too(cases):
    def changed(call):
        call.inputs["self"][1000] += 1

    def outside(call):
        np.lib.stride_tricks.as_strided(call.outputs["gradInput"], (1010,), (2,))[1009] = 1

    def refuses(call):
        return Status(161002, "no")

    def other_shape(call):
        call.outputs["gradInput"] = call.outputs["gradInput"].reshape(1, -1).copy()

    for after, rule in (
        (changed, "inputs unchanged"),
        (outside, "guards untouched"),
        (refuses, "status code"),
        (other_shape, "shape"),
    ):
        record = run_case(cases("log_sigmoid"), Then(after), Settings(tier=HUGE))
        assert (record.status, record.detail.rule) == ("fail", rule), record.reason

    writes_little = Makes(lambda call, result, held: np.concatenate([result[:900], held[900:]]))
    record = run_case(cases("log_sigmoid"), writes_little, Settings(tier=HUGE))
    assert record.reason == "structure: 109 of 1,009 elements of gradInput were not written; the first is element 900"


def test_a_golden_that_proves_nothing_hides_no_wrong_device(cases):
    case = cases("log_sigmoid")
    data = {"gen": "constant", "value": 0.0}
    plan = replace(case.inputs["gradOutput"], data=data)
    case = replace(case, inputs={**case.inputs, "gradOutput": plan}, uninformative="")

    def refuses(call):
        return Status(161002, "no")

    wrong, right = (run_case(case, device, Settings(tier=HUGE)) for device in (Then(refuses), Backend()))
    assert (wrong.status, wrong.detail.rule) == ("fail", "status code")
    assert (right.status, "elements of the golden are 0" in right.reason) == ("error", True), right.reason


def test_gaps_of_a_strided_output_are_guards(cases):
    case = cases("softmax", "padded:3")
    assert run_case(case, Backend(), Settings(tier=HUGE)).status == "pass"

    def gap(call):
        out = call.outputs["out"]
        np.lib.stride_tricks.as_strided(out, (257, 22), out.strides)[100, 20] = 1

    record = run_case(case, Then(gap), Settings(tier=HUGE))
    assert record.reason == "structure: 1 elements outside out were written"


def test_the_data_of_all_blocks_is_that_of_one(cases):
    memory = HugeMemory.make(cases("softmax"), soc="ascend910b", seed=0, under={})
    block, whole = memory.inputs["output"].values, memory.call.inputs["output"]
    assert len(block) == memory.cut.block < len(whole)
    np.testing.assert_array_equal(whole, np.tile(block, (99, 1))[: len(whole)])
    assert memory.changed_inputs() == []


def test_what_does_not_fit_is_a_skip_that_says_how_much_it_needs(cases):
    case = cases("log_sigmoid")
    record = run_case(case, Backend(), Settings(tier=HUGE, max_memory=1 << 30))
    assert record.status == "skip"
    assert record.reason == "needs 1.00 GiB of memory, 1 GiB more than its tensors; --max-memory allows 1.00 GiB"


def test_a_mean_over_all_elements_has_no_blocks(cases):
    case = replace(cases("prelu"), attrs={}, op="aclnnMseLossBackward")
    plan = case.outputs["gradInput"]
    given = {"gradOutput": plan, "self": plan, "target": plan}
    case = replace(case, inputs=given, outputs={"out": plan}, attrs={"reduction": 1})
    with pytest.raises(OracleError, match="cannot be judged by blocks"):
        Cut.of(case)


def test_the_first_wrong_element_names_the_limit_it_lies_at():
    assert describe_wrap(1 << 31, 1, 2).startswith("everything before 2^31 elements or 2^32 bytes is right")
    assert describe_wrap((1 << 29) - 5, 8, 4).startswith("everything before 2^31 bytes is right")
    assert describe_wrap(1 << 20, 1, 2) == describe_wrap(None, 1, 2) == ""


def test_options_that_need_a_whole_reference_are_refused():
    assert settings_of({"oracle_tier": "huge"}).case_limit == 7200
    with pytest.raises(OracleError, match="--tier huge and --invariance"):
        settings_of({"oracle_tier": "huge", "oracle_invariance": True})
