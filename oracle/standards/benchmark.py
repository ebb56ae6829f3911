"""Statistics against a benchmark: what the commercial standard and TTK's cross-check both measure.

Over the positions that are finite in golden, actual and third: in the normal domain the relative error's maximum
(MARE), its mean (MERE), and the RMSE; in the small-value domain |g| < threshold the number of errors above ``error``.
Source: opbase ``commercial_standard.md`` 3.2 and 3.3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .base import Array


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
    """Limits of the three ratios, each inclusive."""

    mare: float
    mere: float
    rmse: float


LEVELS = {"L0": Level(10, 2, 2), "L1": Level(5, 1.5, 1.5), "L2": Level(2, 1.2, 1.2)}
SMALL_RATIO = 2.0  # errors in the small-value domain, against the larger of the benchmark's and 1


@dataclass
class Errors:
    """One output's errors; ``small`` is the error count of the small-value domain."""

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
    """Return ours / max(theirs, floor); both infinite 1, NaN infinite (it can only fail)."""
    if math.isnan(ours) or math.isnan(theirs):
        return math.inf
    if math.isinf(ours):
        return 1.0 if math.isinf(theirs) else math.inf
    return ours / max(theirs, floor)


def literal_ratio(ours: float, theirs: float, floor: float = 0.0) -> float:
    """Return ours / max(theirs, floor) with 0 / 0 = 1 (TTK) and x / 0 infinite."""
    if ours == theirs == 0:
        return 1.0
    return ratio(ours, theirs, floor) if max(theirs, floor) > 0 else math.inf


def over_limit(ratios: dict[str, float], level: Level) -> list[str]:
    """Name the ratios ("mare_ratio", ...) above their level's limit."""
    limits = {"mare_ratio": level.mare, "mere_ratio": level.mere, "rmse_ratio": level.rmse}
    return [f"{name} {ratios[name]:.6g} > {limit:g}" for name, limit in limits.items() if not ratios[name] <= limit]


def over_small(ours: int, theirs: int) -> list[str]:
    """Name the broken rule of the small-value domain, if it is broken; counts are compared as integers."""
    if ours <= SMALL_RATIO * max(theirs, 1):
        return []
    return [f"small-value domain: {ours} errors, the benchmark {theirs}: more than {SMALL_RATIO:g} times"]
