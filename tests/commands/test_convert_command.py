"""aclnn-oracle convert: the files that it writes, and its refusals to write."""

from __future__ import annotations

from pathlib import Path

import pytest

from oracle.catalogue import default_dir
from oracle.cli import main

NAME = "atk_aclnnLogSigmoidBackward.json"


@pytest.fixture
def atk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a small ATK file, converted from the catalogue."""
    monkeypatch.chdir(tmp_path)
    source = str(default_dir() / "log_sigmoid_backward.yaml")
    assert main(["convert", source, "--to", "atk", "-o", ".", "--tier", "smoke", "--limit", "100"]) == 0
    return tmp_path / NAME


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (".", f"-o .: {NAME} is one of the inputs; name another folder"),
        ("link", f"-o link: link/{NAME} is one of the inputs; name another folder"),
        (NAME, f"-o {NAME}: name a folder; a file per operator is written into it"),
        ("file", "-o file: name a folder; a file per operator is written into it"),
        ("file/below", "-o file/below: cannot be written: Not a directory; name another folder"),
        ("/proc/out", "-o /proc/out: cannot be written: No such file or directory; name another folder"),
    ],
)
def test_an_output_that_cannot_be_is_one_line_and_status_2(
    atk: Path, capsys: pytest.CaptureFixture[str], output: str, message: str
) -> None:
    Path("file").write_text("kept", encoding="utf-8")
    Path("link").symlink_to(".", target_is_directory=True)
    before, _ = atk.read_bytes(), capsys.readouterr()
    assert main(["convert", NAME, "--to", "atk", "-o", output]) == 2
    assert capsys.readouterr().err == f"aclnn-oracle: {message}\n"
    assert (atk.read_bytes(), Path("file").read_text(encoding="utf-8")) == (before, "kept")


def test_a_tier_without_cases_is_named(atk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", NAME, "--to", "ttk", "-o", "out", "--tier", "huge"]) == 2
    assert f"{NAME}: no case of the huge tier; name another --tier" in capsys.readouterr().err
    assert not Path("out").exists()


def test_a_catalogue_is_one_whatever_its_name(atk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    named = atk.with_name("catalogue.json")
    named.write_bytes((default_dir() / "log_sigmoid_backward.yaml").read_bytes())
    assert main(["convert", str(named), "--to", "ttk", "-o", ".", "--tier", "smoke"]) == 0


def test_a_file_given_twice_is_an_error(atk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", NAME, NAME, "--to", "ttk", "-o", "out"]) == 2
    assert "is already used at" in capsys.readouterr().err
    assert not Path("out").exists()
