"""Generated mutants of aclnnSwishBackward that no right verdict may notice."""

from __future__ import annotations

NO_ZERO = (
    "the derivative has no zero among the numbers of any type: where float32 makes it one, right kernels round it to a"
    " number of either sign, and what an infinite gradient gives there is unspecified"
)
S, X = "(1 / (exp((-(self * betaOptional))) + 1))", "(self * betaOptional)"
ARGUMENTS = {
    f"mask/swish_backward/(((1 - {S}) * {X}) + 1)": NO_ZERO,
    f"mask/swish_backward/((((1 - {S}) * {X}) * {S}) + {S})": NO_ZERO,
}
