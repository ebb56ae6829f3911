"""Generated mutants of aclnnFastGeluBackward that no right verdict may notice."""

from __future__ import annotations

IN_FLOAT16 = (
    "the public kernels before ascend950 compute float16 step by step in float16, and what that may lose is more than a"
    " last rounding of another kind"
)
NO_ZERO = (
    "the derivative has no zero among the numbers of any type: where float32 makes it one, right kernels round it to a"
    " number of either sign, and what an infinite gradient gives there is unspecified"
)
FACTOR = "((((1 / (exp((self * -1.702)) + 1)) - 1) * (self * -1.702)) + 1)"
ARGUMENTS = {
    **{f"num/fast_gelu_backward/{name}": IN_FLOAT16 for name in ("float16 in float16", "float16 truncate")},
    f"mask/fast_gelu_backward/{FACTOR}": NO_ZERO,
}
