"""e^x of compiled loops: in float64, and in float32 for results of 16 bits. docs/proof-details.md derives them."""

from __future__ import annotations

import numpy as np

from ..bounds.windows import ARGUMENT
from ..floats.arithmetic import HOST_FLOAT32
from ..proof.proof import U
from .operands import f32, f64, i32, i64, njit

LN2_HIGH, LN2_LOW = float.fromhex("0x1.62e42feep-1"), float.fromhex("0x1.a39ef35793c76p-33")
LOG2_E, ROUNDING = 1.4426950408889634, 1.5 * 2.0**52
# e^r within 149u for |r| < 0.34658: of the polynomials 1 + r + ... of degree 9 the one whose relative error is least
C9, C8, C7, C6, C5, C4, C3, C2 = map(
    float.fromhex,
    (
        "0x1.710170a1ce511p-19", "0x1.a16e35993a5b8p-16", "0x1.a01b7399e90b4p-13", "0x1.6c163be6e9bd7p-10",
        "0x1.1111108e24bf2p-7", "0x1.5555557deff01p-5", "0x1.5555555589f37p-3", "0x1.fffffffff13eep-2",
    ),
)  # fmt: skip
EXP_RELATIVE = 160 * U  # the polynomial 149u, its evaluation below 10u; docs/proof-details.md
EXP_LIMIT = ARGUMENT  # beyond it the NumPy road takes over

# The same in float32, by degree 6, whose error is 0.06 of its u.
SINGLE_U = HOST_FLOAT32.unit
S_HIGH, S_LOW, S_ROUNDING = f32(float.fromhex("0x1.62e4p-1")), f32(float.fromhex("0x1.7f7d1cp-20")), f32(1.5 * 2.0**23)
S_LOG2_E = f32(LOG2_E)
S6, S5, S4, S3, S2 = (
    f32(float.fromhex(text))
    for text in ("0x1.6a5258p-10", "0x1.12396ep-7", "0x1.5558aap-5", "0x1.555492p-3", "0x1.fffffcp-2")
)
S1 = f32(1.0)
EXP_SINGLE = 4 * SINGLE_U  # docs/proof-details.md


@njit(fastmath={"contract"}, error_model="numpy")
def exp_near(x):
    """e^x within EXP_RELATIVE for |x| <= EXP_LIMIT."""
    shifted = x * LOG2_E + ROUNDING
    n = shifted - ROUNDING
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    square = r * r  # even and odd powers side by side: half the steps wait for one another
    even = C8 * square + C6
    odd = C9 * square + C7
    even = even * square + C4
    odd = odd * square + C5
    even = even * square + C2
    odd = odd * square + C3
    even = even * square + 1.0
    odd = odd * square + 1.0
    p = odd * r + even
    return p * i64((f64(shifted).view(i64) + i64(1023)) << i64(52)).view(f64)


@njit(fastmath={"contract"}, error_model="numpy")
def exp(x):
    """The same; NaN for every other argument."""
    return exp_near(x if abs(x) <= EXP_LIMIT else np.nan)


@njit(fastmath={"contract"}, error_model="numpy")
def exp_single(x):
    """e^x of a float32 number within EXP_SINGLE, for |x| up to what a window allows."""
    shifted = x * S_LOG2_E + S_ROUNDING
    n = shifted - S_ROUNDING
    r = (x - n * S_HIGH) - n * S_LOW
    p = S6 * r + S5
    p = p * r + S4
    p = p * r + S3
    p = p * r + S2
    p = p * r + S1
    p = p * r + S1
    return p * i32((f32(shifted).view(i32) + i32(127)) << i32(23)).view(f32)
