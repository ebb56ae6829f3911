"""Generated mutants of aclnnSmoothL1LossBackward that no right verdict may notice."""

from __future__ import annotations

SLUG = "smooth_l1_loss_backward"
ONE_AT_THE_EDGE = (
    "where the difference is beta the quotient is 1, as its sign is, and where both are 0 the result is unspecified"
)
ROUNDED_QUOTIENT = (
    "public kernels multiply by 1 / beta or divide by beta + 1e-6, so that no quotient they round is a tie for all of"
    " them; the sign times the gradient is a number of the type"
)
ARGUMENTS = {
    f"formula/{SLUG}/(abs((x - t)) < beta) -> (abs((x - t)) <= beta)": ONE_AT_THE_EDGE,
    f"formula/{SLUG}/950: (beta < (x - t)) -> (beta <= (x - t))": ONE_AT_THE_EDGE,
    f"formula/{SLUG}/950: ((x - t) < (-beta)) -> ((x - t) <= (-beta))": ONE_AT_THE_EDGE,
    **{f"num/{SLUG}/{kind}half away": ROUNDED_QUOTIENT for kind in ("", "float16 ", "bfloat16 ")},
}
