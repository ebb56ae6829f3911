"""The pipe between a run and the process its cases run in, as far as a device in that process can be told from ours.

Every message is a frame: a secret of the connection, its number, its length, its content. A device may write to any
descriptor it finds, fork, or leave children behind that keep the pipe open: what is no frame, or answers another
question, is told as such instead of being believed; and nothing is waited for beyond its time or kept beyond its size.
The secret is no defence against a device that looks for it: SECURITY.md says what is code.
"""

from __future__ import annotations

import os
import pickle
import secrets
import select
import socket
import struct
import time
from typing import Any

LONGEST = 256 << 20  # bytes of a message; a record has a few thousand
_HEAD = struct.Struct("!16sQQ")
_CHUNK = 1 << 16


class Garbled(Exception):
    """What came is no answer to the question; the text says what it is."""


class Wire:
    """One end of the pipe. The parent asks, the child answers; both count."""

    def __init__(self, end: socket.socket, secret: bytes) -> None:
        self._end, self._secret, self._number = end, secret, 0

    @classmethod
    def inherited(cls, descriptor: int) -> Wire:
        """Return the child's end, from the descriptor it was started with; its first bytes are the secret."""
        os.set_inheritable(descriptor, False)
        wire = cls(socket.socket(fileno=descriptor), b"")
        wire._secret = wire._read(16, None)
        return wire

    # the parent's side

    def ask(self, question: Any, deadline: float) -> None:
        """Send a question. Raises TimeoutError where the child does not take it in time, EOFError where it is gone."""
        self._number += 1
        self._send(question, deadline)

    def poll(self, seconds: float) -> bool:
        """Whether something has come, or the other end is closed."""
        if hasattr(select, "poll"):  # select() refuses descriptors from 1024 on
            poll = select.poll()
            poll.register(self._end, select.POLLIN)
            return bool(poll.poll(seconds * 1000))
        return bool(select.select([self._end], [], [], seconds)[0])

    def answered(self, deadline: float) -> Any:
        """Return the answer to the last question. Raises Garbled, TimeoutError, EOFError."""
        return self._take(deadline)

    # the child's side

    def receive(self) -> Any:
        """Wait for a question and return it. Raises EOFError when there are no more."""
        self._number += 1
        return self._take(None)

    def answer(self, value: Any) -> None:
        self._send(value, None)

    def close(self) -> None:
        self._end.close()

    # frames

    def _send(self, value: Any, deadline: float | None) -> None:
        content = pickle.dumps(value)
        data = memoryview(_HEAD.pack(self._secret, self._number, len(content)) + content)
        while data:
            self._limit(deadline)
            data = data[self._end.send(data[:_CHUNK]) :]

    def _take(self, deadline: float | None) -> Any:
        secret, number, length = _HEAD.unpack(self._read(_HEAD.size, deadline))
        if secret != self._secret:
            raise Garbled("something else than the answer was written into its pipe")
        if number != self._number:
            raise Garbled(f"it answered question {number}, asked was {self._number}")
        if length > LONGEST:
            raise Garbled(f"its answer has {length >> 20:,} MiB; at most {LONGEST >> 20} are taken")
        content = self._read(length, deadline)
        try:
            return pickle.loads(content)
        except Exception as error:  # unpickling raises whatever the bytes make it do
            raise Garbled(f"its answer cannot be read: {type(error).__name__}: {error}") from None

    def _read(self, count: int, deadline: float | None) -> bytes:
        parts, left = [], count
        while left:
            self._limit(deadline)
            part = self._end.recv(min(left, _CHUNK))
            if not part:
                raise EOFError
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def _limit(self, deadline: float | None) -> None:
        """Let the next call on the socket wait until the deadline at most; it raises TimeoutError then."""
        if deadline is None or deadline == float("inf"):
            self._end.settimeout(None)
        else:
            self._end.settimeout(max(1e-6, deadline - time.monotonic()))  # 0 would not wait at all


def pair() -> tuple[Wire, int]:
    """Return the parent's end and the descriptor of the child's, which the caller hands over and closes."""
    ours, theirs = socket.socketpair()
    secret = secrets.token_bytes(16)
    ours.sendall(secret)
    with theirs:
        return Wire(ours, secret), _out_of_the_way(theirs.fileno())


def _out_of_the_way(descriptor: int) -> int:
    """Return a duplicate with a high number, drawn: not among the few that a program closes or guesses."""
    import fcntl
    import resource

    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    most = 4096 if limit == resource.RLIM_INFINITY else min(limit, 4096)
    lowest = most // 2 + secrets.randbelow(max(1, most // 2 - 16))
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, lowest)
