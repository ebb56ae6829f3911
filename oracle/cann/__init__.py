"""CANN through its C interface: its location, its libraries, a device, a call. docs/adding-a-backend.md explains it."""

from __future__ import annotations

from .calls import execute
from .device import Session, unsupported
from .discovery import find_toolkit
from .library import Cann, CannError, is_emulated, load, soc_of

__all__ = ["Cann", "CannError", "Session", "execute", "find_toolkit", "is_emulated", "load", "soc_of", "unsupported"]
