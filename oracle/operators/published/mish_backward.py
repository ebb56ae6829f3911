"""Generated mutants of aclnnMishBackward that no right verdict may notice."""

from __future__ import annotations

from ...defects.masks import factors_of
from ..mish_backward import OPERATOR
from .gelu_backward import NO_ZERO

ONE_FUNCTION = (
    "both branches are the same function; within 1 of zero neither cancels, and kernels that have one branch are right"
)
ARGUMENTS = {
    **{f"mask/mish_backward/{factor}": NO_ZERO for factor in factors_of(OPERATOR) if factor != "gradOutput"},
    **{f"formula/mish_backward/950: 0 -> {end} in (x < 0)": ONE_FUNCTION for end in (-1, 1)},
}
