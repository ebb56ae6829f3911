"""Reading a record: every written case is counted, and a file that is no record is refused with the line."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import synthetic

from oracle.model.errors import OracleError
from oracle.record.reader import read
from oracle.record.types import STATUSES, budget_of, split_id
from oracle.reporting.language.words import percent, verdict


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines(keepends=True)


def test_a_whole_record_reads(tmp_path: Path) -> None:
    cases = [*synthetic.catalogue(10), synthetic.failing("softmax_backward/wide_row[bfloat16-16x20000-dim=-1]")]
    record = read(synthetic.write(tmp_path / "run.jsonl", cases))
    assert record.complete
    assert not record.ok
    assert record.notes == ()
    assert record.counts["pass"] == 10
    assert record.counts["fail"] == 1
    assert record.header.seed == 0
    assert record.header.layers == ("structure", "standard", "strict")
    failed = record.by_id["softmax_backward/wide_row[bfloat16-16x20000-dim=-1]"]
    assert failed.family == "wide_row"
    assert failed.detail is not None
    assert failed.detail.worst[0].index == (3, 16384)
    assert math.isnan(failed.detail.worst[0].actual or 0.0)
    assert failed.detail.ulp_histogram["257-4096"] == 3598
    assert failed.verdicts["structure"].passed
    assert failed.verdicts["standard"].metrics["matched_ratio"] == 0.9887


@pytest.mark.parametrize("status", STATUSES)
def test_planned_is_the_sum_of_the_statuses_and_few_of_them_are_good(tmp_path: Path, status: str) -> None:
    """The sum holds for any number of planned cases without a line."""
    cases = [synthetic.case("softmax_backward/tails[float32-3]", status), *synthetic.catalogue(4)]
    record = read(synthetic.write(tmp_path / "run.jsonl", cases, planned=7))
    assert sum(record.counts.values()) == record.planned == 7
    assert record.counts["notrun"] == 2 + (status == "notrun")
    assert read(synthetic.write(tmp_path / "run.jsonl", cases)).ok is (status in ("pass", "skip", "xfail"))


@pytest.mark.parametrize(("passed", "planned", "note", "says"), [
    (30, 100, "The record has no last line: the run died after 30 of 100 planned cases.",
        "The run stopped early: 70 of 100 cases never ran."),
    (5, 5, "", "The record ends without its last line. All 5 cases passed."),
])  # fmt: skip
def test_a_run_that_died_still_reads_and_is_not_ok(
    tmp_path: Path, passed: int, planned: int, note: str, says: str
) -> None:
    record = read(synthetic.write(tmp_path / "run.jsonl", synthetic.catalogue(passed), planned=planned, died=True))
    assert (record.counts["pass"], record.counts["notrun"], record.ok) == (passed, planned - passed, False)
    assert not note or record.notes == (note,)
    assert str(verdict(record)) == says


def test_a_half_written_last_line_is_left_out_and_named_and_a_whole_one_without_its_newline_counts(tmp_path) -> None:
    path = synthetic.write(tmp_path / "run.jsonl", synthetic.catalogue(5), died=True)
    whole = path.read_bytes()
    before = whole[: whole.rindex(b"\n", 0, -1) + 1]
    inside_a_character = before + '{"type":"case","id":"最'.encode()[:-1]
    for text in (*(whole[: len(before) + keep] for keep in (1, 20, 100)), inside_a_character):
        path.write_bytes(text)
        record = read(path)
        assert len(record.cases) == 4
        assert any("line 6 is half-written" in note.lower() for note in record.notes)
    path = synthetic.write(path, synthetic.catalogue(3))
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    assert read(path).complete


def test_a_case_that_was_run_again_counts_once_and_is_named(tmp_path: Path) -> None:
    first = synthetic.case("softmax_backward/tails[float32-3]", "crash")
    cases = [first, {**first, "status": "pass"}]
    record = read(synthetic.write(tmp_path / "run.jsonl", cases, planned=1))
    assert record.counts["pass"] == 1
    assert record.planned == 1
    assert any("recorded again" in note and "1 crash" in note for note in record.notes)


def test_a_number_of_cases_that_disagrees_is_named(tmp_path: Path) -> None:
    path = synthetic.write(tmp_path / "run.jsonl", synthetic.catalogue(3), planned=2)
    assert read(path).notes == ("3 cases were recorded but only 2 were planned.",)
    path = synthetic.write(path, synthetic.catalogue(3))
    path.write_text("".join(lines(path)[:-1]) + '{"type":"end","pass":2,"fail":1,"duration_s":1}\n', encoding="utf-8")
    assert read(path).notes == (
        "The end line says 2 pass; the case lines give 3.",
        "The end line says 1 fail; the case lines give 0.",
    )


CASES = Path(__file__).parents[2] / "cases"
GOOD_CASE = json.dumps(synthetic.case("softmax_backward/tails[float32-3]"))


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("", 1, "starts with a"),
        ("{}\n", 1, "starts with a"),
        ('{"type":"ru', 1, "half-written"),
        ("not json\n", 1, "not JSON"),
        ("[1]\n", 1, "must be a JSON object"),
        ('{"type":"case"}\n', 1, "starts with a"),
        ("HEADER\nnot json\n", 2, "not JSON"),
        ("HEADER\n\n{}\n", 3, "unknown line type None"),
        ("HEADER\nHEADER\n", 2, "unknown line type 'run'"),
        ('HEADER\n{"type":"case","id":"a"}\n', 2, "'status' is missing"),
        ('HEADER\n{"type":"case","status":"pass"}\n', 2, "'id' is missing"),
        ('HEADER\n{"type":"case","id":"a","status":"passed"}\n', 2, "unknown status 'passed'"),
        ('HEADER\n{"type":"case","id":["a",1],"status":"pass"}\n', 2, "'id' must be a string"),
        ('HEADER\n{"type":"case","id":"a","status":"pass","budget_used":"big"}\n', 2, "'budget_used' must be a number"),
        ('HEADER\n{"type":"case","id":"a","status":"pass","budget_used":NaN}\n', 2, 'write the string "nan"'),
        ('HEADER\n{"type":"case","id":"a","status":"fail","detail":{"bad":-1}}\n', 2, "'bad' must be a whole number"),
        ('HEADER\n{"type":"case","id":"a","status":"fail","detail":{"error_grid":{"rows":1}}}\n', 2, "'columns'"),
        ('HEADER\n{"type":"case","id":"a","status":"fail","detail":{"ulp_histogram":{"2":-1}}}\n', 2, "a whole number"),
        ('HEADER\n{"type":"case","id":"a","status":"fail","detail":{"worst":[{"index":"x"}]}}\n', 2, "worst[0]"),
        ('HEADER\n{"type":"case","id":"a","status":"fail","verdicts":{"strict":{"passed":1}}}\n', 2, "true or false"),
        ('HEADER\n{"type":"end"}\nCASE\n', 3, "after the end line"),
    ],
)  # fmt: skip
def test_what_is_malformed_is_refused_with_its_line(tmp_path: Path, text: str, line: int, says: str) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(text.replace("HEADER", json.dumps(synthetic.header())).replace("CASE", GOOD_CASE), encoding="utf-8")
    with pytest.raises(OracleError) as error:
        read(path)
    assert str(error.value).startswith(f"{path}:{line}:")
    assert says in str(error.value)
    if line == 1:  # no record at all
        assert 'a run record starts with a {"type": "run"} line, as `aclnn-oracle run`' in str(error.value)


@pytest.mark.parametrize("salvage", [False, True])
@pytest.mark.parametrize("name", ["softmax_backward.yaml", "nll_loss_backward.yaml"])
def test_a_catalogue_is_told_from_a_record_with_the_command_that_runs_it(name: str, salvage: bool) -> None:
    path = CASES / name
    with pytest.raises(OracleError) as error:
        read(path, salvage=salvage)
    assert f"{path}: a catalogue of cases, not a run record; `aclnn-oracle run {path}` runs it" in str(error.value)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"schema": 2}, "schema 2"), ({"planned": None}, "'planned'"), ({"planned": -1}, "at least 0"),
        ({"backend": None}, "'backend'"), ({"seed": "x"}, "'seed'"), ({"versions": []}, "'versions'"),
    ],
)  # fmt: skip
def test_a_header_that_cannot_be_used_is_refused(tmp_path: Path, change: dict[str, object], says: str) -> None:
    with pytest.raises(OracleError, match=says):
        read(synthetic.write(tmp_path / "run.jsonl", [], **change))


def test_binary_files_and_missing_files_are_refused_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with pytest.raises(OracleError, match="cannot read the run record"):
        read(path)
    path.write_bytes(b"\x89PNG\xff\xfe\n\xff\n")
    with pytest.raises(OracleError, match="not UTF-8"):
        read(path)


def test_unknown_header_fields_are_kept(tmp_path: Path) -> None:
    record = read(synthetic.write(tmp_path / "run.jsonl", [], host={"cores": 2}, note="late", empty=None))
    assert record.header.extra == {"host": '{"cores": 2}', "note": "late"}


def test_lone_surrogates_become_escapes(tmp_path: Path) -> None:
    """JSON can represent them; no UTF-8 file can contain them."""
    record = read(
        synthetic.write(tmp_path / "run.jsonl", [synthetic.case("a/b[c]", "error", reason="bad \udc80 byte")])
    )
    assert record.cases[0].reason == "bad \\udc80 byte"


@pytest.mark.parametrize(
    ("case_id", "parts"),
    [
        ("softmax_backward/wide_row[bf16-16x2-d=1]", ("softmax_backward/wide_row", "wide_row", "[bf16-16x2-d=1]")),
        ("softmax_backward/plain", ("softmax_backward/plain", "plain", "")),
        ("atk/a/b[x]", ("atk/a/b", "a/b", "[x]")),
        ("no slash", ("", "", "no slash")),
        ("[odd]/x", ("", "", "[odd]/x")),
    ],
)
def test_ids_split_and_join(case_id: str, parts: tuple[str, str, str]) -> None:
    assert split_id(case_id) == parts
    assert parts[0] + parts[2] == case_id


@pytest.mark.parametrize(
    ("expected", "actual", "bound", "budget"),
    [
        (1.0, 1.5, 0.25, 2.0), (1.0, 1.0, 0.0, 0.0), (1.0, 1.5, 0.0, math.inf), (1.0, math.nan, 1.0, math.inf),
        (math.inf, math.inf, 1.0, 0.0), (math.inf, -math.inf, 1.0, math.inf), (1.0, 2.0, None, None),
        (1.0, 2.0, math.inf, 0.0),
    ],
)  # fmt: skip
def test_the_budget_of_an_element(expected: float, actual: float, bound: float | None, budget: float | None) -> None:
    assert budget_of(expected, actual, bound) == budget


@pytest.mark.parametrize(
    ("fraction", "text"),
    [
        (None, "–"), (0.0, "0 %"), (1e-9, "<0.1 %"), (0.5, "50 %"), (0.99999, "99.9 %"), (1.0, "100 %"),
        (1.00001, "100.1 %"),
        (1.5, "150 %"), (9.99, "999 %"), (1390.4, "1,390×"), (1e9, "1e+09×"), (math.inf, "∞"), (math.nan, "nan"),
    ],
)  # fmt: skip
def test_a_percentage_is_round_only_when_it_is_exact(fraction: float | None, text: str) -> None:
    assert percent(fraction) == text
