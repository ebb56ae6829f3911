"""This project and common alternatives: cases per second and elements per second, in one table.

    pip install torch onnx==1.23.2                   missing peers are skipped, and named
    python benchmarks/peers.py                       a minute
    python benchmarks/peers.py --golden-py ops-nn/activation/softmax_grad/tests/assets/golden.py --json peers.json

The rows: goldens of four operators (--op: of others), the verdict on an output, and whole cases, that is data, golden,
device, verdict and record. All are float32, one thread, processor time, medians of seven rounds in turns. Cases per
second: a case of about 200 elements; elements per second: a case of a million. Both are cases of the catalogue.
A golden is a peer's answer to a call: this project proves the correct rounding of its own, the others give float32.
A verdict is three layers here, one tolerance elsewhere. --golden-py (repeatable): golden.py files of the official kit,
called as the kit does.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from warm import restarted

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples")]
if __name__ == "__main__":
    restarted()

import numpy as np
from measuring import cases_of, medians, memory_of

import oracle
from cases import bare_item
from oracle.backends import Backend, load
from oracle.case.judge import judge_values
from oracle.case.one_case import run_case
from oracle.catalogue.data.case import Case
from oracle.catalogue.measure import elements
from oracle.model.call import Call
from oracle.model.errors import OracleError
from oracle.numerics.compiled.engine import installed
from oracle.operators import OPERATORS, reference
from oracle.settings.settings import Settings

OPS = tuple(f"aclnn{name}Backward" for name in ("LogSigmoid", "Softmax", "BinaryCrossEntropy", "NLLLoss"))
OURS = "this project"
PEERS = {  # backends that answer a call, and the packages they need
    "PyTorch, in float32": ("torch", {}, "pip install torch"),
    "ONNX's reference evaluator": ("onnx_reference:Reference", {}, "pip install onnx==1.23.2"),
}
Work = dict[str, Callable[[], Any]]


class Row(NamedTuple):
    """A line of the table; None: not requested or not possible."""

    what: str
    who: str
    cases: float | None
    elements: float | None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--op", action="append", help="an operator whose goldens to compare, instead of the four")
    parser.add_argument("--golden-py", action="append", default=[], metavar="FILE", help="a golden.py of the kit")
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    for op in args.op or ():
        if op not in OPERATORS:
            parser.error(f"--op {op}: no operator; one of {', '.join(OPERATORS)}")
    rows, skipped = [], []
    peers = available(args.golden_py, skipped)
    print("| what | by | cases per second | elements per second |\n|---|---|---|---|")
    for result in measured(args.op or OPS, peers, skipped):
        rows.append(result)
        print(f"| {result.what} | {result.who} | {rate(result.cases)} | {rate(result.elements)} |", flush=True)
    for reason in dict.fromkeys(skipped):
        print(f"skipped: {reason}")
    if args.json:
        texts = {"numpy": np.__version__, "rows": [row._asdict() for row in rows], "skipped": skipped}
        args.json.write_text(json.dumps(texts, indent=1) + "\n")
    return 0


def rate(number: float | None) -> str:
    """Write a rate with three digits."""
    if number is None:
        return "–"
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.3g}"


def available(files: list[str], skipped: list[str]) -> dict[str, Backend]:
    """Return the peers that are installed; add to ``skipped`` how to install the others."""
    result: dict[str, Backend] = {}
    for name, (backend, options, remedy) in PEERS.items():
        try:
            result[name] = load(backend, options)
        except (OracleError, ImportError) as error:
            skipped.append(f"{name}: {error} ({remedy})")
    if "PyTorch, in float32" in result:
        import torch

        torch.set_num_threads(1)
    if not files:
        skipped.append("golden.py of the official kit: name some with --golden-py (ops-nn has them in tests/assets)")
    for file in files:
        result[f"golden.py {Path(file).resolve()}"] = load("golden_py", {"file": file})
    return result


def measured(ops: list[str] | tuple[str, ...], peers: dict[str, Backend], skipped: list[str]) -> Iterator[Row]:
    """Yield the table."""
    for op in ops:
        small, large = cases_of(op)
        both = [goldens(case, peers, skipped) for case in (small, large)]
        yield from beside(f"golden, {op}", both, elements(large))
    small, large = cases_of(ops[0])
    yield from beside("verdict", [verdicts(case, skipped) for case in (small, large)], elements(large))
    both = [{OURS: lambda case=case: whole(case)} for case in (small, large)]
    yield from beside("whole case", both, elements(large))
    yield Row("whole case", "a pytest item that does nothing", 1 / bare_item(), None)


def beside(what: str, both: list[Work], size: int) -> Iterator[Row]:
    """Measure a small case and a large one, with ``size`` elements in the large one."""
    few, many = (medians(work) for work in both)
    for who in {**few, **many}:
        one = 1 / few[who] if who in few else None
        yield Row(what, who, one, size / many[who] if who in many else None)


def goldens(case: Case, peers: dict[str, Backend], skipped: list[str]) -> Work:
    """Return the functions that can answer a case's call."""
    call = memory_of(case).call
    work: Work = {f"{OURS}, NumPy": lambda: ours(call, "numpy")}
    if installed():
        work[f"{OURS}, compiled"] = lambda: ours(call, "compiled")
    for name, backend in peers.items():
        why = backend.unsupported(call) if hasattr(backend, "unsupported") else None
        if why is not None:
            continue
        try:
            backend.run(call)
        except ImportError as error:
            skipped.append(f"{name}: {error}")
            continue
        work[name.split(" /")[0]] = lambda backend=backend: backend.run(call)
    return work


def ours(call: Call, engine: str) -> None:
    os.environ["ACLNN_ORACLE_ENGINE"] = engine
    oracle.golden(call)


def verdicts(case: Case, skipped: list[str]) -> Work:
    """Return the functions that can judge a right answer to a case's call."""
    call = memory_of(case).call
    known = reference(call)
    load("cpu").run(call)
    (actual,) = call.outputs.values()
    work: Work = {
        f"{OURS}, three layers": lambda: judge_values(known, actual, Settings()),
        "numpy.testing.assert_allclose": lambda: np.testing.assert_allclose(actual, known.value, rtol=1e-2, atol=1e-2),
    }
    try:
        import torch
    except ImportError as error:
        skipped.append(f"torch.testing.assert_close: {error} (pip install torch)")
        return work
    one, other = torch.from_numpy(actual), torch.from_numpy(known.value.astype(actual.dtype))
    work["torch.testing.assert_close"] = lambda: torch.testing.assert_close(one, other, rtol=1e-2, atol=1e-2)
    return work


def whole(case: Case) -> None:
    assert run_case(case, load("cpu"), Settings()).status == "pass", case.id


if __name__ == "__main__":
    sys.exit(main())
