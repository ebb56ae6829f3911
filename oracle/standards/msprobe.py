"""msprobe's api_accuracy_checker: stage 2 (``msprobe-benchmark``, NPU against GPU) and stage 1 (``msprobe-stage1``).

Source: the code of Ascend/mstt 99c2e0f and of mindstudio-probe 26.2.0. If they differ, 26.2.0 is followed and the other
is ``version="99c2e0f"``. The loss and activation operators are in none of msprobe's lists, so the benchmark algorithm,
level L0, judges them.

Stage 2: each side's metrics against the golden, then ratio = |NPU| / max(|GPU|, floor). Small-value error share <= 2;
RMSE, maximal and mean relative error within the level. If a metric is infinite or NaN, the two must be the same
infinity or both NaN. EB is reported, not judged (D21). Special values are masked, never compared.

Stage 1: cosine > 0.99, else error; max_abs < 0.001 passes. Then fp16/bf16 need share(rel < 0.01) > 0.99 and pass with
share(rel < 0.001) > 0.999. fp32 need share(rel < 0.001) > 0.999 and pass with share(rel < 0.0001) > 0.9999. Below the
second share the result is a Warning, which passes with that word as the reason. Special values are not masked: a
matched NaN or Inf lowers the shares, unless ``exclude_specials``. Integers: mismatch rate 0.

Readings: the small domain is |g| <= s, as in the code (D14 is for our own suite). Its error limit for fp16 and bf16 is
the code's 1e-16; the document's 2^-16 is ``small_atol="document"`` (D22). Empty and float64 in stage 2 are SKIP, which
passes (D7; an empty tensor was an error in 99c2e0f).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from ..numerics.floats.rounding import quantize
from .base import OUTPUT_TYPES, Array, Sample, Standard, Verdict, blocks, choice, flag, stored_blocks
from .commercial import LEVELS, SMALL_RATIO


@dataclass(frozen=True)
class Constants:
    """A dtype's constants: small-value border and error limits, the ratios' floor, epsilon of the relative error."""

    small: float
    atol_code: float
    atol_document: float
    floor: float
    epsilon: float


# epsilon: of the golden's dtype, one precision higher than the output's; bfloat16 has its own constant.
TABLE: dict[str, Constants] = {
    "float16": Constants(2**-10, 1e-16, 2**-16, 2**-11, 2**-23),
    "bfloat16": Constants(2**-10, 1e-16, 2**-16, 2**-8, 2**-8),
    "float32": Constants(2**-20, 2**-30, 2**-30, 2**-14, 2**-52),
}
TABLE["float64"] = TABLE["float32"]  # the code's default; stage 2 skips it
VERSION = choice("26.2.0", "99c2e0f")


@dataclass
class Metrics:
    """Stage 1's metrics of one side, summed over blocks. ``masked`` counts special and small positions."""

    n: int = 0
    masked: int = 0
    small: int = 0
    small_wrong: int = 0
    max_rel: float = 0.0
    relative: float = 0.0
    squares: float = 0.0
    larger: int = 0
    smaller: int = 0

    def add(self, x: Array, g: Array, stored: Array, constants: Constants, atol: float) -> None:
        """Add elements; ``stored`` is the golden cast to the device's dtype."""
        finite = np.isfinite(x) & np.isfinite(stored)
        magnitude = np.abs(g)
        error = np.abs(x - g)
        small = finite & (magnitude <= constants.small)
        normal = finite & ~small
        self.n += x.size
        self.masked += x.size - int(np.count_nonzero(normal))
        self.small += int(np.count_nonzero(small))
        self.small_wrong += int(np.count_nonzero(small & (error > atol)))
        error, magnitude = error[normal], magnitude[normal]
        relative = error / (magnitude + constants.epsilon)
        self.max_rel = max(self.max_rel, float(relative.max(initial=0.0)))
        self.relative += float(relative.sum())
        self.squares += float(np.square(error).sum())
        self.larger += int(np.count_nonzero(x > stored))
        self.smaller += int(np.count_nonzero(x < stored))

    def table(self) -> dict[str, float]:
        """Return the five metrics that stage 2 divides."""
        normal = self.n - self.masked
        factor = self.n / (normal + 1e-4) + 1e-4
        return {
            "small_ratio": self.small_wrong / self.small if self.small else 0.0,
            "rmse_ratio": math.sqrt(self.squares / self.n * factor),
            "max_rel_ratio": self.max_rel,
            "mean_rel_ratio": self.relative / normal if normal else 0.0,
            "eb_ratio": abs(self.larger - self.smaller) / self.n,
        }


def judge_benchmark(sample: Sample, *, level: str, small_atol: str, version: str) -> Verdict:
    """Judge the device's metrics against the third party's, msprobe's stage 2."""
    if not sample.size:
        return _empty(version)
    if sample.dtype.name == "float64":
        return Verdict(True, {}, "SKIP: msprobe does not compare float64 in stage 2")
    constants = TABLE[sample.dtype.name]
    atol = constants.atol_code if small_atol == "code" else constants.atol_document
    npu, gpu = Metrics(), Metrics()
    with np.errstate(all="ignore"):
        for block in blocks(sample):
            stored = quantize(block.golden, sample.format)
            npu.add(block.actual, block.golden, stored, constants, atol)
            gpu.add(block.third, block.golden, stored, constants, atol)
    limits = LEVELS["L0" if version == "99c2e0f" else level]
    judged = {
        "small_ratio": SMALL_RATIO,
        "rmse_ratio": limits.rmse,
        "max_rel_ratio": limits.mare,
        "mean_rel_ratio": limits.mere,
    }
    ours, theirs = npu.table(), gpu.table()
    ratios = {name: _ratio(ours[name], theirs[name], constants.floor) for name in ours}
    broken = [f"{name} {ratios[name]:.6g} > {limit:g}" for name, limit in judged.items() if not ratios[name] <= limit]
    return Verdict(not broken, ratios, "; ".join(broken))


