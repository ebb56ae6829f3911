"""A thread's hold on a device, and a call's tensors in its memory.

Device and context belong to a thread. A kernel's fault surfaces at the next synchronisation and leaves the device's
context broken for every thread: the device is reset, which ends all streams and frees all memory on it, and each
thread opens its session anew.
"""

from __future__ import annotations

import math
import threading
from collections import defaultdict
from ctypes import byref, c_int64, c_void_p
from types import TracebackType
from typing import Any

import numpy as np

from ..catalogue.data.layout import reach
from ..model.call import FORMAT_ENUM, Array, Call, TensorSpec, address, memory_of, row_major, spec_of, strides_of
from ..model.dtypes import find
from ..model.errors import DeviceFault
from . import abi
from .library import Cann, CannError, failures


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
        self._workspace = Workspace(self)

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
            self._stream, self._workspace = None, Workspace(self)
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
        if self._workspace.kept is not None:
            steps.append(("aclrtFree", self._workspace.kept.block))
        steps += [("aclrtDestroyStream", self._stream), *[("aclrtResetDevice", self.device)] * 2]  # as often as set
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
        """Return the session's own workspace (:meth:`Workspace.of`)."""
        return self._workspace.of(size)


MOST_WORKSPACE = 1 << 44  # bytes
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
        sentences = []
        if before.size:
            sentences.append(f"{before.size} bytes before it, the nearest {GUARD - before[-1]} bytes away")
        if behind.size:
            sentences.append(f"{behind.size} bytes behind it, the nearest {behind[0] + 1} bytes away")
        return " and ".join(sentences)

    def _guard(self, offset: int) -> np.ndarray:
        """Return the positions of a guard's changed bytes."""
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
        """Return poisoned workspace of exactly this size; it is kept until one is too small. Raises DeviceFault for a
        size that no device has."""
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


# A call's tensors on the device: the host memory they lie in is mirrored there, views stay views.
#
# The whole memory that an array is a view of goes to the device and comes back, guards included: what a kernel writes
# beside its output, or into an input, is then seen in the host, byte for byte. Tensors that share memory share it
# there.

ALIGNMENT = 32  # of tensorData (documents)


def unsupported(name: str, array: Array) -> str | None:
    """Say why an array cannot become an aclTensor as it lies."""
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
    """A host memory (``host``: its bytes) and the guarded block on the device that holds the same."""

    def __init__(self, session: Session, host: Array, size: int) -> None:
        self.session, self.host = session, host
        self.size = max(size, host.nbytes)
        self.memory = Guarded(session, max(self.size, 1))

    def upload(self, content: Array | None = None) -> None:
        """Put the host's bytes, or others, on the device."""
        self.memory.arm(self.memory.capacity)
        if self.host.nbytes:
            n = self.host.nbytes
            to, given = c_void_p(self.memory.address), self.host if content is None else content
            self.session.call("aclrtMemcpy", to, self.size, address(given), n, abi.HOST_TO_DEVICE)

    def on_device(self) -> Array:
        """Return what the device's memory holds."""
        result = np.empty_like(self.host)
        n = self.host.nbytes
        if n:
            self.session.call("aclrtMemcpy", address(result), n, c_void_p(self.memory.address), n, abi.DEVICE_TO_HOST)
        return result

    def download(self) -> None:
        """Bring back what the device has changed. Raises ValueError where the host's memory is read-only."""
        result = self.on_device()
        if not np.array_equal(result, self.host):
            self.host[...] = result


class Tensors:
    """The aclTensors of a call, by parameter name (None: a null pointer). A context manager: leaving it frees them.

    ``complete``: every tensor has data. Only then may a kernel run.
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

    def __enter__(self) -> Tensors:
        try:
            self._make()
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Destroy the tensors, then free their memory. Raises CannError unless another error is on its way."""
        made = [("aclDestroyTensor", handle) for handle in self.handles.values() if handle is not None]
        failed = failures(self.session.cann, made)
        for block in self._blocks:
            try:
                self.session.free(block)
            except CannError as failure:
                failed.append(failure)
        self.handles, self.mirrors, self._blocks = {}, {}, []
        if failed and error is None:
            raise failed[0]

    def _make(self) -> None:
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
        """Memory for a tensor that has no data: its call is to be refused before anything reads it."""
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
        """Say of each memory what was written beside it on the device, beyond what the host's memory holds."""
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
        """Return what the device's memories hold, in the order of `contents`."""
        return [mirror.on_device() for mirror in self.mirrors.values()]

    def restore(self, contents: list[Array]) -> None:
        """Put what `contents` returned on the device again, in fresh guards."""
        for mirror, content in zip(self.mirrors.values(), contents, strict=True):
            mirror.upload(content)

    def forget(self) -> None:
        """Leave the device's blocks alone: a reset has freed them."""
        self._blocks = []

    def download(self) -> None:
        """Bring every memory back, inputs too: a kernel may have written where it must not."""
        for mirror in self.mirrors.values():
            mirror.download()


class Placed:
    """An array in its memory: ``start`` is where its storage begins, ``end`` how many bytes the block must have."""

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
    """Describe an array whose first element lies ``position`` bytes into its memory: begin at an aligned byte."""
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
