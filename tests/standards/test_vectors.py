"""The published vectors of the accuracy standards, if a checkout has them.

Arrays are run-length encoded, specials are strings, and standards and readings have the vectors' names.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oracle.standards import Verdict, judge, recheck
from oracle.standards.base import OUTPUT_TYPES

STANDARD = {
    "mixed_v2": "mixed", "mixed_v1": "mixed-v1", "mere_mare": "mere-mare", "commercial_noncompute": "binary",
    "commercial_int": "integer", "commercial_quant_int_out": "quantized", "msprobe_benchmark": "msprobe-benchmark",
    "msprobe_stage1": "msprobe-stage1", "atk_single_bm_inferred": "single-bm", "ttk_close": "ttk-close",
    "ttk_cross_check": "ttk-cross-check",
}  # fmt: skip
READINGS: dict[str, dict[str, Any]] = {
    "table_v1(jul2026)": {"standard": "mixed-v1"},
    "table_v2(sep2026)": {"standard": "mixed"},
    "anchor=ULP(1.0)": {"anchor": "one"},
    "anchor=fixed only": {"anchor": "fixed"},
    "anchor=per element": {"anchor": "per_element"},
    "literal ratio (no denominator floor, 0/0=1)": {"denominator_floor": False},
    "L1": {"level": "L1"},
    "L2": {"level": "L2"},
}


def array(vector: dict[str, Any], name: str) -> np.ndarray[Any, Any] | None:
    """Return golden, actual or third; golden is float64, or the output's dtype if that is an integer type."""
    if name not in vector:
        return None
    values = vector[name]
    if isinstance(values, dict):
        elements = [values["fill"]] * values["n"]
        for at, value in values["set"].items():
            elements[int(at)] = value
        values = elements
    kind = OUTPUT_TYPES[vector["dtype"]]
    if kind.is_whole:
        return np.array(values, dtype=kind.numpy)
    golden = np.array([float(v) for v in values], dtype=np.float64)
    if name == "golden":
        return golden
    stored = golden.astype(kind.numpy)
    assert np.array_equal(stored.astype(np.float64), golden, equal_nan=True), "actual must be exact in its dtype"
    return stored


def apply(vector: dict[str, Any], reading: str | None = None) -> Verdict:
    """Judge a vector, under its own parameters or one of its other readings."""
    if vector["standard"] == "commercial_recheck":
        return recheck([value for value, count in vector["ratios"] for _ in range(count)])
    options = vector.get("params", {}) | (READINGS[reading] if reading else {})
    if vector["standard"] == "commercial_dual":
        standard = f"dual-{options.pop('level')}"
    else:
        standard = STANDARD[vector["standard"]]
    standard = options.pop("standard", standard)
    return judge(
        standard, golden=array(vector, "golden"), actual=array(vector, "actual"), dtype=vector["dtype"],
        third=array(vector, "third"), **options,
    )  # fmt: skip


def mismatches(expect: dict[str, Any], verdict: Verdict) -> list[str]:
    """Return the differences between a verdict and a vector's expectation; its numbers have 6 significant digits."""
    result = []
    for key, value in expect.items():
        if key == "pass":
            right = verdict.passed == value
        elif key == "verdict":
            right = (verdict.reason.startswith("INVESTIGATE"), verdict.passed) == (
                value == "INVESTIGATE",
                value == "PASS",
            )
        elif key == "status":
            word = value.split("(")[0]
            right = verdict.reason.startswith({"pass": ""}.get(word, word)) and verdict.passed == (word != "error")
        elif value is None:
            right = key not in verdict.metrics
        else:
            actual = verdict.metrics[key]
            right = actual == float(value) or math.isclose(actual, float(value), rel_tol=6e-6)
        if not right:
            result.append(f"{key}: expected {value}, {verdict}")
    return result


FILE = Path(__file__).resolve().parents[3] / "shared/data/vectors/standards.json"
VECTORS = json.loads(FILE.read_text())["vectors"] if FILE.exists() else []


@pytest.mark.skipif(not VECTORS, reason="the vectors are not beside this checkout")
@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
def test_vector_and_its_other_readings(vector):
    result = mismatches(vector["expect"], apply(vector))
    for reading, expect in vector.get("alt", {}).items():
        result += [f"{reading}: {line}" for line in mismatches(expect, apply(vector, reading))]
    assert not result, vector["note"]
