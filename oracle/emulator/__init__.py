"""The emulated CANN: build it, and say which environment runs a program on it. docs/emulator.md is the reference."""

from __future__ import annotations

from .build import build
from .environment import DEVICES, environment

__all__ = ["DEVICES", "build", "environment"]
