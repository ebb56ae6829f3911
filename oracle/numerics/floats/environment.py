"""The arithmetic of goldens and verdicts, whatever state the process is in.

What decides a result beside the program: the floating-point unit's control registers (of a thread), NumPy's error
state, decimal's and gmpy2's contexts (of a thread or task). A device's libraries and a caller's program may change
them. ``@ieee_arithmetic`` runs a function with all of them as they are by default and leaves the caller's as they were.
The locale decides nothing here (a test shows it).
"""

from __future__ import annotations

import contextvars
import decimal
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

import gmpy2
import numpy as np

from ...model.errors import OracleError
from . import fpu
from .probe import wrong

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
    """Give NumPy, decimal and gmpy2 in this context their default arithmetic; NumPy stays silent."""
    np.seterr(all="ignore")
    np.seterrcall(None)
    decimal.setcontext(decimal.Context(**_DECIMAL))  # type: ignore[arg-type]
    gmpy2.set_context(gmpy2.context())


def _prepared() -> contextvars.Context:
    """A context in which the libraries are set."""
    context = contextvars.Context()
    with np.errstate(all="warn"):
        context.run(_set_libraries)
    context.run(_OURS.set, True)
    return context


_OURS = contextvars.ContextVar("inside a function of ieee_arithmetic", default=False)
_PREPARED = _prepared()
# Before NumPy 2.0 the error state is the thread's, not the context's: buffer size, reactions (0: none), callback.
_GET_ERRORS, _SET_ERRORS = getattr(np, "geterrobj", None), getattr(np, "seterrobj", None)
_SILENT = [_NUMPY_BUFFER, 0, None]


def ieee_arithmetic(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function to compute as IEEE 754 says by default, whatever its caller's thread is set to.

    It costs about a microsecond where the state is right already. The function sees none of its caller's context
    variables, and what it sets of them is gone when it returns; one that such a function calls shares them with it.
    Raises OracleError where the state is wrong and this platform does not let it be set.
    """

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        if not fpu.is_right():
            with IeeeArithmetic():
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
    """Set a new thread that is ours to IEEE arithmetic for good: the ``initializer`` of a pool."""
    _set_unit(fpu.read())
    _set_libraries()


def _set_unit(state: bytes) -> None:
    if fpu.is_right():
        return
    fpu.write(fpu.righted(state))
    if not fpu.is_right() or wrong():
        raise OracleError(
            f"this thread's floating-point arithmetic {wrong() or 'traps or converts in a way of its own'}, set by "
            "a library of the process (one linked with -ffast-math, a call of fesetround), and on this platform Python "
            "cannot set it right; no golden is computed with it. Compute goldens in a process without that library"
        )


@dataclass(frozen=True)
class State:
    """What decides arithmetic in a thread, as it was found."""

    unit: bytes
    errors: dict[str, Any]
    error_call: Any
    buffer: int
    decimal: decimal.Context
    gmpy2: gmpy2.context

    @classmethod
    def now(cls) -> State:
        return cls(
            fpu.read(),
            dict(np.geterr()),
            np.geterrcall(),
            np.getbufsize(),
            decimal.getcontext(),
            gmpy2.get_context(),
        )

    def restore(self) -> None:
        """Make it this thread's state again."""
        np.seterr(**self.errors)
        np.seterrcall(self.error_call)
        np.setbufsize(self.buffer)
        decimal.setcontext(self.decimal)
        gmpy2.set_context(self.gmpy2)
        fpu.write(self.unit)


class IeeeArithmetic:
    """A block of code whose arithmetic is IEEE 754's; what it was before is put back at the end."""

    def __enter__(self) -> IeeeArithmetic:
        self.outside = State.now()
        try:
            _set_unit(self.outside.unit)
            _set_libraries()
            np.setbufsize(_NUMPY_BUFFER)
        except BaseException:
            self.outside.restore()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.outside.restore()
