"""The coverage table says 100 % if everything is there, and names the missing points."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest
from ordinary import in_full_alone, some
from small_catalogues import WHOLE

from oracle.catalogue import Case, default_dir, load, select
from oracle.catalogue.expand.ecosystem import Volume
from oracle.catalogue.measure import Dimension, Information, coverage, information
from oracle.cli import main


@cache
def catalogue() -> tuple[Case, ...]:
    return tuple(case for file in WHOLE for case in load(file))


def row(table: list[Dimension], name: str) -> Dimension:
    return next(d for d in table if d.name == name)


@in_full_alone
def test_the_full_tier_covers_the_ecosystem_standard() -> None:
    table = coverage(catalogue())
    assert {d.op for d in table} == {case.op for case in catalogue()}
    assert not {(d.op, d.name): d.holes for d in table if d.holes}


def reaches_the_longest(case: Case) -> bool:
    return any(p is not None and max(p.shape, default=0) >= 2**20 for p in case.outputs.values())


LOST = [
    ("dtype", lambda c: c.dtype == "bfloat16", ["bfloat16"]),
    ("rank", lambda c: any(p and len(p.shape) == 7 for p in c.outputs.values()), ["7"]),
    ("attribute value", lambda c: c.attrs.get("dim") == -8, ["dim=-8"]),
    ("dtype x distribution", lambda c: c.dtype == "float16" and "-uniform" in c.id, ["float16 uniform"]),
    ("scene: dtype, one dim 2^20", reaches_the_longest, ["float16", "bfloat16", "float32"]),
    ("scene: dtype x inputs filled, 4 shapes", lambda c: "filled[float32-16x33" in c.id, None),
    ("view: dtype x tensor not contiguous", lambda c: c.outputs["out"] and c.outputs["out"].view != "contiguous", None),
]


@pytest.mark.parametrize(("name", "lost", "holes"), some(LOST, 3), ids=[name for name, *_ in some(LOST, 3)])
def test_what_is_taken_away_is_named(name: str, lost: object, holes: list[str] | None) -> None:
    softmax = load(default_dir() / "softmax_backward.yaml")
    result = row(coverage([c for c in softmax if not lost(c)]), name)  # type: ignore[operator]
    assert result.holes
    assert result.percent < 100
    if holes is not None:
        assert result.holes == holes


@pytest.mark.parametrize("operator", ["nll_loss", "layer_norm", "group_norm"])
def test_ranks_and_attributes_are_those_of_the_main_operand(operator: str) -> None:
    """A reduced loss has no axes, and lengths and extents are numbers of the shape."""
    table = coverage(load(default_dir() / f"{operator}.yaml", Volume("ecosystem", 120)))
    assert not [row(table, name).holes for name in ("rank", "attribute value") if row(table, name).holes]


def test_require_decides_the_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    few = [str(default_dir() / "log_sigmoid_backward.yaml")]
    assert main(["coverage", "--require", "100", *few]) == 0
    assert main(["coverage", "--tier", "smoke", "--require", "100", *few]) == 1
    assert "and" in capsys.readouterr().out


def test_json_and_markdown_hold_the_same_lines(capsys: pytest.CaptureFixture[str]) -> None:
    few = [str(default_dir() / f"{slug}.yaml") for slug in ("softmax_backward", "relu", "nll_loss")]
    assert main(["coverage", *few, "--tier", "smoke", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["coverage"]
    assert main(["coverage", *few, "--tier", "smoke", "--format", "md"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| aclnn")]
    assert len(lines) == len(rows)
    assert all(r["holes"] for r in rows if r["percent"] < 100)


def test_information_counts_finite_distinct_and_above() -> None:
    result = Information("op", "float32")
    result.add(np.array([[1.0, 1.0, np.nan], [0.0, 2.0**-14, -3.0]], np.float32))
    assert (result.elements, result.finite, result.above, result.distinct, result.informative) == (6, 5, 3, 5, 2)


@in_full_alone
def test_the_smoke_tiers_goldens_inform() -> None:
    """Constant or vanishing goldens prove nothing. NLL's goldens are zero except one class per row."""
    for result in information(select(catalogue(), tier="smoke"), limit=2000):
        share = result.share(result.informative)
        # the least by rule: one class of about 100 per row, some rows ignored; bfloat16's 8 bits repeat in long rows
        assert share > (0.008 if "NLL" in result.op else 0.2), result
        assert share < 1, result
