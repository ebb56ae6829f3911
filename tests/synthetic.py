"""Synthetic run records: the runner's records, made without a run."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from oracle.explain.groups import groups
from oracle.record.codec import parse_object
from oracle.record.reader import Record, read
from oracle.record.types import CaseRecord, Detail, RunHeader
from oracle.record.writer import dumps

DTYPES = ("float32", "float16", "bfloat16")
OPERATORS = {
    "aclnnBinaryCrossEntropyBackward": "binary_cross_entropy_backward",
    "aclnnNLLLossBackward": "nll_loss_backward",
    "aclnnSoftmaxBackward": "softmax_backward",
    "aclnnLogSigmoidBackward": "log_sigmoid_backward",
}
FAMILIES = ("ranks", "broadcast", "wide_row", "tails", "special_values", "views", "empty", "invalid")


def header(**changes: Any) -> dict[str, Any]:
    return {
        "type": "run", "schema": 1, "backend": "torch", "soc": "ascend910b", "standard": "mixed",
        "versions": {"aclnn-oracle": "0.1.0", "python": "3.11.7", "numpy": "2.4.0", "torch": "2.13.0+cpu"},
        "catalogue_sha256": "9c1f0a7d52be4e6688f1c2d3a4b5968778695a4b3c2d1e0f9c1f0a7d52be4e66",
        "command": "pytest cases --backend torch --soc ascend910b --record reports/torch.jsonl",
        "started": "2026-10-20T09:14:03+00:00", "planned": 0, "seed": 0, "tier": "standard",
        "layers": ["structure", "standard", "strict"], **changes,
    }  # fmt: skip


def case(case_id: str, status: str = "pass", **changes: Any) -> dict[str, Any]:
    slug = case_id.split("/")[0]
    op = next((name for name, s in OPERATORS.items() if s == slug), "aclnnSoftmaxBackward")
    dtype = next((d for d in ("bfloat16", *DTYPES) if d in case_id), "float32")
    return {
        "type": "case", "id": case_id, "op": op, "dtype": dtype, "status": status, "reason": "",
        "verdicts": {"standard": {"passed": True, "reason": "", "metrics": {"matched_ratio": 1.0}}},
        "metrics": {}, "budget_used": 0.25, "duration_s": 0.004, "golden_s": 0.002, "backend_s": 0.001,
        "worker": "gw0", "device": "cpu", **changes,
    }  # fmt: skip


def failing(
    case_id: str, *, rule: str = "strict: error beyond the bound", pattern: str = "tail from 16384", **changes: Any
) -> dict[str, Any]:
    """Return a failing case with every possible part of a detail."""
    detail = {
        "rule": rule,
        "output": "out",
        "worst": [
            {
                "index": [3, 16384 + i], "expected": 0.0012340545654296875 * (i + 1), "actual": 0.0 if i else "nan",
                "bound": 3.1e-06, "expected_hex": "0x1.437p-10", "actual_hex": "0x0.0p+0", "ulp": 1294 - i,
            }
            for i in range(5)
        ],
        "ulp_histogram": {"0": 300000, "1": 15384, "2": 312, "3-4": 0, "5-16": 0, "17-256": 18, "257-4096": 3598},
        "bad": 3616,
        "total": 320000,
        "pattern": pattern,
        "cause": "the last tile of a row is not computed",
        "error_map": [0.1, 0.3, 0.2, 0.9, 0.0, 0.0, 0.4] * 12 + [398.0, "nan", 20.0, 3.0] * 3,
        "replay": f"aclnn-oracle replay '{case_id}' --backend torch --soc ascend910b --seed 0",
    }  # fmt: skip
    verdicts = {
        "structure": {"passed": True, "reason": "", "metrics": {}},
        "standard": {
            "passed": False,
            "reason": "matched_ratio 0.9887 is below 0.99",
            "metrics": {"matched_ratio": 0.9887, "max_abs_error": 0.0049},
        },
        "strict": {"passed": False, "reason": "3616 elements beyond the bound", "metrics": {"budget_used": 398.08}},
    }
    base = {
        "reason": "3616 of 320000 elements are beyond the bound",
        "verdicts": verdicts,
        "budget_used": 398.08,
        "detail": detail,
        "inputs": {"gradOutput": "bfloat16[16,20000] normal", "output": "bfloat16[16,20000] softmax strided"},
        "attrs": {"dim": -1},
    }
    return case(case_id, "fail", **{**base, **changes})


def end(cases: Iterable[dict[str, Any]], **changes: Any) -> dict[str, Any]:
    counts: dict[str, int] = {}
    for line in cases:
        counts[line["status"]] = counts.get(line["status"], 0) + 1
    return {"type": "end", **counts, "duration_s": 12.5, **changes}


def write(path: Path, cases: list[dict[str, Any]], *, died: bool = False, **changes: Any) -> Path:
    """Write a whole record; with ``died`` the lines after the cases are missing."""
    lines = [json.dumps(line, allow_nan=False) for line in (header(**{"planned": len(cases), **changes}), *cases)]
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    if not died:
        lines += [*map(dumps, groups(read(path))), json.dumps(end(cases), allow_nan=False)]
        path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return path


def grouped(cases: Iterable[CaseRecord]) -> Record:
    """Return the record of a run with these cases, its failures in groups."""
    made = list(cases)
    run = RunHeader.of(parse_object(json.dumps(header(planned=len(made))), "here"))
    record = Record(Path("run.jsonl"), run, made, True, 1.0)
    return replace(record, groups=tuple(groups(record)))


def catalogue(n: int, *, seed: int = 0) -> list[dict[str, Any]]:
    """Return ``n`` passing cases of all operators, types and families, with different durations and budgets."""
    draw = random.Random(seed)
    cells = [(slug, family, dtype) for slug in OPERATORS.values() for family in FAMILIES for dtype in DTYPES]
    result = []
    for i in range(n):
        slug, family, dtype = cells[i % len(cells)]
        if slug.startswith("nll") and family == "views" and dtype == "bfloat16":
            family = "ranks"  # a hole in the coverage
        case_id = f"{slug}/{family}[{dtype}-{i}x{7 * i % 1000 + 1}-dim={i % 3 - 1}]"
        budget = draw.betavariate(2, 5)
        golden = draw.expovariate(500.0)
        result.append(
            case(case_id, budget_used=budget, golden_s=golden, duration_s=1.7 * golden + 4e-4, worker=f"gw{i % 2}")
        )
    return result


def case_of(number: int, fails: bool, dtype: str, shape: tuple[int, ...], **changes: object) -> CaseRecord:
    """Return the record of a case of Softmax's gradient."""
    words = f"{dtype}[{','.join(map(str, shape))}]"
    made = CaseRecord(
        f"softmax_backward/made[{number}]", "aclnnSoftmaxBackward", dtype, "fail" if fails else "pass",
        detail=Detail(rule="standard mixed", bad=1, total=int(np.prod(shape))) if fails else None,
        elements=int(np.prod(shape)), inputs={"gradOutput": f"{words} normal", "output": f"{words} uniform"},
        attrs={"dim": -1}, outputs={"out": words},
    )  # fmt: skip
    return replace(made, **changes)  # type: ignore[arg-type]
