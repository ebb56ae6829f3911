"""Reference results from MPFR alone: exact or 2000-bit arithmetic, and MPFR's own rounding to each format."""

from __future__ import annotations

import gmpy2
import ml_dtypes
import numpy as np
from gmpy2 import mpfr, mpq

TYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32}
# precision, and MPFR's exponents (value = 0.1xxx * 2^e) of the smallest subnormal and the largest finite number
CONTEXTS = {"float16": (11, -23, 16), "bfloat16": (8, -132, 128), "float32": (24, -148, 128)}


def rounded(exact, dtype: str) -> float:
    """Round a rational or a long MPFR number once, by MPFR, subnormals and overflow included."""
    precision, emin, emax = CONTEXTS[dtype]
    with gmpy2.context(precision=precision, emin=emin, emax=emax, subnormalize=True):
        return float(mpfr(exact) if isinstance(exact, type(mpq())) else +exact)


def patterns(dtype: str, shape, r: np.random.Generator) -> np.ndarray:
    """Return random finite bit patterns: all binades equally likely, subnormals included."""
    word = np.uint32 if dtype == "float32" else np.uint16
    values = r.integers(0, np.iinfo(word).max, shape, word, endpoint=True).view(TYPES[dtype])
    with np.errstate(invalid="ignore"):  # there are signalling NaN among the patterns
        return np.where(np.isfinite(values), values, np.zeros((), TYPES[dtype]))


def rationals(array) -> list:
    return [mpq(v) for v in np.asarray(array).astype(np.float64).ravel().tolist()]


def softmax(g, y, dtype, step=1):
    """Return results of rows along the last axis, for every ``step``-th element."""
    out = []
    for row_g, row_y in zip(np.atleast_2d(g), np.atleast_2d(y), strict=True):
        p, q = rationals(row_g), rationals(row_y)
        total = sum(a * b for a, b in zip(p, q, strict=True))
        out.append([rounded(a * b - total * b, dtype) for a, b in zip(p[::step], q[::step], strict=True)])
    return np.array(out).reshape((*np.shape(g)[:-1], -1))


def log_softmax(g, y, dtype, step=1):
    """Return results of rows along the last axis, for every ``step``-th element."""
    out = []
    with gmpy2.context(precision=1200, emax=gmpy2.get_emax_max(), emin=gmpy2.get_emin_min()):
        for row_g, row_y in zip(np.atleast_2d(g), np.atleast_2d(y), strict=True):
            p = rationals(row_g)
            total = sum(p, mpq(0))
            parts = [mpq(1) if b == 0 else gmpy2.exp(mpfr(b)) for b in rationals(row_y[::step])]
            out.append([rounded(a - e * total, dtype) for a, e in zip(p[::step], parts, strict=True)])
    return np.array(out).reshape((*np.shape(g)[:-1], -1))


def wrong(actual, expected) -> int:
    """Return the number of unequal elements (zeros of either sign are equal here)."""
    return int(np.count_nonzero(np.asarray(actual).astype(np.float64) != expected))
