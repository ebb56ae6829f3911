"""Old home of the words of :mod:`.types`."""

from __future__ import annotations

from .types import GOOD, SCHEMA, STATUSES

__all__ = ["GOOD", "SCHEMA", "STATUSES"]
