"""Wrong and right kernels, and the score of a catalogue against them.

The value of a catalogue is the number of defects that it detects. The registry contains the defects that kernels of an
operator really had, and the right kernels that must never be flagged. It also contains mutants generated from the
declarations of the operator's page: its formula, its checks, and the tilings, memory layouts and numerics of its class.
So the score is not tuned to a fixed list.
"""

from __future__ import annotations

from .base.device import CLASSES, Argument, Defect, Device, Right
from .registry import defects, right_kernels

__all__ = ["CLASSES", "Argument", "Defect", "Device", "Right", "defects", "right_kernels"]
