"""Generated mutants of aclnnHardshrinkBackward that no right verdict may notice."""

from __future__ import annotations

ARGUMENTS = {"operand/hardshrink_backward/self without sign": "the formula compares the magnitude of self alone"}
