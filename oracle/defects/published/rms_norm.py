"""Generated mutants of aclnnRmsNorm that no right verdict may notice."""

from __future__ import annotations

SLUG = "rms_norm"
IRRATIONAL = "every result goes through a root, which right kernels round: one beside a tie may go to either side"
SQUARED = "rstd is made of squares"
RANGE = "rstd lies between 2^-64 and 2^75, or is infinite with its plus sign, or 0"
OVERFLOWS = "the square of the largest number overflows as that of infinity does: rstd is 0"
ARGUMENTS = {
    f"num/{SLUG}/half away": IRRATIONAL,
    f"operand/{SLUG}/x without sign of rstdOut": SQUARED,
    f"operand/{SLUG}/x flushed of rstdOut": "the square of a subnormal number is 0 in float32, and beside epsilon",
    f"operand/{SLUG}/x inf as largest of rstdOut": OVERFLOWS,
    f"num/{SLUG}/flush float32 of rstdOut": RANGE,
    f"spec/{SLUG}/float32 inf loses its sign of rstdOut": RANGE,
}
