"""Scoring: the wrong kernels that a catalogue notices, and the right kernels that it flags.

``score(kernels)`` scores the catalogue on kernels from the caller.
"""

from __future__ import annotations

from .own_kernels import score

__all__ = ["score"]
