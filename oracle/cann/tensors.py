"""A call's tensors on the device: the host memory they lie in is mirrored there, views stay views.

The whole memory that an array is a view of goes to the device and comes back, guards included: what a kernel writes
beside its output, or into an input, is then seen in the host, byte for byte. Tensors that share memory share it there.
"""

from __future__ import annotations

from ctypes import c_int64, c_void_p
from types import TracebackType
from typing import Any

import numpy as np

from ..catalogue.data.layout import reach
from ..model.call import FORMAT_ENUM, Array, Call, TensorSpec, address, memory_of, row_major, spec_of, strides_of
from ..model.dtypes import find
from . import abi
from .device import Guarded, Session
from .library import CannError

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
        found = np.empty_like(self.host)
        n = self.host.nbytes
        if n:
            self.session.call("aclrtMemcpy", address(found), n, c_void_p(self.memory.address), n, abi.DEVICE_TO_HOST)
        return found

    def download(self) -> None:
        """Bring back what the device has changed. Raises ValueError where the host's memory is read-only."""
        found = self.on_device()
        if not np.array_equal(found, self.host):
            self.host[...] = found


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
        failures = []
        for handle in self.handles.values():
            if handle is not None and (code := self.session.cann.status("aclDestroyTensor", handle)):
                failures.append(CannError("aclDestroyTensor", code, self.session.cann.message()))
        for block in self._blocks:
            try:
                self.session.free(block)
            except CannError as failure:
                failures.append(failure)
        self.handles, self.mirrors, self._blocks = {}, {}, []
        if failures and error is None:
            raise failures[0]

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
        told = []
        for key, mirror in self.mirrors.items():
            if where := mirror.memory.trespass():
                names = " and ".join(name for name, placed in self._placed.items() if placed.key == key)
                told.append(f"beside the memory of {names}: {where}")
        return told

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

    def __init__(self, array: Array, told: TensorSpec | None) -> None:
        self.memory = memory_of(array)
        self.key = address(self.memory)
        item = array.itemsize
        spec = told or spec_of(array)
        start = address(array) - self.key - spec.offset * item
        if told is None or start % ALIGNMENT:
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
