"""How exactly evaluations compute: float64 here, float32 on a device, and the types that some kernels do not widen."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache


@dataclass(frozen=True, eq=False)
class Arithmetic:
    """How exactly an evaluation computes.

    ``unit``: the relative error of + - * (half an ULP of the type). ``digits``: its significant bits. ``quantum``: its
    smallest number, what an underflow may lose (0: operands are far from underflow). ``accuracy``: of functions and of
    ``/``, in units; every other function is exact. ``flushing``: operations whose results below ``tiny`` become 0.
    ``normal``: a multiple of more than 2^normal does not underflow.
    """

    unit: float
    digits: int
    quantum: float
    accuracy: Mapping[str, float]
    tiny: float = 0.0
    flushing: frozenset[str] = frozenset()
    normal: float = math.inf


FLOAT64 = Arithmetic(
    2.0**-53,
    53,
    0.0,
    # Our functions, NumPy's, the C library's and the compiled engine's own exp stay within these (tests/numerics).
    {"/": 1, "exp": 4, "log": 8, "log1p": 8, "expm1": 8, "tanh": 8, "erf": 8, "erfc": 16, "sqrt": 1},
)
# The same near the end of its range: a subnormal result may be off by a few of float64's smallest numbers.
# From 2^-900 on it has all its digits, with a margin.
UNDERFLOWING = replace(FLOAT64, quantum=2.0**-1070, normal=-900)

# A right kernel in float32: the functions of any public one stay within 4 ULP, a quotient within one.
_DEVICE = {"/": 2, "exp": 8, "log": 8, "log1p": 8, "expm1": 8, "tanh": 8, "erf": 8, "erfc": 8, "sqrt": 2}
FLOAT32 = Arithmetic(2.0**-24, 24, 2.0**-149, _DEVICE)
HOST_FLOAT32 = Arithmetic(2.0**-24, 24, 0.0, {"/": 1, "sqrt": 1})  # the host's own float32, far from underflow


@lru_cache(maxsize=16)
def float32(flushing: frozenset[str]) -> Arithmetic:
    """Return float32 on a device some of whose operations answer 0 for subnormal results; its division then reads
    subnormal operands as 0 too."""
    return replace(FLOAT32, tiny=2.0**-126, flushing=flushing) if flushing else FLOAT32


_ROUNDED = dict.fromkeys(_DEVICE, 1.01)  # computed in float32 and rounded
# Kernels that do not widen, and chains of operators that each round.
NARROW = {
    "float16": Arithmetic(2.0**-11, 11, 2.0**-24, _DEVICE),
    "bfloat16": Arithmetic(2.0**-8, 8, 2.0**-133, _ROUNDED),
}
