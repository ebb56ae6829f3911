"""A generated mutant of aclnnGeluBackward that no right verdict may notice."""

from __future__ import annotations

NO_ZERO = (
    "the derivative has no zero among the numbers of any type: where float32 makes it one, right kernels round it to a"
    " number of either sign, and what an infinite gradient gives there is unspecified"
)
SLOPE = "((2 * sqrt((2 / pi))) * (1 + (0.134145 * (self * self))))"
SIGMOID = "(1 / (1 + exp((-((2 * sqrt((2 / pi))) * (self + (0.044715 * ((self * self) * self))))))))"
ARGUMENTS = {f"mask/gelu_backward/(1 + ((self * {SLOPE}) * (1 - {SIGMOID})))": NO_ZERO}
