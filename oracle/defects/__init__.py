"""Wrong and right kernels, and the score of a catalogue against them.

A catalogue is worth what it detects. The registry holds the defects that kernels of these operators really had, the
right kernels that must never be flagged, and mutants generated from the formulas, the tilings, the memory layouts, the
checks and the numerics, so that the score is not tuned to a list.
"""

from __future__ import annotations

from .base import CLASSES, Defect
from .device import Device
from .registry import defects, right_kernels

__all__ = ["CLASSES", "Defect", "Device", "defects", "right_kernels"]
