"""benchmarks/regressions.py fails only where a ratio is worse than the baseline."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import pytest


@pytest.fixture
def regressions(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parents[1] / "benchmarks"), *sys.path])
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "")
    return importlib.import_module("regressions")


def measured(regressions, monkeypatch, tmp_path, *ratios: float, machine: str = "", last: bool = True) -> int:
    """Compare these ratios, measured in turn, with a baseline of 4; return the exit status."""
    baseline = tmp_path / "baseline.json"
    ours = machine or regressions.machine()
    baseline.write_text(json.dumps({"machine": ours, "ratios": {"golden / peer": 4.0}}))
    left = iter(ratios)
    monkeypatch.setattr(regressions, "contests", lambda folder: [("golden / peer", None, None)])
    monkeypatch.setattr(regressions, "ratio", lambda ours, peer: next(left))
    status = regressions.main(["--baseline", str(baseline), *(["--last"] if last else [])])
    assert not list(left)
    return status


def test_a_quarter_worse_twice_is_a_regression(regressions, monkeypatch, tmp_path, capsys):
    assert measured(regressions, monkeypatch, tmp_path, 5.1, 5.2) == 1
    assert "worse than baseline.json: golden / peer, 5.20, was 4.00" in capsys.readouterr().out
    for ratios in ((3.0,), (5.0,), (9.0, 4.9)):
        assert measured(regressions, monkeypatch, tmp_path, *ratios) == 0


def test_what_is_worse_is_measured_by_another_process_too(regressions, monkeypatch, tmp_path):
    started = []
    monkeypatch.setattr(regressions.subprocess, "call", lambda command: started.append(command) or 0)
    assert measured(regressions, monkeypatch, tmp_path, 8.0, 8.0, last=False) == 0
    assert started[0][-1] == "--last"


def test_on_another_processor_twice_the_baseline_is_a_regression(regressions, monkeypatch, tmp_path, capsys):
    assert measured(regressions, monkeypatch, tmp_path, 7.9, machine="NumPy 1.26, ENIAC") == 0
    assert "the baseline is of NumPy 1.26, ENIAC; this is NumPy" in capsys.readouterr().out
    assert measured(regressions, monkeypatch, tmp_path, 8.1, 8.2, machine="NumPy 1.26, ENIAC") == 1


def test_what_the_baseline_lacks_is_named(regressions, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(regressions, "contests", lambda folder: [("verdict / peer", None, None)])
    monkeypatch.setattr(regressions, "ratio", lambda ours, peer: 1.0)
    baseline = tmp_path / "baseline.json"
    baseline.write_text('{"machine": "ENIAC", "ratios": {}}')
    assert regressions.main(["--baseline", str(baseline), "--last"]) == 1
    assert "not in baseline.json (--update writes it): verdict / peer" in capsys.readouterr().out
    assert regressions.main(["--baseline", str(baseline), "--update"]) == 0
    assert regressions.main(["--baseline", str(baseline), "--last"]) == 0
