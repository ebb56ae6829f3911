"""The writer of a record: its fields, no silent loss on a full disk or with another run, and resumed runs."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import synthetic
from synthetic import case, header

from oracle.cli import main
from oracle.model.errors import OracleError
from oracle.record.codec import from_json, parse_object
from oracle.record.reader import read, spent
from oracle.record.types import CaseRecord, LayerVerdict, RunHeader, scores
from oracle.record.writer import RecordWriter, dumps, head_of_earlier
from oracle.reporting.formats import RENDERERS, save
from oracle.reporting.language.translate import CHINESE, ENGLISH
from oracle.run.terminal import by_layer

HEADER = RunHeader(1, "cpu", {}, "ascend910b", "mixed", 0, "smoke", (), "inf_nan", None, (), {}, "", "")


def written(*cases: tuple[str, str, str]) -> RecordWriter:
    """Return a writer with cases (operator, status, reason)."""
    writer = RecordWriter(None)
    writer.begin(len(cases), HEADER)
    for number, (op, status, reason) in enumerate(cases):
        writer.case(dumps(CaseRecord(id=f"{op}/{number}", op=op, dtype="float32", status=status, reason=reason)))
    return writer


def test_an_operator_whose_cases_were_all_skipped_is_named_with_the_commonest_reason() -> None:
    writer = written(("A", "skip", "no aten"), ("A", "skip", "empty"), ("A", "skip", "no aten"), ("B", "pass", ""))
    assert writer.unrun() == ["A: all 3 cases were skipped, nothing was tested: no aten (and 1 other reason)"]
    assert written(("A", "skip", "empty"), ("A", "xfail", "known")).unrun() == [], "one case that ran is enough"


def test_operators_that_are_skipped_for_one_reason_share_a_sentence() -> None:
    many = [(f"aclnn{name}", "skip", f"no aten for aclnn{name}") for name in "ABCDE"]
    assert written(*many, *[("aclnnF", "skip", "empty")] * 2).unrun() == [
        "aclnnA, aclnnB, aclnnC, … (+2): all 5 cases were skipped, nothing was tested: no aten for aclnnA",
        "aclnnF: all 2 cases were skipped, nothing was tested: empty",
    ]


def test_a_name_that_is_no_utf_8_is_kept_as_an_escape(tmp_path: Path) -> None:
    writer = RecordWriter(tmp_path / "r.jsonl")
    writer.begin(0, replace(HEADER, command="run --report r\udcff.html"))
    writer.end()
    assert read(tmp_path / "r.jsonl").header.command == "run --report r\\udcff.html"
    save(tmp_path / "r.md", RENDERERS["md"].render([writer.record()], ENGLISH))


def test_each_layers_score_counts_a_case_once_however_often_it_ran() -> None:
    writer = RecordWriter(None)
    writer.begin(2, HEADER)
    for case_id, passed in (("a/b[1]", False), ("a/b[1]", True), ("a/b[2]", False)):
        verdicts = {"structure": LayerVerdict(True), "strict": LayerVerdict(passed)}
        writer.case(dumps(CaseRecord(case_id, "aclnnA", "float32", "pass", verdicts=verdicts)))
    layers = scores(writer.record().cases)
    assert layers == {"structure": (2, 2), "strict": (1, 2)}
    assert by_layer(layers, ENGLISH) == ["Accepted by each layer: structure 2/2, strict 1/2"]
    assert by_layer(layers, CHINESE) == ["各判定层通过数：结构 2/2，严格 1/2"]
    assert by_layer({"structure": (2, 2)}, ENGLISH) == []


# a full disk, another run, a damaged file -----------------------------------------------------------------------------


def line(number: int) -> str:
    return dumps(CaseRecord(f"a/b[{number}]", "aclnnA", "float32", "pass"))


@contextmanager
def full(size: int) -> Iterator[None]:
    """Limit the files of this process to ``size`` bytes, as on a full disk; this includes pytest's own output."""
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_on_a_full_disk_the_run_goes_on_and_a_disk_with_room_again_gets_every_line(tmp_path):
    path = tmp_path / "r.jsonl"
    writer = RecordWriter(path)
    writer.begin(6, HEADER)
    writer.case(line(0))
    with full(path.stat().st_size + 20):
        for number in (1, 2, 3):
            writer.case(line(number))
    assert "large" in writer.trouble.lower()
    assert read(path).counts["pass"] == 1  # no half line
    assert writer.counts()["pass"] == 4
    writer.case(line(4))
    assert [case.id for case in read(path).cases] == [f"a/b[{number}]" for number in range(5)]
    with full(path.stat().st_size):
        writer.case(line(5))
        writer.end()
    assert len(writer.unwritten) == 2
    assert writer.record().ok
    assert read(path).counts == {**read(path).counts, "pass": 5, "notrun": 1}


def test_a_record_whose_descriptor_a_device_has_closed_or_taken_goes_on(tmp_path):
    path, theirs = tmp_path / "r.jsonl", tmp_path / "theirs"
    writer = RecordWriter(path)
    writer.begin(3, HEADER)
    number = next(n for n in range(3, 4096) if _is_at(n, path))
    os.close(number)
    writer.case(line(0))
    number = next(n for n in range(3, 4096) if _is_at(n, path))
    with theirs.open("w") as file:
        os.dup2(file.fileno(), number)
    writer.case(line(1))
    writer.case(line(2))
    writer.end()
    os.close(number)
    assert read(path).ok
    assert theirs.read_text() == ""


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False


