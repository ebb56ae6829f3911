"""Generated mutants of aclnnNLLLoss that no right verdict may notice; the formula of aclnnNLLLoss2d is the same."""

from __future__ import annotations

_OWN_PLACE = "only the place of the sample's own class counts, and there the place is the class"
_OF_MEANS = "the sum of the weights divides a mean alone, which is taken over all elements"


def arguments_of(slug: str) -> dict[str, str]:
    """Return the arguments by the ids of an operator's mutants."""
    begin = f"formula/{slug}"
    return {
        f"{begin}/(mean != 0) -> (0 < mean)": "mean is 0 or 1: what is not 0 is above 0",
        f"{begin}/stage 0: t -> place in (t == ignore)": _OWN_PLACE,
        f"{begin}/stage 1: t -> place in (t == ignore)": _OWN_PLACE,
        f"{begin}/stage 0: t -> place in (t == ignore) of totalWeightOut": _OWN_PLACE,
        f"{begin}/stage 1: all elements": _OF_MEANS,
        f"{begin}/stage 0: all elements of totalWeightOut": "the sum of the weights is that of all elements",
    }


ARGUMENTS = arguments_of("nll_loss")
