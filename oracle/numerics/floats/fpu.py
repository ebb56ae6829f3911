"""The control registers of this thread's floating-point unit: rounding, subnormal numbers, traps.

A shared object linked with ``-ffast-math`` sets flush-to-zero when it is loaded, ``fesetround`` sets a direction of
rounding, and both stay. libm's fegetenv and fesetenv move the whole environment to and from memory, control registers
included (C17 7.6.4); where they lie in ``fenv_t`` is the platform's ABI, known here for Linux (glibc and musl alike) on
x86-64 and aarch64. Elsewhere nothing is set: two additions and two products show whether the arithmetic is right.
"""

from __future__ import annotations

import ctypes
import platform
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from .probe import wrong

WORDS = 8  # 32-bit words of the longest fenv_t here


@dataclass(frozen=True)
class Register:
    """A control register: its word of fenv_t, the bits that decide results or stop the process, and IEEE 754's values
    of them."""

    name: str
    word: int
    mask: int
    right: int


_X86 = (
    Register(
        "MXCSR",
        word=7,
        mask=0xFFC0,
        right=0x1F80,
    ),
    Register(
        "x87 control word",
        word=0,
        mask=0x0F3F,
        right=0x033F,
    ),
)
_AARCH64 = (
    Register(
        "FPCR",
        word=0,
        mask=0x05C8_9F07,  # all but DN, which only decides the bits of a NaN
        right=0,
    ),
)
_ABI = {("linux", "x86_64"): _X86, ("linux", "aarch64"): _AARCH64}


def _functions() -> tuple[Any, Any] | None:
    """fegetenv and fesetenv; called without releasing the GIL, which would cost more than they do."""
    for library in (None, "libm.so.6", "libm.so"):
        try:
            found = ctypes.PyDLL(library)
            get, put = found.fegetenv, found.fesetenv
        except (OSError, AttributeError):
            continue
        get.argtypes = put.argtypes = (ctypes.c_void_p,)
        get.restype = put.restype = ctypes.c_int
        return get, put
    return None


_FOUND = _functions()
REGISTERS = _ABI.get((sys.platform, platform.machine()), ()) if _FOUND and sys.byteorder == "little" else ()


class _Room(threading.local):
    """This thread's fenv_t."""

    def __init__(self) -> None:
        self.buffer = (ctypes.c_uint32 * WORDS)()
        self.address = ctypes.addressof(self.buffer)
        self.words = memoryview(self.buffer).cast("B").cast("I")


_ROOM = _Room()

if REGISTERS:
    assert _FOUND is not None
    _GET, _PUT = _FOUND
    WORD, MASK, VALUE = REGISTERS[0].word, REGISTERS[0].mask, REGISTERS[0].right
    LAST_WORD, LAST_MASK, LAST_VALUE = REGISTERS[-1].word, REGISTERS[-1].mask, REGISTERS[-1].right

    def is_right() -> bool:
        """Whether this thread computes as IEEE 754 says by default; asked at every golden, so without a loop."""
        room = _ROOM
        _GET(room.address)
        words = room.words
        return words[WORD] & MASK == VALUE and words[LAST_WORD] & LAST_MASK == LAST_VALUE

    def read() -> bytes:
        """Return this thread's floating-point environment."""
        _GET(_ROOM.address)
        return bytes(_ROOM.buffer)

    def write(state: bytes) -> None:
        """Install an environment that ``read`` returned, in this thread."""
        ctypes.memmove(_ROOM.address, state, len(state))
        _PUT(_ROOM.address)

else:

    def is_right() -> bool:
        """Whether this thread computes as IEEE 754 says by default, as far as arithmetic shows it."""
        return not wrong()

    def read() -> bytes:
        """Return nothing: the registers cannot be reached here."""
        return b""

    def write(state: bytes) -> None:
        """Do nothing."""


def righted(state: bytes) -> bytes:
    """Return an environment with the control registers as IEEE 754 wants them and everything else as it was."""
    words = list(memoryview(state).cast("I"))
    for register in REGISTERS:
        words[register.word] = words[register.word] & ~register.mask | register.right
    return b"".join(word.to_bytes(4, "little") for word in words)


@contextmanager
def right() -> Iterator[None]:
    """Let this thread compute as IEEE 754 says by default, as far as the platform allows; then as before again."""
    before = read()
    write(righted(before))
    try:
        yield
    finally:
        write(before)
