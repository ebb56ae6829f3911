"""The file of a record: lines appended one by one, by one run, and kept in memory while the disk takes none."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from ..model.errors import OracleError


class Appending:
    """A file that lines are appended to. ``held``: those that it has not taken, ``trouble``: why, once it refused one.

    Every line is tried anew with those held before it, so that a disk with room again has them all, in order. What a
    failed write left of a line is cut off.
    """

    def __init__(self, path: Path) -> None:
        """Open a file and lock it. Raises OSError, and OracleError where another run holds it."""
        self.path = path
        self.held: list[str] = []
        self.trouble = ""
        self._descriptor = self._open()
        self._size = os.fstat(self._descriptor).st_size

    def _open(self) -> int:
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
        try:
            _lock(descriptor, self.path)
        except BaseException:
            os.close(descriptor)
            raise
        found = os.fstat(descriptor)
        self._identity = found.st_dev, found.st_ino
        return descriptor

    def append(self, line: str) -> None:
        """Write a line, or hold it."""
        self.held.append(line)
        try:
            self._make_sure()
            while self.held:
                self._write(f"{self.held[0]}\n".encode())
                del self.held[0]
        except OSError as error:
            self.trouble = error.strerror or str(error)

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._descriptor, left) :]
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._descriptor, self._size)
            raise
        self._size += len(data)

    def _make_sure(self) -> None:
        """Open the file again where a device has closed our descriptor, or has another file under its number."""
        try:
            found = os.fstat(self._descriptor)
            if (found.st_dev, found.st_ino) == self._identity:
                return
        except OSError:
            pass
        self._descriptor = self._open()

    def whole(self) -> bool | None:
        """Whether the path still leads to this file, and it holds what was written and nothing else; None where another
        file lies there."""
        try:
            found = self.path.stat()
        except OSError:
            return False
        if not stat.S_ISREG(found.st_mode):  # a pipe, a terminal: what it has taken is gone
            return True
        return found.st_size == self._size if (found.st_dev, found.st_ino) == self._identity else None

    def give_up(self) -> None:
        """Let others lock the file. It stays open, so that no other file can be taken for it."""
        with suppress(ImportError, OSError):
            import fcntl

            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        with suppress(OSError):  # a device may have closed it
            os.close(self._descriptor)


def require_unlocked(path: Path) -> None:
    """Raise OracleError where another run writes a file."""
    if path.is_file():
        descriptor = os.open(path, os.O_RDWR)
        try:
            _lock(descriptor, path)
        finally:
            os.close(descriptor)


def _lock(descriptor: int, path: Path) -> None:
    """Hold a file until it is closed, where the platform and the file system can."""
    try:
        import fcntl
    except ImportError:  # Windows
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise OracleError(f"{path}: another run is writing it; give this one another file") from None
    except OSError:  # a file system without locks
        return
