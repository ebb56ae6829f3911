"""e^x, logarithms and tanh in float64 with the same bits on every machine.

NumPy's own differ in the last bit between its versions and SIMD levels, and with them what a verdict measures (never a
golden, which is proved). These are made of operations that IEEE 754 rounds in one way only: + - * /, rint, ldexp,
frexp, one NumPy operation each. Narrower types are computed in float64 and rounded.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import gmpy2
import numpy as np

from ...model.call import Array
from .extremes import highest, lowest, some

PARTS = 128  # of a binade: e^x = 2^(k / 128) e^r
BLOCK = 1 << 13  # elements per pass: what a function takes up stays in the cache
FAST = 700.0  # beyond it results may overflow or be subnormal
LN2_HI = float.fromhex("0x1.62e42fee00000p-1")  # few bits: an exponent times it is exact
LN2_LO = float.fromhex("0x1.a39ef35793c76p-33")
LOG2_E = float.fromhex("0x1.71547652b82fep0")
_SQRT_HALF = float.fromhex("0x1.6a09e667f3bcdp-1")


def coefficients(*numbers: float) -> tuple[Array, ...]:
    """Return numbers as NumPy takes them quickest: it makes an array of every Python number that it meets."""
    return tuple(np.array(number, np.float64) for number in numbers)


_LOG_SERIES = coefficients(*(1.0 / (2 * i + 1) for i in range(11, -1, -1)))


@lru_cache(maxsize=1)
def powers() -> Array:
    """Return 2^(j / PARTS) for every j below PARTS, correctly rounded."""
    with gmpy2.context(gmpy2.context(), precision=53):
        return np.array([float(gmpy2.exp2(gmpy2.mpfr(j) / PARTS)) for j in range(PARTS)])


@lru_cache(maxsize=1)
def _expm1_series() -> tuple[Array, ...]:
    """1 / 22! ... 1 / 1!, 0: what e^x - 1 takes below 1."""
    return coefficients(*(float(gmpy2.mpq(1, gmpy2.fac(n))) for n in range(22, 0, -1)), 0.0)


def polynomial(series: tuple[Array, ...], x: Array) -> Array:
    """Horner's scheme on a vector; ``series``: the coefficients, highest power first."""
    total: Array = np.multiply(x, series[0])
    np.add(total, series[1], total)
    for c in series[2:]:
        np.multiply(total, x, total)  # the operators take half as long again
        np.add(total, c, total)
    return total


def vectorized(compute: Callable[[Array], Array]) -> Callable[..., Any]:
    """Make a function of float64 vectors one of arrays and numbers of any float type, with a place for the result."""

    def function(x: Any, out: Array | None = None) -> Any:
        given = np.asarray(x)
        found = np.empty(given.shape, given.dtype) if out is None else out
        if not found.flags.c_contiguous:
            found[...] = function(given.astype(np.float64))
            return found
        flat, into = given.reshape(-1), found.reshape(-1)
        with np.errstate(all="ignore"):
            for start in range(0, flat.size, BLOCK):
                part = slice(start, start + BLOCK)
                into[part] = compute(flat[part].astype(np.float64, copy=False))
        return found if out is not None else found[()]

    function.__doc__ = compute.__doc__
    return function


def _exp(x: Array) -> Array:
    """e^x: x = k ln 2 / 128 + r, a power from a table times e^r by its series. Within 2 ULP."""
    if highest(x) <= FAST and lowest(x) >= -FAST:  # NaN is neither
        k, mantissa = power_and_rest(x)
        k >>= 7
        k <<= 52
        bits = mantissa.view(np.int64)
        bits += k
        return mantissa
    result = np.where(np.isnan(x), x, 0.0)
    result[x > 0] = np.inf
    near = np.abs(x) < 800
    k, mantissa = power_and_rest(x[near])
    result[near] = np.ldexp(mantissa, k >> 7)
    return result


def power_and_rest(x: Array, less: Array | None = None) -> tuple[Array, Array]:
    """Return k and 2^(k / 128 - floor(k / 128)) e^(r - less) of x = k ln 2 / 128 + r, for |x| < 900 and a small
    ``less``."""
    k = x * (LOG2_E * PARTS)
    np.rint(k, out=k)
    place = k.astype(np.int64)
    r = k * (-LN2_HI / PARTS)
    r += x
    k *= LN2_LO / PARTS
    r -= k
    if less is not None:
        r -= less
    p = np.multiply(r, 1 / 120, out=k)
    for c in (1 / 24, 1 / 6, 0.5, 1.0):
        p += c
        p *= r
    mantissa = powers().take(place & (PARTS - 1))
    p *= mantissa
    mantissa += p
    return place, mantissa


def _log(x: Array) -> Array:
    """log x: x = 2^k m, then 2 artanh((m - 1) / (m + 1)). Within 4 ULP."""
    if lowest(x) > 0 and highest(x) < np.inf:
        return log_of_positive(x)
    found = log_of_positive(np.where((x > 0) & (x < np.inf), x, 1.0))
    found[x == 0] = -np.inf
    special = ~(x < np.inf) | (x < 0)
    found[special] = np.where(x[special] > 0, np.inf, np.nan)
    return found


def log_of_positive(x: Array) -> Array:
    """Return the logarithm of positive finite float64 values."""
    m, k = np.frexp(x)
    low = m < _SQRT_HALF
    m *= 1.0 + low
    exponent = np.subtract(k, low, dtype=np.float64)
    s = m - 1.0
    m += 1.0
    s /= m
    series = polynomial(_LOG_SERIES, s * s)
    series *= 2.0 * s
    series += exponent * LN2_LO
    series += exponent * LN2_HI
    return series


def _log1p(x: Array) -> Array:
    """log(1 + x): that of the rounded sum, times what the rounding changed. Within 8 ULP."""
    total = 1.0 + x
    rest = total - 1.0
    found = _log(total)
    nothing = rest == 0
    if lowest(total) > 0 and highest(total) < np.inf:
        if some(nothing):
            return np.where(nothing, x, found * (x / np.where(nothing, 1.0, rest)))
        found *= x / rest
        return found
    plain = nothing | ~(np.abs(x) < np.inf) | (total <= 0)
    return np.where(plain, np.where(nothing, x, found), found * (x / np.where(plain, 1.0, rest)))


def _expm1(x: Array) -> Array:
    """e^x - 1: its series below 1. Within 4 ULP."""
    small = (np.abs(x) < 1).nonzero()[0]
    if small.size < x.size:
        found = _exp(x)
        found -= 1.0
    else:
        found = np.empty_like(x)
    if small.size:
        near = x[small]
        found[small] = np.where(near == 0, near, polynomial(_expm1_series(), near))
    return found


def _tanh(x: Array) -> Array:
    """tanh x = (e^2x - 1) / (e^2x + 1). Within 8 ULP."""
    e = _expm1(np.clip(2.0 * x, -50.0, 50.0))
    return np.asarray(e / (e + 2.0))


exp, log, log1p, expm1, tanh = map(vectorized, (_exp, _log, _log1p, _expm1, _tanh))