def test_the_second_run_on_a_record_is_refused_and_the_first_keeps_it(tmp_path):
    first, second = RecordWriter(tmp_path / "r.jsonl"), RecordWriter(tmp_path / "r.jsonl")
    first.begin(1, HEADER)
    with pytest.raises(OracleError, match="another run is writing it"):
        second.begin(1, HEADER)
    first.case(line(0))
    first.end()
    assert read(tmp_path / "r.jsonl").ok
    second.begin(1, HEADER)
    assert second.kept is not None


def test_a_report_is_whole_or_not_at_all_and_never_over_its_record(tmp_path):
    report = tmp_path / "r.html"
    save(report, "the report of yesterday")
    with full(10), pytest.raises(OracleError, match="cannot be written"):
        save(report, "x" * 100)
    assert report.read_text() == "the report of yesterday"
    assert sorted(tmp_path.iterdir()) == [report]
    record = synthetic.write(tmp_path / "run.jsonl", synthetic.catalogue(2))
    assert main(["report", str(record), "--format", "html", "-o", str(record)]) == 2
    assert read(record).ok


def test_what_can_be_read_of_a_damaged_record_is_salvaged_and_the_rest_counted(tmp_path, capsys):
    path = synthetic.write(tmp_path / "run.jsonl", synthetic.catalogue(5))
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2], lines[4] = b'{"type":"case","id":\n', b"\xff\xfe\n"
    path.write_bytes(b"".join(lines))
    with pytest.raises(OracleError, match="report --salvage"):
        read(path)
    record = read(path, salvage=True)
    assert (len(record.cases), record.counts["notrun"], record.planned) == (3, 2, 5)
    assert not record.ok
    assert main(["report", str(path), "--salvage", "--format", "md", "-o", str(tmp_path / "r.md")]) == 0
    text = "2 lines cannot be read and are left out, the first of them line 3."
    assert text in capsys.readouterr().err
    assert text in (tmp_path / "r.md").read_text()


def test_a_record_that_an_editor_saved_with_a_byte_order_mark_is_one(tmp_path):
    path = synthetic.write(tmp_path / "run.jsonl", synthetic.catalogue(5))
    before = read(path).cases
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read(path).cases == before
    assert head_of_earlier(path, "--record")["type"] == "run"


def ended(path: Path) -> RecordWriter:
    writer = RecordWriter(path)
    writer.begin(1, HEADER)
    writer.case(failed := line(0).replace('"pass"', '"fail"'))
    writer.explain(synthetic.grouped([from_json(CaseRecord, parse_object(failed, "here"))]).groups)
    writer.end()
    return writer


SPOILS = {"removed": Path.unlink, "emptied": lambda path: path.write_text(""), "longer": lambda path: longer(path)}


def longer(path: Path) -> None:
    with path.open("a") as file:
        file.write("x")


@pytest.mark.parametrize("spoil", SPOILS.values(), ids=SPOILS)
def test_a_record_that_was_removed_or_changed_is_written_again(spoil, tmp_path):
    path = tmp_path / "r.jsonl"
    writer = ended(path)
    before = path.read_bytes()
    spoil(path)
    assert "written again from memory" in writer.make_sure()
    assert path.read_bytes() == before
    assert read(path).complete


def test_another_file_in_a_record_s_place_is_kept_and_the_run_has_failed(tmp_path):
    path = tmp_path / "r.jsonl"
    writer = ended(path)
    before = path.read_bytes()
    path.unlink()
    path.write_text("another's")
    with pytest.raises(OracleError, match="another file lies there now"):
        writer.make_sure()
    assert path.read_text() == "another's"
    assert (tmp_path / "r.again.jsonl").read_bytes() == before


def test_a_record_that_cannot_be_written_again_is_an_error(tmp_path):
    writer = ended(tmp_path / "folder" / "r.jsonl")
    shutil.rmtree(tmp_path / "folder")
    (tmp_path / "folder").write_text("a file where the folder was")
    with pytest.raises(OracleError, match="cannot be written again"):
        writer.make_sure()


# another run goes on --------------------------------------------------------------------------------------------------


CASES = [case(f"softmax_backward/family[{i}]", status) for i, status in enumerate(("pass", "skip", "fail"))]
END = {"type": "end", "pass": 1, "skip": 1, "fail": 1, "notrun": 2, "duration_s": 50}
WHOLE = "".join(json.dumps(line) + "\n" for line in (header(planned=5), *CASES, END))
LAST = CaseRecord(id="softmax_backward/family[3]", op="aclnnSoftmaxBackward", dtype="float32", status="pass")


@pytest.mark.parametrize("compact", [False, True])
def test_a_record_cut_anywhere_after_its_first_line_goes_on_and_reads(tmp_path, compact):
    whole = WHOLE.replace('": ', '":').replace(", ", ",") if compact else WHOLE
    path = tmp_path / "r.jsonl"
    for length in range(whole.index("\n") + 1, len(whole) + 1, 7):
        path.write_text(whole[:length])
        before = read(path)
        writer = RecordWriter(path)
        writer.go_on(before)
        assert writer.left == 5 - len(before.cases)
        writer.case(dumps(LAST))
        writer.end()
        after = read(path)
        assert [c.id for c in after.cases] == [*(c.id for c in before.cases), LAST.id]
        assert after.header == before.header
        assert (after.complete, sum(after.counts.values())) == (True, 5)
        assert not [note for note in after.notes if "no line" not in note]


def test_the_time_of_a_run_counts_on(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_text(WHOLE)
    writer = RecordWriter(path)
    writer.go_on(read(path))
    writer.end()
    assert 50 <= read(path).duration_s < 60
    path.write_text(WHOLE.rpartition('{"type": "end"')[0])
    assert spent(read(path)) == pytest.approx(path.stat().st_mtime - 1792487643, abs=1)  # 2026-10-20T09:14:03
