"""The output of a run during the run and at its end; a run never replaces another run's record."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import synthetic

from oracle.model.errors import OracleError
from oracle.record.codec import parse_object
from oracle.record.types import STATUSES, CaseRecord, Detail, RunHeader
from oracle.record.writer import RecordWriter
from oracle.reporting.language.translate import CHINESE, ENGLISH, _
from oracle.run.terminal import LINE, MIDDLE, PIPE_S, STRANGERS, Progress, Quiet, failures, few, summary


class Reporter:
    """The parts of pytest's terminal reporter that a progress uses."""

    def __init__(self, isatty: bool) -> None:
        self.isatty = isatty
        self.lines: list[str] = []

    def write_line(self, line: str) -> None:
        self.lines.append(line)

    def rewrite(self, line: str, **markup: Any) -> None:
        self.lines.append("\r" + line)


def counts(**given: int) -> dict[str, int]:
    return {status: given.get(status, 0) for status in STATUSES}


def test_a_progress_line_says_done_planned_failures_rate_and_time_left() -> None:
    costs = {str(number): 0.19 for number in range(1000)}
    progress = Progress(1000, Reporter(True), ENGLISH, lambda: costs)  # type: ignore[arg-type]
    assert progress.ahead().startswith("1,000 cases, about 3:10; fewer: --tier smoke")
    for number in range(250):
        progress.statuses[str(number)] = "fail" if number < 3 else "pass"
    assert progress.line(50.0) == "250/1,000 (25 %), 3 failed, 5.0 per second, 2:30 left"
    progress.language = CHINESE
    assert progress.line(50.0) == "250/1,000（25 %），失败 3，每秒 5.0 个，剩余 2:30"


def test_a_terminal_sees_one_line_and_a_pipe_one_every_half_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("oracle.run.terminal.time.monotonic", lambda: clock[0])
    terminal, pipe = Reporter(True), Reporter(False)
    shown = [Progress(200, where, ENGLISH, dict) for where in (terminal, pipe)]  # type: ignore[arg-type]
    for number in range(100):
        clock[0] += 1.0
        for progress in shown:
            progress.case(str(number), "pass")
    assert len(terminal.lines) == 100
    assert all(line.startswith("\r") for line in terminal.lines)
    assert len(pipe.lines) == 100 // PIPE_S
    assert pipe.lines[0].startswith("30/200 (15 %)")
    for number in range(86_400):  # a day in a pipe
        clock[0] += 1.0
        shown[1].case(str(number), "pass")
    assert 10 < len(pipe.lines) < 16


def test_the_time_left_is_of_the_cases_that_are_left() -> None:
    costs = {**{f"small{n}": 0.01 for n in range(1000)}, "large": 90.0}
    progress = Progress(1001, Reporter(True), ENGLISH, lambda: costs)  # type: ignore[arg-type]
    assert progress.left(0.0) == pytest.approx(100.0)
    progress.statuses.update({f"small{n}": "pass" for n in range(1000)})
    assert progress.left(20.0) == pytest.approx(90.0 * 22 / 12)  # half as fast as estimated


def test_the_time_left_of_short_cases_that_take_long_is_that_of_the_ended_ones() -> None:
    """Each case ends the device's process, and a new one takes a second."""
    costs = {str(number): 0.005 for number in range(160)}
    progress = Progress(160, Reporter(True), ENGLISH, lambda: costs)  # type: ignore[arg-type]
    progress.statuses.update({str(number): "crash" for number in range(40)})
    assert progress.left(50.0) == pytest.approx(150.0, rel=0.3)
    progress.statuses.update({str(number): "crash" for number in range(160)})
    assert progress.left(200.0) == 0.0


def failed(number: int, **changes: Any) -> CaseRecord:
    detail = Detail(rule=changes.pop("rule", "status code"), replay=f"aclnn-oracle replay {number}")
    given: dict[str, Any] = {"op": "aclnnXBackward", "dtype": "float32", "status": "fail", "reason": "r", **changes}
    return CaseRecord(id=f"x_backward/f[{number}]", detail=detail, **given)


