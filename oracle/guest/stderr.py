"""What a child process writes to standard error: passed on as it comes, and its last line kept for when it dies.

A C library says there why it ends a process ("free(): invalid pointer"), and nothing else knows it afterwards.
"""

from __future__ import annotations

import os
import re
import threading
from collections import deque
from contextlib import suppress

KEPT = 4096  # bytes
PATIENCE = 0.5  # seconds for the last of it to come; a grandchild may hold the pipe open for ever

# What glibc says when it finds its heap or its stack damaged.
_DAMAGE = re.compile(
    r"(free|malloc|calloc|realloc|malloc_consolidate|munmap_chunk|_int_free|sysmalloc)\(\): |corrupted |double free or "
    r"corruption|stack smashing detected|buffer overflow detected|Assertion .*(top|chunk|heap)"
)


class LastWords:
    """A pipe for a child's standard error. ``descriptor`` is the child's end: hand it over, then call ``listen``."""

    def __init__(self) -> None:
        self._read, self.descriptor = os.pipe()
        self._kept: deque[bytes] = deque()
        self._thread = threading.Thread(target=self._pass_on, daemon=True, name="standard error of a child")

    def listen(self) -> None:
        """Give the child's end up, and pass on what is written to the other."""
        os.close(self.descriptor)
        self._thread.start()

    def forget(self) -> None:
        """Forget what was said so far: another case begins."""
        self._kept.clear()

    def spoken(self) -> str:
        """Return the last line that a child has written since, once it is dead; "" for none."""
        self._thread.join(PATIENCE)
        lines = b"".join(self._kept)[-KEPT:].decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    def _pass_on(self) -> None:
        with suppress(OSError):
            while said := os.read(self._read, 1 << 16):
                self._kept.append(said[-KEPT:])
                while len(self._kept) > 1 and sum(map(len, self._kept)) - len(self._kept[0]) >= KEPT:
                    self._kept.popleft()
                with suppress(OSError):  # our own standard error is closed
                    os.write(2, said)
        os.close(self._read)


def cause_of_death(words: str) -> str:
    """Return what the last words of a process tell about its memory, or ""."""
    if not _DAMAGE.search(words):
        return ""
    return f"memory that is not the device's is overwritten: the C library found it damaged ({words})"
