"""The standards of ATK and TTK: ``single-bm``, ``ttk-close`` and TTK's ``cross_check``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..model.errors import OracleError
from .base import (
    FINITE,
    Array,
    Sample,
    Standard,
    Verdict,
    blocks,
    choice,
    count,
    flag,
    number,
    pick,
    states,
    stored_blocks,
)
from .commercial import (
    LEVELS,
    SMALL_VALUE,
    difference,
    errors_of,
    judge_integer,
    literal_ratio,
    over_limit,
    over_small,
)

# ATK's single benchmark (``single-bm``): most ops-nn case files name this accuracy standard.
#
# Rule: every |a - g| <= err * max(1, |g|), and the error balance EB = |mean((a - g) / max(1, |g|))| <= eb. ATK's
# numbers are not public. These come from ATB's helper, which has the same three classes and the same two parameters.
# This is an inference; the override lists of ops-nn's convolutions support it, because they repeat the numbers.
#
# Readings: without a type ATK's dictionary means high_precision, so that is the default. NaN and Inf become 0 on both
# sides as in ATB, which is unsafe (inf against NaN passes): ``specials="compare"`` fails a position that differs
# instead. The golden is narrowed first, so that an overflow right in the output's dtype is an infinity. ``operations``
# is ATB's variant with a compute count. The override names of ATK files (``fp16_error``, ``fp16_eb``, ...) are options.
# Another copy of ATB has 2^-7 for vector_fused bfloat16 (``bf16_error="2**-7"``). EB is judged here (D21). int8
# outputs: |a - g| <= 1.

# type -> dtype -> (err, eb)
TABLE: dict[str, dict[str, tuple[float, float]]] = {
    "high_performance": {"float16": (2**-8, 2**-10), "bfloat16": (2**-7, 2**-7), "float32": (2**-11, 2**-14)},
    "high_precision": {"float16": (2**-11, 2**-10), "bfloat16": (2**-8, 2**-7), "float32": (2**-14, 2**-14)},
    "vector_fused": {"float16": (2**-9, 2**-10), "bfloat16": (2**-8, 2**-7), "float32": (2**-12, 2**-14)},
}
# ATB with a compute count: dtype -> (smallest number of operations, err, eb); the last applicable entry is used
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
    """Judge every error against err, and the balance of the errors' signs against eb."""
    if sample.dtype.is_whole:
        return judge_integer(sample, limit=1)
    err, eb_limit = _limits(sample, type, operations, overrides)
    matched, balance, worst, mismatch = 0, 0.0, 0.0, 0
    with np.errstate(all="ignore"):
        for block in blocks(sample):
            golden, actual = states(block.golden, sample.format if inf_narrow else None), states(block.actual)
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


_SINGLE_BM = Standard(
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
)


# TTK's ``close``: the meaning of the tolerance columns of ops-nn's TTK CSV files.
#
# Rule (ops-test-kit ``resolve.py``, ``Precision_Comparison.md``): an element is close if |a - g| <= atol + rtol * |g|
# (np.isclose with equal_nan); pass if not 1 - precision > ptol, with precision = (n - bad) / n.
# ``precision_tolerances`` in a CSV is (rtol, ptol) (D24; ``Test_Case_Generation.md`` calls the second number atol,
# unlike the code); ``absolute_precision`` is atol. rtol = atol = 0 is exact equality.
#
# Readings: the ratio is TTK's float expression, because its rounding is part of the result: 1 bad of 1000 at ptol 0.001
# fails (D6). Errors are float64 (D12), for integers exact. The golden is narrowed for the infinity test.

DEFAULT = {"float16": 1e-3, "bfloat16": 1e-3}  # rtol and ptol; every other dtype has 1e-4
OTHERS = 1e-4
ATOL = 1e-8


