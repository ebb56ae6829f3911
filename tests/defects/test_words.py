"""Wrong kernels follow from what an operator declares: no module that makes or scores them knows one."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import oracle
from oracle.operators import OPERATORS

PACKAGE = Path(oracle.__file__).parent
MODULES = sorted(path for room in ("defects", "power") for path in (PACKAGE / room).glob("*.py"))
NAMES = {p.name for op in OPERATORS.values() for p in op.parameters}
SPOKEN = {"output", "reduction", "max", "min"}  # words of the model too: kinds and roles of parameters, functions
OPERATOR_WORDS = {op.name for op in OPERATORS.values()} | {op.slug for op in OPERATORS.values()}


def strings(path: Path) -> set[str]:
    return {n.value for n in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(n, ast.Constant) and
            isinstance(n.value, str)}  # fmt: skip


@pytest.mark.parametrize("path", MODULES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_no_module_of_wrong_kernels_knows_an_operator_or_a_parameter(path: Path) -> None:
    result = strings(path)
    assert not result & (NAMES - SPOKEN)
    words = {word for text in result for word in re.findall(r"\w+", text)}
    assert not words & OPERATOR_WORDS
