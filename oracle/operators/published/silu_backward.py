"""A generated mutant of aclnnSiluBackward that no right verdict may notice."""

from __future__ import annotations

from .gelu_backward import NO_ZERO

ARGUMENTS = {"mask/silu_backward/(1 + ((1 - (1 / (exp((-self)) + 1))) * self))": NO_ZERO}
