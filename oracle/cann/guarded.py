"""Device memory between guard bytes: what a kernel writes beside it is told, however the host's memory lies."""

from __future__ import annotations

from ctypes import c_void_p
from typing import TYPE_CHECKING

import numpy as np

from . import abi

if TYPE_CHECKING:
    from .device import Session

GUARD = 1 << 16  # bytes before and behind: also what a kernel writes a whole tile too far lands in them
PATTERN = 0xA5
WORKSPACE_POISON = 0xFF  # a kernel that reads its workspace before it wrote it finds nan


class Guarded:
    """A device block of ``capacity`` bytes between guards. ``address``: of its first byte."""

    def __init__(self, session: Session, capacity: int) -> None:
        self.session, self.capacity = session, capacity
        self.block = session.allocate(capacity + 2 * GUARD)
        self._size = capacity

    @property
    def address(self) -> int:
        return (self.block.value or 0) + GUARD

    def arm(self, size: int, poison: int | None = None) -> None:
        """Fill the guards around the first ``size`` bytes, and those bytes with ``poison`` where one is given."""
        self._size = size
        spans = [(-GUARD, GUARD, PATTERN), (size, GUARD, PATTERN)]
        if poison is not None and size:
            spans.append((0, size, poison))
        for offset, length, value in spans:
            self.session.call("aclrtMemset", c_void_p(self.address + offset), length, value, length)

    def trespass(self) -> str:
        """Return what was written beside the memory, "" if nothing was."""
        before, behind = self._guard(-GUARD), self._guard(self._size)
        told = []
        if before.size:
            told.append(f"{before.size} bytes before it, the nearest {GUARD - before[-1]} bytes away")
        if behind.size:
            told.append(f"{behind.size} bytes behind it, the nearest {behind[0] + 1} bytes away")
        return " and ".join(told)

    def _guard(self, offset: int) -> np.ndarray:
        """Return the positions of a guard's changed bytes."""
        found = np.empty(GUARD, np.uint8)
        to, address = found.ctypes.data, c_void_p(self.address + offset)
        self.session.call("aclrtMemcpy", to, GUARD, address, GUARD, abi.DEVICE_TO_HOST)
        return np.flatnonzero(found != PATTERN)
