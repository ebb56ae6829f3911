"""A thread's hold on a device: context, stream, memory, workspace; and what is done when a fault has broken it.

Device and context belong to a thread. A kernel's fault surfaces at the next synchronisation and leaves the device's
context broken for every thread: the device is reset, which ends all streams and frees all memory on it, and each
thread opens its session anew.
"""

from __future__ import annotations

import math
import threading
from collections import defaultdict
from ctypes import byref, c_void_p

import numpy as np

from ..model.errors import DeviceFault
from . import abi
from .library import Cann, CannError


class _Health:
    """A device as all threads of this process see it: whether a fault has broken it, how often it was reset."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.broken = False
        self.resets = 0


_HEALTH: defaultdict[int, _Health] = defaultdict(_Health)


class Session:
    """One thread on one device. Open before use; ``timeout`` in seconds is how long a kernel may take."""

    def __init__(self, cann: Cann, device: int, timeout: float) -> None:
        self.cann, self.device, self.timeout = cann, device, timeout
        self._health = _HEALTH[device]
        self._stream: c_void_p | None = None
        self._resets = 0
        self._workspace: Guarded | None = None

    @property
    def stream(self) -> c_void_p:
        assert self._stream is not None, "the session is closed"
        return self._stream

    @property
    def opening(self) -> int:
        """A number that changes when the session is opened anew: what it held on the device before is gone."""
        return self._resets

    @property
    def broken(self) -> bool:
        """Whether what this session holds on the device is lost, or will be by the reset that is due."""
        return self._health.broken or self._resets != self._health.resets

    def require_unbroken(self, moment: str) -> None:
        """Raise DeviceFault where a fault of another call, of this thread or another, has broken the device."""
        if self.broken:
            raise DeviceFault(f"{moment} when a fault of another call had broken the device")

    def break_(self) -> None:
        """Note that the device's context is broken: whoever comes next resets it."""
        self._health.broken = True

    def ready(self) -> bool:
        """Open the session, or open it anew after a fault; return whether it was opened. Raises CannError."""
        if self._health.broken:
            self._reset()
        if self._resets != self._health.resets:
            self._stream = self._workspace = None
        if self._stream is not None:
            return False
        self._open()
        return True

    def _open(self) -> None:
        with self._health.lock:  # a stream from after a reset, held by a session from before it, is never destroyed
            self._resets = self._health.resets
            self.cann.call("aclrtSetDevice", self.device)
            made = c_void_p()
            try:
                self.cann.call("aclrtCreateStream", byref(made))
            except CannError:
                self.cann.status("aclrtResetDevice", self.device)
                raise
            self._stream = made

    def _reset(self) -> None:
        """Reset the device by force. What fails on the way is what is broken; that the device opens again decides."""
        cann, health, force = self.cann, self._health, "aclrtResetDeviceForce"
        with health.lock:
            if not health.broken:  # another thread was faster
                return
            if self._stream is not None and self._resets == health.resets and cann.has("aclrtDestroyStreamForce"):
                cann.status("aclrtDestroyStreamForce", self._stream)
            cann.status(force if cann.has(force) else "aclrtResetDevice", self.device)
            health.resets += 1
            health.broken = False

    def close(self) -> None:
        """Give everything back, in order. Raises CannError, once all was tried."""
        if self._health.broken:
            self._reset()
        if self._stream is None or self.broken:
            return
        steps: list[tuple[str, object]] = [("aclrtSetDevice", self.device)]  # this thread may not be the session's
        if self._workspace is not None:
            steps.append(("aclrtFree", self._workspace.block))
        steps += [("aclrtDestroyStream", self._stream), *[("aclrtResetDevice", self.device)] * 2]  # as often as set
        self._stream = self._workspace = None
        failures = []
        for name, argument in steps:
            if code := self.cann.status(name, argument):
                failures.append(CannError(name, code, self.cann.message()))
        if failures:
            raise failures[0]

    # calls that can break the context --------------------------------------------------------------------------------

    def call(self, name: str, *arguments: object) -> None:
        """Call the runtime; a failure other than a lack of memory marks the session as broken. Raises CannError."""
        try:
            self.cann.call(name, *arguments)
        except CannError as error:
            if error.code not in abi.HARMLESS:
                self.break_()
            raise

    def synchronise(self, stream: c_void_p | None = None) -> None:
        """Wait for a stream, the session's own unless one is given: the faults of its kernels surface here. Raises
        CannError (507046: out of time)."""
        self.call("aclrtSynchronizeStreamWithTimeout", stream or self.stream, math.ceil(self.timeout * 1000))

    def allocate(self, size: int) -> c_void_p:
        """Return a device block; the runtime adds the 32 bytes behind it that kernels may read. Raises DeviceFault."""
        made = c_void_p()
        with self._health.lock:  # nor is memory from after a reset freed by a session from before it
            self.require_unbroken("memory was asked for")
            self.call("aclrtMalloc", byref(made), max(size, 1), abi.MALLOC_HUGE_FIRST)
        return made

    def free(self, block: c_void_p) -> None:
        """Free a block; after a fault the reset does. Raises CannError."""
        with self._health.lock:
            if not self.broken:
                self.call("aclrtFree", block)

    def workspace(self, size: int) -> Guarded | None:
        """Return poisoned workspace of exactly this size between guards; it is kept until one is too small."""
        if size == 0:
            return None
        if self._workspace is None or self._workspace.capacity < size:
            if self._workspace is not None:
                old, self._workspace = self._workspace.block, None
                self.free(old)
            self._workspace = Guarded(self, size)
        self._workspace.arm(size, WORKSPACE_POISON)
        return self._workspace


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
