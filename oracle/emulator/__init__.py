"""The emulated CANN: build it, and run programs or this process on it. docs/emulator.md is the reference."""

from __future__ import annotations

from .custom import add_custom, build_custom
from .environment import DEVICES, activate, environment
from .toolkit import build, served

__all__ = ["DEVICES", "activate", "add_custom", "build", "build_custom", "environment", "served"]
