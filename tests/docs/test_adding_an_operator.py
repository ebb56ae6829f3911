"""docs/adding-an-operator.md works: its blocks are put into an empty folder and run in order.

The ordinary run omits the slow steps, the scores and the emulated CANN; ACLNN_TEST_DOCS=1 runs all of them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from ordinary import FULL, in_full_alone

from oracle.backends.cpu import Backend
from oracle.case.one_case import run_case
from oracle.catalogue import load, select
from oracle.operators.definition.operator import slug_of
from oracle.settings.settings import Settings

PAGE = Path(__file__).parents[2] / "docs" / "adding-an-operator.md"
WHOLE = FULL or "ACLNN_TEST_DOCS" in os.environ
NAME = re.compile(r"\baclnn[A-Z]\w+")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks() -> list[tuple[str, str]]:
    return BLOCK.findall(PAGE.read_text("utf-8"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("empty")


@in_full_alone
def test_right_kernels_pass_the_cases_of_an_operator_with_sums(reducing, folder):
    (families,) = (text for language, text in blocks() if language == "yaml" and "operator:" not in text)
    head = "aclnn_oracle: 1\noperator: aclnnScaleShiftBackward\nclasses: all\n"
    (folder / "scale_shift_backward.yaml").write_text(head + families)
    cases = select(load(folder / "scale_shift_backward.yaml"), tier="standard", soc="ascend910b")
    result = {case.id: run_case(case, Backend(), Settings()) for case in cases[:: 1 if FULL else 5]}
    assert {name: report.reason for name, report in result.items() if report.status != "pass"} == {}
    assert {"float16", "bfloat16", "float32"} == {case.dtype for case in cases if case.family == "gradients"}


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", "-ec", command], cwd=folder, capture_output=True, text=True, timeout=900)


@in_full_alone
def test_the_blocks_of_the_page_run_in_an_empty_folder(folder):
    ran, left = [], []
    for language, text in blocks():
        name = NAME.search(text)
        if name is not None and (("OPERATOR = " in text) if language == "python" else language == "yaml"):
            (folder / f"{slug_of(name[0])}.{'py' if language == 'python' else 'yaml'}").write_text(text, "utf-8")
    for language, text in blocks():
        if language == "bash":
            for written in text.strip().splitlines():
                command = written
                if "--backend torch" in command and find_spec("torch") is None:
                    left.append(command)
                    continue
                if not WHOLE and (" power " in command or " --emulate" in command):
                    left.append(command)  # half a minute
                    continue
                if " run " in command and "ACLNN_TEST_DOCS" not in os.environ:
                    command += " --tier smoke"
                if " power " in command and "ACLNN_TEST_DOCS" not in os.environ:
                    command += " --only num/ --seeds 0"  # the whole score of a new operator takes minutes
                done = shell(command.replace("aclnn-oracle", f"{sys.executable} -m oracle.cli"), folder)
                assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
                ran.append(command)
        elif language == "python" and "print(" in text:
            done = subprocess.run([sys.executable, "-c", text], cwd=folder, capture_output=True, text=True, timeout=100)
            assert done.returncode == 0, done.stderr
            assert "0." in done.stdout
    assert len(ran) + len(left) == 10
    assert not WHOLE or len(left) <= 1
