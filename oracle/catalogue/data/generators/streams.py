"""Named streams of random bits, and exp and normal numbers that use only basic IEEE operations.

SFC64 (Doty-Humphrey's Small Fast Chaotic, 256 bits of state) uses additions, shifts and rotations of 64-bit words.
NumPy keeps its raw output stable. The SHA-256 of the names is its whole state. All further steps are integer
arithmetic and exact scaling.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np

from ....model.call import Array
from ....numerics.floats.functions import LN2_HI, LN2_LO, LOG2_E, coefficients, log_of_positive, polynomial

# exp and normal numbers with basic IEEE operations only, and sums in a fixed order.
#
# NumPy's own exp and log differ in the last bit between SIMD levels; +, -, *, /, sqrt, frexp and ldexp do not. So these
# functions give the same bytes on every machine. exp and the quantile are accurate to about 1e-15. Normal numbers lie
# within 6e-8 of their quantile. Data needs less accuracy than that.

# Wichura (1988), algorithm AS 241, PPND16: rational approximations of the normal quantile, highest power first.
_CENTRE_P = coefficients(
    2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
    1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080e0,
)  # fmt: skip
_CENTRE_Q = coefficients(
    5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
    5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0,
)  # fmt: skip
_TAIL_P = coefficients(
    7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258e0,
    3.64784832476320460504e0, 5.76949722146069140550e0, 4.63033784615654529590e0, 1.42343711074968357734e0,
)  # fmt: skip
_TAIL_Q = coefficients(
    1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
    6.89767334985100004550e-1, 1.67638483018380384940e0, 2.05319162663775882187e0, 1.0,
)  # fmt: skip
_FAR_P = coefficients(
    2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
    2.96560571828504891230e-1, 1.78482653991729133580e0, 5.46378491116411436990e0, 6.65790464350110377720e0,
)  # fmt: skip
_FAR_Q = coefficients(
    2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
    1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0,
)  # fmt: skip


EXP_BLOCK = 1 << 15  # elements per pass: the operands of the polynomial stay in the cache


_EXP_SERIES = coefficients(*accumulate(range(14), lambda term, i: term / (i + 1), initial=1.0))[::-1]  # 1/14! ... 1


def exp(x: Array) -> Array:
    """Return the exponential of float64 values: x = k ln2 + r, then Taylor's series of e^r. Underflows to 0."""
    result = np.empty(x.shape)
    given, target = x.reshape(-1), result.reshape(-1)
    with np.errstate(under="ignore"):
        for start in range(0, given.size, EXP_BLOCK):
            _exp_block(given[start : start + EXP_BLOCK], target[start : start + EXP_BLOCK])
    return result


def _exp_block(x: Array, result: Array) -> None:
    x = np.clip(x, -750.0, 709.0)
    k = x * LOG2_E
    k += 0.5
    np.floor(k, out=k)
    r = x - k * LN2_HI
    r -= k * LN2_LO
    np.ldexp(polynomial(_EXP_SERIES, r), k.astype(np.int32), out=result)


def standard_normal(words: Array, result: Array) -> None:
    """Write standard normal numbers to ``result``, from random 64-bit words (which are overwritten). The upper 52 bits
    are p in (0, 1/2), the lowest bit is the sign. The quantile of p is linear between 1,024 points per binade."""
    offsets, slopes = _lines()
    signs = words << np.uint64(63)
    words >>= np.uint64(12)
    np.copyto(result, words.view(np.int64))
    result += 0.5
    result *= 2.0**-53
    place = np.right_shift(result.view(np.int64), 52 - LINES, out=words.view(np.int64))
    place -= LEAST
    result *= slopes.take(place)
    result += offsets.take(place)
    bits = result.view(np.uint64)
    bits ^= signs


LINES = 10  # bits: lines per binade of p
LEAST = (1023 - 54) << LINES  # the place of the smallest p, 2^-54


@lru_cache(maxsize=1)
def _lines() -> tuple[Array, Array]:
    """Return the quantile of p as offset + slope * p, for each interval between neighbouring points."""
    ends = (np.arange((1023 - 1 << LINES) - LEAST + 1) + LEAST << 52 - LINES).view(np.float64)
    quantile = normal_quantile(ends)
    slopes = np.diff(quantile) / np.diff(ends)
    return quantile[:-1] - slopes * ends[:-1], slopes


