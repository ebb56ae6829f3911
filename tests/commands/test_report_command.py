"""The commands: formats by suffix, exit status, one clear message for bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import synthetic

from oracle.cli import main
from oracle.reporting.formats import RENDERERS


def command(*words: object) -> int:
    return main([str(word) for word in words])


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return synthetic.write(
        tmp_path / "run.jsonl", [*synthetic.catalogue(8), synthetic.failing("softmax_backward/a[float32]")]
    )


BEGINS = {"html": "<!doctype html>", "md": "### ", "xml": "<?xml", "csv": "backend,soc", "json": "{",
          "ttk": "testcase_name,", "msprobe": "API Name,", "groups": "["}  # fmt: skip


def test_every_format_is_written_by_its_suffix(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outputs = [tmp_path / "new" / f"report{form.suffixes[0]}" for form in RENDERERS.values()]
    assert command("report", run, *(word for path in outputs for word in ("-o", path))) == 0
    for name, path in zip(RENDERERS, outputs, strict=True):
        assert path.read_text(encoding="utf-8").startswith(BEGINS[name])
    assert "1 of 9 cases failed." in capsys.readouterr().out


@pytest.mark.parametrize("name", RENDERERS)
def test_a_format_without_a_file_is_printed(run: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert command("report", run, "--format", name) == 0
    assert capsys.readouterr().out.startswith(BEGINS[name])


def test_the_format_wins_over_the_suffix(run: Path, tmp_path: Path) -> None:
    command("report", run, "--format", "md", "-o", tmp_path / "summary.txt")
    assert (tmp_path / "summary.txt").read_text(encoding="utf-8").startswith("### ")


def test_several_records_make_one_report(run: Path, tmp_path: Path) -> None:
    other = synthetic.write(tmp_path / "other.jsonl", synthetic.catalogue(8), backend="cpu")
    command("report", run, other, "-o", tmp_path / "both.md")
    text = (tmp_path / "both.md").read_text(encoding="utf-8")
    assert "torch · ascend910b" in text
    assert "cpu · ascend910b" in text


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["-o", "report.pdf"], "no report format has the suffix '.pdf'"),
        (["-o", "report"], "no report format has the suffix ''"),
        ([], "say where to write"),
    ],
)
def test_what_cannot_be_written_is_told(run: Path, capsys: pytest.CaptureFixture[str], words: list[str], says: str):
    assert command("report", run, *words) == 2
    assert says in capsys.readouterr().err


def test_a_bad_record_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.jsonl").write_text("no\n", encoding="utf-8")
    assert command("report", tmp_path / "bad.jsonl", "-o", tmp_path / "out.html") == 2
    assert "bad.jsonl:1" in capsys.readouterr().err
    assert not (tmp_path / "out.html").exists()


def test_diff_answers_with_its_exit_status(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = synthetic.write(
        tmp_path / "good.jsonl", [*synthetic.catalogue(8), synthetic.case("softmax_backward/a[float32]")]
    )
    assert command("diff", good, run) == 1
    assert "newly failing (1)" in capsys.readouterr().out
    assert command("diff", run, good) == 0
    assert "fixed (1)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("kept", "header", "where", "status", "says"),
    [
        (7, {"planned": 8, "died": True}, f"op:{synthetic.catalogue(8)[7]['op']}", 1, "not reached (1)"),
        (3, {"chosen": "-k softmax"}, "status:pass", 0, "is a part (-k softmax)"),
    ],
)
def test_diff_of_some_cases_knows_that_the_new_run_stopped_or_is_a_part(
    tmp_path, capsys, kept, header, where, status, says
):
    cases = synthetic.catalogue(8)
    old = synthetic.write(tmp_path / "old.jsonl", cases)
    new = synthetic.write(tmp_path / "new.jsonl", cases[:kept], **header)
    assert command("diff", old, new, "--where", where) == status
    assert says in (said := capsys.readouterr().out)
    assert "removed" not in said


@pytest.mark.parametrize("name", ["text", "md", "json"])
def test_diff_writes_to_a_file_too(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    command("diff", run, run, "--format", name)
    printed = capsys.readouterr().out
    command("diff", run, run, "--format", name, "-o", tmp_path / "diff.txt")
    assert (tmp_path / "diff.txt").read_text(encoding="utf-8") == printed


@pytest.mark.parametrize(("name", "begins"), [("d.md", "#"), ("d.json", "{"), ("d.txt", "")])
def test_the_suffix_says_what_diff_writes(run: Path, tmp_path: Path, name: str, begins: str) -> None:
    command("diff", run, run, "-o", tmp_path / name)
    assert (tmp_path / name).read_text(encoding="utf-8").startswith(begins)


def test_diff_refuses_a_suffix_of_nothing_that_it_writes(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert command("diff", run, run, "-o", tmp_path / "d.html") == 2
    assert "diff writes .txt, .md, .json" in capsys.readouterr().err
    assert not (tmp_path / "d.html").exists()


def test_the_budget_factor_is_the_callers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = (
        synthetic.write(tmp_path / f"{b}.jsonl", [synthetic.case("softmax_backward/a[float32]", budget_used=b)])
        for b in (0.3, 0.6)
    )
    for factor, regressions in (("1.9", 1), ("2.1", 0)):
        command("diff", old, new, "--format", "json", "--budget-factor", factor)
        assert len(json.loads(capsys.readouterr().out)["budget_regressions"]) == regressions


@pytest.mark.parametrize(
    "words", [["--budget-factor", "-1"], ["--budget-factor", "nan"], ["--limit", "-3"], ["--limit", "x"]]
)
def test_bad_figures_are_refused(run: Path, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command("diff", run, run, *words)
    assert "is not a" in capsys.readouterr().err
