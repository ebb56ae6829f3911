"""The statements about a record: cells add up, similar failures are one kind, holes are found."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import synthetic

from oracle.record.reader import Record, read
from oracle.record.types import STATUSES
from oracle.reporting import exchange, summary
from oracle.reporting.html.page import kinds as kinds_of
from oracle.reporting.language.words import equation, verdict
from oracle.reporting.summary import Summary, columns


@pytest.fixture
def record(tmp_path: Path) -> Any:
    def make(cases: list[dict[str, Any]], **changes: Any) -> Record:
        return read(synthetic.write(tmp_path / "run.jsonl", cases, **changes))

    return make


def test_the_matrix_and_the_coverage_hold_every_case_once(record: Any) -> None:
    summary = Summary(record(synthetic.catalogue(500)))
    assert sum(cell.total for row in summary.matrix.values() for cell in row.values()) == 500
    families = (cell for op in summary.coverage.values() for row in op.values() for cell in row.values())
    assert sum(cell.total for cell in families) == 500


def test_skips_are_not_judged_and_xfail_is_no_pass(record: Any) -> None:
    ids = [f"softmax_backward/tails[float32-{i}]" for i in range(4)]
    cases = [synthetic.case(i, s) for i, s in zip(ids, ("pass", "skip", "xfail", "fail"), strict=True)]
    cell = Summary(record(cases)).matrix["aclnnSoftmaxBackward"]["float32"]
    assert (cell.total, cell.judged, cell.passed, cell.bad) == (4, 3, 1, 1)


@pytest.mark.parametrize(
    ("status", "used", "worst"),
    [("fail", 0.9, 0.9), ("fail", "inf", float("inf")), ("fail", "nan", float("inf")), ("fail", 0.1, 0.25),
     ("xfail", 99.0, 0.25)],
)  # fmt: skip
def test_the_worst_error_of_a_cell_is_the_worst_of_its_cases_that_are_no_expected_failures(
    record: Any, status: str, used: object, worst: float
) -> None:
    other = synthetic.case("softmax_backward/b[float32]", status, budget_used=used)
    cases = [synthetic.case("softmax_backward/a[float32]"), other]
    assert Summary(record(cases)).matrix["aclnnSoftmaxBackward"]["float32"].worst == worst


def test_four_hundred_failures_read_as_three(record: Any) -> None:
    """Failures with the same cause, or without one in the same rule, are one group."""
    kinds = [("float32", "tail from element {} of 20000", "cut"), ("float32", "every 8th row from {}", "wrong by {}"),
             ("float16", "all", "")]  # fmt: skip
    cases = []
    for n in range(400):
        dtype, pattern, cause = kinds[n % 3]
        case = synthetic.failing(f"softmax_backward/f{n % 7}[{dtype}-{n}]", pattern=pattern.format(16384 + n))
        case["detail"]["cause"] = cause.format(n)
        cases.append(case)
    clusters = Summary(record(cases)).clusters
    assert [(cluster.number, cluster.size, cluster.pattern, cluster.group.cause) for cluster in clusters] == [
        (1, 134, "tail from element N of 20000", "cut"),
        (2, 133, "every 8th row from N", "wrong by N"),
        (3, 133, "all", ""),
    ]
    assert [str(cluster.cause_share) for cluster in clusters] == ["134 / 134", "133 / 133", "0 / 133"]
    assert [cluster.is_explained for cluster in clusters] == [True, True, False]
    assert str(kinds_of(clusters)) == "400 cases in 3 groups: same condition and likely cause."


def test_a_cluster_of_several_types_and_patterns_names_the_types_alone(record: Any) -> None:
    (cluster,) = Summary(record([
        synthetic.failing(f"softmax_backward/f[{dtype}-{pattern}]", pattern=pattern)
        for dtype, pattern in (("float16", "all"), ("float32", "tail from element 3 of 9"))
    ])).clusters  # fmt: skip
    assert (cluster.dtype, cluster.pattern) == ("float32, float16", "")


def test_crashes_without_detail_cluster_by_what_was_said(record: Any) -> None:
    cases = [
        synthetic.case(
            f"softmax_backward/tails[float32-{n}]", "crash", reason=f"died with signal 11 after {n} ms\nmore {n}"
        )
        for n in range(5)
    ]
    (cluster,) = Summary(record(cases)).clusters
    assert cluster.group.what == "died with signal 11 after N ms"


def test_every_bad_status_is_in_a_cluster_and_no_good_one(record: Any) -> None:
    cases = [synthetic.case(f"softmax_backward/tails[float32-{s}]", s) for s in STATUSES]
    clusters = Summary(record(cases)).clusters
    assert {c.group.status for c in clusters} == {"crash", "timeout", "error", "fail", "xpass", "notrun"}
    assert len(clusters) == 6


def test_the_simplest_case_has_the_fewest_elements(record: Any) -> None:
    big, small = (synthetic.failing(f"softmax_backward/tails[float32-{n}]") for n in ("a", "b"))
    big["detail"]["total"], small["detail"]["total"] = 10, 9
    (cluster,) = Summary(record([big, small])).clusters
    assert cluster.simplest.id == small["id"]


def test_the_cause_of_a_group_stands_first_in_markdown(record: Any) -> None:
    cases = [synthetic.failing(f"softmax_backward/f[float32-{n}]", authority="document") for n in range(3)]
    for case in cases:
        case["detail"]["cause"] = "wrong sign"
    lines = [line.strip() for line in summary.render([record(cases)]).splitlines()]
    first = next(n for n, line in enumerate(lines) if line.startswith("1. "))
    assert lines[first + 1].startswith("Likely cause: wrong sign")


def test_a_group_has_the_authority_of_most_of_its_cases_not_of_the_simplest_one(record: Any) -> None:
    """The simplest case may break a rule that only the strict bound has."""
    ids = [f"softmax_backward/wide_row[float32-{size}]" for size in (4, 50, 60)]
    cases = [synthetic.failing(name, authority="document") for name in ids]
    cases[0] = synthetic.failing(ids[0], authority="project (strict bound)")
    (cluster,) = Summary(record(cases)).clusters
    assert cluster.authority == "document"
    assert "On the authority of: document" in summary.render([record(cases)])


def test_a_hole_is_a_family_without_a_type_that_the_operator_has(record: Any) -> None:
    cases = [
        synthetic.case(f"softmax_backward/{f}[{d}]") for f, d in (("a", "float32"), ("a", "float16"), ("b", "float32"))
    ]
    assert Summary(record(cases)).holes("aclnnSoftmaxBackward") == [("b", "float16")]


def test_closest_lists_passing_cases_by_budget(record: Any) -> None:
    cases = [synthetic.case(f"softmax_backward/a[{i}]", budget_used=i / 10) for i in range(1, 10)]
    cases.append(synthetic.case("softmax_backward/a[x]", "fail", budget_used=5.0))
    assert [case.budget_used for case in Summary(record(cases)).closest(3)] == [0.9, 0.8, 0.7]


def of(**counts: int) -> list[dict[str, Any]]:
    return [synthetic.case(f"softmax_backward/a[{s}-{i}]", s) for s, n in counts.items() for i in range(n)]


@pytest.mark.parametrize(
    ("cases", "says"),
    [
        ([], "No case was planned: nothing was judged."),
        (of(**{"pass": 1}), "The one case passed."),
        (of(**{"pass": 3}), "All 3 cases passed."),
        (of(skip=2), "Nothing was judged: of 2 cases 2 skipped."),
        (of(**{"pass": 3}, skip=1, xfail=2), "3 of 6 cases passed; 1 skipped, 2 failed as expected."),
        (of(**{"pass": 3}, fail=1), "1 of 4 cases failed."),
        (of(**{"pass": 3}, fail=1, crash=2), "3 of 6 cases did not pass: 2 crashed, 1 failed."),
        (of(**{"pass": 3}, fail=1, notrun=2), "The run stopped early: 2 of 6 cases never ran; 1 failed."),
    ],
)
def test_the_verdict_sentence(record: Any, cases: list[dict[str, Any]], says: str) -> None:
    assert str(verdict(record(cases))) == says


def test_a_record_whose_last_line_counts_more_cases_has_lost_lines(record: Any) -> None:
    lost = dataclasses.replace(record(of(**{"pass": 3}, fail=1), planned=6), never_ran=0)
    says = "Lines are missing in the record: 2 of 6 cases have none. With a line: 1 failed, 3 passed."
    assert str(verdict(lost)) == says


def test_the_equation_names_all_that_happened(record: Any) -> None:
    assert equation(record(of(**{"pass": 3}, fail=1), planned=6)) == "6 planned = 3 pass + 2 notrun + 1 fail"


def refused(dtype: str) -> dict[str, Any]:
    verdicts = {"structure": {"passed": True, "reason": "", "metrics": {}}}
    return synthetic.case(f"softmax_backward/invalid[{dtype}-2x3]", dtype=dtype, budget_used=None, verdicts=verdicts)


def test_types_that_exist_only_to_be_refused_share_the_last_column(record: Any) -> None:
    cases = [synthetic.case("softmax_backward/a[float32-3]"), refused("int8"), refused("complex64"), refused("bool")]
    summary = Summary(record(cases))
    assert columns([summary]) == [("float32",), ("bool", "complex64", "int8")]
    cell = summary.cell_of("aclnnSoftmaxBackward", ("bool", "complex64", "int8"))
    assert cell is not None
    assert (cell.passed, cell.judged) == (3, 3)


def test_a_type_whose_refusal_crashed_keeps_its_column(record: Any) -> None:
    crashed = {**refused("int8"), "status": "crash", "verdicts": {}}
    cases = [synthetic.case("softmax_backward/a[float32-3]"), crashed, refused("complex64"), refused("bool")]
    assert ("int8",) in columns([Summary(record(cases))])


def test_every_layer_is_counted_by_itself(record: Any) -> None:
    bad = synthetic.failing("softmax_backward/a[float32-3]")
    bad["verdicts"]["standard"]["passed"] = True
    summary = Summary(record([bad, synthetic.case("softmax_backward/b[float32-3]")]))
    assert summary.layers == {"structure": (1, 1), "standard": (2, 2), "strict": (0, 1)}
    assert summary.cell_of("aclnnSoftmaxBackward", ("float32",)).objections == {"strict": 1}
    assert summary.clusters[0].layers == [("structure", 0, 1), ("standard", 0, 1), ("strict", 1, 1)]


def test_expected_failures_are_grouped_by_what_the_expectation_says(record: Any) -> None:
    """Measured figures, types and the verdict's text on a case do not make another group."""
    reasons = [
        "aten computes in 16 bits (float16 up to 5.39 times): strict: 3 elements of 7 outside the error bound",
        "aten computes in 16 bits (bfloat16 up to 2 times): standard: matched_ratio 0.9 (9 of 10) < 0.99",
        "aten rounds twice",
    ]
    cases = [synthetic.case(f"softmax_backward/a[float16-{i}]", "xfail", reason=r) for i, r in enumerate(reasons)]
    skips = [f"aten needs one dtype, not {dtype} and float32" for dtype in ("float16", "bfloat16")]
    cases += [synthetic.case(f"softmax_backward/b[float16-{i}]", "skip", reason=r) for i, r in enumerate(skips)]
    result = Summary(record(cases)).excused
    assert [(group.status, group.size, len(group.statements)) for group in result] == [
        ("xfail", 2, 2),
        ("xfail", 1, 1),
        ("skip", 2, 2),
    ]
    assert result[0].reason == "aten computes in 16 bits"


