"""All loaders of files that other people wrote, as functions of a file's bytes."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import cache
from io import BytesIO
from pathlib import Path

import numpy as np
import stated

from oracle.backends.replay import load_output, read_index
from oracle.case.expectations import load_expectations
from oracle.catalogue import load, make_inputs
from oracle.fixtures import files as fixtures, verifying
from oracle.interop import load as load_foreign
from oracle.record.reader import read
from oracle.system import npy

DATA = Path(__file__).parents[1] / "data"
SMALL = 1 << 12  # elements; for tensors up to this size the data is made too


def written(content: bytes, path: Path) -> Path:
    path.write_bytes(content)
    return path


def catalogue(content: bytes, folder: Path) -> None:
    for case in load(written(content, folder / "c.yaml"))[:3]:
        plans = [plan for plan in case.inputs.values() if plan is not None]
        if all(math.prod(plan.shape) <= SMALL and plan.view.partition(":")[0] != "as" for plan in plans):
            make_inputs(case, seed=0)


def manifest(content: bytes, folder: Path) -> None:
    for name, file in _fixtures().items():
        path = folder / "fixtures" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if name == fixtures.MANIFEST else file)
    verifying.verify(folder / "fixtures")


def record(content: bytes, folder: Path) -> None:
    result = read(written(content, folder / "r.jsonl"))
    assert result.planned == sum(result.counts.values())


def recording(content: bytes, folder: Path) -> None:
    (folder / "index-main.jsonl").write_bytes(content)
    (folder / "o.npy").write_bytes(_npy(np.arange(6, dtype=np.float32).reshape(2, 3)))
    for entry in read_index(folder).values():
        for output in entry["outputs"].values():
            load_output(folder, output)


LOADERS: dict[str, Callable[[bytes, Path], object]] = {
    "catalogue": catalogue,
    "expectations": lambda content, folder: load_expectations(written(content, folder / "cpu.yaml")),
    "atk": lambda content, folder: load_foreign(written(content, folder / "x.json")),
    "ttk": lambda content, folder: load_foreign(written(content, folder / "x.csv")),
    "array": lambda content, folder: npy.loads(content, "x.npy"),
    "manifest": manifest,
    "record": record,
    "recording": recording,
}


@cache
def seeds(name: str) -> list[bytes]:
    return _SEEDS[name]()


def _catalogues() -> list[bytes]:
    covered = b"""aclnn_oracle: 1
operator: aclnnSoftmaxBackward
defaults:
  main: gradOutput
  attrs: {dim: -1}
  inputs: {gradOutput: normal, output: {gen: softmax, dim: $dim}}
  output: {}
families:
  pairs: {why: few combinations, cover: pairs, dtype: floats, shape: [{product: [3, [4, 5], {near_powers: [0, 3]}]}],
    attrs: {dim: [0, 1, every]}, variants: [{a: {inputs: {gradOutput: {gen: around, points: [1.0], steps: 2}}}, b: {}}]}
  drawn: {why: by the standard, dtype: float16, generate: {cases: 5, ranks: [1, 3], elements: 512, draws: [gradOutput]}}
"""
    return [covered, *(text.encode() for text in (stated.BCE, stated.NLL))]


def _expectations() -> list[bytes]:
    return [b"- id: 'softmax_backward/*'\n  status: fail\n  reason: known\n  link: https://x.org\n  soc: [ascend910]\n"
            b"- {id: 'nll*', status: fail, reason: now and then, may: true, measured: 3 of 5}\n"]  # fmt: skip


def _npy(values: np.ndarray) -> bytes:
    file = BytesIO()
    np.lib.format.write_array(file, values, version=(1, 0))
    return file.getvalue()


def _arrays() -> list[bytes]:
    return [_npy(np.arange(12, dtype=t).reshape(3, 4)) for t in (np.float32, np.uint16, np.complex64)] + [
        _npy(np.asfortranarray(np.ones((2, 3)))),
        _npy(np.float64(1.0)),
    ]


@cache
def _fixtures() -> dict[str, bytes]:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c.yaml"
        path.write_bytes(stated.BCE.encode())
        cases = [case for case in load(path) if case.family in ("unweighted", "strided", "refused")]
        fixtures.write(Path(folder) / "f", cases, soc="ascend910b")
        files = (p for p in (Path(folder) / "f").rglob("*") if p.is_file())
        return {p.relative_to(Path(folder) / "f").as_posix(): p.read_bytes() for p in files}


def _records() -> list[bytes]:
    header = {"type": "run", "schema": 1, "backend": "cpu", "soc": "ascend910b", "standard": "mixed", "planned": 2,
              "versions": {"numpy": "2"}, "seed": 0, "layers": ["structure", "strict"]}  # fmt: skip
    layer = {"passed": True, "reason": "", "metrics": {"budget_used": 0.5, "worst": "inf"}}
    case = {"type": "case", "id": "softmax_backward/x[float32-2x3]", "op": "aclnnSoftmaxBackward", "dtype": "float32",
            "status": "pass", "reason": "", "verdicts": {"strict": layer}, "metrics": {"mismatch": 0.0},
            "budget_used": 0.5, "duration_s": 0.1, "golden_s": 0.01, "worker": "main", "device": ""}  # fmt: skip
    failed = {**case, "id": "softmax_backward/y[float32-2x3]", "status": "fail", "reason": "strict: 1 of 6",
              "detail": {"rule": "x", "inputs": {"gradOutput": {"shape": [2, 3], "dtype": "float32"}}}}  # fmt: skip
    end = {"type": "end", "pass": 1, "fail": 1, "duration_s": 1.5}
    return ["".join(json.dumps(line) + "\n" for line in (header, case, failed, end)).encode()]


def _recordings() -> list[bytes]:
    line = {"id": "x", "soc": "ascend910b", "inputs": "0" * 64, "status": 0, "reason": "", "error": "",
            "outputs": {"out": {"file": "o.npy", "dtype": "float32", "shape": [2, 3]}}}  # fmt: skip
    return [(json.dumps(line) + "\n").encode() * 2]


_SEEDS: dict[str, Callable[[], list[bytes]]] = {
    "catalogue": _catalogues,
    "expectations": _expectations,
    "atk": lambda: [(DATA / "atk_small.json").read_bytes()],
    "ttk": lambda: [(DATA / "ttk_aclnn_small.csv").read_bytes(), (DATA / "ttk_kernel_small.csv").read_bytes()],
    "array": _arrays,
    "manifest": lambda: [_fixtures()[fixtures.MANIFEST]],
    "record": _records,
    "recording": _recordings,
}