def _ratio(npu: float, gpu: float, floor: float) -> float:
    """Return |NPU| / max(|GPU|, floor); with an infinity or NaN: 1 if both are the same, else infinite."""
    if math.isfinite(npu) and math.isfinite(gpu):
        return abs(npu) / max(abs(gpu), floor)
    return 1.0 if npu == gpu or (math.isnan(npu) and math.isnan(gpu)) else math.inf


def _empty(version: str) -> Verdict:
    if version == "99c2e0f":
        return Verdict(False, {}, "error: the tensor is empty")
    return Verdict(True, {}, "SKIP: the tensor is empty")


@dataclass
class Shares:
    """Stage 1's maxima and the counts of relative errors below 1e-2, 1e-3 and 1e-4."""

    n: int = 0
    max_abs: float = 0.0
    actual: float = 0.0
    golden: float = 0.0
    below: tuple[int, int, int] = (0, 0, 0)

    def add(self, a: Array, g: Array, epsilon: float) -> None:
        error = np.abs(a - g)
        self.n += error.size
        self.max_abs = _larger(self.max_abs, error)
        self.actual, self.golden = _larger(self.actual, np.abs(a)), _larger(self.golden, np.abs(g))
        relative = error / (np.abs(g) + epsilon)
        first, second, third = (int(np.count_nonzero(relative < bound)) for bound in (1e-2, 1e-3, 1e-4))
        self.below = (self.below[0] + first, self.below[1] + second, self.below[2] + third)


def _pairs(sample: Sample, exclude_specials: bool) -> Iterator[tuple[Array, Array]]:
    """Yield (actual, golden) in runs; ``exclude_specials``: without the special values that agree."""
    for block in blocks(sample):
        a, g = block.actual, block.golden
        if exclude_specials:
            differ = ~((np.isnan(a) & np.isnan(g)) | ((a == g) & np.isinf(g)))
            a, g = a[differ], g[differ]
        yield a, g


def _larger(so_far: float, values: Array) -> float:
    """Return the maximum; a NaN is the largest."""
    return float(np.maximum(so_far, values.max(initial=0.0)))


def judge_stage1(sample: Sample, *, version: str, exclude_specials: bool) -> Verdict:
    """Judge the device against the golden alone, msprobe's stage 1."""
    if not sample.size:
        return _empty(version)
    if sample.dtype.is_whole:
        return _mismatch_rate(sample)
    result = Shares()
    with np.errstate(all="ignore"):
        for a, g in _pairs(sample, exclude_specials):
            result.add(a, g, TABLE[sample.dtype.name].epsilon)
        if not result.n:
            return Verdict(True, {}, "SKIP: nothing but matching special values")
        cosine = _cosine(_pairs(sample, exclude_specials), result) if result.n > 1 else None
    hundredth, thousandth, ten_thousandth = (count / result.n for count in result.below)
    metrics = {"max_abs": result.max_abs}
    if cosine is not None:
        metrics["cosine"] = cosine
    metrics |= {"hundredth": hundredth, "thousandth": thousandth, "ten_thousandth": ten_thousandth}
    if cosine is not None and not cosine > 0.99 and not (math.isnan(cosine) and version == "26.2.0"):
        return Verdict(False, metrics, f"error: cosine {cosine:.6g} is not above 0.99")
    if result.max_abs < 0.001:
        return Verdict(True, metrics)
    need, enough = (0, 1) if sample.dtype.name in ("float16", "bfloat16") else (1, 2)
    for place, word in ((need, "error"), (enough, "Warning")):
        bound = (1e-2, 1e-3, 1e-4)[place]
        share = result.below[place] / result.n
        if not share > 1 - bound:
            reason = f"{word}: share of relative errors below {bound:g} is {share:.6g}, not above {1 - bound:g}"
            return Verdict(word == "Warning", metrics, reason)
    return Verdict(True, metrics)


def _cosine(pairs: Iterable[tuple[Array, Array]], shares: Shares) -> float | None:
    """Return the cosine of actual and golden; None if both are zero, 0 if one of them is, NaN if it does not exist."""
    tiny = float(np.finfo(np.float64).eps)
    if shares.actual <= tiny and shares.golden <= tiny:
        return None
    if shares.actual <= tiny or shares.golden <= tiny:
        return 0.0
    dot = aa = gg = 0.0
    for actual, golden in pairs:
        a, g = actual / shares.actual, golden / shares.golden  # squares stay in range
        dot, aa, gg = dot + float(a @ g), aa + float(a @ a), gg + float(g @ g)
    return dot / math.sqrt(aa) / math.sqrt(gg) if aa > 0 and gg > 0 else math.nan


def _mismatch_rate(sample: Sample) -> Verdict:
    differ = sum(int(np.count_nonzero(golden != actual)) for _, golden, actual in stored_blocks(sample))
    rate = differ / sample.size
    return Verdict(not differ, {"mismatch_rate": rate}, f"error: mismatch rate {rate:.6g}" if differ else "")


STANDARDS = (
    Standard(
        "msprobe-benchmark",
        judge_benchmark,
        dtypes=tuple(TABLE),
        options={"level": choice("L0", "L1", "L2"), "small_atol": choice("code", "document"), "version": VERSION},
        third=True,
    ),
    Standard(
        "msprobe-stage1",
        judge_stage1,
        ("float", "int", "uint", "bool"),
        dtypes=(*TABLE, *(t.name for t in OUTPUT_TYPES.values() if t.is_whole)),
        options={"version": VERSION, "exclude_specials": flag(False)},
    ),
)
