"""Binary consistency (``binary``): operators that only move or cast (commercial standard, "non-compute").

Rule (opbase ``commercial_standard.md``): bit-identical to the golden. -0 differs from +0, a subnormal from zero, one
NaN payload from another.

Reading: a float64 golden is first rounded to the output's dtype; a golden that already has the dtype keeps its bits,
NaN payloads included. TTK's ``binary_equal`` forgives elements that are NaN on both sides: option ``nan_equal``.
"""

from __future__ import annotations

import numpy as np

from ..numerics.floats.rounding import quantize
from .base import Array, Sample, Standard, Verdict, flag
from .numeric import as_float64, stored_blocks


def judge_binary(sample: Sample, *, nan_equal: bool) -> Verdict:
    """Compare bit patterns; integers and bools by value, which is the same."""
    bad, first = 0, -1
    for start, golden, actual in stored_blocks(sample):
        g, a = _stored(golden, sample), actual.astype(sample.dtype.numpy, copy=False)  # native byte order
        differ = _bits(g) != _bits(a) if sample.dtype.format else np.asarray(g != a)
        if nan_equal and sample.dtype.format:
            differ &= ~(np.isnan(g) & np.isnan(a))
        if first < 0 and differ.any():
            first = start + int(differ.argmax())
        bad += int(np.count_nonzero(differ))
    metrics = {"mismatch": float(bad), "mismatch_ratio": bad / sample.size if sample.size else 0.0}
    reason = f"{bad} of {sample.size} elements differ in their bits, first {sample.index(first)}" if bad else ""
    return Verdict(not bad, metrics, reason)


def _stored(golden: Array, sample: Sample) -> Array:
    """Return the golden as the output would store it."""
    if golden.dtype == sample.dtype.numpy and sample.dtype.name != "hifloat32":
        return golden
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(quantize(as_float64(golden), sample.format).astype(sample.dtype.numpy))


def _bits(values: Array) -> Array:
    return np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")


STANDARDS = (Standard("binary", judge_binary, ("float", "int", "uint", "bool"), options={"nan_equal": flag(False)}),)
