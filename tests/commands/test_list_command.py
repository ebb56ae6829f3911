"""``aclnn-oracle list``: the stored counts and the cases themselves give the same table."""

from __future__ import annotations

from pathlib import Path

import pytest

from oracle.catalogue import default_dir
from oracle.cli import main


def table(capsys: pytest.CaptureFixture[str], *words: str | Path) -> list[str]:
    assert main(["list", *map(str, words)]) == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("by", ["op", "dtype", "tier"])
def test_counts_made_ahead_are_those_of_the_cases(capsys: pytest.CaptureFixture[str], by: str) -> None:
    file = default_dir() / "relu.yaml"  # a named file is read
    assert table(capsys, "--op", "relu", "--by", by) == table(capsys, file, "--by", by)


def test_the_first_column_says_what_the_rows_are(capsys: pytest.CaptureFixture[str]) -> None:
    for by in ("op", "family", "dtype", "tier"):
        assert table(capsys, "--op", "relu", "--tier", "smoke", "--by", by)[0].split()[0] == by


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("# a remark\n\tx: [1\n", ":2: not YAML: found character that cannot start any token"),
        ("operator: aclnnRelu\n", ":1: not a catalogue: the first key must be 'aclnn_oracle: 1'"),
    ],
    ids=["broken", "other"],
)
def test_a_file_that_is_no_catalogue_says_why_and_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, says: str
) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(text)
    assert main(["list", str(file)]) == 2
    assert f"x.yaml{says}" in capsys.readouterr().err


@pytest.mark.parametrize("words", ["list", "coverage", "convert --to atk -o out", "golden out --catalogue"])
def test_a_record_is_no_catalogue(tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str) -> None:
    file = tmp_path / "r.jsonl"
    file.write_text('{"type":"run"}\n{"type":"end"}\n')
    assert main([*words.split(), str(file)]) == 2
    assert "r.jsonl: a run record, not YAML; `aclnn-oracle report " in capsys.readouterr().err
