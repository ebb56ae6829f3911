"""Combinations of conditions: all pairs and triples occur in the built-in catalogue, and a hole is named."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from itertools import combinations

import pytest
from ordinary import in_full_alone

from oracle.catalogue import Case, default_dir, load, select
from oracle.cli import main
from oracle.defects.condition_pairs.factors import Condition, class_factors, factors_of, is_class
from oracle.defects.condition_pairs.pairs import SAID_BY, meeting, sampled
from oracle.model import classes
from oracle.model.call import Call
from oracle.operators import OPERATORS
from oracle.power.conditions import BY_CLASS, BY_LAYOUT, KINDS, call_described, interactions
from oracle.power.trial import WorkItem, run
from oracle.settings.settings import Settings

FILE = default_dir() / "log_sigmoid_backward.yaml"


@cache
def cases(slug: str = "log_sigmoid_backward") -> tuple[Case, ...]:
    return tuple(select(load(default_dir() / f"{slug}.yaml"), tier="standard", soc="ascend910b"))


# `.ci/full` checks this for the whole standard tier of four operators, by `coverage --interactions`.
@pytest.mark.parametrize(
    "slug",
    [
        "log_sigmoid_backward",
        pytest.param("nll_loss_backward", marks=in_full_alone),
        pytest.param("softmax_backward", marks=in_full_alone),
    ],
)
def test_every_three_conditions_meet_in_some_standard_case(slug: str) -> None:
    lines = interactions(cases(slug))
    assert [line.name for line in lines] == [*KINDS, *BY_CLASS, *BY_LAYOUT]
    assert all(len(line.needed) >= 30 for line in lines)
    assert {line.name for line in lines if line.holes} <= {BY_CLASS[-1]}
    holes = [hole for line in lines for hole in line.holes]
    assert all("count above 2^20" in hole for hole in holes)
    assert all(line.percent > 98 for line in lines)


def test_what_the_standard_tier_leaves_out_of_the_largest_shapes_is_in_the_full_one() -> None:
    lines = interactions(load(FILE))
    assert [hole for line in lines for hole in line.holes] == []


def test_a_kernel_that_is_wrong_above_2_20_elements_is_noticed() -> None:
    op = OPERATORS["aclnnLogSigmoidBackward"]
    wrong = next(d for d in sampled(op, 1) if "count above 2^20" in d.id and "dtype" in d.id)
    met = next(
        case for case in cases() if case.computes("ascend910b") and wrong.device.negates(call_described(op, case))
    )
    settings = Settings(soc="ascend910b")
    answer = run(WorkItem(op.name, settings, (met,), (wrong.id,), sample=1))
    assert [hit.id for hit in answer.hits] == [wrong.id]


def of_axes(conditions: Iterable[Condition]) -> int:
    """Return the number of conditions that are classes of the reduced axis; they meet no classes of shapes."""
    return sum(factor in classes.AXIS_FACTORS for factor, _ in conditions)


@in_full_alone
@pytest.mark.parametrize("slug", ["nll_loss_backward", "softmax_backward"])
def test_no_case_meets_classes_of_shapes_that_are_said_to_be_apart(slug: str) -> None:
    op = next(op for op in OPERATORS.values() if op.slug == slug)
    factors = [*factors_of(op), *class_factors(op)]
    known = {name: set(values) for name, _, values in factors}
    possible = set(meeting(op, factors, 2))
    for case in cases(slug):
        if case.computes("ascend910b") and not case.uninformative:
            call = call_described(op, case)
            if not 1 < call.inputs[op.main].size <= 1 << 16 or call.inputs[op.main].ndim < 2:
                continue
            here = [(name, label(call)) for name, label, _ in factors if name not in SAID_BY]
            here = [(name, value) for name, value in here if value in known[name]]
            asked = [two for two in combinations(here, 2) if sum(map(is_class, two)) < 2 or of_axes(two) != 1]
            assert possible.issuperset(asked), case.id


def test_what_no_case_meets_is_a_hole_that_names_its_conditions() -> None:
    def has(case: Case) -> bool:
        plan = case.output
        return case.dtype == "float16" and plan is not None and len(plan.shape) == 7 and plan.view != "contiguous"

    one, two, dtype_and_two, *_ = interactions([case for case in cases() if not has(case)])
    assert not one.holes
    assert not two.holes
    assert dtype_and_two.holes
    assert all(hole.startswith("dtype float16 with shape rank 7") for hole in dtype_and_two.holes)
    assert any(hole.endswith("with the output not contiguous") for hole in dtype_and_two.holes)


def test_three_conditions_may_be_apart_though_every_two_can_meet() -> None:
    op = OPERATORS["aclnnNLLLossBackward"]
    classes, kind = ("classes", "above 1024"), ("target's type", "uint8")
    ignored = "ignoreIndex", "outside the classes, and occurs"
    twos, threes = (set(meeting(op, factors_of(op), count)) for count in (2, 3))
    assert {(classes, ignored), (classes, kind), (ignored, kind)} <= twos
    by_class = set(meeting(op, [*factors_of(op), *class_factors(op)], 3))
    assert (ignored, kind, ("last axis", "above 1024")) not in by_class
    assert (ignored, kind, ("last axis", "a multiple of 64")) in by_class
    assert (classes, ignored, kind) not in threes
    assert (("classes", "65 to 1024"), ignored, kind) in threes


@pytest.mark.parametrize(
    ("name", "attribute", "value", "factor", "message"),
    [
        ("aclnnSwishBackward", "betaOptional", None, "betaOptional", "absent"),
        ("aclnnKlDivBackward", "reduction", 7, "reduction", "otherwise"),
    ],
)
def test_an_attribute_without_a_number_or_a_word_is_a_condition_too(name, attribute, value, factor, message) -> None:
    labels = {factor: label for factor, label, _ in factors_of(OPERATORS[name])}
    assert labels[factor](Call(name, "ascend910b", {}, {attribute: value}, {})) == message


@pytest.mark.parametrize(
    ("require", "status"),
    [
        (["--require", "99"], 1),
        (["--require", "0"], 0),
        (["--require-threes", "99"], 1),
        (["--require", "1", "--require-threes", "0"], 0),
    ],
)
def test_the_command_fails_below_what_is_required(require, status, capsys) -> None:
    assert main(["coverage", "--interactions", "--tier", "smoke", "--format", "json", *require, str(FILE)]) == status
    rows = json.loads(capsys.readouterr().out)["coverage"]
    assert {row["dimension"] for row in rows} == {*KINDS, *BY_CLASS, *BY_LAYOUT}
