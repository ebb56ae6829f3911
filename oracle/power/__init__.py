"""Scoring: the wrong kernels that a catalogue notices, and the right kernels that it flags.

``score(kernels)`` scores the catalogue on kernels from the caller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .own_kernels import score

__all__ = ["score"]


def __getattr__(name: str) -> Any:
    if name != "score":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .own_kernels import score

    return score
