"""Integer outputs: ``integer`` (integer compute) and ``quantized`` (float in, integer out), by absolute error AE.

Rule (opbase ``commercial_standard.md``): integer compute must be bit-identical, or at least AE = 0; a quantised output
may be off by one, AE <= 1. A two's complement integer of AE 0 is bit-identical, so the first rule is AE = 0 (D27).

Reading: the difference is taken between integers, without wrapping (127 and -128 differ by 255) and without float64
(2^53 and 2^53 + 1 differ by 1); the golden has values of the output's type.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from .base import Array, Sample, Standard, Verdict
from .numeric import stored_blocks


def difference(golden: Array, actual: Array) -> Array:
    """Return |actual - golden| of two integer arrays of one type, exactly, as uint64."""
    wide = np.uint64 if golden.dtype == np.uint64 else np.int64
    g, a = golden.astype(wide), actual.astype(wide)
    # Modulo 2^64 the difference of the larger and the smaller is exact: it is below 2^64.
    return np.asarray(np.maximum(g, a).astype(np.uint64) - np.minimum(g, a).astype(np.uint64))


def judge_integer(sample: Sample, *, limit: int) -> Verdict:
    """Judge the largest absolute error."""
    worst, bad, first = 0, 0, -1
    for start, golden, actual in stored_blocks(sample):
        error = difference(golden, actual)
        over = error > limit
        if first < 0 and over.any():
            first = start + int(over.argmax())
        bad += int(np.count_nonzero(over))
        worst = max(worst, int(error.max()))
    metrics = {"max_ae": float(worst), "max_ae_limit": float(limit), "mismatch": float(bad)}
    if not bad:
        return Verdict(True, metrics)
    where = f"first {sample.index(first)}; max_ae {worst}"
    return Verdict(False, metrics, f"{bad} of {sample.size} elements have AE > {limit}, {where}")


STANDARDS = (
    Standard("integer", partial(judge_integer, limit=0), ("int", "uint", "bool")),
    Standard("quantized", partial(judge_integer, limit=1), ("int", "uint")),
)
