"""A folder with one small catalogue, pytest runs in it, and the records of these runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ordinary import in_full_alone
from small_catalogues import LOG_SIGMOID as HEAD

CATALOGUE = f"""{HEAD}\
  plain:
    why: something to run in a test
    tier: smoke
    dtype: floats
    shape: [[4, 5]]
  larger:
    why: something to run in a test
    dtype: float32
    shape: [[40, 5]]
"""
IDS = [f"log_sigmoid_backward/plain[{dtype}-4x5]" for dtype in ("float16", "bfloat16", "float32")]
LARGER = "log_sigmoid_backward/larger[float32-40x5]"
WORKERS = [[], ["-n", "2"]]
# With workers only in the full run: another test also covers their behaviour.
ALONE = [[], pytest.param(["-n", "2"], marks=in_full_alone)]


def run(project, *words):
    """Run pytest here, or in a separate process if workers must find the devices (xdist passes on sys.path)."""
    return (project.runpytest_subprocess if "-n" in words else project.runpytest)(*words)


def refused(result, message):
    """Fail unless pytest has refused a run as a usage error with this message, a pattern."""
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {message}"])


def record_of(path: Path):
    lines = [json.loads(line, parse_constant=pytest.fail) for line in path.read_text().splitlines()]
    header, end = lines[0], lines[-1]
    cases = [line for line in lines[1:-1] if line["type"] == "case"]
    assert header["type"] == "run"
    assert {line["type"] for line in lines[1:-1]} <= {"case", "group"}
    assert end["type"] == "end"
    counts = {key: value for key, value in end.items() if key not in ("type", "duration_s", "judged")}
    assert sum(counts.values()) == header["planned"]
    return header, cases, {key: value for key, value in counts.items() if value}
