"""The examples in the docstrings run."""

from __future__ import annotations

import doctest
from types import ModuleType

import pytest

import oracle
from oracle import page


@pytest.mark.parametrize("module", [oracle, page], ids=lambda module: module.__name__)
def test_examples_run(module: ModuleType) -> None:
    failed, attempted = doctest.testmod(module)
    assert failed == 0 < attempted
