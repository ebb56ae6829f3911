"""The commercial standard: dual benchmark, recheck, binary consistency, integers and quantized results."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..model.errors import OracleError
from ..numerics.floats.rounding import quantize
from .base import (
    FINITE,
    NAN,
    Array,
    Block,
    Sample,
    Standard,
    Verdict,
    as_float64,
    blocks,
    choice,
    flag,
    pick,
    states,
    stored_blocks,
)

# Statistics against a benchmark: the common metrics of the commercial standard and of TTK's cross-check.
#
# They use the positions that are finite in golden, actual and third. Normal domain: the relative error's maximum
# (MARE), its mean (MERE), and the RMSE. Small-value domain |g| < threshold: the number of errors above ``error``.
# Source: opbase ``commercial_standard.md`` 3.2 and 3.3.


@dataclass(frozen=True)
class SmallValue:
    """The small-value domain |g| < ``threshold`` (also the floor of the ratios' denominators), and its error limit."""

    threshold: float
    error: float


SMALL_VALUE: dict[str, SmallValue] = {
    "float16": SmallValue(2**-11, 2**-16),
    "bfloat16": SmallValue(2**-8, 2**-16),
    "float32": SmallValue(2**-14, 2**-30),
    "hifloat32": SmallValue(2**-12, 2**-28),
    "float8_e4m3fn": SmallValue(2**-4, 2**-6),
    "float8_e5m2": SmallValue(2**-3, 2**-5),
}


@dataclass(frozen=True)
class Level:
    """The limits of the three ratios, each inclusive."""

    mare: float
    mere: float
    rmse: float


LEVELS = {"L0": Level(10, 2, 2), "L1": Level(5, 1.5, 1.5), "L2": Level(2, 1.2, 1.2)}
SMALL_RATIO = 2.0  # limit of the errors in the small-value domain, divided by the larger of the benchmark's and 1


@dataclass
class Errors:
    """The errors of one output; ``small`` is the error count of the small-value domain."""

    mare: float = 0.0
    relative: float = 0.0
    squares: float = 0.0
    balance: float = 0.0
    n: int = 0
    small: int = 0

    def add(self, x: Array, golden: Array, domain: SmallValue, closed: bool = False, by_max: bool = False) -> None:
        """Add finite elements. ``closed``: |g| = threshold is small; ``by_max``: re divides by max(|g|, 1e-7)."""
        error, magnitude = np.abs(x - golden), np.abs(golden)
        small = magnitude <= domain.threshold if closed else magnitude < domain.threshold
        self.small += int(np.count_nonzero(small & (error > domain.error)))
        normal = ~small
        error, magnitude = error[normal], magnitude[normal]
        relative = error / (np.maximum(magnitude, 1e-7) if by_max else magnitude + 1e-7)
        self.mare = max(self.mare, float(relative.max(initial=0.0)))
        self.relative += float(relative.sum())
        self.squares += float(np.square(error).sum())
        self.balance += float(((x - golden)[normal] / np.maximum(magnitude, 1.0)).sum())
        self.n += error.size

    @property
    def mere(self) -> float:
        return self.relative / self.n if self.n else 0.0

    @property
    def rmse(self) -> float:
        return math.sqrt(self.squares / self.n) if self.n else 0.0

    @property
    def eb(self) -> float:
        """The error balance |mean((x - g) / max(1, |g|))| of the normal domain."""
        return abs(self.balance / self.n) if self.n else 0.0


def ratio(ours: float, theirs: float, floor: float) -> float:
    """Return ours / max(theirs, floor). Both infinite: 1. NaN: infinite (it can only fail)."""
    if math.isnan(ours) or math.isnan(theirs):
        return math.inf
    if math.isinf(ours):
        return 1.0 if math.isinf(theirs) else math.inf
    return ours / max(theirs, floor)


def literal_ratio(ours: float, theirs: float, floor: float = 0.0) -> float:
    """Return ours / max(theirs, floor), with 0 / 0 = 1 (TTK) and x / 0 infinite."""
    if ours == theirs == 0:
        return 1.0
    return ratio(ours, theirs, floor) if max(theirs, floor) > 0 else math.inf


def over_limit(ratios: dict[str, float], level: Level) -> list[str]:
    """Return the names of the ratios ("mare_ratio", ...) above their level's limit."""
    limits = {"mare_ratio": level.mare, "mere_ratio": level.mere, "rmse_ratio": level.rmse}
    return [f"{name} {ratios[name]:.6g} > {limit:g}" for name, limit in limits.items() if not ratios[name] <= limit]


def over_small(ours: int, theirs: int) -> list[str]:
    """Return the broken rule of the small-value domain, or nothing; counts are compared as integers."""
    if ours <= SMALL_RATIO * max(theirs, 1):
        return []
    return [f"small-value domain: {ours} errors, the benchmark {theirs}: more than {SMALL_RATIO:g} times"]


# The commercial dual benchmark: ``dual-L0`` (regular), ``dual-L1`` (important), ``dual-L2`` (key operators).
#
# Rule (opbase ``commercial_standard.md``, April 2026, withdrawn there but still used in msprobe, TTK and ATK, D25): the
# ratios of MARE, MERE and RMSE to those of a third party are within the level's limits (10/2/2, 5/1.5/1.5, 2/1.2/1.2).
# In the small-value domain |g| < threshold the device has at most twice the errors of the third party; for the third
# party at least 1 is assumed. Special values agree. A case that fails is rechecked over seeds (``recheck``).
#
# Readings: the small-value threshold is the floor of denominators, as in all three tools (D13); the literal ratios are
# reported. The domain's border is normal (strict <, D14). Small-value elements do not enter the three metrics (D15). re
# divides by |g| + 1e-7 (D16). Special values: the device may equal the third party, or a special golden. A third party
# that alone is special does not matter (D17). If all three differ, the verdict is INVESTIGATE and not passed (D18).
# Every position that is special on any side is excluded from the statistics. The golden is not narrowed: the text
# compares with "the higher precision golden". EB is reported only (D21). Products before A2, and INF_NAN_MODE_ENABLE=0,
# exclude infinities (``inf_nan_mode=False``).


def _equal(x: Array, x_states: Array, y: Array, y_states: Array) -> Array:
    """Return whether elements are the same: the same special value, or finite and numerically equal."""
    same: Array = (x_states == y_states) & ((x_states != FINITE) | (x == y))
    return same


def judge_dual(
    sample: Sample,
    *,
    level: str,
    denominator_floor: bool,
    small_boundary: str,
    relative_error: str,
    third_special: str,
    inf_nan_mode: bool,
    inf_narrow: bool,
) -> Verdict:
    """Judge against the third party at one level."""
    domain, third_fails = pick(SMALL_VALUE, sample, "dual"), third_special == "fail"
    npu, third, special_fail, special_investigate = errors_of(
        sample, domain, small_boundary == "<=", relative_error == "max", inf_narrow, third_fails, inf_nan_mode
    )
    pairs = {name: (getattr(npu, name), getattr(third, name)) for name in ("mare", "mere", "rmse")}
    floored = {f"{name}_ratio": ratio(*pair, domain.threshold) for name, pair in pairs.items()}
    literal = {f"{name}_ratio": literal_ratio(*pair) for name, pair in pairs.items()}
    ratios = floored if denominator_floor else literal
    broken = over_limit(ratios, LEVELS[level]) + over_small(npu.small, third.small)
    if special_fail:
        broken.append(f"special values are wrong at {special_fail} of {sample.size} positions")
    metrics = {
        **ratios,
        "err_npu": float(npu.small),
        "err_third": float(third.small),
        "small_ratio": npu.small / max(third.small, 1),
        "special_fail": float(special_fail),
        "special_investigate": float(special_investigate),
        **{f"literal_{name}": value for name, value in literal.items()},
        **{name: pair[0] for name, pair in pairs.items()},
        **{f"third_{name}": pair[1] for name, pair in pairs.items()},
        "eb": npu.eb,
    }
    if special_investigate:
        broken.append(
            f"INVESTIGATE: golden, actual and third all differ at {special_investigate} of {sample.size} positions"
        )
    return Verdict(not broken, metrics, "; ".join(broken))


def errors_of(
    sample: Sample,
    domain: SmallValue,
    closed: bool = False,
    by_max: bool = False,
    inf_narrow: bool = True,
    third_fails: bool = True,
    inf_nan_mode: bool = True,
) -> tuple[Errors, Errors, int, int]:
    """Return the errors of the device and of the third party at the positions that are finite in all arrays, and how
    many special positions are wrong, and how many unclear."""
    npu, third, wrong, unclear = Errors(), Errors(), 0, 0
    with np.errstate(all="ignore"):
        for block in blocks(sample):
            golden = states(block.golden, sample.format if inf_narrow else None)
            failing, differing, keep = _specials(block, golden, third_fails, inf_nan_mode)
            wrong, unclear = wrong + failing, unclear + differing
            for errors, x in ((npu, block.actual), (third, block.third)):
                errors.add(x[keep], block.golden[keep], domain, closed, by_max)
    return npu, third, wrong, unclear


def _specials(block: Block, golden: Array, third_fails: bool, inf_nan_mode: bool) -> tuple[int, int, Array]:
    """Return how many special positions are wrong, how many are unclear, and a mask of the positions finite in all
    three arrays."""
    actual, third = states(block.actual), states(block.third)
    keep = (golden | actual | third) == FINITE
    at = np.flatnonzero(~keep)
    if not at.size:
        return 0, 0, keep
    a, b, sa, sb, sg = block.actual[at], block.third[at], actual[at], third[at], golden[at]
    right = _equal(a, sa, b, sb) | ((sg != FINITE) & (sa == sg))
    if not third_fails:
        right |= (sg == FINITE) & (sa == FINITE)
    judged = np.ones(at.size, bool)
    if not inf_nan_mode:
        for state in (sg, sa, sb):
            judged &= (state == FINITE) | (state == NAN)
    wrong = judged & ~right
    # If golden and third agree, the device is wrong; otherwise no two of the three agree.
    agree = sb == sg
    if third_fails:
        agree |= (sg == FINITE) & (sa == FINITE)
    return int(np.count_nonzero(wrong & agree)), int(np.count_nonzero(wrong & ~agree)), keep


OPTIONS = {
    "denominator_floor": flag(True),
    "small_boundary": choice("<", "<="),
    "relative_error": choice("sum", "max"),
    "third_special": choice("pass", "fail"),
    "inf_nan_mode": flag(True),
    "inf_narrow": flag(False),
}
_DUAL = tuple(
    Standard(
        f"dual-{level}", partial(judge_dual, level=level), dtypes=(*SMALL_VALUE, "float64"), options=OPTIONS, third=True
    )
    for level in LEVELS
)


# The commercial standard's recheck (复检) of a case that failed, over at least 200 seeds.
#
# Rule (opbase ``commercial_standard.md`` 3.5): the case runs again with N different seeds (1000 recommended). Each run
# gives the ratio; N < 200 fails immediately. 2000 resamples of size N are drawn with replacement, and the median of
# each is computed. The case fails if the 2.5 percentile of these medians is above 1.0 (strict), and passes otherwise.
#
# Reading: 2000 resamples and linear percentiles, for every ratio that failed (D19): call ``recheck`` once for each. A
# generator with a fixed seed draws the resamples, so that the verdict can be repeated.

LEAST = 200
RESAMPLES = 2000
MOST = 10**7  # upper limit of resamples: each is a median over all seeds


def recheck(ratios: Sequence[float] | Array, *, resamples: int = RESAMPLES, seed: int = 0) -> Verdict:
    """Judge the ratios of one metric over N seeds.

    A NaN ratio is read as infinite. Raises OracleError for anything except numbers not below 0 in one dimension.
    """
    values = _ratios(ratios)
    if isinstance(resamples, bool) or not isinstance(resamples, int) or not 1 <= resamples <= MOST:
        raise OracleError(f"recheck: resamples={resamples!r} must be an integer from 1 to {MOST}")
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise OracleError(f"recheck: seed={seed!r} must be an integer from 0 on")
    n = values.size
    metrics = {"n": float(n)} | ({"median": float(_middle(values[None, :]).mean())} if n else {})
    if n < LEAST:
        return Verdict(False, metrics, f"recheck needs at least {LEAST} seeds, there are {n}")
    medians = np.sort(_bootstrap(np.sort(values), resamples, seed))
    lower, upper = _percentile(medians, 2.5), _percentile(medians, 97.5)
    metrics |= {"ci_lower": lower, "ci_upper": upper}
    reason = f"95 % of the medians of {resamples} resamples lie in [{lower:.6g}, {upper:.6g}], above 1"
    return Verdict(not lower > 1.0, metrics, reason if lower > 1.0 else "")


def _ratios(ratios: Any) -> Array:
    try:
        values = np.asarray(ratios, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise OracleError("recheck: ratios must be a sequence of numbers, one for each seed") from None
    if values.ndim != 1:
        raise OracleError(f"recheck: ratios have shape {values.shape}; give one number for each seed")
    if np.any(values < 0):
        raise OracleError(f"recheck: ratio {values.min():g} is below 0")
    return np.where(np.isnan(values), np.inf, values)


def _bootstrap(ordered: Array, resamples: int, seed: int) -> Array:
    """Return the medians of resamples with replacement; a few at a time, to limit memory."""
    random = np.random.default_rng(seed)
    n, step = ordered.size, max(1, (1 << 20) // ordered.size)
    medians = np.empty(resamples)
    for start in range(0, resamples, step):
        part = medians[start : start + step]
        part[:] = ordered[_middle(random.integers(0, n, (part.size, n)))].mean(axis=1)  # ranks have the order of values
    return medians


def _middle(values: Array) -> Array:
    """Return the two middle elements of each row, by order (twice the same one if the length is odd)."""
    n = values.shape[1]
    middle = [(n - 1) // 2, n // 2]
    return np.asarray(np.partition(values, middle, axis=1)[:, middle])


def _percentile(ordered: Array, percent: float) -> float:
    """Return the linear percentile of sorted values, infinities included."""
    place = percent / 100 * (ordered.size - 1)
    low = int(place)
    left, right = float(ordered[low]), float(ordered[min(low + 1, ordered.size - 1)])
    return left if left == right or place == low else left + (right - left) * (place - low)


# Binary consistency (``binary``): operators that only move or cast (commercial standard, "non-compute").
#
# Rule (opbase ``commercial_standard.md``): bit-identical to the golden. -0 and +0 differ, a subnormal and zero differ,
# and two NaN payloads differ.
#
# Reading: a float64 golden is first rounded to the output's dtype. A golden that already has the dtype keeps its bits,
# including NaN payloads. TTK's ``binary_equal`` accepts elements that are NaN on both sides: option ``nan_equal``.


def judge_binary(sample: Sample, *, nan_equal: bool) -> Verdict:
    """Compare bit patterns; integers and bools by value, which is the same."""
    bad, first = 0, -1
    for start, golden, actual in stored_blocks(sample):
        g, a = _stored(golden, sample), actual.astype(sample.dtype.numpy, copy=False)  # native byte order
        differ = np.asarray(g != a) if sample.dtype.is_whole else _bits(g) != _bits(a)
        if nan_equal and not sample.dtype.is_whole:
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


_BINARY = Standard("binary", judge_binary, ("float", "int", "uint", "bool"), options={"nan_equal": flag(False)})


# Integer outputs: ``integer`` (integer compute) and ``quantized`` (float in, integer out), by absolute error AE.
#
# Rule (opbase ``commercial_standard.md``): integer compute must be bit-identical, or at least AE = 0. A quantised
# output may be off by one, AE <= 1. A two's complement integer of AE 0 is bit-identical, so the first rule is AE = 0
# (D27).
#
# Reading: the difference is computed between integers, without wrapping (127 and -128 differ by 255) and without
# float64 (2^53 and 2^53 + 1 differ by 1). The golden has values of the output's type.


def difference(golden: Array, actual: Array) -> Array:
    """Return |actual - golden| of two integer arrays of one type, exactly, as uint64."""
    wide = np.uint64 if golden.dtype == np.uint64 else np.int64
    g, a = golden.astype(wide), actual.astype(wide)
    # Modulo 2^64 the larger minus the smaller is exact: it is below 2^64.
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


_INTEGER = (
    Standard("integer", partial(judge_integer, limit=0), ("int", "uint", "bool")),
    Standard("quantized", partial(judge_integer, limit=1), ("int", "uint")),
)

STANDARDS = (*_DUAL, _BINARY, *_INTEGER)
