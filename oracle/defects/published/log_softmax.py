"""Generated mutants of aclnnLogSoftmax that no right verdict may notice."""

from __future__ import annotations

SLUG = "log_softmax"
IRRATIONAL = (
    "every result goes through e^x and a logarithm, which right kernels round: one beside a tie may go to either side"
)
ARGUMENTS = {
    **{f"num/{SLUG}/{kind}half away": IRRATIONAL for kind in ("", "float16 ", "bfloat16 ")},
}
