"""TTK's ``close``: what the tolerance columns of ops-nn's TTK CSV files mean.

Rule (ops-test-kit ``resolve.py``, ``Precision_Comparison.md``): an element is close if |a - g| <= atol + rtol * |g|
(np.isclose with equal_nan); pass if not 1 - precision > ptol, where precision = (n - bad) / n. ``precision_tolerances``
in a CSV is (rtol, ptol) (D24; ``Test_Case_Generation.md`` calls the second number atol, against the code);
``absolute_precision`` is atol. rtol = atol = 0 is exact equality.

Readings: the ratio is TTK's float expression, because emulating it includes its rounding: 1 bad of 1000 at ptol 0.001
fails (D6). Errors are float64 (D12), of integers exact. The golden is narrowed for the infinity test.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .base import Array, Sample, Standard, Verdict, flag, number
from .integer import difference
from .numeric import FINITE, blocks, golden_states, states, stored_blocks

DEFAULT = {"float16": 1e-3, "bfloat16": 1e-3}  # rtol and ptol; every other dtype has 1e-4
OTHERS = 1e-4
ATOL = 1e-8


def judge_close(sample: Sample, *, rtol: float | None, ptol: float | None, atol: float, inf_narrow: bool) -> Verdict:
    """Judge the share of elements that are not close."""
    default = DEFAULT.get(sample.dtype.name, OTHERS)
    rtol = default if rtol is None else rtol
    ptol = default if ptol is None else ptol
    runs = _floats(sample, inf_narrow, rtol, atol) if sample.dtype.format else _integers(sample, rtol, atol)
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
        golden, actual = golden_states(block.golden, sample.format, inf_narrow), states(block.actual)
        yield np.where((golden == FINITE) & (actual == FINITE), close, golden == actual)


def _integers(sample: Sample, rtol: float, atol: float) -> Iterator[Array]:
    for _, golden, actual in stored_blocks(sample):
        error = difference(golden, actual)
        yield error.astype(np.float64) <= atol + rtol * np.abs(golden.astype(np.float64))


STANDARDS = (
    Standard(
        "ttk-close",
        judge_close,
        ("float", "int", "uint", "bool"),
        options={"rtol": number(None), "ptol": number(None), "atol": number(ATOL), "inf_narrow": flag(True)},
    ),
)
