"""erf and erfc, which NumPy does not have, in float64 with the same bits on every machine (see :mod:`.functions`).

erfc x = e^(-x^2) F(t) / (1 + 9/8 x) for x >= 0, F a polynomial in t = 5/4 - 63/8 / (x + 7/2): it lies between 0.65 and
1 and is flat at 0, so that nothing cancels. erf x is its series below 1 and 1 - erfc x above.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import gmpy2
import numpy as np
from gmpy2 import mpfr

from ...model.call import Array
from .extremes import highest
from .functions import coefficients, polynomial, power_and_rest, vectorized

END = 28.0  # erfc is less than half of float64's smallest number from 27.3 on
_PLACE, _SLOPE = 3.5, 1.125  # with these the fewest terms do, and the least is lost
_SCALE = 1 + 2 * _PLACE / END
_UPPER = np.int64(-1 << 27)  # of a number's bits: 26 digits
_DEGREE, _NODES = 22, 64  # what the other terms are in all is below 2^-56


def chebyshev(function: Callable[[mpfr], mpfr], degree: int, nodes: int) -> tuple[Array, ...]:
    """Return a function's expansion on [-1, 1] as a polynomial, highest power first."""
    angles = [gmpy2.const_pi() * (2 * j + 1) / (2 * nodes) for j in range(nodes)]
    values = [function(gmpy2.cos(angle)) for angle in angles]
    total, before, current = [mpfr(0)] * (degree + 1), [mpfr(0)], [mpfr(1)]  # T_-1, which is T_1, is not needed
    for k in range(degree + 1):
        terms = (value * gmpy2.cos(k * angle) for value, angle in zip(values, angles, strict=True))
        factor = sum(terms, mpfr(0)) * (2 if k else 1) / nodes
        for power, c in enumerate(current):
            total[power] += factor * c
        doubled = [mpfr(0), *((2 if k else 1) * c for c in current)]  # 2 x T_k - T_(k - 1)
        older = before + [mpfr(0)] * (len(doubled) - len(before))
        before, current = current, [a - b for a, b in zip(doubled, older, strict=True)]
    return coefficients(*map(float, reversed(total)))


@lru_cache(maxsize=1)
def _scaled_series() -> tuple[Array, ...]:
    """(1 + 9/8 x) e^(x^2) erfc x as a polynomial in t."""

    def scaled(t: mpfr) -> mpfr:
        x = (_SCALE + 1) * _PLACE / (_SCALE - t) - _PLACE
        return (1 + _SLOPE * x) * gmpy2.exp(x * x) * gmpy2.erfc(x)

    with gmpy2.context(gmpy2.context(), precision=200, emin=-(1 << 20), emax=1 << 20):
        return chebyshev(scaled, _DEGREE, _NODES)


@lru_cache(maxsize=1)
def _erf_series() -> tuple[Array, ...]:
    """erf x / x as a polynomial in x^2: what is left out is below 2^-59 for |x| <= 1."""
    with gmpy2.context(gmpy2.context(), precision=200):
        factor = 2 / gmpy2.sqrt(gmpy2.const_pi())
        return coefficients(*(float(factor * (-1) ** n / (gmpy2.fac(n) * (2 * n + 1))) for n in range(18, -1, -1)))


def _of_magnitude(x: Array) -> Array:
    """erfc of numbers in [0, END]; NaN of NaN."""
    upper = (x.view(np.int64) & _UPPER).view(np.float64)  # its square is exact
    rest = x - upper
    found = x + upper
    rest *= found  # x^2 less that square
    np.multiply(upper, upper, out=upper)
    np.negative(upper, out=upper)
    place, found = power_and_rest(upper, rest)
    t = np.add(x, _PLACE, out=rest)
    np.divide(-(_SCALE + 1) * _PLACE, t, out=t)
    t += _SCALE
    found *= polynomial(_scaled_series(), t)
    t = np.multiply(x, _SLOPE, out=rest)
    t += 1.0
    found /= t
    place >>= 7
    if not highest(x) <= 25.0:  # below 2^-900: what is subnormal is rounded once
        return np.asarray(np.ldexp(found, place))
    place <<= 52
    bits = found.view(np.int64)
    bits += place
    return found


def _erfc(x: Array) -> Array:
    """1 - erf x, small results as accurate as large ones. Within 8 ULP."""
    size = np.minimum(np.abs(x), END)
    found = _of_magnitude(size)
    return np.where(x < 0, 2.0 - found, found)


def _erf(x: Array) -> Array:
    """The error function. Within 4 ULP."""
    size = np.abs(x)
    small = (size < 1).nonzero()[0]
    if small.size < x.size:
        found = _of_magnitude(np.minimum(size, END))
        np.subtract(1.0, found, out=found)
        np.copysign(found, x, out=found)
    else:
        found = np.empty_like(x)
    if small.size:
        near = x[small]
        found[small] = near * polynomial(_erf_series(), near * near)
    return found


erf, erfc = map(vectorized, (_erf, _erfc))
