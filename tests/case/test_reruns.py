"""A rerun of a failure shows its cause: the contents of the output before the call, or the kernel itself."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from misbehaving import Makes, Then, log_sigmoid

from oracle.case.one_case import AGAIN, OTHERWISE, STALE, run_case
from oracle.case.prepare import KINDS, poison_of
from oracle.catalogue import default_dir, load
from oracle.explain.diagnosis import KEPT, family_of
from oracle.settings.settings import Settings

SOC = "ascend910b"


def cause(case, spoil, **changes):
    device = Makes(spoil)
    vars(device).update(changes)
    record = run_case(case, device, Settings(soc=SOC))
    assert record.status == "fail", record.reason
    return record.detail.cause


def beside(poison, case):
    """Return the case under an id for which its output is filled with a kind of poison."""
    named = (replace(case, id=f"log_sigmoid_backward/{n}[float32]") for n in count())
    return next(one for one in named if poison_of(one, SOC) == poison)


def far_below(case):
    plan = case.inputs["self"]
    return replace(case, inputs={**case.inputs, "self": replace(plan, data={"gen": "constant", "value": -100.0})})


def overflows(call, result, held):
    e = np.exp(-call.inputs["self"])
    return call.inputs["gradOutput"] * (e / (1 + e))


@pytest.mark.parametrize("poison", KINDS)
def test_nan_that_a_kernel_makes_is_not_what_the_output_held(poison):
    """Every element is inf / inf, for any contents of the memory."""
    text = cause(beside(poison, far_below(log_sigmoid())), overflows)
    assert text.startswith("NaN where a number is due"), text


@pytest.mark.parametrize("poison", ["nan", "infinity", "largest"])
def test_what_is_added_or_scaled_is_told_beside_every_poison_and_every_layout(poison):
    """NaN plus a number keeps the bits of NaN: the element looks unwritten."""
    for view in ("contiguous", "padded"):
        case = beside(poison, log_sigmoid(self=view))
        assert cause(case, lambda call, result, held: held + result) == KEPT, view
    if poison != "largest":
        assert cause(case, lambda call, result, held: 0 * held + result) == KEPT


@pytest.fixture(scope="module")
def losses():
    wanted = ("first_look[", "weights[")
    cases = load(default_dir() / "nll_loss_backward.yaml")
    return [c for c in cases if c.dtype == "float32" and c.id.split("/")[1].startswith(wanted)][:6]


def test_zeros_that_nobody_writes_are_no_share_of_a_core(losses):
    causes = {cause(case, lambda call, result, held: np.where(result != 0, result, held)) for case in losses}
    assert causes == {STALE}
    assert family_of(STALE) == "lost"


def test_a_race_is_not_told_to_be_of_the_memory():
    """The kernel is wrong by noise on two calls and right on the next. On memory of zeros it happens to be right."""
    calls = count()

    def races(call, result, held):
        return result + (next(calls) % 3 < 2) * np.linspace(0.1, 0.7, result.size).reshape(result.shape)

    assert cause(beside("largest", log_sigmoid()), races) == AGAIN


def test_a_race_that_passes_and_fails_in_turn_is_not_told_to_be_of_the_memory():
    """It fails with the old content and passes with zeros, twice."""
    wrong = iter((1, 1, 0, 1, 0, 0))

    def races(call, result, held):
        return result + next(wrong) * np.linspace(0.1, 0.7, result.size).reshape(result.shape)

    assert cause(beside("largest", log_sigmoid()), races) == AGAIN


def test_results_that_change_from_run_to_run_are_a_race():
    """Three other elements are 0 each time: the rerun fails, too."""
    calls = count()

    def races(call, result, held):
        lost = next(calls) + np.array([3, 8, 22])
        return np.where(np.isin(np.arange(result.size).reshape(result.shape), lost), 0, result)

    assert cause(log_sigmoid(), races) == OTHERWISE
    assert family_of(OTHERWISE) == "state"


def test_nothing_is_told_of_a_recording_that_only_a_rerun_could_tell():
    case = beside("nan", far_below(log_sigmoid()))
    assert cause(case, overflows, recorded=True) == ""


def test_a_write_in_a_call_that_computes_nothing_is_not_of_the_memory():
    """The device writes 0, which an output that contains 0 does not show."""
    (case,) = (
        c for c in load(default_dir() / "binary_cross_entropy_with_logits.yaml")
        if c.id == "binary_cross_entropy_with_logits/empty_beside_weights[float32-0x4-reduction=0]"
    )  # fmt: skip
    record = run_case(case, Then(lambda call: [out.fill(0) for out in call.outputs.values()] and None), Settings())
    assert record.detail.rule == "a call that computes nothing leaves the output untouched"
    assert record.detail.cause == ""
