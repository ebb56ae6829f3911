"""Wrong and right kernels, and the score of a catalogue against them.

A catalogue is worth what it detects. The registry holds the defects that kernels of an operator really had, the right
kernels that must never be flagged, and mutants that follow from what the operator's page declares: its formula, its
checks, the tilings, memory layouts and numerics of its class, so that the score is not tuned to a list.
"""

from __future__ import annotations

from .base.device import CLASSES, Argument, Defect, Device, Right
from .registry import defects, right_kernels

__all__ = ["CLASSES", "Argument", "Defect", "Device", "Right", "defects", "right_kernels"]