def normal_quantile(p: Array) -> Array:
    """Return the standard normal quantile of a vector of float64 probabilities in (0, 1)."""
    q = p - 0.5
    r = q * q
    np.subtract(0.180625, r, out=r)
    result: Array = polynomial(_CENTRE_P, r) / polynomial(_CENTRE_Q, r)
    result *= q
    outer = (np.abs(q) > 0.425).nonzero()[0]
    if outer.size:
        p, q = p[outer], q[outer]
        tail = np.where(q < 0.0, p, 1.0 - p)
        result[outer] = np.copysign(_tail(np.sqrt(-log_of_positive(tail))), q)
    return result


def _tail(r: Array) -> Array:
    near = r - 1.6
    result = np.asarray(polynomial(_TAIL_P, near) / polynomial(_TAIL_Q, near))
    beyond = (r > 5.0).nonzero()[0]
    if beyond.size:
        far = r[beyond] - 5.0
        result[beyond] = polynomial(_FAR_P, far) / polynomial(_FAR_Q, far)
    return result


def fold_sum(x: Array) -> Array:
    """Sum each row by halving, and keep the axis with length 1. The order of additions depends only on the length."""
    n = x.shape[-1]
    if n == 0:
        return np.zeros((*x.shape[:-1], 1))
    while n > 1:
        half = (n + 1) // 2
        folded = x[..., :half].copy()
        folded[..., : n - half] += x[..., half:n]
        x, n = folded, half
    return x


# Named streams of random bits: the seed, the case's id and the parameter's name determine every byte.

BLOCK = 1 << 14  # elements per pass: their words stay in cache
SCHEME = "sfc64-sha256-v2"  # change it if the same seed would give other data

_FREE: list[np.random.SFC64] = []  # reused: a new generator costs ten times as much as setting its state


class Stream:
    """The random words of one parameter of one case; each request continues after the previous one."""

    def __init__(self, seed: int, case: str, parameter: str) -> None:
        self._bits = _FREE.pop() if _FREE else np.random.SFC64(0)
        digest = hashlib.sha256(f"{SCHEME}\n{seed}\n{case}\n{parameter}".encode()).digest()
        words = np.frombuffer(digest, "<u8").astype(np.uint64)
        state: Any = {"bit_generator": "SFC64", "state": {"state": words}, "has_uint32": 0, "uinteger": 0}
        self._bits.state = state

    def __del__(self) -> None:
        if hasattr(self, "_bits"):  # absent if there was no memory for it
            _FREE.append(self._bits)

    def raw(self, count: int) -> Array:
        """Return ``count`` uint64 words."""
        return np.asarray(self._bits.random_raw(count), np.uint64)

    def unit(self, count: int) -> Array:
        """Return float64 values on the grid of 2^-53 in [0, 1)."""
        return self.between(count, 0.0, 1.0)

    def between(self, count: int, low: float, high: float) -> Array:
        """Return low + u * (high - low) for ``count`` values u of :meth:`unit`."""
        values, step = np.empty(count), (high - low) * 2.0**-53
        for start in range(0, count, BLOCK):
            part = values[start : start + BLOCK]
            words = self.raw(part.size)
            words >>= np.uint64(11)
            np.copyto(part, words.view(np.int64))  # faster than from uint64
            part *= step
            if low:
                part += low
        return values

    def normal(self, count: int) -> Array:
        """Return float64 values of the standard normal distribution."""
        values = np.empty(count)
        for start in range(0, count, BLOCK):
            part = values[start : start + BLOCK]
            standard_normal(self.raw(part.size), part)
        return values

    def below(self, count: int, bound: int) -> Array:
        """Return int64 values in [0, bound), bound at most 2^31."""
        words = self.raw(count)
        words >>= np.uint64(33)
        words *= np.uint64(bound)
        words >>= np.uint64(31)
        return words.view(np.int64)

    def give_signs(self, values: Array) -> Array:
        """Change the sign of a random half of a float64 vector in place, and return it. Each word decides 64 signs."""
        bits = values.view(np.uint64)
        for start in range(0, bits.size, BLOCK):
            part = bits[start : start + BLOCK]
            words = self.raw(-(-part.size // 64)).astype("<u8", copy=False)
            minus = np.unpackbits(words.view(np.uint8), count=part.size).astype(np.uint64)
            minus <<= np.uint64(63)
            part ^= minus
        return values
