"""A thread's session on a device, and a call's tensors in the device's memory.

Device and context belong to a thread. A kernel's fault appears at the next synchronisation and breaks the context for
every thread. The device is then reset: all streams end, all memory is freed, and each thread opens its session again.
"""

from __future__ import annotations

import math
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import byref, c_int64, c_void_p
from typing import Any

import numpy as np

from ..catalogue.data.layout import reach
from ..model.call import FORMAT_ENUM, Array, Call, TensorSpec, address, memory_of, row_major, spec_of, strides_of
from ..model.dtypes import find
from ..model.errors import DeviceFault
from . import abi
from .library import Cann, CannError, failures, released


class _Health:
    """A device's state, shared by all threads of this process: whether a fault has broken it; the number of resets."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.broken = False
        self.resets = 0


_HEALTH: defaultdict[int, _Health] = defaultdict(_Health)


class Session:
    """One thread on one device. Call :meth:`ready` before use. ``timeout``: the seconds that a kernel can take."""

    def __init__(self, cann: Cann, device: int, timeout: float) -> None:
        self.cann, self.device, self.timeout = cann, device, timeout
        self._health = _HEALTH[device]
        self._stream: c_void_p | None = None
        self._resets = 0
        self._workspace = Workspace(self)

    @property
    def stream(self) -> c_void_p:
        assert self._stream is not None, "the session is closed"
        return self._stream

    @property
    def opening(self) -> int:
        """A number that changes when the session opens again; its earlier memory on the device is then gone."""
        return self._resets

    @property
    def broken(self) -> bool:
        """Whether the session's resources on the device are lost, or a pending reset will free them."""
        return self._health.broken or self._resets != self._health.resets

    def require_unbroken(self, moment: str) -> None:
        """Raise DeviceFault if the fault of another call, of any thread, has broken the device."""
        if self.broken:
            raise DeviceFault(f"{moment} when a fault of another call had broken the device")

    def break_(self) -> None:
        """Mark the device's context as broken: the next user resets it."""
        self._health.broken = True

    def ready(self) -> bool:
        """Open the session, or open it again after a fault; return whether it was opened now. Raises CannError."""
        if self._health.broken:
            self._reset()
        if self._resets != self._health.resets:
            self._stream, self._workspace = None, Workspace(self)
        if self._stream is not None:
            return False
        self._open()
        return True

    def _open(self) -> None:
        with self._health.lock:  # a reset in between would leave a stream that is never destroyed
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
        """Reset the device by force. Errors on the way are ignored: opening the device again is the test."""
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
        """Release everything, in order. Raises CannError after it has tried everything."""
        if self._health.broken:
            self._reset()
        if self._stream is None or self.broken:
            return
        steps: list[tuple[str, object]] = [("aclrtSetDevice", self.device)]  # this can be another thread
        if self._workspace.kept is not None:
            steps.append(("aclrtFree", self._workspace.kept.block))
        steps += [("aclrtDestroyStream", self._stream), *[("aclrtResetDevice", self.device)] * 2]  # once per SetDevice
        self._stream, self._workspace = None, Workspace(self)
        for error in failures(self.cann, steps):
            raise error

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
        """Wait for a stream (default: the session's own), where its kernels' faults appear. Raises CannError (507046:
        timeout)."""
        self.call("aclrtSynchronizeStreamWithTimeout", stream or self.stream, math.ceil(self.timeout * 1000))

    def allocate(self, size: int) -> c_void_p:
        """Return a device block; the runtime adds 32 bytes behind it, which kernels can read. Raises DeviceFault."""
        made = c_void_p()
        with self._health.lock:  # a session from before a reset must not free memory from after it
            self.require_unbroken("memory was asked for")
            self.call("aclrtMalloc", byref(made), max(size, 1), abi.MALLOC_HUGE_FIRST)
        return made

    def free(self, block: c_void_p) -> None:
        """Free a block; after a fault the reset frees it. Raises CannError."""
        with self._health.lock:
            if not self.broken:
                self.call("aclrtFree", block)

    def workspace(self, size: int) -> Guarded | None:
        """Return the session's own workspace (:meth:`Workspace.of`)."""
        return self._workspace.of(size)


