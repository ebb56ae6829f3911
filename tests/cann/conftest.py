"""This process on the emulated CANN: one SoC (ascend910b), faults and counters through the emulator's own interface."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from oracle.backends import load
from oracle.emulator import activate

KINDS = ("tensors", "executors", "streams", "allocations")


class Emulator:
    """The emulated CANN of this process."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        library.aclemuInject.argtypes = library.aclemuTrace.argtypes = [ctypes.c_char_p]
        for name in ("aclemuCallCount", "aclemuLiveCount"):
            function = getattr(library, name)
            function.argtypes, function.restype = [ctypes.c_char_p], ctypes.c_uint64
        library.aclemuMisuseCount.restype = ctypes.c_uint64
        library.aclemuLastMisuse.restype = ctypes.c_char_p
        self._before = {kind: self.count(kind) for kind in KINDS}

    def count(self, kind: str) -> int:
        return int(self._library.aclemuLiveCount(kind.encode()))

    def inject(self, faults: str) -> None:
        assert self._library.aclemuInject(faults.encode()) == 0, faults

    def clear(self) -> None:
        self._library.aclemuClearFaults()

    def calls(self, function: str) -> int:
        return int(self._library.aclemuCallCount(function.encode()))

    def alive(self) -> dict[str, int]:
        """Return, by kind, how many more objects exist than when the test began."""
        return {kind: self.count(kind) - self._before[kind] for kind in KINDS}

    def trace(self, path: Path | None) -> None:
        assert self._library.aclemuTrace(None if path is None else str(path).encode()) == 0

    def misuses(self) -> int:
        return int(self._library.aclemuMisuseCount())

    def last_misuse(self) -> str:
        return str(self._library.aclemuLastMisuse().decode())


@pytest.fixture
def emulator(tree: Path) -> Iterator[Emulator]:
    """The emulated CANN, without faults; the environment is restored afterwards."""
    before = dict(os.environ)
    os.environ.pop("ASCEND_RT_VISIBLE_DEVICES", None)
    root = activate("ascend910b", tree)
    made = Emulator(ctypes.CDLL(str(root / "lib64" / "libascendcl.so")))
    made.clear()
    yield made
    made.clear()
    made.trace(None)
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def device(emulator: Emulator) -> Iterator[Any]:
    """The aclnn backend. Afterwards it forgets its declarations of the functions of a test's own operators."""
    made = load("aclnn", {"timeout": "20"})
    yield made
    emulator.clear()
    made.close()
    made.cann._declared.clear()
