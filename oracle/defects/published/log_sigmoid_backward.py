"""The published defects of aclnnLogSigmoidBackward, L01 to L08, a right kernel of its own, and arguments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...model.call import Array, Call
from ...model.platforms import Platform
from ...numerics.formula.expressions import Expression, exp, log1p, maximum, where
from ...operators.log_sigmoid_backward import OPERATOR, kernel_950
from ..base.base import Argument, Defect, Right
from ..base.device import Device
from ..base.elementwise import computing
from ..base.kernels import plain
from ..base.pieces import Arguments, F, Kernel, single


def exponential_quotient(g: Expression, x: Expression) -> Expression:
    return g * exp(-x) / (1 + exp(-x))


def one_minus(g: Expression, x: Expression) -> Expression:
    return g * (1 - 1 / (1 + exp(-x)))


def no_negative_branch(g: Expression, x: Expression) -> Expression:
    z = exp(-abs(x))
    return g * (z / (1 + z))


def at_the_output(g: Expression, x: Expression) -> Expression:
    return kernel_950(g, -(maximum(-x, 0) + log1p(exp(-abs(x)))))


def saturating(g: Expression, x: Expression) -> Expression:
    return where(x > 20, 0 * g, where(x < -20, g, kernel_950(g, x)))


def from_buffer(a: Arguments, target: Platform) -> Array:
    """z is taken from buffer, whatever it holds; where it is too small it repeats."""
    g, x = single(a["gradOutput"]), single(a["self"])
    z = np.resize(single(a["buffer"]), x.shape) if a["buffer"].size else np.zeros(x.shape, F)
    return np.asarray(np.where(x < 0, F(1), z) / (F(1) + z) * g)


def in_input_type(a: Arguments, target: Platform) -> Array:
    """The document's formula with every intermediate in the input's type."""
    g, x = a["gradOutput"], a["self"]
    one = np.asarray(1, x.dtype)
    return np.asarray((g * (one / (one + np.exp(x)))).astype(F))


def rank_0_wrong(a: Arguments, target: Platform) -> Array:
    """A tensor of rank 0 gets its gradient back."""
    right = plain(OPERATOR)(a, target)
    return single(a["gradOutput"]) if a["self"].ndim == 0 else right


def _kernel_on_empty(call: Call) -> bool:
    """A kernel launched with no blocks fails."""
    if not np.asarray(call.outputs["gradInput"]).size:
        raise RuntimeError("kernel launch with 0 blocks")
    return True


def negative_exponent(g: Expression, x: Expression) -> Expression:
    """PyTorch's way: min(x, 0) and z."""
    z = exp(-abs(x))
    return g * (where(x < 0, 1, 0) - where(x < 0, 1, -1) * (z / (1 + z)))


IRRATIONAL = (
    "1 / (1 + e^x) is irrational except at x = 0, where the 910's form goes through log and is inexact as well, and"
    " where it rounds to 0 or 1: a float32 result on a tie only says that the value lies next to it, on either side"
)
ARGUMENTS = {
    "num/log_sigmoid_backward/half away": IRRATIONAL,
    "num/log_sigmoid_backward/float16 half away": IRRATIONAL,
    "num/log_sigmoid_backward/bfloat16 half away": IRRATIONAL,
    "operand/log_sigmoid_backward/self inf as largest": (
        "e^-3.4e38 underflows to the 0 that e^-inf is, so the result is the same bit for bit"
    ),
    "operand/log_sigmoid_backward/self flushed": (
        "below 2^-126 self changes 1 / (1 + e^x) by a relative 2^-127, far below float32's half ULP at 1/2"
    ),
}


def rows() -> Iterator[Defect | Right | Argument]:
    """Yield L01 to L08, and what else stands with the operator."""
    op, right = OPERATOR, plain(OPERATOR)
    table: list[tuple[str, str, str, Kernel, dict[str, Any], str, str]] = [
        ("L01", "NUM", "e^-x / (1 + e^-x): NaN where e^-x overflows", computing(op, exponential_quotient), {},
         "self below -88", "snntorch #427, tinygrad #1113, candle #1722, burn #1139"),
        ("L02", "NUM", "1 - 1 / (1 + e^-x): 0 from 16.7 on", computing(op, one_minus), {},
         "large positive self under a relative criterion", "tt-metal #55724, pytorch #195545"),
        ("L03", "IDX", "z / (1 + z) on both sides", computing(op, no_negative_branch), {}, "negative self", "derived"),
        ("L04", "API", "the derivative is taken at log_sigmoid(self)", computing(op, at_the_output), {},
         "any finite self", "mxnet #20371"),
        ("L05", "API", "buffer is trusted to hold e^-|self|", from_buffer, {}, "a buffer that holds something else",
         "pytorch #39642, FlagGems #5012, #5718"),
        ("L06", "NUM", "0 above 20 and gradOutput below -20", computing(op, saturating), {},
         "self above 20 under a relative criterion", "tt-metal #55457"),
        ("L07", "NUM", "16-bit inputs are computed in 16 bits", in_input_type, {}, "16-bit inputs",
         "ops-nn executor_aclnnLogSigmoidBackward.py"),
        ("L08", "SPEC", "a tensor of rank 0 gets its gradient back", rank_0_wrong, {}, "rank 0", "mxnet #20371"),
        ("L08/empty", "SPEC", "an empty tensor launches a kernel with no blocks", right,
         {"launch": _kernel_on_empty}, "an empty tensor", "ops-nn !8479/#4673"),
    ]  # fmt: skip
    for name, kind, what, kernel, steps, needs, evidence in table:
        yield Defect(name, op.name, kind, what, Device(name, kernel, **steps), needs, evidence)
    yield Right("right/negative_exponent", op.name, "1 - z / (1 + z) below zero", computing(op, negative_exponent))
