"""MERE/MARE: the older ecosystem standard, still the English page (``mere-mare``), and TTK's ``stat_rel_err``.

Rule (opbase ``docs/en/.../experimental_standard.md``): re = |a - g| / (|g| + 1e-7); MERE is its mean, MARE its maximum;
pass if MERE < T and MARE < 10 T, both strict.

Readings: the page is silent on NaN and Inf, so TTK's rule holds for both names: special positions must agree (after
narrowing the golden to the output's dtype), the agreeing ones leave the statistics, nothing left passes. Empty passes
(D7). Epsilon 1e-7 over all elements, in float64 (D11, D12); the BLAS test header's 2^-14 and its mean over unequal
elements are the options ``epsilon`` and ``skip_equal``. Other float dtypes have the float32 threshold (TTK).
"""

from __future__ import annotations

import numpy as np

from .base import Sample, Standard, Verdict, flag, number
from .numeric import FINITE, blocks, golden_states, pick, states

THRESHOLDS: dict[str, float] = {
    "float16": 2**-10,
    "bfloat16": 2**-7,
    "float32": 2**-13,
    "hifloat32": 2**-11,
    "float8_e4m3fn": 2**-3,
    "float8_e5m2": 2**-2,
}


def judge_mere_mare(sample: Sample, *, epsilon: float, skip_equal: bool, inf_narrow: bool) -> Verdict:
    """Judge the mean and the largest relative error."""
    threshold = pick(THRESHOLDS, sample, "mere-mare")
    total, mare, n, mismatch = 0.0, 0.0, 0, 0
    with np.errstate(all="ignore"):
        for block in blocks(sample):
            golden, actual = golden_states(block.golden, sample.format, inf_narrow), states(block.actual)
            mismatch += int(np.count_nonzero(golden != actual))
            keep = (golden == FINITE) & (actual == FINITE)
            g = block.golden[keep]
            error = np.abs(block.actual[keep] - g)
            re = np.divide(error, np.abs(g) + epsilon, out=np.zeros(error.shape), where=error != 0)  # 0 / 0 is no error
            total += float(re.sum())
            mare = max(mare, float(re.max(initial=0.0)))
            n += int(np.count_nonzero(re)) if skip_equal else re.size
    mere = total / n if n else 0.0
    broken = [f"NaN, inf, -inf or finite differ at {mismatch} of {sample.size} positions"] if mismatch else []
    if not mere < threshold:
        broken.append(f"MERE {mere:.6g} is not below {threshold:.6g}")
    if not mare < 10 * threshold:
        broken.append(f"MARE {mare:.6g} is not below {10 * threshold:.6g}")
    metrics = {"mere": mere, "mare": mare, "mere_limit": threshold, "special_mismatch": float(mismatch)}
    return Verdict(not broken, metrics, "; ".join(broken))


OPTIONS = {"epsilon": number(1e-7), "skip_equal": flag(False), "inf_narrow": flag(True)}
STANDARDS = tuple(
    Standard(name, judge_mere_mare, dtypes=(*THRESHOLDS, "float64"), options=OPTIONS)
    for name in ("mere-mare", "ttk-stat")
)
