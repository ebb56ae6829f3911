"""The examples are short, say how to run them, and are in their lists; an example without dependencies is run."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from oracle.backends import load
from oracle.cli import main
from oracle.model.call import Call

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[1] / "examples"
ADAPTERS = sorted(EXAMPLES.glob("*.py"))
FOUND = sorted((EXAMPLES / "found").glob("*.py"))


def test_an_adapter_has_at_most_60_lines_and_says_how_it_is_run():
    listed = (EXAMPLES / "README.md").read_text("utf-8")
    for path in ADAPTERS:
        text = path.read_text("utf-8")
        assert len(text.splitlines()) <= 60, path.name
        (command,) = re.findall(r"^PYTHONPATH=examples .*aclnn-oracle run --backend .*$", text, re.MULTILINE)
        assert command in listed, f"examples/README.md does not say `{command}`"


def test_every_script_of_a_finding_stands_in_the_page_and_ends_with_its_verdict():
    page = (EXAMPLES.parent / "docs" / "found.md").read_text("utf-8")
    assert FOUND
    for path in FOUND:
        text = path.read_text("utf-8")
        assert f"`{path.name}`" in page, path.name
        assert "pip install" in text
        assert re.search(r"^sys\.exit\(.+\)\n\Z", text, re.MULTILINE), f"{path.name} does not end with its verdict"
        assert not re.search(r"^(from|import) oracle", text, re.MULTILINE), f"{path.name} needs this project"


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_the_c_library_computes_a_row_along_any_axis(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    g, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.full((2, 3), 0.25, np.float32)
    library = load("c_library:Library")
    for dim in (0, 1):
        inputs = {"gradOutput": g, "output": y.T.copy().T}
        call = Call("aclnnSoftmaxBackward", "ascend910b", inputs, {"dim": dim}, {"out": np.zeros_like(g)})
        assert library.unsupported(call) is None
        library.run(call)
        assert np.array_equal(call.outputs["out"], (g - (g * y).sum(dim, keepdims=True)) * y)


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
@pytest.mark.parametrize("wrong", [False, True])
def test_a_kernel_without_python_reads_fixtures_and_its_results_are_judged(tmp_path, capsys, wrong):
    kernel = (EXAMPLES / "cpp" / "softmax_backward.cpp").read_text("utf-8")
    if wrong:
        kernel = kernel.replace("float sum = 0", "float sum = 1")
    (tmp_path / "kernel.cpp").write_text(kernel, "utf-8")
    fixtures, results, program = (str(tmp_path / name) for name in ("fixtures", "results", "kernel"))
    warnings = ["-Wall", "-Wextra", "-Wconversion", "-Werror", f"-I{EXAMPLES / 'cpp'}"]
    subprocess.run(["g++", "-std=c++17", *warnings, f"{program}.cpp", "-o", program], check=True, timeout=120)
    chosen = ["--op", "softmax_backward", "-k", "first_look and float32"]
    assert main(["golden", fixtures, *chosen]) == 0
    ended = subprocess.run([program, fixtures, results], capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == wrong, ended.stderr
    count = len(list(Path(fixtures).glob("*/*/*/golden_out__float32.npy")))
    assert count
    assert f"{count} cases, {count if wrong else 0} failed" in ended.stdout
    assert main(["judge", fixtures, results, "-o", str(tmp_path / "r.jsonl")]) == wrong
    assert "numbers judged" in capsys.readouterr().out
