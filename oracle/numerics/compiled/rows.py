"""Rows of y * (g - sum of g * y) in compiled passes: the sum with its error, then every element rounded and tested.

What the quick test leaves in doubt is tested closely, then with the row's sum in two parts. Rows in which an element is
in doubt still are left to the NumPy road. docs/proof-details.md derives the bounds.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...model.call import Array
from ...model.dtypes import DTYPES, FORMATS, dtype_of
from ..floats.codes import code
from ..formula.expressions import text, trace
from ..proof.proof import U
from .cache import keep
from .exp import SINGLE_U
from .operands import codes_of, f32, f64, is_within, listed, load, load_single, njit, u32
from .rounding import OUT, encoder, narrower, quick_single, two_sum

RUN = 256  # terms that are summed at once, in any order
WORDS = 128  # elements whose doubts are looked at as one


def rowwise(formula: Callable[..., Any], target: Array, g: Array, y: Array) -> Array:
    """Fill a contiguous target of rows with y * (g - total); return the rows that are not proved.

    g, y: of its shape. formula: of (g, y, total), which is that in some order.
    """
    run = _rowwise(formula, dtype_of(target.dtype).name)
    left = np.empty(target.size // target.shape[-1], np.bool_)
    run(codes_of(g), codes_of(y), target.shape[-1], target.reshape(-1).view(OUT[target.itemsize]), left)
    return np.flatnonzero(left)


@njit(error_model="numpy")
def _product(g, y, i):
    return load(g, i) * load(y, i)


@njit(error_model="numpy")
def _product_single(g, y, i):
    """The same of 16-bit operands in a window, of which float32 holds it."""
    return f64(load_single(g, i) * load_single(y, i))


def _summing(product: Any) -> Any:
    """Return the function that sums a row's terms, and their magnitudes."""

    @njit(fastmath={"reassoc", "contract"}, error_model="numpy")
    def partial(g, y):
        total = size = 0.0
        for i in range(g.size):
            p = product(g, y, i)
            total += p
            size += abs(p)
        return total, size

    @njit(error_model="numpy")
    def sums(g, y):
        total = size = 0.0
        for start in range(0, g.size, RUN):
            stop = min(start + RUN, g.size)
            part, part_size = partial(g[start:stop], y[start:stop])
            total += part
            size += part_size
        return total, size

    return sums


_sums, _sums_single = _summing(_product), _summing(_product_single)


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


def _looking_again(formula: Callable[..., Any], dtype: str) -> Any:
    """Return the function that tests elements of a row closely, with the sum as it is and then in two parts."""
    f, closely = njit(error_model="numpy")(formula), encoder(dtype)

    @njit(error_model="numpy")
    def again(g, y, total, lost, size, out, places):
        """Whether anything is in doubt after the close tests."""
        high, low, known = total, 0.0, False
        for i in places:
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

    return again


@functools.cache
def _rowwise(formula: Callable[..., Any], dtype: str) -> Any:
    """Return the function that fills rows of codes of a type and tells which of them are not proved."""
    row, again = _ends(formula, load, _same_bits(narrower(dtype))), _looking_again(formula, dtype)
    row_single = _ends(formula, load_single, quick_single(dtype))
    narrow = dtype != "float32"
    g_window, y_window = _windows(dtype) if narrow else ((0, 0), (0, 0))

    @njit(nogil=True, error_model="numpy")
    def run(g, y, length, out, left):
        terms = RUN + length // RUN + 2
        doubt = np.zeros(-(-length // WORDS) * WORDS, np.bool_)
        words, places = doubt.view(np.uint64), np.zeros(length, np.int64)
        most = np.empty(1, g.dtype)
        for k in range(left.size):
            whole = slice(k * length, (k + 1) * length)
            g_row, y_row, out_row = g[whole], y[whole], out[whole]
            if narrow and is_within(g_row, g_window) and is_within(y_row, y_window):
                single, (total, size) = True, _sums_single(g_row, y_row)
            else:
                single, (total, size) = False, _sums(g_row, y_row)
            most[0] = _largest(g_row)
            lost, largest = 1.01 * U * terms * size, load(most, 0)
            if single:  # the ends are rounded, total * y, and the difference
                reach = lost + 1.25 * SINGLE_U * (largest + 3 * abs(total))
                row_single(g_row, y_row, f32(total - reach), f32(total + reach), out_row, doubt)
            else:
                reach = lost + 4 * U * (largest + abs(total))
                row(g_row, y_row, total - reach, total + reach, out_row, doubt)
            count = listed(doubt, words, length, 0, places, 0)
            left[k] = not (size < np.inf)
            if count > 0 and size < np.inf:
                left[k] = again(g_row, y_row, total, lost, size, out_row, places[:count])

    return keep(run, f"rows of {RUN}\n{dtype}\n{text(trace(formula))}")


def _ends(formula: Callable[..., Any], loaded: Any, encode: Any) -> Any:
    """The loop over a row: what both ends of every element round to. ``loaded``: what loads an operand."""
    f = njit(fastmath={"contract"}, error_model="numpy")(formula)

    @njit(error_model="numpy")
    def row(g, y, low_total, high_total, out, doubt):
        for i in range(out.size):
            g_i, y_i = loaded(g, i), loaded(y, i)
            out[i], doubt[i] = encode(f(g_i, y_i, low_total), f(g_i, y_i, high_total))

    return row


def _same_bits(narrow: Any) -> Any:
    """Return encode(low, high) of ends in float64, proved where both round to the same float32 number, sign included,
    and that is no midpoint."""

    @njit(error_model="numpy")
    def encode(low, high):
        one, other = f32(low), f32(high)
        code, halfway, beyond = narrow(one)
        return code, halfway | beyond | (one.view(u32) != other.view(u32))

    return encode


def _windows(dtype: str) -> tuple[tuple[int, int], tuple[int, int]]:
    """The codes of g and of y between which float32 holds their products, and every step is far from its ends."""
    kind, most = DTYPES[dtype].numpy, min(2.0**30, FORMATS[dtype].max)
    return (code(kind, 2.0**-30), code(kind, most)), (code(kind, 2.0**-90), code(kind, most))
