"""The environment in ``aclnn-oracle info``: every variable that is read, the effective value, and unused settings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import oracle
from oracle import cli
from oracle.catalogue import select
from oracle.catalogue.loader import load_default
from oracle.commands.info import _backends, _variables
from oracle.model.aclnn import PLATFORMS

NAME = re.compile(r"ACLNN_ORACLE_[A-Z]+")


@pytest.fixture(autouse=True)
def _nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ENGINE", "BLOCK", "THREADS"):
        monkeypatch.delenv(f"ACLNN_ORACLE_{name}", raising=False)


def message() -> dict[str, str]:
    return {line.split()[0]: line for line in _variables()}


def test_every_variable_that_the_package_reads_is_told() -> None:
    sources = (path.read_text(encoding="utf-8") for path in Path(oracle.__file__).parent.rglob("*.py"))
    assert message().keys() == {name for text in sources for name in NAME.findall(text)}


def test_what_counts_is_told_with_whether_it_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACLNN_ORACLE_THREADS", "3")
    assert " 3 (set) " in message()["ACLNN_ORACLE_THREADS"]
    assert " auto (not set) " in message()["ACLNN_ORACLE_ENGINE"]


def test_a_wrong_value_is_told_with_the_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACLNN_ORACLE_BLOCK", "many")
    assert "'many' must be an integer in [" in message()["ACLNN_ORACLE_BLOCK"]


def test_what_is_set_and_not_read_is_told_with_what_was_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("THREAD", "COLOUR"):
        monkeypatch.setenv(f"ACLNN_ORACLE_{name}", "1")
    assert message()["ACLNN_ORACLE_THREAD"].endswith("nothing reads it (did you mean 'THREADS'?)")
    assert message()["ACLNN_ORACLE_COLOUR"].endswith("nothing reads it")


def test_a_framework_is_told_of_without_loading_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """An import takes seconds; the command only looks for a spec."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    monkeypatch.setattr("oracle.commands.info.load", lambda name: object())
    state = {line.split()[0]: line for line in _backends()}
    for name in ("torch", "torch_npu", "mindspore"):
        assert state[name].endswith(f"{name} is installed; a run loads it")


def test_info_shows_what_there_is(capsys):
    assert cli.main(["info"]) == 0
    text = capsys.readouterr().out
    shown = ("aclnn-oracle", "numpy", "cpu            ready", "ascend310b", "all SoCs but ascend310p", "mixed")
    for words in (*shown, *PLATFORMS):
        assert words in text
    assert f"full {len(select(load_default(('aclnnSoftmaxBackward',)), soc='ascend910b'))} cases" in text
