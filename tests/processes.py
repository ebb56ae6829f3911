"""Python in a process of its own, as a user starts it: without what this run has set for itself."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

TESTS = Path(__file__).parent
ROOT = TESTS.parent
OWN = ("ASCEND_", "ACLNN_EMULATOR_", "PYTEST_XDIST_WORKER")


def python(
    *words: str,
    cwd: Path | None = None,
    path: Iterable[str | Path] = (TESTS, ROOT),
    timeout: float = 600,
    **variables: str,
) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OWN)}
    env = {"PYTHONPATH": os.pathsep.join(map(str, path)), "PYTEST_ADDOPTS": "-p no:hypothesispytest"} | variables
    return subprocess.run(
        [sys.executable, *words], cwd=cwd, env=kept | env, capture_output=True, text=True, timeout=timeout, check=False
    )


def oracle(*words: str, **options) -> subprocess.CompletedProcess[str]:
    """Run the command line."""
    return python("-m", "oracle.cli", *words, **options)
