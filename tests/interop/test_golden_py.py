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
SLUGS = {
    "BinaryCrossEntropy": "binary_cross_entropy_backward",
    "LogSigmoid": "log_sigmoid_backward",
    "NLLLoss": "nll_loss_backward",
    "Softmax": "softmax_backward",
}
SETTINGS = Settings(layers=("structure", "strict"))


@cache
def of(slug: str) -> list[Case]:
    return load(default_dir() / f"{slug}.yaml")


def lines(backend, op, **settings):
    made = Settings(**{"layers": ("structure", "strict"), **settings})
    return {c.id: run_case(c, backend, made) for c in select(of(SLUGS[op]), tier="smoke", soc="ascend910b")}


@pytest.fixture(scope="module")
def golden():
    return load_backend("golden_py", {"file": str(FILE)})


@pytest.mark.parametrize("op", some(["Softmax", "BinaryCrossEntropy"], 1))
def test_a_right_golden_passes(golden, op):
    result = lines(golden, op)
    counts = Counter(line.status for line in result.values())
    assert set(counts) <= {"pass", "skip"}, [line.reason for line in result.values() if line.status == "fail"]
    assert counts["pass"] > 5


def test_float32_whatever_the_dtype_shows(golden):
    for case_id, line in lines(golden, "NLLLoss").items():
        if line.dtype != "float32" and line.status not in ("skip", "error"):
            assert line.status == "fail", case_id
            assert "has dtype float32" in line.reason


def nll_case(one_dimensional: bool):
    wanted = 1 if one_dimensional else 2
    return next(
        c
        for c in of("nll_loss_backward")
        if c.dtype == "float32"
        and c.expected("ascend910b") == "ACLNN_SUCCESS"
        and all(p is not None and p.dtype != "float16" and 0 not in p.shape for p in c.inputs.values())
        and len(c.inputs["self"].shape) == wanted
        and len(c.inputs["target"].shape) == 1
        and c.attrs["reduction"] == 2
        and c.outputs["out"].dtype == "float32"
    )


def test_the_shape_of_one_dimensional_input_shows(golden):
    line = run_case(nll_case(True), golden, SETTINGS)
    assert line.status == "fail"
    assert "has shape (1, " in line.reason
    assert run_case(nll_case(False), golden, SETTINGS).status == "pass"


def test_a_golden_that_raises_is_an_error_with_its_words(golden):
    case = next(c for c in of("nll_loss_backward") if c.inputs["target"] and c.dtype == "float32"
                and c.inputs["target"].shape == () and 0 not in c.inputs["self"].shape
                and c.expected("ascend910b") == "ACLNN_SUCCESS")  # fmt: skip
    line = run_case(case, golden, SETTINGS)
    assert line.status == "error"
    assert "IndexError" in line.reason


@in_full_alone
def test_arithmetic_in_the_input_dtype_shows(golden):
    result = lines(golden, "LogSigmoid")
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
    counts = Counter(line.status for line in lines(backend, "Softmax").values())
    assert counts["pass"] > 5
    assert set(counts) <= {"pass", "skip"}
    assert {line.status for line in lines(backend, "NLLLoss").values()} == {"skip"}


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


def test_wrong_options_are_told(tmp_path):
    with pytest.raises(OracleError, match="no such file"):
        load_backend("golden_py", {"file": str(tmp_path / "golden.py")})
    with pytest.raises(OracleError, match="needs --backend-option file="):
        load_backend("golden_py")
    with pytest.raises(OracleError, match="unknown form 'e2e'"):
        load_backend("golden_py", {"file": str(FILE), "form": "e2e"})
