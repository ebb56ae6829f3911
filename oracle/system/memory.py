"""Python's garbage collector, while many objects are made that last."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Make many lasting objects without the garbage collector looking through them again and again."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


# What the C library does with memory that is freed: the arrays of a case then lie where those of the last one lay.

KEPT = 512 << 20  # bytes that stay at the heap's end: what a case of a few million elements frees
OWN = 32 << 20  # bytes: an array of more lies outside the heap and is given back at once; glibc's highest
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # malloc.h


def keep_freed() -> None:
    """Let this process keep what it frees. glibc gives most of it back and asks for it again in every case, and the
    kernel clears every page that it hands out. Where the C library has no such setting, nothing is done."""
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, OWN)  # which glibc would raise it to by itself, were the other not set
        mallopt(_TRIM_THRESHOLD, KEPT)
