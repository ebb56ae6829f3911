"""Rows of y * (g - sum of g * y) in compiled passes: the sum with its error, then every element rounded and tested.

What the quick test leaves in doubt is tested closely, then with the row's sum in two parts. Rows in which an element is
in doubt still are left to the NumPy road. docs/proof.md derives the bounds.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..model.call import Array
from ..model.dtypes import dtype_of
from .compiled_rounding import OUT, encoder, f32, load, narrower, njit, two_sum, u32
from .expressions import text, trace
from .machine_code import keep
from .proof import U

RUN = 128  # terms that are summed at once, in any order


def rowwise(formula: Callable[..., Any], target: Array, g: Array, y: Array) -> Array:
    """Fill a contiguous target of rows with y * (g - total); return the rows that are not proved.

    g, y: vectors from ``codes``. formula: of (g, y, total), which is that in some order.
    """
    run = _rowwise(formula, dtype_of(target.dtype).name)
    left = np.empty(target.size // target.shape[-1], np.bool_)
    run(g, y, target.shape[-1], target.reshape(-1).view(OUT[target.itemsize]), left)
    return np.flatnonzero(left)


@njit(fastmath={"reassoc", "contract"}, error_model="numpy")
def _partial(g, y):
    total = size = 0.0
    for i in range(g.size):
        p = load(g, i) * load(y, i)
        total += p
        size += abs(p)
    return total, size


@njit(error_model="numpy")
def _sums(g, y):
    """The sum of a row's terms, and of their magnitudes."""
    total = size = 0.0
    for start in range(0, g.size, RUN):
        stop = min(start + RUN, g.size)
        part, part_size = _partial(g[start:stop], y[start:stop])
        total += part
        size += part_size
    return total, size


@njit(error_model="numpy")
def _sum_in_two(g, y):
    """The sum of a row's terms, exact products, in two parts: each addition's own error is added up too."""
    high = low = 0.0
    for i in range(g.size):
        high, rest = two_sum(high, load(g, i) * load(y, i))
        low += rest
    return high, low


@njit(error_model="numpy")
def _largest(codes):
    """The code of the largest magnitude, if not of a NaN, among codes of numbers."""
    mask = codes.dtype.type(0x7FFFFFFF if codes.itemsize == 4 else 0x7FFF)
    found = codes.dtype.type(0)
    for i in range(codes.size):
        found = max(found, codes.dtype.type(codes[i] & mask))
    return found


@functools.cache
def _rowwise(formula: Callable[..., Any], dtype: str) -> Any:
    f, narrow, closely = njit(error_model="numpy")(formula), narrower(dtype), encoder(dtype)

    @njit(error_model="numpy")
    def row(g, y, low_total, high_total, out, doubt):
        """Both ends of every element, as float32 numbers of the same bits."""
        for i in range(out.size):
            g_i, y_i = load(g, i), load(y, i)
            one, other = f32(f(g_i, y_i, low_total)), f32(f(g_i, y_i, high_total))
            code, halfway, beyond = narrow(one)
            out[i] = code
            doubt[i] = halfway | beyond | (one.view(u32) != other.view(u32))

    @njit(error_model="numpy")
    def again(g, y, total, lost, size, out, doubt):
        """Whether anything is in doubt after the close tests."""
        high, low, known = total, 0.0, False
        for i in range(out.size):
            if doubt[i]:
                g_i, y_i = load(g, i), load(y, i)
                if y_i == 0.0:
                    return True  # the sum's last bit decides which zero
                v = f(g_i, y_i, total)
                code, unsure = closely(v, abs(y_i) * lost + 2 * U * abs(v))
                if unsure:
                    if not known:
                        high, low = _sum_in_two(g, y)
                        known = True
                    d, rest = two_sum(g_i, -high)
                    v = y_i * (d + (rest - low))
                    less = U * U * (4.0 * out.size * out.size * size + 4 * (abs(g_i) + abs(high)))
                    code, unsure = closely(v, 1.01 * (abs(y_i) * less + 4 * U * abs(v)))
                    if unsure:
                        return True
                out[i] = code
        return False

    @njit(nogil=True, error_model="numpy")
    def run(g, y, length, out, left):
        terms = RUN + length // RUN + 2
        doubt = np.zeros(-(-length // 8) * 8, np.bool_)
        eights = doubt.view(np.uint64)
        most = np.empty(1, g.dtype)
        for k in range(left.size):
            whole = slice(k * length, (k + 1) * length)
            total, size = _sums(g[whole], y[whole])
            most[0] = _largest(g[whole])
            lost = 1.01 * U * terms * size
            reach = lost + 4 * U * (load(most, 0) + abs(total))
            row(g[whole], y[whole], total - reach, total + reach, out[whole], doubt)
            unsure = np.uint64(0)
            for i in range(eights.size):
                unsure |= eights[i]
            left[k] = (unsure > 0) | (not (size < np.inf))
            if left[k] and size < np.inf:
                left[k] = again(g[whole], y[whole], total, lost, size, out[whole], doubt)

    return keep(run, f"rows of {RUN}\n{dtype}\n{text(trace(formula))}")
