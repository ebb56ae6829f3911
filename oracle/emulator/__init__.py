"""The emulated CANN: build it, and run programs or this process on it. docs/emulator.md is the reference."""

from __future__ import annotations

from .build import build
from .environment import DEVICES, activate, environment

__all__ = ["DEVICES", "activate", "build", "environment"]
