"""The score of the conditions: kernels with known conditions, and the conditions that a report states."""

from __future__ import annotations

import numpy as np
import pytest
from ordinary import in_full_alone

from oracle.defects.base.device import never
from oracle.defects.condition_pairs.pairs import MILLION
from oracle.defects.registry import defects
from oracle.explain.conditions import contrast
from oracle.power import conditions
from oracle.power.conditions import OUTCOMES, RIGHT, FoundCondition, Score, Trial, drawn, is_named, sentence_of
from oracle.settings.settings import Settings

OP = "aclnnLogSigmoidBackward"
SOC = "ascend910b"


def test_kernels_are_drawn_by_their_seed_half_of_them_fresh() -> None:
    first, again, other = ([d.id for d in drawn(OP, SOC, 6, seed)] for seed in (3, 3, 4))
    assert first == again != other
    assert [name.startswith("fresh/") for name in first] == [False] * 3 + [True] * 3
    assert not set(first[3:]) & {d.id for d in defects(OP)}


def test_a_named_kernel_knows_its_condition_and_takes_three_words_at_most() -> None:
    for defect in defects("aclnnSoftmaxBackward"):
        if is_named(defect):
            assert defect.device.negates is not never
            assert MILLION not in defect.id
            assert not ("shape rank" in defect.id and "axis, " in defect.id), "four conditions"


@pytest.fixture
def trial(stated_cases, monkeypatch) -> Trial:
    monkeypatch.setattr(conditions, "RANDOM", 60)
    return Trial.of(OP, tuple(case for case in stated_cases if case.op == OP)[:60], Settings(), 0)


@in_full_alone
def test_a_kernels_condition_is_found_and_compared_on_random_calls(trial) -> None:
    defect = next(d for d in defects(OP) if d.id.startswith("only/") and d.id.endswith("/float16 rank 2"))
    named = trial.named(defect)
    assert (named.outcome, named.off, named.claim) == (RIGHT, 0, "the type is float16, and the rank is 2")


def test_what_is_said_of_another_kernel_is_off(trial) -> None:
    one, other = (next(d for d in defects(OP) if d.id.endswith(f"/{kind} rank 2")) for kind in ("float16", "bfloat16"))
    facts = trial.others
    bad = np.array([one.device.negates(call) for call in trial.calls], bool)
    result = contrast(facts, bad)
    assert result is not None
    assert trial.disagreements(result, one) == 0
    assert trial.disagreements(result, other) > 0


def test_the_score_counts_what_fails_a_case() -> None:
    defect = defects(OP)[0]
    score = Score([FoundCondition(defect, outcome) for outcome in (RIGHT, *OUTCOMES)])
    assert score.failing == 4
    assert sentence_of(score).startswith("conditions of 4 kernels: right 2 (50.0 %), wrong 1 (25.0 %), none 1 (25.0 %)")
    assert score.to_json()["no case fails"] == 1
