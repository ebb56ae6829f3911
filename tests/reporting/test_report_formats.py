"""Markdown, JUnit, CTRF and CSV: no loss, no failure shown as a pass, for any characters in a record."""

from __future__ import annotations

import ast
import csv
import io
import json
import os
import re
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import synthetic

from oracle.cli import main
from oracle.model.errors import escaped, is_printable
from oracle.record.reader import Record, read
from oracle.record.types import GOOD, STATUSES
from oracle.reporting import exchange, summary
from oracle.reporting.case_text import case_text

NASTY = 'a|b `c` ``d`` <e> & "f" \x00\x0b\x1b[31m \ufffe line\nbreak 尾块,;\t]]>'


def record_of(tmp_path: Path, **changes: Any) -> Record:
    cases = [synthetic.case(f"nll_loss_backward/views[float16-{s}]", s, reason=f"because {s}") for s in STATUSES]
    failed = synthetic.failing("softmax_backward/wide_row[bfloat16-16x20000-dim=-1]", reason=NASTY, budget_used="inf")
    return read(synthetic.write(tmp_path / "run.jsonl", [*synthetic.catalogue(20), *cases, failed], **changes))


def died_of(tmp_path: Path) -> Record:
    return read(synthetic.write(tmp_path / "died.jsonl", synthetic.catalogue(5), planned=9, died=True))


def test_csv_round_trips(tmp_path: Path) -> None:
    record = record_of(tmp_path)
    rows = list(csv.DictReader(io.StringIO(exchange.to_csv([record]))))
    assert list(rows[0]) == list(exchange.COLUMNS)
    assert len(rows) == record.planned
    for row, case in zip(rows, record.cases, strict=True):
        assert (row["id"], row["status"], row["dtype"]) == (case.id, case.status, case.dtype)
        assert row["reason"] == case.reason
        assert row["backend"] == "torch"
        assert bool(row["replay"]) is not case.ok
        assert (float(row["budget_used"]) if row["budget_used"] else None) == case.budget_used
    assert rows[-1]["pattern"] == "tail from 16384"
    assert rows[-1]["bad"] == "3616"
    assert rows[-1]["layer"] == "standard strict"
    assert rows[0]["layer"] == ""


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
@pytest.mark.parametrize("write", [exchange.to_csv, exchange.to_ttk, exchange.to_msprobe])
def test_no_cell_of_a_table_begins_a_formula(tmp_path: Path, start: str, write: Any) -> None:
    """A spreadsheet would run ``=cmd|...``; negative numbers must stay possible."""
    text = f"{start}cmd|' /C calc'!A0"
    case = synthetic.failing(text, **dict.fromkeys(("reason", "op", "dtype", "device", "rule", "pattern"), text))
    case["detail"]["cause"] = case["detail"]["replay"] = text
    case["metrics"] = {"max_abs_error": -1.5}
    record = read(synthetic.write(tmp_path / "run.jsonl", [case], backend=text, soc=text))
    (row,) = csv.DictReader(io.StringIO(write([record]), newline=""))
    formulas = [cell for cell in row.values() if cell.startswith(("=", "+", "-", "@", "\t", "\r")) and cell != "-1.5"]
    assert formulas == []


def test_ttk_reads_its_result_back(tmp_path: Path) -> None:
    """TTK's tools read it so: rows by testcase_name, Python literals in the cells, green only if the cell is PASS."""
    record = record_of(tmp_path)
    rows = {row["testcase_name"]: row for row in csv.DictReader(io.StringIO(exchange.to_ttk([record])))}
    assert len(rows) == record.planned
    for case in record.cases:
        row = rows[case.id]
        expected = {"pass": "PASS", "xpass": "PASS", "skip": "UNSUPPORTED"}.get(case.status, "FAIL")
        assert row["precision_status"] == expected
        assert row["api_name"] == case.op
        assert isinstance(json.loads(row["precision_metrics"]), dict)
    failed = rows[record.cases[-1].id]
    assert ast.literal_eval(failed["tensor_view_shapes"]) == ((16, 20000), (16, 20000))
    assert ast.literal_eval(failed["tensor_dtypes"]) == ("bfloat16", "bfloat16")
    faulty = synthetic.case("a/b[c]", "error", reason="the case proves nothing: every expected element is 0")
    text = exchange.to_ttk([read(synthetic.write(tmp_path / "faulty.jsonl", [faulty]))])
    assert next(csv.DictReader(io.StringIO(text)))["precision_status"] == "GOLDEN_FAILURE"


# The first line of accuracy_checking_details_*.csv, as in msprobe's own regression test of its files.
MSPROBE_HEADER = (
    "API Name,Bench Dtype,DEVICE Dtype,Shape,余弦相似度,最大绝对误差,双百指标,双千指标,双万指标,二进制一致错误率,"
    "误差均衡性,均方根误差,小值域错误占比,相对误差最大值,相对误差平均值,inf/nan错误率,相对误差错误率,绝对误差错误率,"
    "ULP误差最大值,ULP误差平均值,ULP误差大于阈值占比,Status,Message"
)


