"""The commercial standard's recheck (复检) of a case that failed, over at least 200 seeds.

Rule (opbase ``commercial_standard.md`` 3.5): the case runs again with N different seeds (1000 recommended), each run
gives the ratio; N < 200 fails outright. The median of each of 2000 resamples of size N with replacement is taken; the
case fails if the 2.5 percentile of these medians is above 1.0 (strict), and passes otherwise.

Reading: 2000 resamples and linear percentiles, for every ratio that failed (D19): call it once for each. The
resamples are drawn by a generator with a fixed seed, so that the verdict can be repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..model.errors import OracleError
from .base import Array, Verdict

LEAST = 200
RESAMPLES = 2000
MOST = 10**7  # resamples: each is a median over all seeds


def recheck(ratios: Sequence[float] | Array, *, resamples: int = RESAMPLES, seed: int = 0) -> Verdict:
    """Judge the ratios of one metric over N seeds.

    A NaN ratio counts as infinite. Raises OracleError for anything but numbers not below 0 in one dimension.
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
    """Medians of resamples with replacement; a few at a time, so that memory stays small."""
    random = np.random.default_rng(seed)
    n, step = ordered.size, max(1, (1 << 20) // ordered.size)
    medians = np.empty(resamples)
    for start in range(0, resamples, step):
        part = medians[start : start + step]
        part[:] = ordered[_middle(random.integers(0, n, (part.size, n)))].mean(axis=1)  # ranks are ordered as values
    return medians


def _middle(values: Array) -> Array:
    """The two middle elements of each row, by order (twice the same one if there is one)."""
    n = values.shape[1]
    middle = [(n - 1) // 2, n // 2]
    return np.asarray(np.partition(values, middle, axis=1)[:, middle])


def _percentile(ordered: Array, percent: float) -> float:
    """Linear percentile of sorted values, infinities included."""
    place = percent / 100 * (ordered.size - 1)
    low = int(place)
    left, right = float(ordered[low]), float(ordered[min(low + 1, ordered.size - 1)])
    return left if left == right or place == low else left + (right - left) * (place - low)
