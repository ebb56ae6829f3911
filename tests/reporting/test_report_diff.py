"""Two records are compared case by case; only a new failure makes the answer no."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
import synthetic

from oracle.record.reader import read
from oracle.record.types import GOOD, STATUSES
from oracle.reporting import diff

ID = "softmax_backward/tails[float32-3]"


@pytest.fixture
def compare(tmp_path: Path) -> Any:
    def make(old: list[dict[str, Any]], new: list[dict[str, Any]], **changes: Any) -> diff.Difference:
        a = synthetic.write(tmp_path / "old.jsonl", old)
        b = synthetic.write(tmp_path / "new.jsonl", new, **changes)
        return diff.Difference(read(a), read(b))

    return make


def ended(case_id: str, status: str) -> dict[str, Any]:
    """Return a case as a run leaves it: no layer judges a skipped case."""
    return synthetic.case(case_id, status, **({"verdicts": {}} if status == "skip" else {}))


def groups(found: diff.Difference) -> dict[str, list[str]]:
    return {name: [change.id for change in changes] for name, changes in found.groups.items() if changes}


@pytest.mark.parametrize(("old", "new"), list(itertools.product((None, *STATUSES), repeat=2)))
def test_every_pair_of_statuses_has_one_answer(compare: Any, old: str | None, new: str | None) -> None:
    result = compare([synthetic.case(ID, old)] if old else [], [synthetic.case(ID, new)] if new else [])
    was_good, is_good = old is None or old in GOOD, new is None or new in GOOD
    stopped = new == "notrun" != old
    fails = not (old == new or not was_good or is_good or stopped)
    assert ("newly failing" in groups(result)) is fails
    assert ("not reached" in groups(result)) is stopped
    assert result.ok is not (fails or stopped or result.no_longer_judged)
    placed = [name for name, ids in groups(result).items() for _ in ids]
    assert len(placed) == (0 if old == new else 1)
    if placed == ["fixed"]:
        assert new == "pass"
    assert result.unchanged == (1 if old == new and old is not None else 0)


@pytest.mark.parametrize(
    ("old", "new", "lost"),
    [
        (["pass", "pass"], ["skip", "skip"], True),
        (["pass", "pass"], ["skip", "pass"], False),
        (["fail", "skip"], ["skip", "skip"], True),
        (["skip", "skip"], ["skip", "skip"], False),
    ],
)
def test_an_operator_that_is_no_longer_judged_makes_the_answer_no(
    compare: Any, old: list[str], new: list[str], lost: bool
) -> None:
    """A device that suddenly skips every case is not a fix."""
    before, after = ([ended(f"{ID}{k}", s) for k, s in enumerate(some)] for some in (old, new))
    result = compare(before, after)
    assert result.no_longer_judged == (["aclnnSoftmaxBackward"] if lost else [])
    assert result.ok is not lost
    assert ("The new run judged no number of aclnnSoftmaxBackward; the old one did." in map(str, result.notes)) is lost


def test_cases_that_a_part_leaves_out_are_not_missed(compare: Any) -> None:
    """The old run judged only cases that the new run did not choose; the chosen case is a skip in both."""
    old = [ended(f"{ID}0", "pass"), ended(f"{ID}1", "skip")]
    assert compare(old, [ended(f"{ID}1", "skip")], chosen="-k 1").ok


def test_records_without_a_common_case_compare_nothing(compare: Any) -> None:
    old, new = ([synthetic.case(f"softmax_backward/{name}[float32-3]", "pass")] for name in ("tails", "lengths"))
    result = compare(old, new)
    assert result.is_disjoint
    assert not result.ok
    assert compare([], new).ok
    assert compare(old, old + new).ok


def test_totals_do_not_hide_a_swap(compare: Any) -> None:
    """One fixed and one broken case leave every total unchanged."""
    a, b = "softmax_backward/a[x]", "softmax_backward/b[x]"
    result = compare([synthetic.case(a), synthetic.case(b, "fail")], [synthetic.case(a, "fail"), synthetic.case(b)])
    assert groups(result) == {"newly failing": [a], "fixed": [b]}
    assert not result.ok


def test_a_record_compared_with_itself_differs_in_nothing(compare: Any) -> None:
    cases = [*synthetic.catalogue(50), synthetic.failing(ID)]
    result = compare(cases, cases)
    assert result.ok
    assert groups(result) == {}
    assert str(result.sentence) == "No case differs; 51 unchanged."
    assert result.notes == []


def test_cases_that_a_stopped_run_did_not_reach_are_no_failures_and_others_are_removed(compare: Any) -> None:
    cases = synthetic.catalogue(10)
    lost = [case["id"] for case in cases[7:]]
    died, chosen = compare(cases, cases[:7], planned=10, died=True), compare(cases, cases[:7])
    assert (groups(died), groups(chosen)) == ({"not reached": lost}, {"removed": lost})
    assert {change.after for change in died.groups["not reached"]} == {"notrun"}
    assert chosen.ok
    assert not died.ok


def test_a_stopped_part_is_not_blamed_for_the_cases_outside_it(compare: Any) -> None:
    cases = synthetic.catalogue(10)
    part = compare(cases, cases[:3], planned=5, chosen="-k 1")
    assert (groups(part), part.left_out, part.unchanged, part.ok) == ({}, 7, 3, False)


@pytest.mark.parametrize(
    ("old", "new", "regressed"),
    [
        (0.2, 0.29, False), (0.2, 0.31, True), (0.01, 0.09, False), (0.01, 0.11, True), (0.0, 0.2, True),
        (0.5, 0.2, False), (0.2, "nan", True), (0.2, "inf", True), ("nan", 0.3, False), (None, 0.9, False),
        (0.2, None, False), ("inf", "inf", False),
    ],
)  # fmt: skip
def test_a_budget_regression_is_a_factor_and_a_floor(compare: Any, old: Any, new: Any, regressed: bool) -> None:
    result = compare([synthetic.case(ID, budget_used=old)], [synthetic.case(ID, budget_used=new)])
    assert groups(result) == ({"budget regressions": [ID]} if regressed else {})
    assert result.ok


def test_budget_regressions_come_worst_first(compare: Any) -> None:
    ids = [f"softmax_backward/a[{i}]" for i in range(4)]
    new = [synthetic.case(i, budget_used=b) for i, b in zip(ids, (0.4, 0.9, 0.5, 0.8), strict=True)]
    result = compare([synthetic.case(i, budget_used=0.1) for i in ids], new)
    assert [c.budget_after for c in result.groups["budget regressions"]] == [0.9, 0.8, 0.5, 0.4]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"seed": 7}, "seeds"), ({"soc": "ascend950"}, "SoCs"), ({"backend": "cpu"}, "backends"),
        ({"catalogue_sha256": "f" * 64}, "catalogues"), ({"standard": "mixed-v1"}, "standards"),
        ({"layers": ["structure"]}, "layers"), ({"tier": "full"}, "tiers"),
        ({"backend_options": {"device": "cuda"}}, "backend options"),
    ],
)  # fmt: skip
def test_what_makes_runs_incomparable_is_said(compare: Any, change: dict[str, Any], word: str) -> None:
    (note,) = map(str, compare([], [], **change).notes)
    assert note.startswith(f"The {word} differ")


def test_the_three_forms_tell_the_same(compare: Any) -> None:
    old = [synthetic.case(f"softmax_backward/a[{i}]", budget_used=0.2) for i in range(6)]
    new = [{**old[0], "status": "fail", "reason": "bad | `x`\nsecond"}, {**old[1], "budget_used": 0.6}, *old[2:5]]
    result = compare(old, [*new, synthetic.case("softmax_backward/new[1]")])
    data = json.loads(diff.to_json(result))
    assert [entry["id"] for entry in data["newly_failing"]] == ["softmax_backward/a[0]"]
    assert data["budget_regressions"][0]["new_budget"] == 0.6
    assert data["ok"] is False
    assert data["unchanged"] == 3
    text, markdown = diff.text(result), diff.markdown(result)
    for group in data:
        for entry in data[group] if isinstance(data[group], list) else []:
            if isinstance(entry, dict):
                assert entry["id"] in text
                assert f"`{entry['id']}`" in markdown
    assert "second" not in markdown
    assert r"bad \| \`x\`" in markdown


def test_a_limit_says_what_it_leaves_out(compare: Any) -> None:
    cases = synthetic.catalogue(30)
    result = compare(cases, [{**case, "status": "fail"} for case in cases])
    assert "... and 25 more" in diff.text(result, limit=5)
    assert "more" not in diff.text(result, limit=0)


def test_control_characters_do_not_reach_the_terminal(compare: Any) -> None:
    result = compare([], [synthetic.case("a/\x1b[31m[x]", "fail", reason="\x1b]0;title\x07")])
    assert "\x1b" not in diff.text(result)
