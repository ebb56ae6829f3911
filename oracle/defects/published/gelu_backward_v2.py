"""A generated mutant of aclnnGeluBackwardV2 that no right verdict may notice."""

from __future__ import annotations

from .gelu_backward import NO_ZERO

DENSITY = "((exp(((self * self) * -0.5)) * (1 / sqrt((2 * pi)))) * self)"
PHI = "((erf((self * (1 / sqrt(2)))) * 0.5) + 0.5)"
ARGUMENTS = {f"mask/gelu_backward_v2/({DENSITY} + {PHI})": NO_ZERO}
