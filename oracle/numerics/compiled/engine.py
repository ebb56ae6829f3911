"""The choice of the engine: NumPy by blocks, or one compiled pass over each region (extra ``fast``, numba).

Both give the same bits. Compilation takes about a second, so by default it waits until a process has evaluated enough.
"""

from __future__ import annotations

import functools
import importlib.util
import threading

from ...model.errors import OracleError
from ...system.process import ENGINE
from ..sink import Sink

ENGINES = ("auto", "numpy", "compiled")
WORTH = 1 << 25  # elements of large calls after which compilation is worth its time
LARGE = 1 << 18  # elements of a large call

_LOCK = threading.Lock()
_done = 0


def requested() -> str:
    """Return the requested engine (``ACLNN_ORACLE_ENGINE``, default: auto); results never depend on it."""
    text = ENGINE.text()
    choice = "auto" if text is None else text
    if choice not in ENGINES:
        raise OracleError(f"environment variable {ENGINE.name}={choice!r} must be one of {', '.join(ENGINES)}")
    if choice == "compiled" and not installed():
        raise OracleError(f"{ENGINE.name}=compiled needs numba: pip install 'aclnn-oracle[fast]'")
    return choice


def is_compiled(sink: Sink) -> bool:
    """Return whether compiled loops fill a sink; the caller then loads them. No loop computes a verdict's bound."""
    global _done
    choice = requested()
    if sink.judged or choice == "numpy":
        return False
    if choice == "compiled":
        return True
    if sink.out.size < LARGE or not installed():
        return False
    with _LOCK:
        _done += sink.out.size
        return _done >= WORTH


@functools.cache
def installed() -> bool:
    """Return whether numba can be imported, without importing it."""
    return importlib.util.find_spec("numba") is not None
