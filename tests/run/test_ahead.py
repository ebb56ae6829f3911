"""Expansion ahead of a run makes the cases that the run would expand; its failures are left to the run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from small_catalogues import LOG_SIGMOID as HEAD

from oracle.catalogue import load, loader as catalogue
from oracle.catalogue.loader import is_kept
from oracle.parallel import Lost, Workers
from oracle.run import preparation
from oracle.settings.settings import Settings

FAMILY = f"""\
  many:
    why: enough to be kept
    dtype: [float32]
    shape: [{{product: [{list(range(1, 61))}]}}]
"""
RUN = Settings(backend="cpu", tier="standard")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(preparation, "default_dir", lambda: tmp_path / "cases")
    monkeypatch.setattr(preparation.os, "cpu_count", lambda: 2)
    result = [tmp_path / f"cases/own{number}.yaml" for number in range(preparation.FEW)]
    result[0].parent.mkdir()
    for number, path in enumerate(result):
        path.write_text(f"{HEAD}{FAMILY}\n# {number}\n")
    return result


def test_a_run_finds_what_was_expanded_ahead(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    preparation.expand_ahead(RUN, said.append)
    assert len(said) == 1
    assert all(is_kept(file, "standard") for file in files)
    monkeypatch.setattr(catalogue, "expand", lambda *_: pytest.fail("expanded again"))
    assert len(load(files[0], tier="standard")) == 60
    preparation.expand_ahead(RUN, said.append)  # all are kept: no process is started
    assert len(said) == 1


@pytest.mark.parametrize("settings", [{"tier": "smoke"}, {"only": ("aclnnSoftmaxBackward",)}])
def test_what_a_run_does_not_read_is_left(files: list[Path], settings: dict[str, object]) -> None:
    preparation.expand_ahead(
        Settings(backend="cpu", **{"tier": "standard", **settings}), lambda text: pytest.fail(text)
    )
    assert not any(is_kept(file, "standard") for file in files)


def test_a_fault_is_left_to_the_run(files: list[Path]) -> None:
    files[1].write_text(f"{HEAD}  many: {{}}\n")
    preparation.expand_ahead(RUN, lambda text: None)
    assert [is_kept(file, "standard") for file in files] == [True, False, True, True]


def test_a_process_that_dies_is_no_fault_of_the_run(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: object) -> Iterator[None]:
        raise Lost("a process of this machine: the work was lost")
        yield

    monkeypatch.setattr(Workers, "as_completed", lost)
    preparation.expand_ahead(RUN, lambda text: None)
    assert not any(is_kept(file, "standard") for file in files)


def test_without_a_place_to_keep_them_nothing_is_expanded(files: list[Path], tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    preparation.expand_ahead(RUN, lambda text: pytest.fail(text))
