"""A golden.py as a device under test: right ones pass, documented defects fail, impossible calls are skipped."""

from __future__ import annotations

import importlib.util
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from ordinary import in_full_alone, some

from oracle.backends import load as load_backend
from oracle.case.one_case import run_case
from oracle.catalogue import Case, default_dir, load, select
from oracle.interop.golden_py import GoldenFile
from oracle.model.errors import OracleError
from oracle.settings.settings import Settings

pytestmark = pytest.mark.slow

FILE = Path(__file__).parents[1] / "data" / "golden_small.py"
SETTINGS = Settings(layers=("structure", "strict"))


@cache
def of(slug: str) -> list[Case]:
    return load(default_dir() / f"{slug}.yaml")


def lines(backend, slug):
    return {c.id: run_case(c, backend, SETTINGS) for c in select(of(slug), tier="smoke", soc="ascend910b")}


@pytest.fixture(scope="module")
def golden():
    return load_backend("golden_py", {"file": str(FILE)})


@pytest.mark.parametrize("slug", some(["softmax_backward", "binary_cross_entropy_backward"], 1))
def test_a_right_golden_passes(golden, slug):
    result = lines(golden, slug)
    counts = Counter(line.status for line in result.values())
    assert set(counts) <= {"pass", "skip"}, [line.reason for line in result.values() if line.status == "fail"]
    assert counts["pass"] > 5


def test_float32_whatever_the_dtype_shows(golden):
    for case_id, line in lines(golden, "nll_loss_backward").items():
        if line.dtype != "float32" and line.status not in ("skip", "error"):
            assert line.status == "fail", case_id
            assert "has dtype float32" in line.reason


def nll_case(rank: int):
    return next(
        c for c in of("nll_loss_backward") if c.dtype == "float32" and c.expected("ascend910b") == "ACLNN_SUCCESS"
        and all(p is not None and p.dtype != "float16" and 0 not in p.shape for p in c.inputs.values())
        and len(c.inputs["self"].shape) == rank and len(c.inputs["target"].shape) == 1
        and c.attrs["reduction"] == 2 and c.outputs["out"].dtype == "float32"
    )  # fmt: skip


def test_the_shape_of_one_dimensional_input_shows(golden):
    line = run_case(nll_case(1), golden, SETTINGS)
    assert line.status == "fail"
    assert "has shape (1, " in line.reason
    assert run_case(nll_case(2), golden, SETTINGS).status == "pass"


def test_a_golden_that_raises_is_an_error_with_its_words(golden):
    case = next(c for c in of("nll_loss_backward") if c.inputs["target"] and c.dtype == "float32"
                and c.inputs["target"].shape == () and 0 not in c.inputs["self"].shape
                and c.expected("ascend910b") == "ACLNN_SUCCESS")  # fmt: skip
    line = run_case(case, golden, SETTINGS)
    assert line.status == "error"
    assert "IndexError" in line.reason


@in_full_alone
def test_arithmetic_in_the_input_dtype_shows(golden):
    result = lines(golden, "log_sigmoid_backward")
    assert any(line.status == "fail" for line in result.values() if line.dtype in ("float16", "bfloat16"))


def test_what_a_golden_does_not_answer_is_skipped_with_the_reason(golden):
    reasons = Counter()
    for case in of("softmax_backward"):
        if not case.soc and not case.family.startswith("pairs_of_"):
            output, like = case.outputs["out"], case.inputs["gradOutput"]
            refused = case.expected("ascend910b") != "ACLNN_SUCCESS"
            cast = output is not None and like is not None and output.dtype != like.dtype
            if refused or cast:
                line = run_case(case, golden, SETTINGS)
                if line.status == "skip":
                    reasons[line.reason.partition(" ")[0]] += 1
                else:
                    assert not refused
    assert set(reasons) == {"a", "the"}  # no GetWorkspaceSize; the host's last cast


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch")
def test_an_aclnn_golden_gets_torch_tensors():
    backend = load_backend("golden_py", {"file": str(FILE), "form": "aclnn"})
    counts = Counter(line.status for line in lines(backend, "softmax_backward").values())
    assert counts["pass"] > 5
    assert set(counts) <= {"pass", "skip"}
    assert {line.status for line in lines(backend, "nll_loss_backward").values()} == {"skip"}


def test_both_ways_to_name_it_are_one():
    by_path = load_backend("oracle.interop.golden_py:GoldenFile", {"file": str(FILE)})
    assert isinstance(by_path, GoldenFile)
    assert by_path.versions["golden_py"].startswith("golden_small.py sha256:")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no golden for an operator of this project"),
        ("__golden__ = 3", "__golden__ is int; it must be a dict"),
        ("__golden__ = {'kernel': []}", "it must be a dict"),
        ("__golden__ = {'kernel': {'softmax_grad': 'absent'}}", "it must name a function"),
        ("__spec__ = {'softmax_grad': 'S'}\nclass S: pass", "has no attribute golden"),
        ("import no_such_module_at_all", "No module named 'no_such_module_at_all'"),
        ("1/0", "ZeroDivisionError"),
        ("def f(:", "SyntaxError"),
    ],
)
def test_a_wrong_file_is_told(tmp_path, text, message):
    path = tmp_path / "golden.py"
    path.write_text(text, "utf-8")
    with pytest.raises(OracleError, match=message):
        load_backend("golden_py", {"file": str(path)})


@pytest.mark.parametrize(("options", "message"), [
    ({"file": "no/golden.py"}, "no such file"), ({}, "needs --backend-option file="),
    ({"file": str(FILE), "form": "e2e"}, "unknown form 'e2e'"),
])  # fmt: skip
def test_wrong_options_are_told(options, message):
    with pytest.raises(OracleError, match=message):
        load_backend("golden_py", options)
