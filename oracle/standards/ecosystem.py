"""The ecosystem's standards: mixed tolerance (``mixed`` and its variants), and the older MERE/MARE (``mere-mare``)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..model.dtypes import FloatFormat
from ..numerics.floats.rounding import quantize
from .base import (
    FINITE,
    Array,
    Sample,
    Standard,
    Verdict,
    blocks,
    choice,
    flag,
    flat,
    nearest,
    number,
    pick,
    states,
    ulp,
    ulps,
)

# The ecosystem mixed tolerance: ``mixed`` (table v2), ``mixed-v1`` and ``mixed-strictest`` (both tables).
#
# Rule (opbase ``mixed_tolerance_standard.md``): an element passes if |a - g| <= atol + rtol*|g|. The case passes if
# matched_ratio >= 0.99 and max_abs_error <= max_abs_error_limit. The limit is the larger of A and 32 ULP.
#
# Readings chosen where the sources disagree: the current table v2 decides, v1 is reported (D1). "or" means the larger
# (D2). The ULP is the ULP of the golden narrowed to the output's dtype, at the element of the largest error (D3). One
# special value on one side fails the case (D4). Errors and tolerances use the unchanged golden; only the test for
# infinities narrows it (D5). The ratio is compared in integers (D6). An empty output passes (D7). HiFLOAT32 has 11
# fraction bits (D10). Errors are float64 (D12). Large reductions are not relaxed (D26). The other readings are options.


@dataclass(frozen=True)
class Row:
    """A dtype's thresholds: ``limit`` is A of "A or 32 ULP"."""

    rtol: float
    atol: float
    limit: float


# v1: experimental_standard.md of July 2026; v2: mixed_tolerance_standard.md, the later file.
TABLES: dict[str, dict[str, Row]] = {
    "v1": {
        "float16": Row(2**-9, 2**-9, 1e-1),
        "bfloat16": Row(2**-6, 2**-6, 1.0),
        "float32": Row(2**-10, 2**-16, 1e-2),
        "hifloat32": Row(2**-9, 2**-10, 1e-1),
        "float8_e4m3fn": Row(2**-2, 2**-4, 1.0),
        "float8_e5m2": Row(2**-1, 2**-3, 1e-1),
    },
    "v2": {
        "float16": Row(2**-10, 2**-10, 1e-1),
        "bfloat16": Row(2**-7, 2**-7, 1e-1),
        "float32": Row(2**-13, 2**-13, 1e-2),
        "hifloat32": Row(2**-10, 2**-10, 1e-1),
        "float8_e4m3fn": Row(2**-3, 2**-3, 1.0),
        "float8_e5m2": Row(2**-2, 2**-2, 1.0),
    },
}
ULPS = 32
REQUIRED_PERCENT = 99  # required_matched_ratio, in integers


