"""The memory of one call, which the device's process shares with ours: a file without a name, mapped by both.

Every run of a call has a memory of its own, in which the storages of inputs and outputs lie with their guards. When
``run`` returns, the device's process copies the outputs to a second place in it; that copy is judged. So what a thread
of a device writes later reaches nothing that is judged, and no other call. Each output has room for an array that a
device puts in its place.
"""

from __future__ import annotations

import math
import mmap
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..model.call import Array, Call, TensorSpec, address, memory_of

_ALIGNED = 64  # bytes: as an allocator aligns a large array
_CREATE = getattr(os, "memfd_create", None)  # Linux; it does not count against the size of /dev/shm


class Place(NamedTuple):
    """Where an array lies in a shared memory: the first byte of its storage and how many it has, how many of them come
    before the array's first element, its shape, strides in bytes, dtype.

    Of an output: ``copy``, the byte where the copy of its storage begins, and ``room``, that of another array.
    """

    start: int
    size: int
    first: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    copy: int = 0
    room: int = 0

    def view(self, memory: mmap.mmap) -> Array:
        """Return the array; its storage, by which an adapter knows the whole memory of a view, is its base."""
        storage: Array = np.ndarray((self.size,), np.uint8, memory, self.start)
        view: Array = np.ndarray(self.shape, self.dtype, storage, self.first, self.strides)
        return view

    def keep(self, memory: mmap.mmap) -> None:
        """Copy the storage as it is now."""
        memory[self.copy : self.copy + self.size] = memory[self.start : self.start + self.size]

    def other(self, memory: mmap.mmap) -> Array:
        """Return the room for another array, in order."""
        room: Array = np.ndarray(self.shape, self.dtype, memory, self.room)
        return room


Tensor = Place | TensorSpec | None


class Storage(NamedTuple):
    """The bytes behind an array of ours, where the device has them, and where it leaves them."""

    own: Array
    start: int
    left: int


class Shared:
    """A call's memory, on our side. ``descriptor``: of the file; ``inputs``, ``outputs``: what the device is told of
    them; close it once the call has run."""

    def __init__(self, call: Call) -> None:
        self._size = 0
        self._storages: dict[str, Storage] = {}
        self.inputs = {name: self._placed(name, value) for name, value in call.inputs.items()}
        self.outputs = {name: self._with_room(name, self._placed(name, value)) for name, value in call.outputs.items()}
        self._outputs = tuple(name for name, value in self.outputs.items() if isinstance(value, Place))
        self.descriptor, self._memory = _made(max(self._size, 1))
        self._bytes = np.frombuffer(self._memory, np.uint8)
        for storage in self._storages.values():
            self._bytes[storage.start : storage.start + storage.own.size] = storage.own

    def _placed(self, name: str, value: Any) -> Tensor:
        if not isinstance(value, np.ndarray):
            return value  # type: ignore[no-any-return]  # a TensorSpec, or a null pointer
        own = memory_of(value)
        start = self._reserve(own.size)
        self._storages[name] = Storage(own, start, start)
        return Place(start, own.size, address(value) - address(own), value.shape, value.strides, value.dtype)

    def _with_room(self, name: str, place: Tensor) -> Tensor:
        if not isinstance(place, Place):
            return place
        copy, room = self._reserve(place.size), self._reserve(place.dtype.itemsize * math.prod(place.shape))
        self._storages[name] = self._storages[name]._replace(left=copy)
        return place._replace(copy=copy, room=room)

    def _reserve(self, size: int) -> int:
        start = self._size
        self._size += -(-size // _ALIGNED) * _ALIGNED
        return start

    def given_back(self, others: Mapping[str, bool]) -> dict[str, Array]:
        """Copy what the device left into our own arrays, once; inputs too where they changed. Return the arrays that it
        put in the place of ``others``, outputs by name."""
        for name, (own, _, left) in self._storages.items():
            found = self._bytes[left : left + own.size]
            if name in self.outputs or not np.array_equal(found, own):
                own[...] = found
        places = {name: self.outputs[name] for name in self._outputs if others.get(name)}
        return {name: place.other(self._memory).copy() for name, place in places.items() if isinstance(place, Place)}

    def close(self) -> None:
        """Give up the descriptor; the mappings, here and there, go with the arrays on them."""
        os.close(self.descriptor)


def _made(size: int) -> tuple[int, mmap.mmap]:
    """Return a file without a name, and its mapping. OSError where there is no room."""
    if _CREATE is not None:
        descriptor = _CREATE("aclnn-oracle", 1)  # 1: not inherited
    else:
        descriptor, path = tempfile.mkstemp()
        Path(path).unlink()
    try:
        os.ftruncate(descriptor, size)
        return descriptor, mmap.mmap(descriptor, size)
    except BaseException:
        os.close(descriptor)
        raise


def mapped(descriptor: int) -> mmap.mmap:
    """Return the mapping of a file that came from the other process, on its side; the descriptor is given up."""
    try:
        return mmap.mmap(descriptor, os.fstat(descriptor).st_size)
    finally:
        os.close(descriptor)


def there(tensors: Mapping[str, Tensor], memory: mmap.mmap) -> dict[str, Any]:
    """Return tensors as the device's process sees them: arrays on the shared memory, the rest as it is."""
    return {name: value.view(memory) if isinstance(value, Place) else value for name, value in tensors.items()}
