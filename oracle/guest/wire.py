"""The pipe and the shared memory between a run and the process of its device.

Every message is a frame: a secret of the connection, a number, a length, the content. Our questions are pickles; the
descriptor of a memory goes with them. The answers are JSON: we never unpickle bytes that a device could have written. A
device may write to any descriptor that it finds, fork, or leave children behind that keep the pipe open. So a message
that is no frame, or that answers another question, is reported as an error. No answer may exceed its time limit or its
size limit. The secret does not protect against a device that looks for it: SECURITY.md says what counts as code.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import pickle
import secrets
import select
import socket
import struct
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..model.call import Array, Call, TensorSpec, address, memory_of
from ..model.errors import OracleError
from ..system import strictjson

LONGEST = 16 << 20  # bytes of an answer; a normal one has a few hundred, or a traceback
_HEAD = struct.Struct("!16sQQ")
_CHUNK = 1 << 16
_DUMPED = json.JSONEncoder(separators=(",", ":")).encode  # kept: a device may replace attributes of json
_PICKLED, _UNPICKLED = pickle.dumps, pickle.loads


class Garbled(Exception):
    """The message is not an answer to the question; the text describes it."""


class Wire:
    """One end of the pipe. We ask, the device's process answers; both number the questions."""

    def __init__(self, end: socket.socket, secret: bytes) -> None:
        self._end, self._secret, self._number = end, secret, 0
        self._come = b""  # received, but not read yet

    @classmethod
    def inherited(cls, descriptor: int) -> Wire:
        """Return the other process's end, from its inherited descriptor. The first bytes on it are the secret."""
        wire = cls(socket.socket(fileno=descriptor), b"")
        wire._end.set_inheritable(False)
        wire._secret = wire._read(16, None)
        return wire

    # our side

    def ask(self, question: Any, deadline: float, memory: int = -1) -> None:
        """Send a question and the descriptor of a memory. Raises TimeoutError if it cannot be sent in time, OSError if
        the other process is gone."""
        self._number += 1
        self._send(_PICKLED(question, 5), deadline, memory)

    def poll(self, seconds: float) -> bool:
        """Return whether data has arrived, or the other end is closed."""
        if self._come:
            return True
        if hasattr(select, "poll"):  # select() refuses descriptors from 1024 on
            poll = select.poll()
            poll.register(self._end, select.POLLIN)
            return bool(poll.poll(seconds * 1000))
        return bool(select.select([self._end], [], [], seconds)[0])

    def answered(self, deadline: float) -> dict[str, Any]:
        """Return an answer to the last question. Raises Garbled, TimeoutError, EOFError."""
        content = self._take(deadline)
        try:
            answer = strictjson.loads(content, "its answer")
        except OracleError as error:
            raise Garbled(str(error)) from None
        if not isinstance(answer, dict):
            raise Garbled("its answer is no object")
        return answer

    # the other process's side

    def receive(self) -> tuple[Any, int]:
        """Wait for a question. Return it with the descriptor of the memory that came with it, or -1. Raises EOFError
        at the end of the questions."""
        self._number += 1
        head, descriptors, _, _ = socket.recv_fds(self._end, _HEAD.size, 1)
        if not head:
            raise EOFError
        secret, number, length = _HEAD.unpack(head + self._read(_HEAD.size - len(head), None))
        content = self._read(length, None)
        if (secret, number) != (self._secret, self._number):
            raise EOFError
        return _UNPICKLED(content), descriptors[0] if descriptors else -1

    def answer(self, answer: dict[str, Any]) -> None:
        self._send(_DUMPED(answer).encode(errors="backslashreplace"), None)

    def close(self) -> None:
        self._end.close()

    # frames

    def _send(self, content: bytes, deadline: float | None, memory: int = -1) -> None:
        data = memoryview(_HEAD.pack(self._secret, self._number, len(content)) + content)
        self._limit(deadline)
        if memory >= 0:
            data = data[socket.send_fds(self._end, [data[:_CHUNK]], [memory]) :]
        while data:
            self._limit(deadline)
            data = data[self._end.send(data[:_CHUNK]) :]

    def _take(self, deadline: float | None) -> bytes:
        secret, number, length = _HEAD.unpack(self._read(_HEAD.size, deadline))
        if secret != self._secret:
            raise Garbled("something else than the answer was written into its pipe")
        if number != self._number:
            raise Garbled(f"it answered question {number}, asked was {self._number}")
        if length > LONGEST:
            raise Garbled(f"its answer has {length >> 20:,} MiB; at most {LONGEST >> 20} are taken")
        return self._read(length, deadline)

    def _read(self, count: int, deadline: float | None) -> bytes:
        parts, left = [self._come[:count]], count - len(self._come[:count])
        self._come = self._come[count:]
        while left:
            self._limit(deadline)
            part = self._end.recv(_CHUNK if deadline is not None else min(left, _CHUNK))
            if not part:
                raise EOFError
            parts.append(part[:left])
            self._come, left = part[left:], left - len(parts[-1])
        return b"".join(parts)

    def _limit(self, deadline: float | None) -> None:
        """Let the next call on the socket wait at most until the deadline; then it raises TimeoutError."""
        if deadline is None or deadline == float("inf"):
            self._end.settimeout(None)
        else:
            self._end.settimeout(max(1e-6, deadline - time.monotonic()))  # 0 would not wait at all


