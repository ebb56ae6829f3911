"""Generated mutants of aclnnSwishBackward that no right verdict may notice."""

from __future__ import annotations

from .gelu_backward import NO_ZERO

S, X = "(1 / (exp((-(self * betaOptional))) + 1))", "(self * betaOptional)"
ARGUMENTS = {
    f"mask/swish_backward/(((1 - {S}) * {X}) + 1)": NO_ZERO,
    f"mask/swish_backward/((((1 - {S}) * {X}) * {S}) + {S})": NO_ZERO,
}
