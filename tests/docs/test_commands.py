"""Every command of README.md, docs/ and cases/README.md runs, on few cases, with a reader's values for placeholders.

This is slow, so it runs only on request, as CI's full run does: ACLNN_TEST_DOCS=1 python -m pytest
tests/docs/test_commands.py. Without it, the test checks that every command is one that this test or CI runs.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from oracle.emulator import environment
from oracle.emulator.toolkit import find_compiler

ROOT = Path(__file__).parents[2]
PAGES = (*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", ROOT / "cases" / "README.md")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
START = re.compile(r"(?:- run: |- )?((?:\w+='[^']*' |\w+=\S+ |eval .*)?(?:aclnn-oracle|pytest|python) .*)")
# Commands that CI or another test runs: where.
ELSEWHERE = {
    "pip install": ".ci/run",
    "python -m pytest tests/emulator": ".ci/run",
    "pytest tests/": ".ci/run",
    "python benchmarks/": ".ci/run",
    "python tools/": ".ci/run",
    "--cluster": "tests/test_cluster.py",
    "aclnn-oracle golden FIXTURES": "tests/test_examples.py",
    "aclnn-oracle judge FIXTURES": "tests/test_examples.py",
    "--backend torch_npu": ".ci/run",
    "--backend mindspore": ".ci/devices",
    "torch_npu.jsonl": "tests/commands/test_report_command.py",
    "aclnn-oracle power --tier smoke --seeds 0": ".ci/full",
    "aclnn-oracle power FILE": ".ci/run",
    "aclnn-oracle power --kernels": "tests/power/test_own_kernels.py",
    "my_rms_norm_grad": "tests/docs/test_adding_an_operator.py",
    "my_thing_backward": "tests/docs/test_adding_an_operator.py",
    "MyThingBackward": "tests/docs/test_adding_an_operator.py",
    "soft_clip_backward": "tests/docs/test_adding_an_operator.py",
}
BARE_POWER = "aclnn-oracle power"  # half an hour or more; as in .ci/full power
BY_NAME = ("diff", "merge", "new-operator", "search", "history DIR")  # in the text
MENTIONED = tuple(f"aclnn-oracle {words}" for words in BY_NAME)
FEW = "--op aclnnLogSigmoidBackward --tier smoke -k first_look -q"
LIBRARY = """  // what the page's my_kernels.py loads: wrong, so that there is something to reduce
#include <cstdint>
extern "C" void softmax_grad(const float* g, const float* y, float* out, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; r++, g += n, y += n, out += n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += static_cast<double>(g[i]) * y[i];
    for (int64_t i = 0; i < n; i++) out[i] = static_cast<float>(0.9 * (g[i] - sum) * y[i]);
  }
}
"""
CASE = "'log_sigmoid_backward/first_look[float16-6x35-buffer]'"
# A reader's values for the placeholders, in this order.
FILLED = (
    (r"\$CI_NODE_INDEX/\$CI_NODE_TOTAL", "2/4"),
    (r"\$\{\{ matrix\.part \}\}|\$CI_NODE_INDEX", "1"),
    (r"records/\*\.jsonl", "part-*.jsonl"),
    (r"parts/\*\.jsonl", "r1.jsonl r2.jsonl r3.jsonl"),
    (r"\$day", "today"),
    (r"'CASE-ID'|\bID\b", CASE),
    (r" \[.*", ""),  # optional words
    (r"(?<=export-golden )DIR", "exported"),
    (r"(?<=golden )DIR", "fixtures"),
    (r"(?<=history )DIR", "records"),
    (r"convert \.\.\. --to atk", "convert cases/log_sigmoid_backward.yaml --to atk -o converted"),
    (r"convert cases --to atk\|ttk\|ttk-aclnn -o DIR", "convert cases/log_sigmoid_backward.yaml --to ttk -o converted"),
    (r"--catalogue FILE", "--catalogue cases"),
    (r"\bFILE\b", "atk_aclnnX.json"),
    (r"--backend B\b", "--backend cpu"),
    (r"\bOP\b", "aclnnLogSigmoidBackward"),
    (r"COMMAND --help", "run --help"),
    (r"--minutes \S+", "--minutes 0.2"),
    (r"power --op softmax_backward", "power --op log_sigmoid_backward --only half"),
    (r"benchmarks\.blind\b(?!\.)", "benchmarks.blind --op aclnnLogSigmoidBackward"),
    (r"pytest cases ", f"pytest cases/log_sigmoid_backward.yaml {FEW} "),
)
FAILS = (
    "golden_py",
    "my_kernels",
    "numerics=native",
    "failure.py",
    "#5=nan",
    "merge --partial",
)  # may end with 1 because they find something


def commands(page: Path) -> Iterator[str]:
    """Yield every command in blocks and between backticks, in the page's order, without its comment."""
    text = page.read_text("utf-8").replace("\\\n", " ")
    for block, span in re.findall(r"(?ms)^```\w*\n(.*?)^```|`([^`\n]+)`", text):
        for line in (block or span).splitlines():
            result = START.match(line.strip())
            if result:
                yield re.sub(r"\s+#.*", "", result[1]).strip()


def elsewhere(command: str) -> bool:
    return command in (BARE_POWER, *MENTIONED) or any(words in command for words in ELSEWHERE)