def judge_close(sample: Sample, *, rtol: float | None, ptol: float | None, atol: float, inf_narrow: bool) -> Verdict:
    """Judge the share of elements that are not close."""
    default = DEFAULT.get(sample.dtype.name, OTHERS)
    rtol = default if rtol is None else rtol
    ptol = default if ptol is None else ptol
    runs = _integers(sample, rtol, atol) if sample.dtype.is_whole else _floats(sample, inf_narrow, rtol, atol)
    bad = sum(int(np.count_nonzero(~close)) for close in runs)
    precision = (sample.size - bad) / sample.size if sample.size else 1.0
    passed = not (1 - precision) > ptol
    metrics = {"precision": precision, "mismatch": float(bad), "rtol": rtol, "atol": atol, "ptol": ptol}
    reason = "" if passed else f"{bad} of {sample.size} elements are not close: 1 - {precision!r} > ptol {ptol:.6g}"
    return Verdict(passed, metrics, reason)


def _floats(sample: Sample, inf_narrow: bool, rtol: float, atol: float) -> Iterator[Array]:
    for block in blocks(sample):
        with np.errstate(all="ignore"):
            close = np.abs(block.actual - block.golden) <= atol + rtol * np.abs(block.golden)
        golden, actual = states(block.golden, sample.format if inf_narrow else None), states(block.actual)
        yield np.where((golden == FINITE) & (actual == FINITE), close, golden == actual)


def _integers(sample: Sample, rtol: float, atol: float) -> Iterator[Array]:
    for _, golden, actual in stored_blocks(sample):
        error = difference(golden, actual)
        yield error.astype(np.float64) <= atol + rtol * np.abs(golden.astype(np.float64))


_CLOSE = Standard(
    "ttk-close",
    judge_close,
    ("float", "int", "uint", "bool"),
    options={"rtol": number(None), "ptol": number(None), "atol": number(ATOL), "inf_narrow": flag(True)},
)


# TTK's ``cross_check``: the commercial dual benchmark as the ops-test-kit implements it.
#
# Rule (ops-test-kit ``XPU_Cross_Check.md``): the metrics, levels and domains of the commercial standard, level L1 by
# default, normal domain |g| >= small value, denominators floored with the small value. 0/0 is 1, both infinite is 1,
# NaN is infinite. A special position passes if the device equals the third party (finite values numerically) or a
# special golden. Every other one fails the case, even if only the third party is special, which the commercial standard
# passes (D17). A large domain without a valid element of the third party is not judged. An empty output passes.
#
# Reading: the golden is narrowed to the output's dtype for the test of special values.


def judge_cross_check(sample: Sample, *, level: str, inf_narrow: bool) -> Verdict:
    """Judge against the third party with TTK's rule for special values."""
    domain = pick(SMALL_VALUE, sample, "ttk-cross-check")
    npu, third, wrong, unclear = errors_of(sample, domain, inf_narrow=inf_narrow)
    wrong += unclear
    # Without a valid pair in the large domain every metric is 0 and every ratio 1: not judged.
    ratios = {
        f"{name}_ratio": literal_ratio(getattr(npu, name), getattr(third, name), domain.threshold)
        for name in ("mare", "mere", "rmse")
    }
    broken = over_limit(ratios, LEVELS[level]) + over_small(npu.small, third.small)
    if wrong:
        broken.append(
            f"at {wrong} of {sample.size} positions special values equal neither the third party's nor the golden's"
        )
    metrics = {
        **ratios,
        "small_npu": float(npu.small),
        "small_third": float(third.small),
        "special_ok": float(not wrong),
    }
    return Verdict(not broken, metrics, "; ".join(broken))


_CROSS_CHECK = Standard(
    "ttk-cross-check",
    judge_cross_check,
    dtypes=("float16", "bfloat16", "float32"),
    options={"level": choice("L1", "L0", "L2"), "inf_narrow": flag(True)},
    third=True,
)

STANDARDS = (_SINGLE_BM, _CLOSE, _CROSS_CHECK)
