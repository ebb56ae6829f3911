"""ATK JSON and TTK CSV in pytest: named files are collected, with a line on cases that cannot run; others not."""

from __future__ import annotations

import json
import shutil

import pytest
from foreign import DATA, SMALL
from ordinary import in_full_alone

import oracle.backends.cpu
import oracle.run.session  # noqa: F401  NumPy must be there already: an in-process run forgets what it imports
from oracle.interop import load


@pytest.fixture
def folder(pytester, monkeypatch):
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:hypothesispytest -p no:cacheprovider")
    for name in SMALL:
        shutil.copy(DATA / name, pytester.path)
    return pytester


def planned(name: str, soc: str = "ascend910b") -> int:
    return sum(not case.soc or soc in case.soc for case in load(DATA / name).cases)


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("tier", ["smoke", "standard"])
def test_a_named_file_runs_whole_whatever_the_tier(folder, name, tier):
    result = folder.runpytest(name, "--backend", "cpu", "--tier", tier, "--record", "run.jsonl")
    assert result.ret == 0
    result.assert_outcomes(passed=planned(name))
    lines = [json.loads(line) for line in folder.path.joinpath("run.jsonl").read_text().splitlines()]
    assert lines[0]["planned"] == len(lines) - 2 == planned(name)
    result.stdout.fnmatch_lines([f"{name}: * of * cases (*"])


def test_a_folder_leaves_them_alone_and_a_foreign_json_that_is_named_stays_its_owners(folder):
    folder.path.joinpath("other.json").write_text('{"name": "somebody else\'s"}')
    folder.runpytest(".").assert_outcomes()
    result = folder.runpytest("other.json")
    result.stdout.no_fnmatch_line("*aclnn*Total*")
    assert result.ret == pytest.ExitCode.USAGE_ERROR


def test_one_case_can_be_named(folder):
    case = load(DATA / SMALL[0]).cases[0].id
    folder.runpytest(f"{SMALL[0]}::{case}", "--backend", "cpu").assert_outcomes(passed=1)


@in_full_alone
def test_workers_plan_and_tell_the_same(folder):
    pytest.importorskip("xdist")
    result = folder.runpytest_subprocess(SMALL[1], "-n", "2", "--backend", "cpu")
    result.assert_outcomes(passed=planned(SMALL[1]))
    result.stdout.fnmatch_lines([f"{SMALL[1]}: * of 11 cases (*"])


def test_the_limit_can_be_set(folder):
    result = folder.runpytest(SMALL[0], "--backend", "cpu", "--max-elements", "100")
    result.stdout.fnmatch_lines(["*2 larger than 100 elements*"])


def test_a_malformed_file_is_told_in_one_line(folder):
    text = (DATA / SMALL[0]).read_text("utf-8").replace('"fp16"', '"fp17"', 1)
    folder.path.joinpath("bad.json").write_text(text, "utf-8")
    result = folder.runpytest("bad.json", "--backend", "cpu")
    result.stdout.fnmatch_lines(["*bad.json:2: case 0: gradOutput: unknown dtype 'fp17'*"])
    assert result.ret == 2
    result.stdout.no_fnmatch_line("*Traceback*")


def test_replay_finds_a_case_of_a_foreign_file(folder, capsys):
    from oracle.cli import main

    case = load(DATA / SMALL[0]).cases[0].id
    assert main(["replay", case, "--catalogue", str(folder.path / SMALL[0])]) == 0
    assert "PASS" in capsys.readouterr().out
