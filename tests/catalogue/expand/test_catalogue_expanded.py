"""Expanded catalogues in the user's cache: any content of the cache gives the same cases."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from small_catalogues import LOG_SIGMOID as HEAD

from oracle.catalogue import load, loader as module
from oracle.system.cache import sealed

FAMILIES = f"""\
  many:
    why: enough to be kept
    dtype: [float32]
    shape: [{{product: [{list(range(1, 61))}]}}]
  few:
    why: quickly run
    dtype: [float32]
    tier: smoke
    shape: [[3, 5]]
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "own.yaml"
    path.write_text(HEAD + FAMILIES)
    return path


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("oracle.catalogue.loader.code_is_as_loaded", lambda: True)
    return tmp_path / "cache/aclnn-oracle/catalogue"


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that records every expansion of a file."""
    said: list[str] = []
    real = module.expand
    monkeypatch.setattr(module, "expand", lambda document, *rest: said.append(document.path) or real(document, *rest))
    return said


def test_cases_are_expanded_once_and_are_the_same_from_every_folder(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expanded = counted(monkeypatch)
    first = load(own)
    assert repr(load(own)) == repr(first)
    monkeypatch.chdir(own.parent)
    elsewhere = load(own)
    assert len(expanded) == 1
    assert [case.id for case in elsewhere] == [case.id for case in first]
    assert all(case.source.startswith("own.yaml:") for case in elsewhere)
    assert len(load(own, tier="smoke")) < len(first)
    assert len(expanded) == 2


def test_a_changed_file_or_program_is_expanded_anew(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expanded = counted(monkeypatch)
    before = load(own)
    own.write_text(HEAD + FAMILIES.replace("float32", "float16"))
    assert repr(load(own)) != repr(before)
    monkeypatch.setattr("oracle.catalogue.loader.code_digest", lambda rooms: "another version")
    own.write_text(HEAD + FAMILIES)
    assert repr(load(own)) == repr(before)
    assert len(expanded) == 3


def test_code_newer_than_the_process_keeps_nothing(own: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oracle.catalogue.loader.code_is_as_loaded", lambda: False)
    load(own)
    assert not cache.exists()


class Harm:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return exec, ("raise SystemExit('code of a cache was run')",)


@pytest.mark.parametrize("harm", ["empty", "cut", "another class"])
def test_a_damaged_or_foreign_entry_is_not_read(
    own: Path, cache: Path, harm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = load(own)
    (entry,) = cache.glob("*.cases")
    body = pickle.dumps([Harm()])
    wrong = {"empty": b"", "cut": entry.read_bytes()[:-7], "another class": sealed(body)}
    entry.write_bytes(wrong[harm])
    expanded = counted(monkeypatch)
    assert repr(load(own)) == repr(right)
    assert len(expanded) == 1


def test_without_a_place_to_write_everything_works(own: Path, cache: Path) -> None:
    cache.parent.parent.mkdir(parents=True)
    cache.parent.write_text("a file where the folder should be")
    assert load(own)


def test_the_cache_is_bounded(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oracle.catalogue.loader.MOST", 2)
    for number in range(4):
        own = tmp_path / f"own{number}.yaml"
        own.write_text(f"{HEAD}{FAMILIES}\n# {number}\n")
        load(own)
    assert len(list(cache.glob("*.cases"))) == 2
