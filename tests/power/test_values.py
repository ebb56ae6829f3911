"""Binades that cases visit: the declaration gives the distances; a hole is named by dtype and power of two."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from ordinary import one_of_each_kind

from oracle.catalogue import Case, default_dir, load, select
from oracle.catalogue.measure import elements, information
from oracle.cli import main
from oracle.model.dtypes import DTYPES
from oracle.operators import OPERATORS, Operator
from oracle.power.values import binades_of, distances, needed, reachable_binades, values

LOSS, ROWS = OPERATORS["aclnnBinaryCrossEntropyBackward"], OPERATORS["aclnnSoftmaxBackward"]


@cache
def cases() -> tuple[Case, ...]:
    return tuple(select(load(default_dir() / "log_sigmoid_backward.yaml"), tier="standard", soc="ascend910b"))


def test_the_distances_of_an_operator_are_its_operands_and_the_places_where_terms_meet() -> None:
    names = [distance.name for distance in distances(LOSS)]
    assert names[:4] == [f"{name} from 0" for name in ("gradOutput", "self", "target", "weightOptional")]
    assert names[4:] == ["(self - target)", "(1 - self)", "max(((1 - self) * self), 9.999999960041972e-13)"]
    assert [distance.name for distance in distances(ROWS)][2:] == ["((gradOutput * output) - (total * output))"]


@pytest.mark.parametrize("op", one_of_each_kind(OPERATORS.values()), ids=lambda op: op.slug)
def test_every_operator_is_measured(op: Operator) -> None:
    file = default_dir() / f"{op.slug}.yaml"
    few = [case for case in select(load(file, tier="smoke"), tier="smoke", soc="ascend910b") if elements(case) < 1000]
    assert information(few, limit=1000)
    visited = sum(line.covered for line in values(few, limit=1000))
    assert (visited > 0) == bool(distances(op))


def test_what_a_dtype_can_reach_of_one_less_an_operand_is_what_all_its_numbers_reach() -> None:
    (beside_one,) = (d for d in distances(LOSS) if d.name == "(1 - self)")
    for dtype in ("float16", "bfloat16"):
        with np.errstate(invalid="ignore"):
            every = np.arange(1 << 16, dtype=np.uint16).view(DTYPES[dtype].numpy).astype(np.float64)
        every = every[np.isfinite(every)]
        reached = binades_of((1 - every) / np.maximum(1, np.abs(every)))
        assert set(needed(LOSS, beside_one, dtype)) == {(sign, k) for sign, k in reached if k <= 0}


def test_every_binade_of_every_distance_is_visited_where_a_verdict_can_depend_on_it() -> None:
    lines = values([case for case in cases() if case.family == "binades"], limit=1 << 16)
    assert [line.name for line in lines] == ["gradOutput from 0", "self from 0"]
    assert all(len(line.needed) > 1000 and not line.holes for line in lines)


def test_a_binade_that_no_case_visits_is_a_hole_that_names_it() -> None:
    gradients = [case for case in cases() if case.id.endswith("127-gradient]") and case.dtype == "float32"]
    lines = {line.name: line.holes for line in values(gradients, limit=1 << 16)}
    assert {hole for hole in lines["gradOutput from 0"] if hole.startswith("float32")} == set()
    assert any(hole.startswith("float32 +2^") and hole.endswith(" to +2^127") for hole in lines["self from 0"])


def test_a_result_that_is_lost_does_not_visit_its_operands() -> None:
    (case,) = (c for c in cases() if c.id.endswith("binades[float32-16x127-self]"))
    gradient = case.inputs["gradOutput"]
    assert gradient is not None
    still = replace(case, inputs={**case.inputs, "gradOutput": replace(gradient, data={"gen": "constant", "value": 0})})
    for tried, seen in ((case, True), (still, False)):
        (line,) = (line for line in values([tried], limit=1 << 12) if line.name == "self from 0")
        assert bool(line.seen) is seen


def test_a_binade_at_which_right_kernels_disagree_is_not_counted() -> None:
    assert reachable_binades(LOSS, "x", "float32", [("+", -30), ("+", 120), ("-", 3)]) == {("+", -30), ("-", 3)}


def test_the_command_prints_the_holes(capsys) -> None:
    words = ["coverage", "--values", "--tier", "smoke", "--format", "json", "--require", "100"]
    assert main([*words, str(default_dir() / "nll_loss2d_backward.yaml")]) == 1
    rows = json.loads(capsys.readouterr().out)["coverage"]
    assert [row["dimension"] for row in rows] == ["gradOutput from 0", "weight from 0"]
    assert all(row["holes"] for row in rows)
