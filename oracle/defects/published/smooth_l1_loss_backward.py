"""Generated mutants of aclnnSmoothL1LossBackward that no right verdict may notice."""

from __future__ import annotations

SLUG = "smooth_l1_loss_backward"
ONE_AT_THE_EDGE = (
    "where the difference is beta the quotient is 1, as its sign is, and where both are 0 the result is unspecified"
)
ARGUMENTS = {
    f"formula/{SLUG}/(abs((x - t)) < beta) -> (abs((x - t)) <= beta)": ONE_AT_THE_EDGE,
    f"formula/{SLUG}/950: (beta < (x - t)) -> (beta <= (x - t))": ONE_AT_THE_EDGE,
    f"formula/{SLUG}/950: ((x - t) < (-beta)) -> ((x - t) <= (-beta))": ONE_AT_THE_EDGE,
}
