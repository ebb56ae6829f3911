"""A factor by which a whole output is wrong, in words: an operand, its inverse, or a number that people write."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from ..model.call import Call

CONSTANTS = (math.log(2), 1 / math.log(2), math.pi, math.e, math.sqrt(2), math.sqrt(0.5), math.sqrt(2 / math.pi))


def named_factor(factor: float, near: float, call: Call | None) -> str:
    """A factor that is an operand's value, its inverse or a constant, in words; "" for any other number."""
    for name, array in () if call is None else call.inputs.items():
        if isinstance(array, np.ndarray) and array.size == 1 and array.dtype.kind not in "iubc":
            value = float(array.reshape(()).astype(np.float64))
            ways = (
                (f"{name} is a factor too many", value),
                (f"{name} is a divisor too many", 1 / value if value else 0.0),
            )
            for told, wanted in ways:
                if wanted and abs(abs(wanted) - 1) > 4 * near and abs(abs(factor / wanted) - 1) < near:
                    return f"{told}: all wrong by the factor {factor:.6g}"
    simple = Fraction(factor).limit_denominator(8)
    small = abs(abs(factor) - 1)
    binary = 0 < small < 0.1 and abs(math.log2(small) - round(math.log2(small))) < near / small
    most = 1024 if simple.denominator == 1 else 8
    round_number = bool(simple) and abs(factor / float(simple) - 1) < near and abs(simple.numerator) <= most
    if binary or round_number or any(abs(abs(factor) / constant - 1) < near for constant in CONSTANTS):
        return f"all wrong by the factor {factor:.6g}"
    return ""
