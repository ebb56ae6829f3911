"""Failures of kernels with a known fault: the claims about them, and that their scripts fail."""

from __future__ import annotations

import json

import pytest

from oracle.cli import main
from oracle.defects.registry import defects
from oracle.power.failures import FAMILIES, RIGHT, chosen, failures, matrix_of, rate_of, right_of, sentence
from oracle.power.summary import wilson
from oracle.settings.settings import Settings

OP = "aclnnLogSigmoidBackward"


@pytest.fixture(scope="module")
def found(stated_cases):
    wrong = [d for d in defects(OP) if d.id.startswith(("layout/", "num/"))][:14]
    return list(failures(wrong, stated_cases, Settings(), each=1))


def test_a_sample_is_drawn_by_its_seed_over_operators_and_classes():
    ops = (OP, "aclnnNLLLossBackward")
    first, again, other = (chosen(ops, 3, seed) for seed in (0, 0, 1))
    assert [d.id for d in first] == [d.id for d in again]
    assert [d.id for d in first] != [d.id for d in other]
    assert {d.kind for d in first} == set(RIGHT)
    assert {d.op for d in first} == set(ops)


def test_the_matrix_counts_every_failure_once(found):
    matrix = matrix_of(found)
    assert sum(c.total() for c in matrix.counts.values()) == len(found) > 5
    assert matrix.claims == matrix.right + len(matrix.wrong)
    assert matrix.precision >= 0.9
    assert f"{matrix.claims} claims on {len(found)} failures" in sentence(matrix)
    assert matrix.to_json()["precision_interval"] == wilson(matrix.right, matrix.claims)
    assert all(right_of(f.defect) <= set(FAMILIES) for f in found)


def test_failures_become_scripts_that_fail(found):
    rate = rate_of(found[:6])
    assert (rate.tried, rate.failing, rate.lost) == (6, 6, [])


def test_a_script_fills_an_output_with_what_it_held_when_the_case_failed(stated_cases):
    """A kernel that clears by a product with 0 is right on any finite memory."""
    wrong = [d for d in defects(OP) if d.id.endswith("cleared by a product with 0")]
    rate = rate_of(failures(wrong, stated_cases, Settings(), each=1))
    assert (rate.tried, rate.lost) == (len(wrong), [])
    assert wrong


def test_the_command_prints_the_matrix_and_writes_it(stated_files, tmp_path, capsys):
    file = next(p for p in stated_files if p.stem == "log_sigmoid_backward")
    out = tmp_path / "d.json"
    words = ["--diagnosis", "--per-class", "1", "--only", "layout/", "--json", str(out)]
    assert main(["power", str(file), *words]) in (0, 1)
    written = json.loads(out.read_text("utf-8"))
    assert 0 <= written["precision"] <= 1
    assert "class  kernels  failures  formula  layout" in capsys.readouterr().out
    assert main(["power", "--diagnosis", "--scripts"]) == 2
