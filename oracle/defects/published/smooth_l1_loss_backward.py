"""Generated mutants of aclnnSmoothL1LossBackward that no right verdict may notice."""

from __future__ import annotations

from collections.abc import Iterator

from ..base.base import Argument

SLUG = "smooth_l1_loss_backward"


def rows() -> Iterator[Argument]:
    """Yield why a mutant is right."""
    yield Argument(
        f"formula/{SLUG}/(abs((x - t)) < beta) -> (abs((x - t)) <= beta)",
        "at a difference of beta the quotient is 1, as its sign is; where both are 0 it is NaN, as ascend950's",
        socs=("ascend950",),
    )
