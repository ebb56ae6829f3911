"""Generated mutants of aclnnSoftmax that no right verdict may notice."""

from __future__ import annotations

SLUG = "softmax"
IRRATIONAL = (
    "every result goes through e^x, which right kernels round: one beside a tie may be stored to either side of it"
)
BELOW_ONE = "every result is a number between 0 and 1, or NaN"
ARGUMENTS = {
    **{f"num/{SLUG}/{kind}half away": IRRATIONAL for kind in ("", "float16 ", "bfloat16 ")},
    **{
        f"spec/{SLUG}/{dtype} inf {what}": BELOW_ONE
        for dtype in ("float16", "bfloat16", "float32")
        for what in ("to largest", "to nan", "to zero", "loses its sign")
    },
    f"operand/{SLUG}/self flushed": "a subnormal number changes no difference of float32 numbers by what e^x shows",
}