def pair() -> tuple[Wire, int]:
    """Return our end, and the descriptor of the other end. The caller passes it on and closes it."""
    ours, theirs = socket.socketpair()
    secret = secrets.token_bytes(16)
    ours.sendall(secret)
    with theirs:
        return Wire(ours, secret), _high_descriptor(theirs.fileno())


def _high_descriptor(descriptor: int) -> int:
    """Return a duplicate with a random high number: a program closes or guesses low numbers."""
    import fcntl
    import resource

    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    most = 4096 if limit == resource.RLIM_INFINITY else min(limit, 4096)
    lowest = most // 2 + secrets.randbelow(max(1, most // 2 - 16))
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, lowest)


# The memory of one call, shared by the device's process and ours: a file without a name, mapped by both.
#
# Every run of a call has its own memory. It contains the storages of inputs and outputs with their guards. When ``run``
# returns, the device's process copies the outputs to a second place in the memory; that copy is judged. So a late write
# by a device's thread changes no judged data and no other call. Each output also has room for an array that a device
# puts in its place.

_ALIGNED = 64  # bytes; an allocator aligns large arrays in the same way
_CREATE = getattr(os, "memfd_create", None)  # Linux; it does not count against the size of /dev/shm


class Place(NamedTuple):
    """The place of an array in a shared memory.

    ``start``, ``size``: first byte and byte count of its storage. ``first``: bytes before its first element. Strides
    are in bytes. Outputs only: ``copy``, the first byte of the storage's copy, and ``room``, the first byte of
    the room for another array."""

    start: int
    size: int
    first: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    copy: int = 0
    room: int = 0

    def view(self, memory: mmap.mmap) -> Array:
        """Return the array. Its base is its storage: an adapter finds the whole memory of a view there."""
        storage: Array = np.ndarray((self.size,), np.uint8, memory, self.start)
        view: Array = np.ndarray(self.shape, self.dtype, storage, self.first, self.strides)
        return view

    def keep(self, memory: mmap.mmap) -> None:
        """Copy the current storage."""
        memory[self.copy : self.copy + self.size] = memory[self.start : self.start + self.size]

    def other(self, memory: mmap.mmap) -> Array:
        """Return the room for another array, in C order."""
        room: Array = np.ndarray(self.shape, self.dtype, memory, self.room)
        return room


Tensor = Place | TensorSpec | None


class Storage(NamedTuple):
    """The bytes of an array of ours, their place for the device, and the place where the device leaves its result."""

    own: Array
    start: int
    left: int


class Shared:
    """A call's memory, on our side. ``descriptor``: of the file. ``inputs``, ``outputs``: their descriptions for the
    device. Close it once the call has run."""

    def __init__(self, call: Call) -> None:
        self._size = 0
        self._storages: dict[str, Storage] = {}
        self.inputs: dict[str, Any] = {n: self._placed(n, value) for n, value in call.inputs.items()}
        self.outputs: dict[str, Any] = {n: self._with_room(n, self._placed(n, v)) for n, v in call.outputs.items()}
        self.descriptor, self._memory = _made(max(self._size, 1))
        self._bytes = np.frombuffer(self._memory, np.uint8)
        for storage in self._storages.values():
            self._bytes[storage.start : storage.start + storage.own.size] = storage.own

    def form(self, call: Call) -> Call:
        """Return the call for sending: with places in the shared memory instead of arrays."""
        return replace(call, inputs=self.inputs, outputs=self.outputs)

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
        self._size += -(-max(1, size) // _ALIGNED) * _ALIGNED  # a unique address: adapters identify a storage by it
        return start

    def copy_back(self, others: Mapping[str, bool]) -> dict[str, Array]:
        """Copy the device's outputs into our own arrays, once; inputs too if they changed.
        ``others``: whether the device left another array in an output's place, by its name. Return these arrays."""
        for name, (own, _, left) in self._storages.items():
            result = self._bytes[left : left + own.size]
            if name in self.outputs or not np.array_equal(result, own):
                own[...] = result
        places = {n: place for n, place in self.outputs.items() if others.get(n) and isinstance(place, Place)}
        return {name: place.other(self._memory).copy() for name, place in places.items()}

    def close(self) -> None:
        """Close the descriptor. The mappings, here and in the other process, end with the arrays on them."""
        os.close(self.descriptor)


def _made(size: int) -> tuple[int, mmap.mmap]:
    """Return a file without a name, and its mapping. Raises OSError if there is no room."""
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
    """Map a file that came from the other process, and close its descriptor. Called in the device's process."""
    try:
        return mmap.mmap(descriptor, os.fstat(descriptor).st_size)
    finally:
        os.close(descriptor)


def as_arrays(tensors: Mapping[str, Tensor], memory: mmap.mmap) -> dict[str, Any]:
    """Return tensors as the device's process uses them: arrays on the shared memory, other values unchanged."""
    return {name: value.view(memory) if isinstance(value, Place) else value for name, value in tensors.items()}
