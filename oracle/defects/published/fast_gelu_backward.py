"""A generated mutant of aclnnFastGeluBackward that no right verdict may notice."""

from __future__ import annotations

from .gelu_backward import NO_ZERO

FACTOR = "((((1 / (exp((self * -1.702)) + 1)) - 1) * (self * -1.702)) + 1)"
ARGUMENTS = {f"mask/fast_gelu_backward/{FACTOR}": NO_ZERO}
