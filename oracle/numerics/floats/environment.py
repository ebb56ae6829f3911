"""The arithmetic of goldens and verdicts, independent of the state of the process.

In addition to the program, these states decide a result: the control registers of the floating-point unit (of a
thread), NumPy's error state, and the contexts of decimal and gmpy2 (of a thread or task). A device's libraries and a
caller's program can change them. ``@ieee_arithmetic`` runs a function with the default of each and leaves the caller's
states unchanged. The locale has no effect here (a test shows it).
"""

from __future__ import annotations

import contextvars
import ctypes
import decimal
import functools
import platform
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

import gmpy2
import numpy as np

from ...model.errors import OracleError
from ...system.start import wrong

# The control registers of this thread's floating-point unit: rounding, subnormal numbers, traps.
#
# A shared object linked with ``-ffast-math`` sets flush-to-zero when it is loaded. ``fesetround`` sets a direction of
# rounding. Both settings stay. libm's fegetenv and fesetenv copy the whole environment to and from memory, with the
# control registers (C17 7.6.4). Their place in ``fenv_t`` is the platform's ABI, known here for Linux (glibc and musl)
# on x86-64 and aarch64. Elsewhere no register is set: two additions and two products check the arithmetic.

WORDS = 8  # 32-bit words of the longest fenv_t here


@dataclass(frozen=True)
class Register:
    """A control register: its word of fenv_t, the bits that decide results or traps, and their IEEE 754 values."""

    name: str
    word: int
    mask: int
    right: int


_ABI = {
    ("linux", "x86_64"): (
        Register("MXCSR", word=7, mask=0xFFC0, right=0x1F80),
        Register("x87 control word", word=0, mask=0x0F3F, right=0x033F),
    ),
    # All bits except DN, which only decides the bits of a NaN.
    ("linux", "aarch64"): (Register("FPCR", word=0, mask=0x05C8_9F07, right=0),),
}


def _functions() -> tuple[Any, Any] | None:
    """Return fegetenv and fesetenv. A call keeps the GIL, because its release would cost more than the call."""
    for library in (None, "libm.so.6", "libm.so"):
        try:
            result = ctypes.PyDLL(library)
            get, put = result.fegetenv, result.fesetenv
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

    def is_ieee() -> bool:
        """Return whether this thread computes as IEEE 754 says by default. No loop: every golden calls it."""
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

    def is_ieee() -> bool:
        """Return whether this thread computes as IEEE 754 says by default, as far as arithmetic shows it."""
        return not wrong()

    def read() -> bytes:
        """Return no bytes: the registers cannot be reached here."""
        return b""

    def write(state: bytes) -> None:
        """Do nothing."""


def with_ieee_registers(state: bytes) -> bytes:
    """Return an environment with the control registers as IEEE 754 requires; the other words stay unchanged."""
    words = list(memoryview(state).cast("I"))
    for register in REGISTERS:
        words[register.word] = words[register.word] & ~register.mask | register.right
    return b"".join(word.to_bytes(4, "little") for word in words)


@contextmanager
def ieee_mode() -> Iterator[None]:
    """Let this thread compute as IEEE 754 says by default, as far as the platform allows; then restore it."""
    before = read()
    write(with_ieee_registers(before))
    try:
        yield
    finally:
        write(before)


P = ParamSpec("P")
R = TypeVar("R")

_DECIMAL = {
    "prec": 28,
    "rounding": decimal.ROUND_HALF_EVEN,
    "Emin": -999999,
    "Emax": 999999,
    "capitals": 1,
    "clamp": 0,
    "flags": [],
    "traps": [decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow],
}
_NUMPY_BUFFER = 8192


def _set_libraries() -> None:
    """Set the default arithmetic of NumPy, decimal and gmpy2 in this context; NumPy gives no warnings."""
    np.seterr(all="ignore")
    np.seterrcall(None)
    decimal.setcontext(decimal.Context(**_DECIMAL))  # type: ignore[arg-type]
    gmpy2.set_context(gmpy2.context())


def _prepared() -> contextvars.Context:
    """Return a context in which the libraries are set."""
    context = contextvars.Context()
    with np.errstate(all="warn"):
        context.run(_set_libraries)
    context.run(_OURS.set, True)
    return context


_OURS = contextvars.ContextVar("inside a function of ieee_arithmetic", default=False)
_PREPARED = _prepared()
# Before NumPy 2.0 the thread, not the context, has the error state: buffer size, reactions (0: none), callback.
_GET_ERRORS, _SET_ERRORS = getattr(np, "geterrobj", None), getattr(np, "seterrobj", None)
_SILENT = [_NUMPY_BUFFER, 0, None]


def ieee_arithmetic(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function to compute as IEEE 754 says by default, independent of the state of its caller's thread.

    It costs about a microsecond if the state is right already. The function sees none of its caller's context
    variables. Changes that it makes to them are lost when it returns. Decorated functions that it calls share its
    context variables. Raises OracleError if the state is wrong and this platform cannot set it.
    """

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        if not is_ieee():
            with _ieee_block():
                return function(*args, **kwargs)
        if _GET_ERRORS is None or _SET_ERRORS is None:
            if _OURS.get():
                return function(*args, **kwargs)
            return _PREPARED.copy().run(function, *args, **kwargs)
        before = _GET_ERRORS()
        _SET_ERRORS(_SILENT)
        try:
            return _PREPARED.copy().run(function, *args, **kwargs)
        finally:
            _SET_ERRORS(before)

    return run


def set_thread() -> None:
    """Set one of our new threads to IEEE arithmetic permanently: the ``initializer`` of a pool."""
    _set_unit(read())
    _set_libraries()


def _set_unit(state: bytes) -> None:
    if is_ieee():
        return
    write(with_ieee_registers(state))
    if not is_ieee() or wrong():
        raise OracleError(
            f"this thread's floating-point arithmetic {wrong() or 'traps or converts in a way of its own'}, set by "
            "a library of the process (one linked with -ffast-math, a call of fesetround), and on this platform Python "
            "cannot set it right; no golden is computed with it. Compute goldens in a process without that library"
        )


@contextmanager
def _ieee_block() -> Iterator[None]:
    """Let a block of code compute as IEEE 754 says by default; then restore the state that decides the arithmetic."""
    unit, errors, error_call, buffer = read(), np.geterr(), np.geterrcall(), np.getbufsize()
    decimals, numbers = decimal.getcontext(), gmpy2.get_context()
    try:
        _set_unit(unit)
        _set_libraries()
        np.setbufsize(_NUMPY_BUFFER)
        yield
    finally:
        np.seterr(**errors)
        np.seterrcall(error_call)
        np.setbufsize(buffer)
        decimal.setcontext(decimals)
        gmpy2.set_context(numbers)
        write(unit)
