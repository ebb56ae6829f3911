"""Watch for regressions: ratios to NumPy, json and pytest on this machine, against those of the committed baseline.

    python benchmarks/regressions.py                 exit status 1 if a ratio is 25 % worse; half a minute
    python benchmarks/regressions.py --update        write the baseline, on a quiet machine

A ratio is the processor time of our work / that of a peer, so that it depends little on the machine. It is the median
of seven rounds in which the two take turns. A worse ratio is measured once more, and by another process. If NumPy's
version or vector instructions differ from the baseline's, both sides of a ratio change: only twice the baseline fails.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from warm import restarted

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
if __name__ == "__main__":
    restarted()
os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"

import numpy as np
import pytest
import synthetic
from judging import DTYPES, answer, call_of
from measuring import ROUNDS, cases_of, memory_of, seconds

try:
    from numpy._core import _multiarray_umath as core
except ImportError:
    from numpy.core import _multiarray_umath as core  # NumPy 1.26

import oracle
from oracle.backends.cpu import Backend
from oracle.case.judge import judge_values
from oracle.case.one_case import run_case
from oracle.catalogue import default_dir, load
from oracle.model.call import Call
from oracle.numerics.compiled.engine import installed
from oracle.operators import OPERATORS, reference
from oracle.record.reader import read
from oracle.reporting import formats
from oracle.settings.settings import Settings

BASELINE = Path(__file__).with_name("baseline.json")
WORSE, WORSE_ELSEWHERE = 1.25, 2.0
SIZE = 1 << 17  # elements that stay in a processor's own cache
TURN, ROUND = 0.004, 0.15  # seconds of processor time
ITEMS = 6  # of a pytest run, per operator
RECORD = 300  # lines of a record
SETTINGS = Settings()
Work = Callable[[], Any]
Contest = tuple[str, Work, Work]  # a name, our work, and the peer's work


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--baseline", type=Path, default=BASELINE)
    parser.add_argument("--update", action="store_true", help="write the baseline instead of comparing with it")
    parser.add_argument("--last", action="store_true", help="what is worse is not measured again by another process")
    args = parser.parse_args(argv)
    before, worse = {}, WORSE
    if not args.update:
        baseline = json.loads(args.baseline.read_text())
        before = baseline["ratios"]
        if baseline["machine"] != machine():
            worse = WORSE_ELSEWHERE
            print(f"the baseline is of {baseline['machine']}; this is {machine()}: twice the baseline fails")
    result: dict[str, float] = {}
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        for name, ours, peer in contests(Path(folder)):
            result[name] = round(ratio(ours, peer), 3)
            limit = worse * before.get(name, result[name])
            if result[name] > limit:
                print(f"{name:74}{result[name]:9.2f}  measured again")
                result[name] = round(ratio(ours, peer), 3)
            print(f"{name:74}{result[name]:9.2f}", end="")
            print(f"{result[name] / before[name]:8.0%} of the baseline" if name in before else "", flush=True)
            if result[name] > limit:
                problems.append(f"worse than {args.baseline.name}: {name}, {result[name]:.2f}, was {before[name]:.2f}")
    if args.update:
        args.baseline.write_text(json.dumps({"machine": machine(), "ratios": result}, indent=1) + "\n")
        return 0
    problems += [f"not in {args.baseline.name} (--update writes it): {name}" for name in result if name not in before]
    for name in before.keys() - result.keys():
        print(f"not measured here: {name}")
    for problem in problems:
        print(problem)
    if problems and not args.last:
        print("all again: where a process has its arrays decides too")
        return subprocess.call([sys.executable, __file__, "--baseline", str(args.baseline), "--last"])
    return 1 if problems else 0


def machine() -> str:
    """Return NumPy's version, the machine and its vector instructions: the speed of NumPy's loops depends on them."""
    chosen = [name for name in core.__cpu_dispatch__ if core.__cpu_features__[name]]
    return f"NumPy {'.'.join(np.__version__.split('.')[:2])}, {platform.machine()}, {' '.join(chosen)}"


def ratio(ours: Work, peer: Work) -> float:
    """Return our time / the peer's time: the median of rounds in which they take turns."""
    ours(), peer()  # the first call pays for what is made only once
    one, other = (max(1, round(TURN / max(seconds(run), 1e-7))) for run in (ours, peer))
    gc.collect()
    gc.freeze()  # as a run of the catalogue does: the collector does not scan all cases again and again
    return statistics.median(_round(ours, one, peer, other) for _ in range(ROUNDS))


def _round(ours: Work, one: int, peer: Work, other: int) -> float:
    """Return the ratio of one round. Turns are short, so that other load on the machine slows both."""
    mine, theirs = [], []
    while one * sum(mine) + other * sum(theirs) < ROUND:
        mine.append(seconds(ours, one))
        theirs.append(seconds(peer, other))
    return sum(mine) / sum(theirs)