def filled(command: str) -> str:
    """Return a command as a reader would type it, on few cases."""
    for place, words in FILLED:
        command = re.sub(place, words, command)
    if "aclnn-oracle run" in command and "--help" not in command and "reports/search" not in command:
        few = FEW.replace("LogSigmoid", "Softmax") if "my_kernels" in command else FEW
        few = few[few.index("--tier") :] if "--pair" in command else few  # a pair chooses the operators
        command = command.replace("-n auto", "-n 2") + f" {few}"
    if "--resume" in command:  # it resumes the same run, and the page's last run is another one
        command = f"{command.replace(' --resume reports/latest.jsonl', '')} && {command}"
    if "aclnn-oracle golden" in command and "--verify" not in command:
        command += " --tier smoke -k first_look"
    if "aclnn-oracle sweep" in command:
        rows = "" if "Gelu " in command else " --rows 2"  # an operator of one operand has one row
        command = command.replace("--rows 1024", "") + f"{rows} --quiet --restart --state sweep.state"
    if "aclnn-oracle search" in command:  # for every operator it would take minutes until each had its turn
        command += f"{'' if '--op ' in command else ' --op aclnnLogSigmoidBackward'} --minutes 0.2"
    if command.startswith("aclnn-oracle coverage"):
        command += " cases/log_sigmoid_backward.yaml"
    command = re.sub(r"\baclnn-oracle\b(?! \{)", f"{sys.executable} -m oracle.cli", command)
    return re.sub(r"^(python|pytest)\b", lambda m: {"python": "", "pytest": f"{sys.executable} -m pytest"}[m[1]]
                  or sys.executable, command)  # fmt: skip


def prepare(desk: Path, factor: str = "") -> None:
    """Create the files that the pages' reader has: catalogue, records, other teams' files, a device, arrays."""
    (desk / "cases").symlink_to(ROOT / "cases")
    for name, source in (("atk_aclnnX.json", "atk_small.json"), ("ttk_x.csv", "ttk_aclnn_small.csv"),
                         ("golden.py", "golden_small.py")):  # fmt: skip
        shutil.copy(ROOT / "tests" / "data" / source, desk / name)
    for language, text in BLOCK.findall((ROOT / "docs" / "adding-a-backend.md").read_text("utf-8")):
        if language == "python" and text.startswith("# my_"):
            (desk / text[2 : text.index("\n")]).write_text(text.replace("= g * np", f"= {factor}g * np"))
    (desk / "kernels.cpp").write_text(LIBRARY)
    subprocess.run([find_compiler(), "-O1", "-shared", "-fPIC", "kernels.cpp", "-o", "libmykernels.so"], cwd=desk)
    (desk / "train_on_npu.py").write_text("print('trained')\n")
    for name in ("G", "A", "GOLDEN", "ACTUAL"):
        np.save(desk / f"{name}.npy", np.ones(5, "f8" if name.startswith("G") else "f4"))
    made = run("aclnn-oracle run --record run.jsonl", desk)
    assert made.returncode == 0, made.stdout + made.stderr
    (desk / "records").mkdir()
    (desk / "reports").mkdir(exist_ok=True)
    names = ("RUN", "OLD", "NEW", "cpu", "torch", "npu", "aclnn", "log_sigmoid_backward", "records/a", "reports/latest")
    for name in names:
        if not (desk / f"{name}.jsonl").exists():
            shutil.copy(desk / "run.jsonl", desk / f"{name}.jsonl")


def run(command: str, desk: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{desk}", "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    return subprocess.run(["bash", "-c", filled(command)], cwd=desk, env=env, capture_output=True, text=True)


def test_every_command_is_run_here_or_by_ci() -> None:
    every = [command for page in PAGES for command in commands(page)]
    assert len(every) > 80
    for words, where in ELSEWHERE.items():
        assert any(words in command for command in every), f"no page has {words} any more"
        assert (ROOT / where).exists()
    proofs = (ROOT / ".ci" / "full").read_text("utf-8")
    assert all(
        f"{{ {command}; }}\n" in proofs
        for command in (f"{BARE_POWER} --seeds 0", f"{BARE_POWER} --tier smoke --seeds 0 --require 40")
    )
    short = {re.sub(r"\w+='.*' |^\w+=\S+ |\S*/\S*|\w+\.\w+|'.*'", "", filled(c)) for c in every if not elsewhere(c)}
    assert [c for c in short if re.search(r"\b[A-Z]{2,}\b|\.\.\.", c)] == [], "placeholders without a stand-in"


def test_python_on_a_page_uses_what_it_imports() -> None:
    for page in (*PAGES, *(ROOT / "docs" / "zh").glob("*.md")):
        for language, text in BLOCK.findall(page.read_text("utf-8")):
            if language == "python" and page.name != "api.md":  # these are signatures; its examples run as doctests
                nodes = list(ast.walk(ast.parse(text)))
                used = {node.id for node in nodes if isinstance(node, ast.Name)}
                imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
                names = {(name.asname or name.name).partition(".")[0] for node in imports for name in node.names}
                assert names <= used | {"annotations"}, f"{page}: unused {names - used}"


@pytest.mark.skipif(os.environ.get("ACLNN_TEST_DOCS") != "1", reason="slow: set ACLNN_TEST_DOCS=1 (CI's full run does)")
@pytest.mark.parametrize("page", [p for p in PAGES if any(not elsewhere(c) for c in commands(p))], ids=lambda p: p.stem)
def test_a_page_s_commands_run(page: Path, tmp_path: Path, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment(tree, soc="ascend910b", torch_npu=True).items():
        monkeypatch.setenv(name, value)  # a reader with --backend aclnn has an NPU
    prepare(tmp_path, factor="0.9 * " if page.stem == "interop" else "")  # this page reduces a failure
    for command in dict.fromkeys(commands(page)):
        if elsewhere(command):
            continue
        if "--backend torch" in command:
            pytest.importorskip("torch")
        done = run(command, tmp_path)
        good = (0, 1) if any(words in command for words in FAILS) else (0,)
        assert done.returncode in good, f"{command}\n{filled(command)}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        assert "Traceback" not in done.stderr, command
