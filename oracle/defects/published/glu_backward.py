"""Generated mutants of aclnnGluBackward that no right verdict may notice."""

from __future__ import annotations

SLUG = "glu_backward"
IRRATIONAL = (
    "every result goes through e^b, which right kernels round: one beside a tie may be stored to either side of it"
)
IN_BFLOAT16 = (
    "before ascend950 the host chains operators that each round to bfloat16, and what that may lose is more than a last"
    " rounding of another kind"
)
ARGUMENTS = {
    **{f"num/{SLUG}/{kind}half away": IRRATIONAL for kind in ("", "float16 ", "bfloat16 ")},
    **{f"num/{SLUG}/bfloat16 {name}": IN_BFLOAT16 for name in ("in bfloat16", "truncate")},
}
