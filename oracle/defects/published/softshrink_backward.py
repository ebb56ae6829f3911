"""A generated mutant of aclnnSoftshrinkBackward that no right verdict may notice."""

from __future__ import annotations

ARGUMENTS = {"operand/softshrink_backward/self without sign": "the formula compares the magnitude of self alone"}
