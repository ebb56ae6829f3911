"""What a sweep visits: for each operator, how 2^16 rows of 2^16 pairs become calls, and what encloses their result.

LogSigmoidBackward pairs (gradOutput, self); BinaryCrossEntropyBackward (target, self) with unit gradient.
The enclosures owe nothing to the golden's code: the derivative of log-sigmoid comes from MPFR, directed, once per
input; the quotient of the cross entropy from plain float64 with its own count of roundings.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import gmpy2
import numpy as np
from gmpy2 import mpfr, mpq

from ..model.call import Array, Call
from ..model.dtypes import DTYPES, dtype_of
from ..model.errors import OracleError, unknown
from ..numerics.proof import U

CODES = 1 << 16
DTYPE_NAMES = ("float16", "bfloat16")


class Pairs(ABC):
    """The pairs of one operator and dtype."""

    op: str
    output = "out"

    def __init__(self, dtype: str, soc: str) -> None:
        if dtype not in DTYPE_NAMES:
            raise OracleError(f"sweep: dtype {dtype!r} is not one of 16 bits: {' or '.join(DTYPE_NAMES)}")
        self.soc = soc
        self.dtype = DTYPES[dtype]
        self.every = np.arange(CODES, dtype=np.uint16).view(self.dtype.numpy)
        with np.errstate(invalid="ignore"):  # signalling NaN among the codes
            self.wide = self.every.astype(np.float64)

    @abstractmethod
    def inputs(self, rows: Array) -> tuple[dict[str, Any], dict[str, int]]:
        """Return the inputs and attributes of the call over some codes of the first operand and all of the second."""

    @abstractmethod
    def enclose(self, rows: Array) -> tuple[Array, Array]:
        """Return float64 bounds of the exact results, (rows, 2^16), low <= high; NaN where the result is special."""

    @abstractmethod
    def exact(self, row: int, column: int) -> Any:
        """Return the exact result as a rational, or a rational within 2^-1000 of it that no tie is as close to."""

    def call(self, rows: Array) -> Call:
        """Return the call, its output zeroed."""
        inputs, attrs = self.inputs(rows)
        out = np.zeros((len(rows), CODES), self.dtype.numpy)
        return Call(self.op, self.soc, inputs, attrs, {self.output: out}, case_id=f"sweep-{rows[0]}")

    def value(self, code: int) -> float:
        return float(self.wide[code])

    def grid(self, rows: Array) -> tuple[Array, Array]:
        """Return the operands as contiguous (rows, 2^16) arrays."""
        first = np.repeat(self.every[rows][:, None], CODES, axis=1)
        return first, np.repeat(self.every[None, :], len(rows), axis=0)


class LogSigmoid(Pairs):
    """gradOutput by row, self by column."""

    op = "aclnnLogSigmoidBackward"
    output = "gradInput"

    def __init__(self, dtype: str, soc: str) -> None:
        super().__init__(dtype, soc)
        self.low, self.high = np.full(CODES, np.nan), np.full(CODES, np.nan)
        for code, x in enumerate(self.wide):
            if np.isfinite(x):
                self.low[code], self.high[code] = derivative_bounds(float(x))

    def inputs(self, rows: Array) -> tuple[dict[str, Any], dict[str, int]]:
        g, x = self.grid(rows)
        return {"gradOutput": g, "self": x, "buffer": np.zeros(0, self.dtype.numpy)}, {}

    def enclose(self, rows: Array) -> tuple[Array, Array]:
        g = self.wide[rows][:, None]
        g = np.where(np.isfinite(g), g, np.nan)
        a, b = g * self.low, g * self.high
        return np.minimum(a, b) - np.abs(a) * U, np.maximum(a, b) + np.abs(b) * U

    def exact(self, row: int, column: int) -> Any:
        g, x = self.value(row), self.value(column)
        if x == 0:
            return mpq(g) / 2
        with gmpy2.context(precision=1100):  # e^x is irrational: 1100 bits leave no doubt about a 12-bit tie
            return mpq(mpfr(g) / (1 + gmpy2.exp(mpfr(x))))


def derivative_bounds(x: float) -> tuple[float, float]:
    """Enclose 1 / (1 + e^x) between neighbouring float64 numbers by directed MPFR arithmetic."""
    bounds = []
    for outward, inward in ((gmpy2.RoundDown, gmpy2.RoundUp), (gmpy2.RoundUp, gmpy2.RoundDown)):
        with gmpy2.context(precision=120, round=inward):
            divisor = 1 + gmpy2.exp(mpfr(x))
        with gmpy2.context(precision=53, round=outward):
            bounds.append(float(1 / divisor))
    return bounds[0], bounds[1]


class CrossEntropy(Pairs):
    """target by row, self by column, unit gradient, no weight, no reduction."""

    op = "aclnnBinaryCrossEntropyBackward"
    clamp = float(np.float32(1e-12))

    def inputs(self, rows: Array) -> tuple[dict[str, Any], dict[str, int]]:
        y, x = self.grid(rows)
        ones = np.ones((), self.dtype.numpy)
        return {"gradOutput": ones, "self": x, "target": y, "weightOptional": None}, {"reduction": 0}

    def enclose(self, rows: Array) -> tuple[Array, Array]:
        y, x = self.wide[rows][:, None], self.wide
        y, x = np.where(np.isfinite(y), y, np.nan), np.where(np.isfinite(x), x, np.nan)
        middle = (x - y) / np.maximum((1 - x) * x, self.clamp)
        slack = np.abs(middle) * (5 * U)  # two differences, a product, a quotient, and this product
        return middle - slack, middle + slack

    def exact(self, row: int, column: int) -> Any:
        y, x = mpq(self.value(row)), mpq(self.value(column))
        return (x - y) / max((1 - x) * x, mpq(self.clamp))


PAIRS = {kind.op: kind for kind in (LogSigmoid, CrossEntropy)}


def pairs(op: str, dtype: str, soc: str) -> Pairs:
    """Return the pairs of an operator; OracleError names the operators that can be swept."""
    if op not in PAIRS:
        raise unknown("operator to sweep (two inputs decide its result)", op, PAIRS)
    return PAIRS[op](dtype_of(dtype).name, soc)