@dataclass
class Scan:
    """The result of one pass over the elements; lists have one entry per table.

    ``worst`` is the flat position of the largest error, the first of equals, -1 if no position is finite on both sides.
    ``over`` is the number of elements above their own max(A, 32 ULP), for the per-element reading.
    """

    rows: list[Row]
    form: FloatFormat
    inf_narrow: bool
    matched: list[int]
    over: list[int]
    special_mismatch: int = 0
    first_mismatch: int = -1
    max_abs_error: float = 0.0
    worst: int = -1

    def block(self, start: int, g: Array, a: Array, fast_below: float) -> None:
        """Compare one run of elements."""
        error = a - g
        np.abs(error, out=error)
        at = int(error.argmax())  # the position of a NaN, if there is one
        worst = float(error[at])
        if worst < fast_below:
            self.finite(g, error, worst, start + at)
            return
        keep = self.specials(start, g, a)
        error = error[keep]
        if error.size:
            at = int(error.argmax())
            self.finite(g[keep], error, float(error[at]), start + int(keep[at]))

    def specials(self, start: int, g: Array, a: Array) -> Array:
        """Compare the special values, count equal ones as matched, and return the other positions."""
        golden, actual = states(g, self.form if self.inf_narrow else None), states(a)
        differ = np.flatnonzero(golden != actual)
        if differ.size and not self.special_mismatch:
            self.first_mismatch = start + int(differ[0])
        self.special_mismatch += differ.size
        special = (golden != FINITE) | (actual != FINITE)
        agreed = int(np.count_nonzero(special)) - differ.size
        self.matched = [m + agreed for m in self.matched]
        return np.flatnonzero(~special)

    def finite(self, g: Array, error: Array, worst: float, position: int) -> None:
        """Count finite elements. ``worst``: their largest error, at the flat ``position``."""
        if worst > self.max_abs_error or self.worst < 0:
            self.max_abs_error, self.worst = worst, position
        for k, row in enumerate(self.rows):
            if worst <= row.atol:
                self.matched[k] += error.size
            else:
                tolerance = np.abs(g)
                tolerance *= row.rtol
                tolerance += row.atol
                self.matched[k] += int(np.count_nonzero(error <= tolerance))
            if worst > row.limit:
                self.over[k] += self._over(g, error, row.limit)

    def _over(self, g: Array, error: Array, limit: float) -> int:
        least = np.minimum(np.abs(g), self.form.max)
        least *= ULPS * 2.0 ** (-self.form.mant - 1)  # an ULP is larger
        large = np.flatnonzero((error > limit) & (error > least))
        golden = np.clip(quantize(g[large], self.form), -self.form.max, self.form.max)
        return int(np.count_nonzero(error[large] > ULPS * ulps(golden, self.form)))


def scan(sample: Sample, rows: list[Row], inf_narrow: bool, narrowed_error: bool) -> Scan:
    """Scan every element once, in blocks; scratch memory is a few blocks."""
    form = sample.format
    result = Scan(rows, form, inf_narrow, [0] * len(rows), [0] * len(rows))
    # If the error is below this, a finite actual proves that the golden stays finite when narrowed.
    fast_below = form.overflow - form.max if inf_narrow else math.inf
    for block in blocks(sample):
        g = quantize(block.golden, form) if narrowed_error else block.golden
        result.block(block.start, g, block.actual, fast_below)
    return result


def _max_golden(sample: Sample) -> float:
    """Return the largest finite |golden|; 0 if there is none."""
    largest = 0.0
    for block in blocks(sample):
        magnitude = np.abs(block.golden)
        largest = max(largest, float(magnitude[magnitude < np.inf].max(initial=0.0)))
    return largest


def _anchor(sample: Sample, scanned: Scan, anchor: str) -> float | None:
    """Return the value for the limit's ULP, narrowed to the dtype; None: A alone."""
    if anchor == "fixed":
        return None
    if anchor == "one":
        return 1.0
    if anchor == "max_golden":
        value = _max_golden(sample)
    elif scanned.worst < 0:
        return None
    else:
        value = abs(float(flat(sample.golden)[scanned.worst]))
    return nearest(value, sample.format)


def _failures(sample: Sample, scanned: Scan, k: int, limit: float, per_element: bool) -> list[str]:
    """Return the broken rules of table k, except the rule on special values."""
    broken = []
    if 100 * scanned.matched[k] < REQUIRED_PERCENT * sample.size:
        ratio = scanned.matched[k] / sample.size
        broken.append(f"matched_ratio {ratio:.6g} ({scanned.matched[k]} of {sample.size}) < 0.99")
    if per_element and scanned.over[k]:
        broken.append(f"{scanned.over[k]} elements above their own max_abs_error_limit")
    if not per_element and scanned.max_abs_error > limit:
        where = sample.index(scanned.worst)
        broken.append(f"max_abs_error {scanned.max_abs_error:.6g} at {where} > max_abs_error_limit {limit:.6g}")
    return broken