def test_the_kernels_own_share_is_shown_where_a_record_has_it(record: Any) -> None:
    cases = [
        synthetic.case("softmax_backward/a[float32-3]", kernel_share=0.4),
        synthetic.case("softmax_backward/b[float32-3]"),
    ]
    cell = Summary(record(cases)).cell_of("aclnnSoftmaxBackward", ("float32",))
    assert cell is not None
    assert cell.worst_share == 0.4


def test_every_format_tells_what_each_layer_rejects_expected_or_not(record: Any) -> None:
    strict = {"standard": {"passed": True}, "strict": {"passed": False, "reason": "outside"}}
    both = {"standard": {"passed": False, "reason": "ratio"}, "strict": {"passed": False, "reason": "outside"}}
    cases = [
        synthetic.case("softmax_backward/a[gate]", verdicts=strict),
        synthetic.case("softmax_backward/a[known]", "xfail", verdicts=both, reason="known"),
        synthetic.case("softmax_backward/a[bad]", "fail", verdicts=both),
        synthetic.case("softmax_backward/a[good]"),
    ]
    made = record(cases)
    assert str(verdict(made)) == "1 of 4 cases failed. Rejected by: standard 2, strict 3."
    (cell,) = Summary(made).matrix["aclnnSoftmaxBackward"].values()
    assert cell.objections == {"standard": 2, "strict": 3}
    (known,) = Summary(made).excused
    assert known.objections == {"standard": 1, "strict": 1}
    assert "standard ✕2, strict ✕3" in summary.render([made])
    assert exchange.to_junit([made]).count('name="layer.strict" value="fail"') == 3
    extra = json.loads(exchange.to_ctrf([made]))["results"]
    assert extra["summary"]["extra"][made.label]["layers"]["strict"] == {"accepted": 0, "judged": 3}
    assert [test["extra"].get("layer.standard") for test in extra["tests"]] == ["pass", "fail", "fail", None]
    assert ",strict," in exchange.to_csv([made])