def test_the_verdict_stands_first_then_few_failures_in_full_and_many_by_their_groups() -> None:
    assert failures(synthetic.grouped([failed(0, status="pass")]), ENGLISH, MIDDLE) == []
    one = failures(synthetic.grouped([failed(0, reason="expected ACLNN_SUCCESS")]), ENGLISH, MIDDLE)
    assert one[0] == "1 of 1 case failed."
    assert "  reason   expected ACLNN_SUCCESS" in one
    many = synthetic.grouped(
        [failed(number, rule="abcdefghijklmnop"[min(number % 40, 15)] * 3) for number in range(3000)]
    )
    lines = failures(many, ENGLISH, MIDDLE, _("-v shows each failure in full"))
    assert lines[0] == "3,000 of 3,000 cases failed."
    assert lines[1].split()[:4] == ["1,875", "fail", "aclnnXBackward", "float32:"]
    assert len(lines) <= MIDDLE
    assert lines[-2:] == ["... and 6 more groups, 450 cases", "-v shows each failure in full"]
    assert failures(many, CHINESE, MIDDLE)[0] == "3,000 个用例中有 3,000 个失败。"


def test_a_cause_that_is_too_long_for_the_first_line_has_a_line_of_its_own() -> None:
    for cause, lines in (("short", 0), ("a step is wrong: " + "x" * 120, 1)):
        record = synthetic.grouped([failed(number) for number in range(30)])
        (group,) = record.groups
        record = replace(record, groups=(replace(group, what="r" * 80, cause=cause, explained=30),))
        shown = failures(record, ENGLISH, MIDDLE)
        assert sum(line.lstrip().startswith("cause") and f"{cause} (30 / 30)" in line for line in shown) == lines


def test_what_others_say_takes_a_few_lines_of_bounded_length_and_none_of_the_terminal() -> None:
    reporter = Reporter(False)
    quiet = Quiet(reporter)  # type: ignore[arg-type]
    for _number in range(100):
        reporter.write_line("\x1b[2J\nworker down " + "x" * 10_000)
    quiet.close()
    assert (len(reporter.lines), quiet.kept_back) == (STRANGERS, 100 - STRANGERS)
    assert all(line.startswith(r"\x1b[2J worker down") and len(line) < LINE + 10 for line in reporter.lines)
    text = few([f"{n}\n" for n in range(50)], 5, ENGLISH)
    assert (len(text), text[-1]) == (5, "... and 46 more lines")


def test_a_case_that_never_ran_is_not_counted_as_failed() -> None:
    lines = summary(counts(fail=1, notrun=1269), ENGLISH)
    assert lines == [
        "Total Task: 1270, success 0, failed 1 (fail 1, notrun 1269)",
        "stopped after 1 failure; 1,269 not run",
    ]
    assert summary(counts(**{"pass": 3, "xfail": 1}), ENGLISH) == [
        "Total Task: 4, success 4, failed 0 (pass 3, xfail 1)"
    ]


def test_the_end_in_chinese_keeps_the_line_that_tools_read() -> None:
    first, stopped, text = summary(counts(**{"pass": 2, "fail": 1, "notrun": 4}), CHINESE)
    assert first == "Total Task: 7, success 2, failed 1 (pass 2, fail 1, notrun 4)"
    assert stopped == "1 个失败后停止；4 个未运行"
    assert text == "7 个用例：2 个通过，4 个未运行，1 个失败"


def test_a_record_that_is_there_is_kept_beside_the_new_one(tmp_path: Path) -> None:
    old = synthetic.write(tmp_path / "run.jsonl", synthetic.catalogue(3))
    before = old.read_text(encoding="utf-8")
    for expected in ("run.20261020091403.jsonl", "run.20261020091403-2.jsonl"):
        writer = RecordWriter(old)
        writer.begin(0, _header(before))
        writer.end()
        assert writer.kept == tmp_path / expected
        old.write_text(before, encoding="utf-8")
    assert (tmp_path / "run.20261020091403.jsonl").read_text(encoding="utf-8") == before


def _header(text: str) -> Any:
    return RunHeader.of(parse_object(text.partition("\n")[0], "test"))


def test_a_file_that_is_no_record_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    path.write_text('{"mine": 1}\n', encoding="utf-8")
    with pytest.raises(OracleError, match="is no run record; it is not overwritten"):
        RecordWriter(path).begin(0, _header(json.dumps(synthetic.header())))
    assert path.read_text(encoding="utf-8") == '{"mine": 1}\n'


def test_a_link_is_only_a_name(tmp_path: Path) -> None:
    old = synthetic.write(tmp_path / "run.jsonl", synthetic.catalogue(3))
    before = old.read_text(encoding="utf-8")
    (tmp_path / "latest.jsonl").symlink_to(old)
    writer = RecordWriter(tmp_path / "latest.jsonl")
    writer.begin(0, _header(before))
    writer.end()
    assert old.read_text(encoding="utf-8") == before
    assert writer.kept is None
