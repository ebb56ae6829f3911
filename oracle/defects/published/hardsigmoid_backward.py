"""Generated mutants of aclnnHardsigmoidBackward that no right verdict may notice."""

from __future__ import annotations

SLUG = "hardsigmoid_backward"
ROUNDED_SIXTH = (
    "the result is the gradient times 1/6 rounded to float32, or 0: one beside a tie may be stored to either side"
)
ARGUMENTS = {
    **{f"num/{SLUG}/{kind}half away": ROUNDED_SIXTH for kind in ("", "float16 ", "bfloat16 ")},
    f"operand/{SLUG}/self half flushed": "the formula compares self with -3 and 3 alone",
    f"operand/{SLUG}/self without sign": "the formula is the same for both signs of self",
}