def test_msprobe_finds_the_header_and_the_figures_of_its_details(tmp_path: Path) -> None:
    record = record_of(tmp_path)
    text = exchange.to_msprobe([record])
    assert text.partition("\n")[0] == MSPROBE_HEADER
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["API Name"] for row in rows] == [case.id for case in record.cases]
    assert {row["Status"] for row in rows} == {"pass", "error", "SKIP"}
    assert all(value for row in rows for value in row.values()), "msprobe writes a blank, never an empty cell"
    assert rows[-1]["ULP误差最大值"] == "1294"


def test_junit_states_times_with_at_most_three_decimals(tmp_path: Path) -> None:
    """Jenkins' junit-10.xsd: SUREFIRE_TIME."""
    case = synthetic.case("a/b[c]", duration_s=1234.56789)
    record = read(synthetic.write(tmp_path / "run.jsonl", [*synthetic.catalogue(5), case]))
    times = re.findall(r' time="([^"]*)"', exchange.to_junit([record]))
    assert len(times) == 7
    assert all(re.fullmatch(r"\d+(\.\d{1,3})?", time) for time in times)
    assert "1234.568" in times


def test_junit_is_valid_by_jenkins_schema(tmp_path: Path) -> None:
    """Set JUNIT_XSD to a copy of Jenkins' junit-10.xsd to run this check."""
    schema = os.environ.get("JUNIT_XSD", "")
    if not Path(schema).is_file():
        pytest.skip("JUNIT_XSD names no copy of Jenkins' junit-10.xsd")
    xmlschema = pytest.importorskip("xmlschema")
    (tmp_path / "junit.xml").write_text(exchange.to_junit([record_of(tmp_path), died_of(tmp_path)]), encoding="utf-8")
    assert [str(e.reason) for e in xmlschema.XMLSchema(schema).iter_errors(str(tmp_path / "junit.xml"))] == []


def test_junit_holds_every_case_and_counts_them(tmp_path: Path) -> None:
    record = record_of(tmp_path)
    (suite,) = ET.fromstring(exchange.to_junit([record]))
    entries = suite.findall("testcase")
    assert [entry.get("name") for entry in entries] == [case.id for case in record.cases]
    assert int(suite.get("tests", "")) == len(entries) == record.planned
    for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        assert int(suite.get(attribute, "")) == len(suite.findall(f"testcase/{tag}"))
    for entry, case in zip(entries, record.cases, strict=True):
        red = entry.find("failure") is not None or entry.find("error") is not None
        assert red is (case.status not in GOOD)
    message = entries[-1].find("failure")
    assert message is not None
    assert message.text == exchange.xml_text(case_text(record.cases[-1], record.header))
    for said in ("\\x1b[31m", "尾块", "aclnn-oracle replay"):
        assert said in message.text


def test_ctrf_holds_every_case_and_counts_them(tmp_path: Path) -> None:
    record = record_of(tmp_path)
    results = json.loads(exchange.to_ctrf([record]))["results"]
    assert [test["name"] for test in results["tests"]] == [case.id for case in record.cases]
    assert [test["rawStatus"] for test in results["tests"]] == [case.status for case in record.cases]
    counted = Counter(test["status"] for test in results["tests"])
    summary = results["summary"]
    for name in ("passed", "failed", "skipped", "pending", "other"):
        assert summary[name] == counted[name]
    assert summary["tests"] == len(record.cases)
    for test in results["tests"]:
        assert (test["status"] == "failed") is (test["rawStatus"] not in GOOD)
        assert isinstance(test["duration"], int)
    assert summary["start"] == 1792487643000  # 2026-10-20T09:14:03Z


CTRF_FIELDS = {
    "": {"reportFormat", "specVersion", "generatedBy", "results"},
    "results": {"tool", "summary", "tests", "environment"},
    "test": {"name", "status", "rawStatus", "duration", "suite", "tags", "message", "trace", "extra"},
}


def test_ctrf_uses_only_fields_of_its_schema(tmp_path: Path) -> None:
    """The schema (ctrf.schema.json, 1.0) closes every object."""
    document = json.loads(exchange.to_ctrf([record_of(tmp_path), died_of(tmp_path)]))
    assert document["reportFormat"] == "CTRF"
    assert set(document) <= CTRF_FIELDS[""]
    assert set(document["results"]) <= CTRF_FIELDS["results"]
    assert all(set(test) <= CTRF_FIELDS["test"] for test in document["results"]["tests"])


@pytest.mark.parametrize("started", ["", "yesterday", "2026-10-20T09:14:03", "2026-10-20T09:14:03Z"])
def test_a_start_that_is_no_time_is_no_error(tmp_path: Path, started: str) -> None:
    summary = json.loads(exchange.to_ctrf([record_of(tmp_path, started=started)]))["results"]["summary"]
    assert summary["start"] == (1792487643000 if started.startswith("2026") else 0)