def judge_mixed(
    sample: Sample,
    *,
    gates: tuple[str, ...],
    anchor: str,
    special_mismatch: str,
    inf_narrow: bool,
    narrowed_error: bool,
    large_reduction: bool,
    max_abs_error_limit: float | None,
) -> Verdict:
    """Judge by the tables in ``gates``. Metrics belong to the first table, ``v1_``/``v2_`` metrics to the other."""
    names = [*gates, *(name for name in TABLES if name not in gates)]
    rows = [pick(TABLES[name], sample, "mixed") for name in names]
    if large_reduction:
        rows = [Row(2 * row.rtol, 2 * row.atol, row.limit) for row in rows]
    result = scan(sample, rows, inf_narrow, narrowed_error)
    value = _anchor(sample, result, anchor)
    floor = 0.0 if value is None else ULPS * ulp(value, sample.format)
    limits = [max(row.limit, floor) if max_abs_error_limit is None else max_abs_error_limit for row in rows]
    per_element = anchor == "per_element" and max_abs_error_limit is None
    broken = [_failures(sample, result, k, limits[k], per_element) for k in range(len(names))]
    special = _special_reason(sample, result)
    forbidden = [special] if special and special_mismatch == "fail" else []
    decisive = [
        f"table {name}: {reason}" if len(gates) > 1 else reason
        for name, reasons in zip(gates, broken, strict=False)
        for reason in reasons
    ]
    ratios = [m / sample.size if sample.size else 1.0 for m in result.matched]
    other = names[1]
    metrics = {
        "matched_ratio": ratios[0],
        "max_abs_error": result.max_abs_error,
        "max_abs_error_limit": limits[0],
        "special_mismatch": float(result.special_mismatch),
        f"{other}_matched_ratio": ratios[1],
        f"{other}_max_abs_error_limit": limits[1],
        f"{other}_passed": float(not broken[1] and not forbidden),
        "per_element_passed": float(not forbidden and not _failures(sample, result, 0, math.inf, True)),
        "special_count_passed": float(not broken[0]),
    }
    return Verdict(not decisive and not forbidden, metrics, "; ".join(forbidden + decisive))


def _special_reason(sample: Sample, scanned: Scan) -> str:
    if not scanned.special_mismatch:
        return ""
    at = scanned.first_mismatch
    golden, actual = float(flat(sample.golden)[at]), float(flat(sample.actual)[at])
    return (
        f"NaN, inf, -inf or finite differ at {scanned.special_mismatch} of {sample.size} positions,"
        f" first {sample.index(at)}: golden {golden:.9g}, actual {actual:.9g}"
    )


_MIXED_OPTIONS = {
    "anchor": choice("g_low", "per_element", "one", "max_golden", "fixed"),
    "special_mismatch": choice("fail", "count"),
    "inf_narrow": flag(True),
    "narrowed_error": flag(False),
    "large_reduction": flag(False),
    "max_abs_error_limit": number(None),
}
_MIXED = tuple(
    Standard(name, partial(judge_mixed, gates=gates), dtypes=(*TABLES["v2"], "float64"), options=_MIXED_OPTIONS)
    for name, gates in (("mixed", ("v2",)), ("mixed-v1", ("v1",)), ("mixed-strictest", ("v2", "v1")))
)


# MERE/MARE: the older ecosystem standard, still the English page (``mere-mare``), and TTK's ``stat_rel_err``.
#
# Rule (opbase ``docs/en/.../experimental_standard.md``): re = |a - g| / (|g| + 1e-7); MERE is its mean, MARE its
# maximum; pass if MERE < T and MARE < 10 T, both strict.
#
# Readings: the page does not mention NaN and Inf, so TTK's rule applies to both names. Special positions must agree
# (after narrowing the golden to the output's dtype). Equal ones are excluded from the statistics; if no element is
# left, the case passes. An empty output passes (D7). Epsilon is 1e-7 for all elements, in float64 (D11, D12). The BLAS
# test header's 2^-14 and its mean over unequal elements are the options ``epsilon`` and ``skip_equal``. Other float
# dtypes have the float32 threshold (TTK).

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
            golden, actual = states(block.golden, sample.format if inf_narrow else None), states(block.actual)
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


_MERE_MARE_OPTIONS = {"epsilon": number(1e-7), "skip_equal": flag(False), "inf_narrow": flag(True)}
_MERE_MARE = tuple(
    Standard(name, judge_mere_mare, dtypes=(*THRESHOLDS, "float64"), options=_MERE_MARE_OPTIONS)
    for name in ("mere-mare", "ttk-stat")
)

STANDARDS = (*_MIXED, *_MERE_MARE)