MOST_WORKSPACE = 1 << 44  # bytes
GUARD = 1 << 16  # bytes before and behind: they also catch a write that is a whole tile too far
PATTERN = 0xA5
WORKSPACE_POISON = 0xFF  # a kernel that reads its workspace before writing it gets nan


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
        """Fill the guards around the first ``size`` bytes, and fill these bytes with ``poison`` if it is given."""
        self._size = size
        spans = [(-GUARD, GUARD, PATTERN), (size, GUARD, PATTERN)]
        if poison is not None and size:
            spans.append((0, size, poison))
        for offset, length, value in spans:
            self.session.call("aclrtMemset", c_void_p(self.address + offset), length, value, length)

    def trespass(self) -> str:
        """Return a description of the bytes written outside the memory; "" if there are none."""
        before, behind = self._guard(-GUARD), self._guard(self._size)
        sentences = []
        if before.size:
            sentences.append(f"{before.size} bytes before it, the nearest {GUARD - before[-1]} bytes away")
        if behind.size:
            sentences.append(f"{behind.size} bytes behind it, the nearest {behind[0] + 1} bytes away")
        return " and ".join(sentences)

    def _guard(self, offset: int) -> np.ndarray:
        """Return the positions of the changed bytes of a guard."""
        result = np.empty(GUARD, np.uint8)
        to, address = result.ctypes.data, c_void_p(self.address + offset)
        self.session.call("aclrtMemcpy", to, GUARD, address, GUARD, abi.DEVICE_TO_HOST)
        return np.flatnonzero(result != PATTERN)


class Workspace:
    """Workspace between guards, for one call at a time."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.kept: Guarded | None = None

    def of(self, size: int) -> Guarded | None:
        """Return a poisoned workspace of exactly this size; it is kept until a larger one is needed. Raises DeviceFault
        for a size that no device has."""
        if size == 0:
            return None
        if size >= MOST_WORKSPACE:
            raise DeviceFault(f"the first phase asks for a workspace of {size} bytes, more than any device has")
        if self.kept is None or self.kept.capacity < size:
            old, self.kept = self.kept, None
            if old is not None:
                self.session.free(old.block)
            self.kept = Guarded(self.session, size)
        self.kept.arm(size, WORKSPACE_POISON)
        return self.kept


# A call's tensors on the device: a mirror of their host memory; views stay views.
#
# The whole memory behind an array is copied to the device and back, including its guards. So the host sees, byte for
# byte, what a kernel writes outside its output or into an input. Tensors that share memory share it on the device.

ALIGNMENT = 32  # of tensorData (documents)


def unsupported(name: str, array: Array) -> str | None:
    """Return why an array cannot become an aclTensor with its memory layout; None if it can."""
    if find(array.dtype) is None:
        return f"{name}: no aclDataType for {array.dtype}"
    if not array.dtype.isnative:
        return f"{name}: {array.dtype} is not in the machine's byte order"
    if any(s < 0 and n > 1 for s, n in zip(array.strides, array.shape, strict=True)):
        return f"{name}: an aclTensor has no negative strides"
    if any(s % array.itemsize for s in array.strides) or address(array) % array.itemsize:
        return f"{name}: its elements do not lie at multiples of {array.itemsize} bytes"
    if array.size and not np.may_share_memory(array, memory_of(array)):
        return f"{name}: the memory of this view cannot be found"
    return None


class Mirror:
    """A host memory (``host``: its bytes) and the guarded block on the device with the same content."""

    def __init__(self, session: Session, host: Array, size: int) -> None:
        self.session, self.host = session, host
        self.size = max(size, host.nbytes)
        self.memory = Guarded(session, max(self.size, 1))

    def upload(self, content: Array | None = None) -> None:
        """Copy the host's bytes, or ``content``, to the device."""
        self.memory.arm(self.memory.capacity)
        if self.host.nbytes:
            n = self.host.nbytes
            to, given = c_void_p(self.memory.address), self.host if content is None else content
            self.session.call("aclrtMemcpy", to, self.size, address(given), n, abi.HOST_TO_DEVICE)

    def on_device(self) -> Array:
        """Return the content of the device's memory."""
        result = np.empty_like(self.host)
        n = self.host.nbytes
        if n:
            self.session.call("aclrtMemcpy", address(result), n, c_void_p(self.memory.address), n, abi.DEVICE_TO_HOST)
        return result

    def download(self) -> None:
        """Copy changes of the device back to the host. Raises ValueError if the host's memory is read-only."""
        result = self.on_device()
        if not np.array_equal(result, self.host):
            self.host[...] = result


