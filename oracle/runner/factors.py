"""A factor by which a whole output is wrong, in words: an operand, its inverse, or a number that people write."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from ..model.call import Call
from ..operators import OPERATORS
from ..operators.parameters import MEAN

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


def wrong_divisor(factor: float, near: float, call: Call | None) -> str:
    """A mean that is divided by another count, in words; "" where the factor is no quotient of two counts."""
    if call is None:
        return ""
    op = OPERATORS[call.op]
    given = {**call.inputs, **call.attrs}
    is_mean = op.reduction is not None and call.attrs.get(op.reduction.name) == MEAN
    if not is_mean or not isinstance(call.inputs[op.main], np.ndarray):
        return ""
    right = call.inputs[op.main].size if op.mean is None else op.mean(given)
    for count, what in _counts(call, right).items():
        if count not in (0, right) and abs(factor * count / right - 1) < near:
            return f"the mean is divided by {count} ({what}), not by {right}: all wrong by the factor {factor:.6g}"
    return ""


def _counts(call: Call, right: int) -> dict[int, str]:
    """What a mean may be divided by instead of the right count, the likeliest first."""
    op = OPERATORS[call.op]
    shape = call.inputs[op.main].shape
    found: dict[int, str] = {1: "nothing"}
    arrays = {n: v for n, v in call.inputs.items() if isinstance(v, np.ndarray)}
    ways = [(array.size, f"the size of {name}") for name, array in arrays.items()]
    ways += [(math.prod(op.output_shape({**call.attrs, **call.inputs})), "the size of the output")]
    ways += [(n, f"axis {k}") for k, n in enumerate(shape)]
    ways += [(math.prod(shape[1:]), "all but the first axis"), (math.prod(shape[:-1]), "all but the last axis")]
    ways += [(right + 1, "one too many"), (right - 1, "one too few"), (len(shape), "the rank")]
    for count, what in ways:
        found.setdefault(count, what)
    return found