def contests(folder: Path) -> Iterator[Contest]:
    """Yield the watched work: goldens, bounds, verdicts, data, whole cases, collection, reports."""
    random = np.random.default_rng(0)
    engines = ("numpy", "compiled") if installed() else ("numpy",)
    for engine in engines:
        for op, dtype, inputs, attrs, formula in GOLDENS:
            given = {name: made(random).astype(DTYPES[dtype]) for name, made in inputs.items()}
            name = f"{engine} golden of {op[5:-8]} in {dtype} / its formula in float64"
            yield name, golden_of(op, {**given, **attrs}, engine), formula_of(formula, given)
    for what, size in (("small", 200), ("large", SIZE)):
        known, actual = answer("float32", size)
        call = call_of("float32", size)
        golden = golden_of(call.op, call.inputs, "numpy")
        yield f"numpy {what} golden with value and bound / golden by NumPy", reference_of(call, "numpy"), golden
        yield (
            f"three layers on a {what} output / assert_allclose",
            lambda k=known, a=actual: judge_values(k, a, SETTINGS),
            lambda k=known, a=actual: np.testing.assert_allclose(a, k.value, rtol=1e-2, atol=1e-2),
        )
    few = {name: array[:200] for name, array in given.items()}
    yield "small golden / its formula", golden_of(op, {**few, **attrs}, "numpy"), formula_of(formula, few)
    cases = [cases_of(op)[0] for op in OPERATORS]
    (plan, *_), backend = cases[0].inputs.values(), Backend()
    large = replace(cases[0], inputs={"gradOutput": replace(plan, shape=(SIZE,))})
    yield "data of a large tensor / NumPy's normal", lambda: memory_of(large), lambda: random.normal(size=SIZE)
    yield (
        f"a small case of every operator / {ITEMS} pytest items each",
        lambda: [run_case(case, backend, SETTINGS) for case in cases],
        items_of(folder, ITEMS * len(cases)),
    )
    catalogue = default_dir() / "softmax_backward.yaml"
    text = json.dumps([case.id for case in load(catalogue)])
    yield "collecting a catalogue / json.loads of its ids", lambda: load(catalogue), lambda: json.loads(text)
    record = synthetic.write(folder / "run.jsonl", synthetic.catalogue(RECORD))
    lines = record.read_text(encoding="utf-8").splitlines()
    yield (
        f"report of {RECORD} cases / json.loads of the lines",
        lambda: formats.write([read(record, brief=True)], folder / "report.html"),
        lambda: [json.loads(line) for line in lines],
    )


def golden_of(op: str, given: Mapping[str, Any], engine: str) -> Work:
    """Return a function that makes a golden with an engine."""

    def run() -> None:
        os.environ["ACLNN_ORACLE_ENGINE"] = engine
        oracle.golden(op, **given)

    return run


def reference_of(call: Call, engine: str) -> Work:
    """Return a function that makes a golden with everything that a verdict needs."""

    def run() -> None:
        os.environ["ACLNN_ORACLE_ENGINE"] = engine
        reference(call)

    return run


def formula_of(formula: Callable[..., Any], given: Mapping[str, Any]) -> Work:
    """Return a function that evaluates a formula as people usually make a good golden: in float64, and cast back."""

    def run() -> None:
        arrays = list(given.values())
        formula(*(array.astype(np.float64) for array in arrays)).astype(arrays[0].dtype)

    return run


def log_sigmoid(g: Any, x: Any, buffer: Any) -> Any:
    return g * (1 / (1 + np.exp(x)))


def softmax(g: Any, y: Any) -> Any:
    return (g - (g * y).sum(-1, keepdims=True)) * y


def binary_cross_entropy(g: Any, x: Any, y: Any) -> Any:
    return g * (x - y) / np.maximum((1 - x) * x, 1e-12)


def normal(random: np.random.Generator) -> Any:
    return random.normal(size=SIZE)


def unit(random: np.random.Generator) -> Any:
    return random.uniform(0.001, 0.999, size=SIZE)


def rows(random: np.random.Generator) -> Any:
    return random.uniform(0.0, 2**-9, size=(SIZE // 1024, 1024))


GOLDENS = (
    ("aclnnSoftmaxBackward", "bfloat16", {"gradOutput": rows, "output": rows}, {"dim": -1}, softmax),
    (
        "aclnnBinaryCrossEntropyBackward", "float16", {"gradOutput": normal, "self": unit, "target": unit},
        {"reduction": 0}, binary_cross_entropy,
    ),
    (
        "aclnnLogSigmoidBackward", "float32", dict.fromkeys(("gradOutput", "self", "buffer"), normal), {}, log_sigmoid,
    ),
)  # fmt: skip


def items_of(folder: Path, count: int) -> Work:
    """Return a function that runs ``count`` pytest items that do nothing, in this process."""
    file = folder / "test_nothing.py"
    head = f"import pytest\n@pytest.mark.parametrize('k', range({count}))\n"
    file.write_text(head + "def test_nothing(k): pass\n")
    options = [
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:unraisableexception",
        "-c",
        os.devnull,
        "--rootdir",
        str(folder),
        str(file),
    ]

    def run() -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            assert pytest.main(options) == 0

    return run


if __name__ == "__main__":
    sys.exit(main())
