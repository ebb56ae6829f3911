"""The backend that docs/adding-a-backend.md shows is one."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from oracle.catalogue import default_dir, load_all, select
from oracle.runner import Settings, run_case

DOCUMENT = Path(__file__).parents[2] / "docs" / "adding-a-backend.md"


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.skipif(not DOCUMENT.exists(), reason="the documents are not beside these tests")
def test_the_example_passes_the_smoke_tier():
    names: dict = {}
    exec(re.search(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)[1], names)
    with np.errstate(all="ignore"):
        cases = select(load_all(default_dir()), tier="smoke", soc="ascend910b")
        lines = [run_case(case, names["Device"](), Settings()) for case in cases]
    assert {line["status"] for line in lines} == {"pass", "skip"}
    assert sum(line["status"] == "pass" for line in lines) > 20
    told = {line["reason"] for line in lines if line["status"] == "skip"}
    assert told == {"this device knows softmax only", "this device has no GetWorkspaceSize"}