class Tensors:
    """The aclTensors of a call, by parameter name (None: a null pointer).

    ``complete``: every tensor has data. Only then is a kernel allowed to run.
    """

    def __init__(self, session: Session, call: Call) -> None:
        self.session = session
        self.handles: dict[str, c_void_p | None] = {}
        self.mirrors: dict[int, Mirror] = {}
        self._blocks: list[c_void_p] = []
        values = {**call.inputs, **call.outputs}
        self.complete = not any(isinstance(value, TensorSpec) for value in values.values())
        self._placed = {n: Placed(v, call.specs.get(n)) for n, v in values.items() if isinstance(v, np.ndarray)}
        self._specs = {n: v for n, v in values.items() if not isinstance(v, np.ndarray)}

    def release(self) -> list[CannError]:
        """Destroy the tensors, then free their memory, and return the errors."""
        made = [("aclDestroyTensor", handle) for handle in self.handles.values() if handle is not None]
        failed = failures(self.session.cann, made)
        for block in self._blocks:
            try:
                self.session.free(block)
            except CannError as failure:
                failed.append(failure)
        self.handles, self.mirrors, self._blocks = {}, {}, []
        return failed

    def make(self) -> None:
        """Copy the memories to the device, and create the tensors. Raises DeviceFault."""
        sizes: dict[int, int] = {}
        for placed in self._placed.values():
            sizes[placed.key] = max(sizes.get(placed.key, 0), placed.end)
        for placed in self._placed.values():
            if placed.key not in self.mirrors:
                mirror = Mirror(self.session, placed.memory, sizes[placed.key])
                self.mirrors[placed.key] = mirror
                self._blocks.append(mirror.memory.block)
                mirror.upload()
        for name, placed in self._placed.items():
            base = self.mirrors[placed.key].memory.address
            self.handles[name] = self._create(placed.spec, base + placed.start)
        for name, spec in self._specs.items():
            self.handles[name] = None if spec is None else self._create(spec, self._placeholder())

    def _placeholder(self) -> int:
        """Return memory for a tensor without data. Its call must be refused before any code reads the memory."""
        block = self.session.allocate(ALIGNMENT)
        self._blocks.append(block)
        return block.value or 0

    def _create(self, spec: TensorSpec, address: int) -> c_void_p:
        strides = row_major(spec.shape) if spec.strides is None else spec.strides
        dtype = -1 if spec.dtype is None else spec.dtype.enum
        format, rank, dims = FORMAT_ENUM[spec.format], len(spec.shape), spec.storage_shape
        handle = self.session.cann.function("aclCreateTensor")(
            _int64s(spec.shape), rank, dtype, _int64s(strides), spec.offset, format, _int64s(dims), len(dims), address
        )
        if not handle:
            raise CannError("aclCreateTensor", abi.SUCCESS, f"for {spec!r}; {self.session.cann.message()}")
        return c_void_p(handle)

    def trespasses(self) -> list[str]:
        """Describe the bytes that were written on the device outside each memory."""
        sentences = []
        for key, mirror in self.mirrors.items():
            if where := mirror.memory.trespass():
                names = " and ".join(name for name, placed in self._placed.items() if placed.key == key)
                sentences.append(f"next to the memory of {names}: {where}")
        return sentences

    def contents(self) -> list[Array]:
        """Return copies of the host's memories."""
        return [mirror.host.copy() for mirror in self.mirrors.values()]

    def on_device(self) -> list[Array]:
        """Return the contents of the device's memories, in the order of `contents`."""
        return [mirror.on_device() for mirror in self.mirrors.values()]

    def restore(self, contents: list[Array]) -> None:
        """Copy the arrays that `contents` returned to the device again, between fresh guards."""
        for mirror, content in zip(self.mirrors.values(), contents, strict=True):
            mirror.upload(content)

    def forget(self) -> None:
        """Forget the device's blocks: a reset has freed them."""
        self._blocks = []

    def download(self) -> None:
        """Copy every memory back, inputs too: a kernel can write to a wrong place."""
        for mirror in self.mirrors.values():
            mirror.download()


@contextmanager
def tensors_of(session: Session, call: Call) -> Iterator[Tensors]:
    """Yield the aclTensors of a call, and release them at the exit."""
    made = Tensors(session, call)
    with released(made.release):
        made.make()
        yield made


class Placed:
    """An array in its memory. ``start``: the first byte of its storage; ``end``: the required bytes of the block."""

    def __init__(self, array: Array, described: TensorSpec | None) -> None:
        self.memory = memory_of(array)
        self.key = address(self.memory)
        item = array.itemsize
        spec = described or spec_of(array)
        start = address(array) - self.key - spec.offset * item
        if described is None or start % ALIGNMENT:
            spec, start = _described(array, start + spec.offset * item, spec.format)
        self.spec, self.start = spec, start
        self.end = start + item * int(np.prod(spec.storage_shape, dtype=object))


def _described(array: Array, position: int, format: str) -> tuple[TensorSpec, int]:
    """Describe an array whose first element is at byte ``position`` of its memory; the storage starts aligned."""
    start = position // ALIGNMENT * ALIGNMENT
    offset = (position - start) // array.itemsize
    strides = row_major(array.shape) if array.flags.c_contiguous else strides_of(array)
    span = reach(array.shape, strides, offset)
    contiguous = offset == 0 and array.flags.c_contiguous
    storage = array.shape if contiguous else (span,)
    made = TensorSpec(array.shape, array.dtype, format=format, strides=strides, offset=offset, storage_shape=storage)
    return made, start


def _int64s(values: tuple[int, ...]) -> Any:
    return (c_int64 * len(values))(*values)
