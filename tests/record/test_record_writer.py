"""What a writer knows of the cases it has written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from oracle.record.reader import read
from oracle.record.types import CaseRecord, LayerVerdict, RunHeader
from oracle.record.writer import RecordWriter, dumps
from oracle.reporting.formats import RENDERERS, save
from oracle.reporting.language.translate import ENGLISH
from oracle.run.terminal import by_layer

HEADER = RunHeader(1, "cpu", {}, "ascend910b", "mixed", 0, "smoke", (), "inf_nan", None, (), {}, "", "")


def written(*cases: tuple[str, str, str]) -> RecordWriter:
    """A record of (operator, status, reason)."""
    writer = RecordWriter(None)
    writer.begin(len(cases), HEADER)
    for number, (op, status, reason) in enumerate(cases):
        writer.case(dumps(CaseRecord(id=f"{op}/{number}", op=op, dtype="float32", status=status, reason=reason)))
    return writer


def test_an_operator_whose_cases_were_all_skipped_is_named_with_the_commonest_reason() -> None:
    writer = written(("A", "skip", "no aten"), ("A", "skip", "empty"), ("A", "skip", "no aten"), ("B", "pass", ""))
    assert writer.unrun() == [
        "A: all 3 cases were skipped, nothing was tested: no aten (and 1 other reason)",
    ]


def test_a_name_that_is_no_utf_8_is_kept_as_an_escape(tmp_path: Path) -> None:
    writer = RecordWriter(tmp_path / "r.jsonl")
    writer.begin(0, replace(HEADER, command="run --report r\udcff.html"))
    writer.end()
    assert read(tmp_path / "r.jsonl").header.command == "run --report r\\udcff.html"
    save(tmp_path / "r.md", RENDERERS["md"].render([writer.record()], ENGLISH))


def test_one_case_that_ran_is_enough() -> None:
    assert written(("A", "skip", "empty"), ("A", "xfail", "known")).unrun() == []


def test_each_layers_score_counts_a_case_once_however_often_it_ran() -> None:
    writer = RecordWriter(None)
    writer.begin(2, HEADER)
    for case_id, passed in (("a/b[1]", False), ("a/b[1]", True), ("a/b[2]", False)):
        verdicts = {"structure": LayerVerdict(True), "strict": LayerVerdict(passed)}
        writer.case(dumps(CaseRecord(case_id, "aclnnA", "float32", "pass", verdicts=verdicts)))
    assert writer.layers() == {"structure": (2, 2), "strict": (1, 2)}
    assert by_layer(writer.layers(), ENGLISH) == ["Accepted by each layer: structure 2/2, strict 1/2"]
    assert by_layer({"structure": (2, 2)}, ENGLISH) == []
