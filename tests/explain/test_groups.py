"""Groups of failures, their conditions and causes, on made-up runs and on kernels with one mistake each."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from misbehaving import Makes, Then
from ordinary import FULL, in_full_alone
from synthetic import DTYPES, case_of, grouped

from oracle.backends.cpu import Backend
from oracle.case.one_case import run_case
from oracle.catalogue import default_dir, load, select
from oracle.explain.conditions import measured
from oracle.explain.further_calls import GroupExplorer, describes
from oracle.explain.groups import Step, merged, parts
from oracle.explain.simulations import with_operands
from oracle.model.call import Call
from oracle.operators import compute
from oracle.record.reader import Record
from oracle.record.types import CaseRecord, Detail, WorstElement
from oracle.reporting.clusters import shared_text
from oracle.reporting.language.translate import CHINESE, ENGLISH, Phrase
from oracle.run.terminal import MIDDLE, failures
from oracle.settings.settings import Settings


def drawn(fails: Callable[[str, tuple[int, ...]], bool], seed: int = 0) -> Record:
    """Return the record of 600 such cases of random dtypes and shapes; ``fails`` says which of them fail."""
    draw = random.Random(seed)
    cases = []
    for number in range(600):
        shape = tuple(draw.choice((1, 3, 8, 63, 64, 65, 100, 128, 129, 256)) for _ in range(draw.randint(1, 4)))
        dtype = draw.choice(DTYPES)
        cases.append(case_of(number, fails(dtype, shape), dtype, shape))
    return grouped(cases)


@pytest.mark.parametrize(
    ("fails", "where"),
    [
        (lambda dtype, shape: shape[-1] > 64 and shape[-1] % 64 != 0,
         "the reduced axis is longer than 64 and no multiple of 64"),
        (lambda dtype, shape: dtype == "bfloat16", "the type is bfloat16"),
        (lambda dtype, shape: dtype != "float32" and len(shape) == 3,
         "the type is float16 or bfloat16, and the rank is 3"),
        (lambda dtype, shape: shape[-1] == 1, "the reduced axis is no longer than 1"),
    ],
)  # fmt: skip
def test_the_condition_of_a_rule_is_found(fails: Callable[[str, tuple[int, ...]], bool], where: str) -> None:
    (group,) = drawn(fails).groups
    assert group.where == where
    assert (group.failed, group.passed) == (group.inside, group.outside)


def test_a_few_cases_that_pass_by_luck_hide_no_condition() -> None:
    luck = random.Random(1)
    (group,) = drawn(lambda dtype, shape: dtype == "float16" and luck.random() < 0.9).groups
    assert group.where == "the type is float16"
    assert group.failed < group.inside


@in_full_alone
def test_failures_without_rhyme_or_reason_get_no_condition() -> None:
    for seed in range(20 if FULL else 6):
        draw = random.Random(seed)
        assert all(not group.where for group in drawn(lambda dtype, shape, d=draw: d.random() < 0.1, seed).groups)


def test_calls_that_compute_nothing_are_no_passing_cases_of_those_that_do() -> None:
    """A device that returns another type fails wherever it computes, and refuses the calls that must be refused."""
    wrong = [case_of(n, True, "float32", (n + 3, 5), elements=None) for n in range(9)]
    small = [case_of(n + 9, False, "float32", (3, 4), elements=None) for n in range(9)]
    refused = [replace(each, inputs={n: f"{w} (no data)" for n, w in each.inputs.items()}) for each in small]
    empty = [case_of(n + 18, False, "float32", (n, 0), elements=None) for n in range(3)]
    (group,) = grouped([*wrong, *refused, *empty]).groups
    assert not group.where


def test_operators_that_share_condition_or_cause_are_one_group() -> None:
    def other(made: CaseRecord) -> CaseRecord:
        return replace(made, id=made.id.replace("softmax", "log_softmax"), op="aclnnLogSoftmaxBackward")

    one = drawn(lambda dtype, shape: dtype == "float16").cases
    (group,) = grouped([*one, *map(other, one)]).groups
    assert group.operators == ("aclnnLogSoftmaxBackward", "aclnnSoftmaxBackward")
    assert group.failures == 2 * sum(not each.ok for each in one)
    assert group.failed == group.inside


def test_figures_that_differ_have_letters_and_equal_ones_the_same() -> None:
    lost = "a mean is divided by the padded element count {}, not by {}"
    assert shared_text([lost.format(64, 5), lost.format(128, 70)]) == lost.format("N", "M")
    assert shared_text([lost.format(64, 5), lost.format(64, 7)]) == lost.format(64, "N")
    assert shared_text(["3 of 3", "4 of 4"]) == "N of N"
    assert CHINESE.say(Phrase("scattered: N of M")) == "零散分布：M 个中的 N 个"


def test_two_bugs_with_different_causes_are_two_groups() -> None:
    def message(each: CaseRecord) -> CaseRecord:
        cause = "wrong sign" if each.dtype == "float16" else "all wrong by the factor 2"
        return each if each.detail is None else replace(each, detail=replace(each.detail, cause=cause))

    record = grouped(map(message, drawn(lambda dtype, shape: dtype == "float16" or shape[-1] == 256).cases))
    assert {group.cause: group.where for group in record.groups} == {
        "wrong sign": "the type is float16",
        "all wrong by the factor 2": "the reduced axis is a multiple of 256",
    }
    assert sum(group.failures for group in record.groups) == sum(not each.ok for each in record.cases)


def test_crashes_of_which_other_things_are_said_are_other_groups() -> None:
    said = ("signal 11 after {} ms", "no memory, {} bytes asked\nmore")
    died = [case_of(n, False, "float32", (7,), status="crash", reason=said[n % 2].format(n)) for n in range(8)]
    assert sorted(group.what for group in grouped(died).groups) == ["no memory, N bytes asked", "signal 11 after N ms"]


def test_every_failure_is_in_one_group() -> None:
    draw = random.Random(3)
    statuses = ("pass", "fail", "error", "crash", "xpass")
    cases = [case_of(n, False, "float32", (n % 9 + 1, 7), status=draw.choice(statuses)) for n in range(200)]
    record = grouped(cases)
    ids = [case_id for group in record.groups for case_id in group.cases]
    assert sorted(ids) == sorted(each.id for each in cases if not each.ok)
    assert all(bool(group.shrink) == (group.status != "xpass") for group in record.groups)


def test_groups_of_one_wrong_step_are_one_group() -> None:
    made = [case_of(n, n < 6, "float32", (4, 5), detail=Detail(rule="ab"[n % 2])) for n in range(12)]
    one, other = parts(made)
    assert merged([one, other]) == [one, other]
    same = merged([replace(part, step=Step("a step", n, 3)) for n, part in enumerate((one, other), 1)])
    assert [(part.step, len(part.cases), len(part.populations)) for part in same] == [(Step("a step", 3, 6), 6, 1)]
    assert len(merged([replace(one, step=Step("a step", 1, 3)), replace(other, step=Step("another", 1, 3))])) == 2


# Kernels with one mistake each that shows under a condition; a report has to find the condition itself.


def loses_the_tail(call: Call, result: Any, held: Any) -> Any:
    """Softmax's gradient. On an axis longer than 64, its sum omits the rest after whole blocks of 64."""
    length = result.shape[call.attrs["dim"]] if result.size and result.ndim else 0
    if length <= 64 or length % 64 == 0:
        return result
    g, y = (np.asarray(call.inputs[name]).astype(np.float64) for name in ("gradOutput", "output"))
    whole = np.take(g * y, np.arange(length // 64 * 64), axis=call.attrs["dim"])
    wrong = y * (g - whole.sum(axis=call.attrs["dim"], keepdims=True))
    return wrong.astype(np.float32).astype(call.inputs["output"].dtype)


def misplaces_the_weight(call: Call, result: Any, held: Any) -> Any:
    """A loss's gradient. A broadcast weight lies along the wrong axes of a tensor of rank 3."""
    weight, main = call.inputs["weightOptional"], call.inputs["self"]
    if weight is None or main.ndim != 3 or weight.size >= main.size:
        return result
    wrong = np.resize(np.ascontiguousarray(weight).reshape(-1)[::-1], main.shape)
    return compute(with_operands(call, weightOptional=wrong))


def ignores_the_last_block(call: Call, result: Any, held: Any) -> Any:
    """An operator that writes 0 for the last 16 results of each 16-bit row longer than 8,192."""
    if result.ndim and result.shape[-1] > 8192 and next(iter(call.inputs.values())).dtype.itemsize == 2:
        result[..., -16:] = 0
    return result


def stops_at_infinity(call: Call, result: Any, held: Any) -> Any:
    """Writes one number everywhere if an operand has a value that is not finite."""
    given = (np.asarray(value, np.float64) for value in call.inputs.values() if value is not None)
    return result if all(np.isfinite(value).all() for value in given) else np.full(result.shape, 1.5)


def ran(backend: object, slug: str, every: int) -> Record:
    """Run every ``every``-th small case on a backend, and all cases with a last axis of about 8,192."""
    cases = select(load(default_dir() / f"{slug}.yaml"), tier="standard", soc="ascend910b")
    shapes = [() if each.output is None else each.output.shape for each in cases]
    chosen = [
        each for n, (each, shape) in enumerate(zip(cases, shapes, strict=True))
        if (n % every == 0 and np.prod(shape) < 1 << 14) or 8191 <= max(shape[-1:], default=0) <= 8193
    ]  # fmt: skip
    return grouped(run_case(each, backend, Settings()) for each in chosen)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("backend", "slug", "every", "where"),
    [
        pytest.param(
            Makes(loses_the_tail), "softmax_backward", 8, "the reduced axis is longer than 64 and no multiple of 64",
            marks=in_full_alone,
        ),
        pytest.param(
            Makes(misplaces_the_weight), "binary_cross_entropy_backward", 8,
            "the rank is 3, and weightOptional holds several values and is broadcast", marks=pytest.mark.slow,
        ),
        pytest.param(
            Makes(ignores_the_last_block), "softmax_backward", 16,
            "the type is float16 or bfloat16, and the last axis is longer than 8192", marks=in_full_alone,
        ),
        (Makes(stops_at_infinity), "log_sigmoid_backward", 12, "the data holds values that are not finite"),
    ],
)  # fmt: skip
def test_a_kernels_mistake_stands_in_the_first_ten_lines(backend: object, slug: str, every: int, where: str) -> None:
    record = ran(backend, slug, every)
    (group,) = record.groups
    assert group.where == where
    assert any(where in line for line in failures(record, ENGLISH, MIDDLE)[:10])
    chinese = CHINESE.say(Phrase(where))
    assert " is " not in chinese
    assert any(chinese in line for line in failures(record, CHINESE, MIDDLE)[:10])


@pytest.mark.parametrize(
    "case_id", ["softmax_backward/ranks_smoke[float32-scalar]", "layer_norm/empty[float32-3x0-smoke]"]
)
def test_a_wrong_result_without_an_axis_or_of_empty_rows_is_a_failure(case_id: str) -> None:
    (case,) = [c for c in load(default_dir() / f"{case_id.partition('/')[0]}.yaml") if c.id == case_id]
    device = Then(lambda call: [out.fill(3) for out in call.outputs.values()] and None)
    assert run_case(case, device, Settings()).status == "fail"


def test_a_condition_describes_failures_only_if_it_covers_most_of_them() -> None:
    """A stranger's kernel failed nearly everywhere, and 2 of 125 failures gave the group its condition."""
    bad = np.array([True] * 125 + [False] * 3)
    for covered, passes, does in ((2, 2, False), (60, 0, False), (100, 2, True), (125, 3, True)):
        holds = np.zeros(128, bool)
        holds[:covered] = holds[125 : 125 + passes] = True
        assert describes(measured([], holds, bad), 125, 125) is does


def test_a_condition_of_other_calls_does_not_describe_the_only_failure_of_a_run() -> None:
    """It predicts nearly all cases correctly, since nearly all pass; the failure is not among its cases."""
    bad, holds = np.arange(554) == 0, np.arange(554) > 549
    assert not describes(measured([], holds, bad), 1, 1)


def test_one_cause_in_several_operators_is_at_most_five_groups_and_the_first_explains_most() -> None:
    """A device that computes in the operands' own type makes one mistake in every operator."""
    cases = []
    for slug in ("softmax_backward", "log_sigmoid_backward", "gelu_backward", "tanh_backward"):
        result = select(load(default_dir() / f"{slug}.yaml", None, "smoke"), tier="smoke", soc="ascend910b")
        cases += [c for c in result if c.output is not None and np.prod(c.output.shape) < 1 << 12][::5]
    native = Backend(numerics="native")
    record = grouped(run_case(each, native, Settings()) for each in cases)
    failures_of = [group.failures for group in record.groups]
    assert 1 <= len(failures_of) <= 5
    assert failures_of[0] >= 0.8 * sum(failures_of)
    assert len(record.groups[0].operators) == 4
    assert record.groups[0].cause == "intermediate results are rounded to float16 or bfloat16"


def wrong_at(number: int, value: float, lambd: float = 0.5, generator: str = "normal") -> CaseRecord:
    element = WorstElement((number,), 1.0, 2.0, 0.1, None, "", "", None, {"output": value, "gradOutput": number + 0.25})
    detail = Detail(rule="standard mixed", bad=1, total=64, worst=(element,))
    words = {"gradOutput": "float32[64] normal", "output": f"float32[64] {generator}"}
    return case_of(number, True, "float32", (64,), detail=detail, inputs=words, attrs={"lambd": lambd})


CLASSES = [wrong_at(number, 3.0, generator="classes") for number in range(20, 32)]


@pytest.mark.parametrize(
    ("cases", "cause"),
    [
        ([wrong_at(1, -3.0), wrong_at(2, -3.0, 0.25)], "output is -3 at every wrong element that is shown"),
        ([wrong_at(1, -1.5, 1.5), wrong_at(2, -3.0, 3.0)], "output is -lambd at every wrong element that is shown"),
        ([wrong_at(1, -3.0), wrong_at(2, 3.0)], ""),
        (CLASSES, "output is 3 at every wrong element that is shown"),
        (CLASSES[1:], ""),
        ([wrong_at(1, -3.0)], ""),
        ([wrong_at(1, -3.0, generator="constant"), wrong_at(2, -3.0, generator="constant")], ""),
    ],
)
def test_a_value_that_all_wrong_elements_share_is_the_cause(cases: list[CaseRecord], cause: str) -> None:
    passing = [case_of(number, False, "float32", (64,)) for number in range(10, 20)]
    (group,) = grouped([*cases, *passing]).groups
    assert group.cause == cause
    assert group.explained == (len(cases) if cause else 0)


def beyond(number: int, value: float, limit: str = "", cause: str = "") -> CaseRecord:
    pattern = f"scattered: 9 of 64, where {limit}" if limit else "one element, [3]"
    failing = wrong_at(number, value)
    assert failing.detail is not None
    return replace(failing, detail=replace(failing.detail, bad=9 if limit else 1, pattern=pattern, cause=cause))


def test_failures_beyond_one_limit_of_an_operand_are_one_group() -> None:
    """Failures with few wrong elements show no limit, however many, and belong to the others; one with a cause does
    not."""
    shown = [beyond(number, 2.5 + number, f"output is at least {2 + number / 4:g}") for number in range(3)]
    others = [beyond(4, 1.5), beyond(5, 7.5, cause="NaN is replaced by a number")]
    few = [beyond(number, 2.25) for number in range(40, 52)]
    passing = [case_of(number, False, "float32", (64,)) for number in range(10, 40)]
    first, *rest = grouped([*shown, *others, *few, *passing]).groups
    assert (first.cause, first.failures, first.explained) == ("wrong where output is at least 2", 15, 15)
    assert sum(group.failures for group in rest) == 2
    far = [beyond(number, 50.0, f"output is at least {2.0**number:g}") for number in range(6)]
    for unshared in (shown[:2], far):
        assert all("wrong where" not in group.cause for group in grouped([*unshared, *others, *passing]).groups)


@pytest.mark.parametrize(("value", "cause"), [(4.0, "wrong where output is at least 2"), (1.0, "")])
def test_a_limit_that_few_failures_show_is_one_if_nearly_all_lie_beyond_it(value: float, cause: str) -> None:
    shown = [beyond(number, 3.0, "output is at least 2") for number in range(3)]
    others = [beyond(number, value + number / 100, "output is of no use") for number in range(20, 37)]
    passing = [case_of(number, False, "float32", (64,)) for number in range(40, 60)]
    assert grouped([*shown, *others, *passing]).groups[0].cause == cause


def of_cause(number: int, cause: str) -> CaseRecord:
    detail = Detail(rule="standard mixed", bad=1, total=64, cause=cause)
    return case_of(number, True, ("float32", "float16")[number % 2], (64,), detail=detail)


@pytest.mark.parametrize(
    ("causes", "told"),
    [
        (["the attribute eps is read as 1e-05 / 0.0", "the attribute eps is read as 0.0"],
         "the attribute eps is read as 0.0"),
        (["the attribute eps is read as 1e-05 / 0.0", "the attribute eps is read as 1e-05"],
         "the attribute eps is read as 1e-05"),
        (["the attribute eps is read as 2.0", "the attribute eps is read as 3.0"], "the attribute eps is read as N"),
        (["the attribute value is read as 0.0 / itself truncated to an integer",
          "the attribute value is read as 1.0 / itself truncated to an integer"],
         "the attribute value is read as itself truncated to an integer"),
        (["the attribute eps is read as 0.0 / another number", "all wrong by the factor 2, as if the attribute eps is"
          " read as another number"], "the attribute eps is read as another number"),
        (["NaN is replaced by a number", "an infinity has the wrong sign"], ""),
        ([f"float32 results carry only the digits of {kind}: they are rounded to it on the way"
          for kind in ("bfloat16", "float16")],
         "float32 results carry only the digits of float16 or bfloat16: they are rounded to it on the way"),
        ([f"the mean is divided by {what}, not by 2.5: all wrong by the factor 0.5" for what in (
            "5 (the size of target / axis 0)", "4 (axis 0 / the rank)")],
         "the mean is divided by N (axis 0), not by 2.5: all wrong by the factor 0.5"),
        (["x1 or x2 is read as if it were contiguous", "x2 is read as if it were contiguous"],
         "x2 is read as if it were contiguous"),
    ],
)  # fmt: skip
def test_a_group_has_the_cause_that_all_its_failures_allow(causes: list[str], told: str) -> None:
    """Of two causes that are as common, each contradicts half of the failures."""
    passing = [case_of(number, False, "float32", (64,)) for number in range(10, 20)]
    (group,) = grouped([of_cause(0, causes[0]), of_cause(1, causes[1]), *passing]).groups
    assert group.cause == told


@pytest.mark.parametrize(("few", "told"), [(3, ""), (6, "an infinity has the wrong sign")])
def test_a_cause_that_few_of_the_failures_have_is_not_that_of_their_group(few: int, told: str) -> None:
    """Views and few elements often allow no claim: a fifth of the failures is enough if no other has another cause."""
    failing = [of_cause(number, "an infinity has the wrong sign" if number < few else "") for number in range(20)]
    passing = [case_of(number, False, "float32", (63,)) for number in range(20, 60)]
    assert grouped([*failing, *passing]).groups[0].cause == told


def test_a_rounding_in_general_is_no_other_cause_than_a_certain_one() -> None:
    sums, steps = "the terms of a sum over the reduced axis are rounded to {}", "intermediate results are rounded to {}"
    errors = "errors as of intermediate results rounded to {}, or of an approximation of as few digits"
    causes = [(sums, steps, errors, sums, "")[number % 5].format("float16") for number in range(20)]
    assert grouped([of_cause(n, cause) for n, cause in enumerate(causes)]).groups[0].cause == causes[0]


def test_a_step_that_is_found_before_the_time_ends_is_told_of_the_failures_that_were_tried() -> None:
    """On a slow machine the time ends after one failure of five; it counted as one of five."""
    record = grouped([case_of(number, True, "float32", (64, 3)) for number in range(5)])
    failing = load(default_dir() / "softmax_backward.yaml")[0]
    soc, run = "ascend910b", record.cases[0]
    explorer = GroupExplorer(lambda _: failing, lambda _: run, lambda _: slow(), soc, "", 0, math.inf)

    def slow() -> str:
        explorer.until = 0.0
        return "a step of the formula is wrong: 1 becomes 2"

    (group,) = explorer.groups(record)
    assert (group.cause, group.explained, group.tried) == ("a step of the formula is wrong: 1 becomes 2", 1, 1)


@pytest.mark.parametrize(("passing", "told"), [(20, ""), (2, "the attribute reduction is read as 2")])
def test_a_reduction_with_which_other_cases_pass_is_not_misread(passing: int, told: str) -> None:
    """A divisor that is clamped at 1 gives the results of no division, if it is less."""
    cause = "the attribute reduction is read as 2"
    made = [of_cause(n, cause if n < 6 else "") for n in range(6 + passing)]
    cases = [replace(each, op="aclnnMseLossBackward", attrs={"reduction": 1}, status="fail" if n < 6 else "pass")
             for n, each in enumerate(made)]  # fmt: skip
    assert grouped(cases).groups[0].cause == told


def test_causes_of_one_bug_in_two_forms_are_told_by_the_more_frequent_one() -> None:
    """Views of one operand: if strides of its rank say no more, the cause has no figures."""
    whole = "output is read as if it were contiguous: its strides are ignored"
    strides = "output is read as if its strides were [2, 1], not [4, 1]"
    assert shared_text([strides, whole, whole]) == whole
    assert shared_text([strides.replace("2", "6"), whole, strides]) == strides.replace("[2, 1]", "N")


def test_failures_without_the_cause_of_their_bug_are_in_its_group() -> None:
    """Only float16 shows the cause. The failures of the other types lie under the same condition, except the type."""
    detail, cases = Detail(rule="standard mixed", bad=1, total=64), []
    for number in range(400):
        dtype, is_negative = ("float16", "float32", "bfloat16")[number % 3], number % 4 == 0
        bad = is_negative and number % 7 > 1
        shown = replace(detail, cause="wrong sign") if dtype == "float16" else detail
        changed = {"detail": shown} if bad else {}
        attrs = {"lambd": -1.0 if is_negative else 1.0}
        cases.append(case_of(number, bad, dtype, (64,), attrs=attrs, **changed))
    (group,) = grouped(cases).groups
    assert (group.where, group.cause) == ("the attribute lambd is -1.0", "wrong sign")
    assert 0 < group.explained < group.failures == group.failed
