"""Generated mutants of aclnnLogSoftmaxBackward that no right verdict may notice."""

from __future__ import annotations

SLUG = "log_softmax_backward"
IRRATIONAL = (
    "every result goes through e^output, which right kernels round: one beside a tie may be stored to either side of it"
)
ARGUMENTS = {
    **{f"num/{SLUG}/{kind}half away": IRRATIONAL for kind in ("", "float16 ", "bfloat16 ")},
    f"operand/{SLUG}/output inf as largest": "e^3.4e38 overflows to the infinity that e^inf is, and below both are 0",
    f"operand/{SLUG}/output flushed": "e^output is 1 for every subnormal number, as for 0",
}
