"""``export-golden``: TTK and ATK load the file like any golden.py, and its results are the goldens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oracle.case.prepare import Memory
from oracle.catalogue import Case, default_dir, load_all
from oracle.cli import main
from oracle.interop.golden_py import GoldenFile
from oracle.operators import OPERATORS, golden

EACH = 6  # cases of an operator


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported")
    assert main(["export-golden", str(folder)]) == 0
    return folder / "golden.py"


@pytest.fixture(scope="module")
def cases() -> dict[str, list[Case]]:
    """Return small cases with values, of every type that the first few families have."""
    result: dict[str, list[Case]] = {}
    for case in load_all(default_dir(), tier="smoke"):
        success = case.expected("ascend910b") == "ACLNN_SUCCESS"
        is_empty = any(plan is not None and 0 in plan.shape for plan in case.inputs.values())  # some have no golden
        if case.tier == "smoke" and success and len(case.id) < 90 and not is_empty:
            result.setdefault(case.op, []).append(case)
    return {op: members[:: max(1, len(members) // EACH)][:EACH] for op, members in result.items()}


@pytest.mark.parametrize("form", ["kernel", "aclnn"])
@pytest.mark.parametrize("op", sorted(OPERATORS))
def test_a_golden_loaded_as_the_tools_load_it_is_the_golden(
    exported: Path, cases: dict[str, list[Case]], op: str, form: str
) -> None:
    if form == "aclnn":
        pytest.importorskip("torch")
    if form == "kernel" and op in ("aclnnNLLLoss2d", "aclnnNLLLoss2dBackward"):
        pytest.skip("its kernel's golden is that of NLLLoss, which takes no images")
    if form == "kernel" and OPERATORS[op].kernel is None:
        pytest.skip("no kernel has all its outputs")
    if op not in cases:
        pytest.skip(f"no catalogue of {op} yet")
    backend, run = GoldenFile(file=str(exported), form=form), 0
    for case in cases[op]:
        call = Memory.make(case, soc="ascend910b", seed=0).call
        if backend.unsupported(call):
            continue
        expected = golden(Memory.make(case, soc="ascend910b", seed=0).call)
        assert backend.run(call) is None
        for name, array in expected.items():
            actual: Any = call.outputs[name]
            assert actual.dtype == array.dtype
            assert np.array_equal(_bits(actual), _bits(array)), case.id
        run += 1
    assert run, f"no case of {op} could be given to its {form} golden"


def _bits(array: np.ndarray) -> np.ndarray:
    """Return the bits, with every NaN the same."""
    wide = np.ascontiguousarray(array)
    bits = wide.view(f"u{wide.itemsize}").reshape(wide.shape).copy()
    bits[np.isnan(wide.astype(np.float64))] = 0
    return bits


def test_a_golden_that_is_there_is_not_replaced(exported: Path) -> None:
    before = exported.read_text(encoding="utf-8")
    assert main(["export-golden", str(exported.parent), "--op", "aclnnSoftmaxBackward"]) == 2
    assert exported.read_text(encoding="utf-8") == before
    assert main(["export-golden", str(exported.parent / "one"), "--op", "aclnnSoftmaxBackward"]) == 0
    one = GoldenFile(file=str(exported.parent / "one" / "golden.py"))
    assert set(one.functions) == {("aclnnSoftmaxBackward", "kernel"), ("aclnnSoftmaxBackward", "aclnn")}
