"""Which conditions meet: all two and three of them in the built-in catalogue, and a hole is named."""

from __future__ import annotations

import json
from functools import cache

import pytest

from oracle.catalogue import Case, default_dir, load, select
from oracle.cli import main
from oracle.power.interactions import KINDS, interactions

FILE = default_dir() / "log_sigmoid_backward.yaml"


@cache
def cases() -> tuple[Case, ...]:
    return tuple(select(load(FILE), tier="standard", soc="ascend910b"))


def test_every_three_conditions_meet_in_some_standard_case() -> None:
    lines = interactions(cases())
    assert [line.name for line in lines] == list(KINDS)
    assert all(len(line.needed) >= 40 and not line.holes and line.percent == 100 for line in lines)


def test_what_no_case_meets_is_a_hole_that_names_its_conditions() -> None:
    def has(case: Case) -> bool:
        plan = case.output
        return case.dtype == "float16" and plan is not None and len(plan.shape) == 7 and plan.view != "contiguous"

    one, two, dtype_and_two, _ = interactions([case for case in cases() if not has(case)])
    assert not one.holes
    assert not two.holes
    assert dtype_and_two.holes
    assert all(hole.startswith("dtype float16 with shape rank 7") for hole in dtype_and_two.holes)
    assert any(hole.endswith("with the output not contiguous") for hole in dtype_and_two.holes)


@pytest.mark.parametrize(("require", "status"), [(99, 1), (0, 0)])
def test_the_command_fails_below_what_is_required(require, status, capsys) -> None:
    words = ["coverage", "--interactions", "--tier", "smoke", "--format", "json", "--require", str(require), str(FILE)]
    assert main(words) == status
    rows = json.loads(capsys.readouterr().out)["coverage"]
    assert {row["dimension"] for row in rows} == set(KINDS)
