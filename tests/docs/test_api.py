"""docs/api.md agrees with the docstrings, and the examples in the docstrings run."""

from __future__ import annotations

import doctest
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import oracle
from oracle import page

ROOT = Path(__file__).parents[2]


def test_the_page_is_what_the_docstrings_say() -> None:
    command = [sys.executable, str(ROOT / "tools" / "api.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("module", [oracle, page], ids=lambda module: module.__name__)
def test_examples_run(module: ModuleType) -> None:
    failed, attempted = doctest.testmod(module)
    assert failed == 0 < attempted
