"""Goldens of elementwise operators, and gradients that make them hard.

Of a hard gradient, gradOutput * f lies next to a midpoint of the output's type, or exactly on one.

Let f be a factor, q a whole number and p odd. q * f is close to p / 2 if p / q is close to 2 f: p / q is a convergent
of the continued fraction of 2 f, or a fraction between two. Such a q is a gradient's significand, p / 2 the midpoint.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gmpy2
import numpy as np
from elementwise_truth import PRECISION, ROWS, Row
from gmpy2 import mpfr, mpq
from truth import CONTEXTS, TYPES

import oracle
from oracle.operators.answers.registry import operator_named


def golden(slug: str, arrays: list[np.ndarray], **attributes: Any) -> np.ndarray:
    """Return the golden of an elementwise operator for the inputs of its row."""
    with np.errstate(all="ignore"):
        (result,) = oracle.golden(operator_named(slug).name, **ROWS[slug].given(arrays), **attributes).values()
    return result


def fractions(value: mpq, digits: int) -> Iterator[tuple[int, int]]:
    """Yield fractions (p, q) next to a value, the nearest last; p is odd and q has at most ``digits`` bits."""
    (p, q), (p1, q1) = (0, 1), (1, 0)
    beyond = 1 << digits
    while q1 < beyond:
        whole = value.numerator // value.denominator
        largest = (beyond - 1 - q) // q1 if q1 else whole
        for k in sorted({1, whole // 2, whole - 1, whole, min(whole, largest), min(whole, largest) - 1}):
            top, bottom = k * p1 + p, k * q1 + q
            if k > 0 and top % 2 and 0 < bottom < beyond:
                yield int(top), int(bottom)
        (p, q), (p1, q1) = (p1, q1), (whole * p1 + p, whole * q1 + q)
        if value == whole:
            return
        value = 1 / (value - whole)


def near_midpoints(factor: mpq, dtype: str) -> Iterator[float]:
    """Yield gradients of a type: their products with a factor are next to its midpoints, normal or subnormal."""
    digits, low, high = CONTEXTS[dtype]
    size = gmpy2.get_exp(mpfr(factor))  # |factor| is in [2^(size - 1), 2^size)
    least = low - 1  # the exponent of the smallest number
    for shift in (1, 2):  # a product of digits + 1 bits counts in halves, one of digits in quarters
        for p, q in fractions(abs(factor) / mpq(2) ** size * 2**shift, digits):
            exponents = [-digits - size] if p.bit_length() == digits + 1 else []
            if p.bit_length() <= digits and shift == 1:
                exponents.append(least - size)  # p / 2 of the smallest number
            for exponent in exponents:
                if least <= exponent and exponent + q.bit_length() <= high:
                    yield float(mpq(q) * mpq(2) ** exponent)


def gradients(
    row: Row, others: list[np.ndarray], attributes: dict[str, Any], dtype: str, each: int
) -> list[np.ndarray]:
    """Return the inputs of a row: for every element of the others the ``each`` hardest gradients, of both signs."""
    kept: list[list[float]] = [[] for _ in range(1 + len(others))]
    columns = [[mpq(v) for v in array.astype(np.float64).tolist()] for array in others]
    with gmpy2.context(precision=PRECISION, emax=gmpy2.get_emax_max(), emin=gmpy2.get_emin_min()):
        for values in zip(*columns, strict=True):
            factor = row.factor(*values, attributes)
            if not factor:
                continue
            for turn, g in enumerate(list(near_midpoints(mpq(factor), dtype))[-each:]):
                kept[0].append(-g if turn % 2 else g)
                for column, value in zip(kept[1:], values, strict=True):
                    column.append(float(value))
    return [np.array(column).astype(TYPES[dtype]) for column in kept]
