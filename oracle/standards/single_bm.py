"""ATK's single benchmark (``single-bm``), the accuracy standard most ops-nn case files name.

Rule: every |a - g| <= err * max(1, |g|), and the error balance EB = |mean((a - g) / max(1, |g|))| <= eb. The numbers
are not public in ATK; these are ATB's helper's, which has the same three classes and the same two knobs (inferred,
and supported by the override lists of ops-nn's convolutions, which repeat them).

Readings: without a type ATK's dictionary means high_precision, so that is the default. NaN and Inf become 0 on both
sides as in ATB, which is unsafe (inf against NaN passes): ``specials="compare"`` fails a position that differs
instead. The golden is narrowed first, so that an overflow right in the output's dtype is an infinity. ``operations``
is ATB's variant with a compute count. The names ATK files override with (``fp16_error``, ``fp16_eb``, ...) are
options; another copy of ATB has 2^-7 for vector_fused bfloat16 (``bf16_error="2**-7"``). EB is judged here (D21).
int8 outputs: |a - g| <= 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..model.errors import OracleError
from .base import Sample, Standard, Verdict, choice, count, flag, number
from .integer import judge_integer
from .numeric import FINITE, blocks, golden_states, pick, states

# type -> dtype -> (err, eb)
TABLE: dict[str, dict[str, tuple[float, float]]] = {
    "high_performance": {"float16": (2**-8, 2**-10), "bfloat16": (2**-7, 2**-7), "float32": (2**-11, 2**-14)},
    "high_precision": {"float16": (2**-11, 2**-10), "bfloat16": (2**-8, 2**-7), "float32": (2**-14, 2**-14)},
    "vector_fused": {"float16": (2**-9, 2**-10), "bfloat16": (2**-8, 2**-7), "float32": (2**-12, 2**-14)},
}
# ATB with a compute count: dtype -> (operations from which on, err, eb), the last that applies
BY_OPERATIONS: dict[str, tuple[tuple[int, float, float], ...]] = {
    "float16": ((2048, 2**-7, 2**-10),),
    "bfloat16": ((2048, 2**-6, 2**-6),),
    "float32": ((2048, 2**-10, 2**-14), (16384, 2**-9, 2**-14)),
}
ATK_NAMES = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32"}


def _limits(sample: Sample, type: str, operations: int | None, overrides: dict[str, Any]) -> tuple[float, float]:
    err, eb = pick(TABLE[type], sample, "single-bm")
    if operations is not None:
        if type != "high_performance":
            raise OracleError(
                f"standard 'single-bm': operations={operations} has numbers for type='high_performance' only"
            )
        for least, more_err, more_eb in pick(BY_OPERATIONS, sample, "single-bm"):
            if operations >= least:
                err, eb = more_err, more_eb
    prefix = pick(ATK_NAMES, sample, "single-bm")
    new_err, new_eb = overrides[f"{prefix}_error"], overrides[f"{prefix}_eb"]
    return (err if new_err is None else new_err), (eb if new_eb is None else new_eb)


def judge_single_bm(
    sample: Sample, *, type: str, specials: str, inf_narrow: bool, operations: int | None, **overrides: Any
) -> Verdict:
    """Judge every error against err and the balance of their signs against eb."""
    if sample.dtype.format is None:
        return judge_integer(sample, limit=1)
    err, eb_limit = _limits(sample, type, operations, overrides)
    matched, balance, worst, mismatch = 0, 0.0, 0.0, 0
    with np.errstate(all="ignore"):
        for block in blocks(sample):
            golden, actual = golden_states(block.golden, sample.format, inf_narrow), states(block.actual)
            mismatch += int(np.count_nonzero(golden != actual))
            g = np.where(golden == FINITE, block.golden, 0.0)
            scaled = np.where(actual == FINITE, block.actual, 0.0) - g
            magnitude = np.maximum(np.abs(g), 1.0)
            matched += int(np.count_nonzero(np.abs(scaled) <= err * magnitude))
            scaled /= magnitude
            balance += float(scaled.sum())
            worst = max(worst, float(np.abs(scaled).max()))
    eb = abs(balance) / sample.size if sample.size else 0.0
    broken = []
    if matched < sample.size:
        broken.append(f"{sample.size - matched} of {sample.size} elements have |a-g|/max(1,|g|) > {err:.6g}")
    if not eb <= eb_limit:
        broken.append(f"EB {eb:.6g} > {eb_limit:.6g}")
    if mismatch and specials == "compare":
        broken.append(f"NaN, inf, -inf or finite differ at {mismatch} of {sample.size} positions")
    metrics = {
        "matched_ratio": matched / sample.size if sample.size else 1.0,
        "eb": eb,
        "eb_limit": eb_limit,
        "max_error": worst,
        "max_error_limit": err,
        "special_mismatch": float(mismatch),
    }
    return Verdict(not broken, metrics, "; ".join(broken))


STANDARDS = (
    Standard(
        "single-bm",
        judge_single_bm,
        ("float", "int"),
        dtypes=("float16", "bfloat16", "float32", "float64", "int8"),
        options={
            "type": choice("high_precision", "high_performance", "vector_fused"),
            "specials": choice("zero", "compare"),
            "inf_narrow": flag(True),
            "operations": count(None),
        }
        | {f"{prefix}_{knob}": number(None) for prefix in ATK_NAMES.values() for knob in ("error", "eb")},
    ),
)
