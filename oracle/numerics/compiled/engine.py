"""Which engine evaluates: NumPy by blocks, or one compiled pass over each region (extra ``fast``, numba).

Both give the same bits. Compiling takes about a second, so by default it waits until a process has evaluated enough.
"""

from __future__ import annotations

import functools
import importlib.util
import threading

from ...model.errors import OracleError
from ...system.process import ENGINE
from ..proof import Sink

ENGINES = ("auto", "numpy", "compiled")
WORTH = 1 << 25  # elements of large calls after which a process is taken to evaluate many
LARGE = 1 << 18  # elements of a call

_LOCK = threading.Lock()
_done = 0


def asked_for() -> str:
    """Which engine is asked for (``ACLNN_ORACLE_ENGINE``, default: auto); results never depend on it."""
    text = ENGINE.text()
    choice = "auto" if text is None else text
    if choice not in ENGINES:
        raise OracleError(f"environment variable {ENGINE.name}={choice!r} must be one of {', '.join(ENGINES)}")
    if choice == "compiled" and not installed():
        raise OracleError(f"{ENGINE.name}=compiled needs numba: pip install 'aclnn-oracle[fast]'")
    return choice


def is_compiled(sink: Sink) -> bool:
    """Whether a sink is filled by compiled loops; whoever asks loads them then. No loop knows a verdict's bound."""
    global _done
    choice = asked_for()
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
    """Whether numba can be imported; it is not imported to find out."""
    return importlib.util.find_spec("numba") is not None
