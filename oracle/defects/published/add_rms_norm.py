"""Generated mutants of aclnnAddRmsNorm that no right verdict may notice."""

from __future__ import annotations

from ..sizes.tiles import SIZES

SLUG = "add_rms_norm"
IRRATIONAL = "every result goes through a root, which right kernels round: one beside a tie may go to either side"
SQUARED = "rstd is made of squares"
RANGE = "rstd lies between 2^-64 and 2^75, or is infinite with its plus sign, or 0"
ONE = "the last axis of rstd has one element"
OVERFLOWS = "the square of the largest number overflows as that of infinity does: rstd is 0"
TINY = "the square of a subnormal number is 0 in float32, and beside epsilon"
RANK = "x1 and x2 have one shape, and whichever has rank 0, the other is refused for it"
ARGUMENTS = {
    f"num/{SLUG}/half away": IRRATIONAL,
    f"num/{SLUG}/flush float32 of rstdOut": RANGE,
    f"spec/{SLUG}/float32 inf loses its sign of rstdOut": RANGE,
    **{f"operand/{SLUG}/{x} inf as largest of rstdOut": OVERFLOWS for x in ("x1", "x2")},
    **{f"operand/{SLUG}/{x} flushed of rstdOut": TINY for x in ("x1", "x2")},
    **{
        f"tile/{SLUG}/columns {what} {size} of rstdOut": ONE
        for what in ("exact", "beyond", "lane", "edge")
        for size in SIZES
    },
    f"check/{SLUG}/without least rank of x1": RANK,
    f"check/{SLUG}/without least rank of x2": RANK,
}
