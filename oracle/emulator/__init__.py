"""The emulated CANN: build it, and run programs or this process on it. docs/emulator.md is the reference."""

from __future__ import annotations

from .environment import DEVICES, activate, environment
from .toolkit import add_custom, build, build_custom, served, unserved

__all__ = ["DEVICES", "activate", "add_custom", "build", "build_custom", "environment", "served", "unserved"]
