"""The published defects of aclnnLogSigmoidBackward, L01 to L08."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..model.call import Array, Call
from ..model.platforms import Platform
from .base import Defect
from .device import Arguments, Device, Kernel
from .kernels import BASE, LOG_SIGMOID, F, kernel_of, log_sigmoid_formula, single


def exponential_quotient(g: Any, x: Any) -> Any:
    e = np.exp(-x)
    return g * e / (F(1) + e)


def one_minus(g: Any, x: Any) -> Any:
    return g * (F(1) - F(1) / (F(1) + np.exp(-x)))


def no_negative_branch(g: Any, x: Any) -> Any:
    z = np.exp(-np.abs(x))
    return g * (z / (F(1) + z))


def at_the_output(g: Any, x: Any) -> Any:
    return log_sigmoid_formula(g, -np.logaddexp(F(0), -x))


def saturating(g: Any, x: Any) -> Any:
    return np.where(x > 20, F(0) * g, np.where(x < -20, g, log_sigmoid_formula(g, x)))


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
    right = BASE[LOG_SIGMOID](a, target)
    return single(a["gradOutput"]) if a["self"].ndim == 0 else right


def _kernel_on_empty(call: Call) -> bool:
    """A kernel launched with no blocks fails."""
    if not call.outputs["gradInput"].size:
        raise RuntimeError("kernel launch with 0 blocks")
    return True


def rows() -> list[Defect]:
    """Return L01 to L08."""
    table: list[tuple[str, str, str, Kernel, dict[str, Any], str, str]] = [
        ("L01", "NUM", "e^-x / (1 + e^-x): NaN where e^-x overflows", kernel_of(LOG_SIGMOID, exponential_quotient), {},
         "self below -88", "snntorch #427, tinygrad #1113, candle #1722, burn #1139"),
        ("L02", "NUM", "1 - 1 / (1 + e^-x): 0 from 16.7 on", kernel_of(LOG_SIGMOID, one_minus), {},
         "large positive self under a relative criterion", "tt-metal #55724, pytorch #195545"),
        ("L03", "IDX", "z / (1 + z) on both sides", kernel_of(LOG_SIGMOID, no_negative_branch), {}, "negative self",
         "derived"),
        ("L04", "API", "the derivative is taken at log_sigmoid(self)", kernel_of(LOG_SIGMOID, at_the_output), {},
         "any finite self", "mxnet #20371"),
        ("L05", "API", "buffer is trusted to hold e^-|self|", from_buffer, {}, "a buffer that holds something else",
         "pytorch #39642, FlagGems #5012, #5718"),
        ("L06", "NUM", "0 above 20 and gradOutput below -20", kernel_of(LOG_SIGMOID, saturating), {},
         "self above 20 under a relative criterion", "tt-metal #55457"),
        ("L07", "NUM", "16-bit inputs are computed in 16 bits", in_input_type, {}, "16-bit inputs",
         "ops-nn executor_aclnnLogSigmoidBackward.py"),
        ("L08", "SPEC", "a tensor of rank 0 gets its gradient back", rank_0_wrong, {}, "rank 0", "mxnet #20371"),
        ("L08/empty", "SPEC", "an empty tensor launches a kernel with no blocks", BASE[LOG_SIGMOID],
         {"launch": _kernel_on_empty}, "an empty tensor", "ops-nn !8479/#4673"),
    ]  # fmt: skip
    return [
        Defect(name, LOG_SIGMOID, kind, what, Device(name, kernel, **steps), needs, evidence)
        for name, kind, what, kernel, steps, needs, evidence in table
    ]
