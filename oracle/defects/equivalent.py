"""Mutants that no right verdict may notice, each with the argument why.

A generated mutant is never taken for equivalent because nothing notices it: it stands here with a reason, or it counts.
"""

from __future__ import annotations

ZERO_SIGN = "right kernels answer +0 and -0 alike (section 6 of the survey), so no verdict may read the sign of a zero"
LAST_CHECK = "the last check ends an empty call with the success it has anyway; what such a call writes is judged apart"
ONE_DTYPE = (
    "{} must have the dtype of a tensor whose own dtype is checked by the same list: what this check refuses, the other"
    " one or the comparison refuses with the same code"
)

EQUIVALENT: dict[str, str] = {
    **{
        f"num/{slug}/minus zero lost": ZERO_SIGN
        for slug in (
            "binary_cross_entropy_backward",
            "nll_loss_backward",
            "softmax_backward",
            "log_sigmoid_backward",
        )
    },
    **{
        f"check/{slug}/without an empty call succeeds": LAST_CHECK
        for slug in (
            "binary_cross_entropy_backward",
            "nll_loss_backward",
            "softmax_backward",
            "log_sigmoid_backward",
        )
    },
    "check/log_sigmoid_backward/without dtype of gradOutput": ONE_DTYPE.format("gradOutput"),
    "check/log_sigmoid_backward/without dtype of self": ONE_DTYPE.format("self"),
    "check/softmax_backward/without dtype of gradOutput": ONE_DTYPE.format("gradOutput"),
    "check/softmax_backward/without dtype of output": ONE_DTYPE.format("output"),
    "refuses/nll_loss_backward/non-contiguous totalWeight": "a tensor of one element is always contiguous",
    "formula/log_sigmoid_backward/q: x < 0 -> x <= 0": "at x = 0 both branches are 1: e^-0 = 1",
    **{
        f"num/log_sigmoid_backward/{which}": (
            "1 / (1 + e^x) is irrational except at x = 0, where the 910's form goes through log and is inexact as well,"
            " and where it rounds to 0 or 1: a float32 result on a tie only says that the value lies next to it, on"
            " either side"
        )
        for which in ("half away", "float16 half away", "bfloat16 half away")
    },
    "operand/log_sigmoid_backward/self inf as largest": (
        "e^-3.4e38 underflows to the 0 that e^-inf is, so the result is the same bit for bit"
    ),
    "operand/log_sigmoid_backward/self flushed": (
        "below 2^-126 self changes 1 / (1 + e^x) by a relative 2^-127, far below float32's half ULP at 1/2"
    ),
}