def lost_of(tmp_path: Path) -> Record:
    """Return a record that lost lines: by its last line every case ran."""
    return replace(died_of(tmp_path), complete=True, never_ran=0)


def unjudged_of(tmp_path: Path) -> Record:
    """Return a record of a run in which the device took no case."""
    return read(synthetic.write(tmp_path / "skipped.jsonl", [synthetic.case("softmax_backward/a[x]", "skip")]))


@pytest.mark.parametrize(
    ("make", "status", "reason"),
    [
        (died_of, "notrun", "4 of 9 planned cases never ran"),
        (lost_of, "notrun", "4 of 9 planned cases have no line"),
        (unjudged_of, "error", "no number was judged of aclnnSoftmaxBackward"),
    ],
)
def test_a_run_that_died_or_judged_nothing_is_green_nowhere(
    tmp_path: Path, make: Any, status: str, reason: str
) -> None:
    record = make(tmp_path)
    rows = list(csv.DictReader(io.StringIO(exchange.to_csv([record]))))
    last = rows[-1]
    assert (last["status"], last["reason"], last["replay"]) == (status, reason, record.header.command)
    (suite,) = ET.fromstring(exchange.to_junit([record]))
    assert suite.get("errors") == "1"
    assert json.loads(exchange.to_ctrf([record]))["results"]["summary"]["failed"] == 1
    assert list(csv.DictReader(io.StringIO(exchange.to_ttk([record]))))[-1]["precision_status"] == "FAIL"
    assert list(csv.DictReader(io.StringIO(exchange.to_msprobe([record]))))[-1]["Status"] == "error"
    assert "❌" in summary.render([record])


@pytest.mark.parametrize("text", [NASTY, "`", "``", "a`", "|", "\\", "*x*", "[a](b)"])
def test_a_markdown_code_span_holds_anything(text: str) -> None:
    """CommonMark reads it so: a fence longer than any run of backticks within, one line, pipes escaped for a table."""
    span = summary.code(text)
    fence = re.match("`+", span)
    assert fence is not None
    inner = span[len(fence[0]) : -len(fence[0])]
    assert span.endswith(fence[0])
    assert fence[0] not in re.findall("`+", inner)
    assert "\n" not in span
    assert not re.search(r"(?<!\\)\|", span)
    assert inner.replace("\\|", "|").strip() == " ".join(escaped(text).split()).strip()


def cells(row: str) -> list[str]:
    return re.split(r"(?<!\\)\|", row)[1:-1]


def test_markdown_tables_are_rectangular(tmp_path: Path) -> None:
    text = summary.render([record_of(tmp_path, backend="odd|name", host=NASTY), died_of(tmp_path)])
    tables = re.findall(r"(?:^\|.*\|$\n?)+", text, re.MULTILINE)
    assert len(tables) == 3
    for table in tables:
        assert len({len(cells(row)) for row in table.splitlines()}) == 1


def test_markdown_says_what_matters(tmp_path: Path) -> None:
    record = record_of(tmp_path)
    text = summary.render([record])
    for said in ("planned =", "aclnnSoftmaxBackward", "Simplest: `softmax_backward/wide_row[bfloat16-16x20000-dim=-1]`",
                 "Shrink: `aclnn-oracle", "error 3.1e-06", "pytest cases --backend", "numpy 2.4.0"):  # fmt: skip
        assert said in text


def test_markdown_fits_into_a_pull_request(tmp_path: Path) -> None:
    """GitHub accepts 65,536 characters; a run in which every case fails differently must stay below that."""
    cases = [
        synthetic.failing(
            f"softmax_backward/a[float32-{i}]", rule=f"rule {chr(97 + i % 26)}{chr(97 + i // 26)} " + "x" * 500
        )
        for i in range(500)
    ]
    assert len(summary.render([read(synthetic.write(tmp_path / "run.jsonl", cases))])) < 65_536


def test_what_is_printed_is_text_whatever_a_record_holds(tmp_path: Path, capsys: Any) -> None:
    """A record may come from anybody: no part of it moves a cursor, changes a title, or hides a line."""
    hostile = "\x1b]0;title\x07\x9b2J\u202e\x00"
    cases = [synthetic.failing(f"softmax_backward/x[{hostile}]", reason=hostile, op=f"op{hostile}", device=hostile),
             synthetic.case("softmax_backward/y[1]", "skip", reason=hostile)]  # fmt: skip
    path = synthetic.write(tmp_path / "r.jsonl", cases, backend=hostile, soc=hostile, command=hostile)
    texts = []
    for suffix in (".md", ".csv", ".html", ".xml"):
        out = tmp_path / f"r{suffix}"
        assert main(["report", str(path), "-o", str(out)]) == 0
        texts.append(out.read_text(encoding="utf-8"))
    assert main(["diff", str(path), str(path)]) in (0, 1)
    texts.append("".join(capsys.readouterr()))
    for text in texts:
        assert is_printable(text.replace("\r", ""))
    assert r"\x1b]0;title\x07" in texts[1]
