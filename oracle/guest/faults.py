"""What a device gives instead of a status: an exception, the end of its process, or silence."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from ..model.errors import DeviceFault, OracleError, bounded

UNREADABLE = "(a text that cannot be read)"
_ctrl_c: tuple[type[BaseException], ...] = (KeyboardInterrupt,)  # the user's, in the process of the run
LONGEST_TRACEBACK = 4000  # characters, from its end


def not_the_users() -> None:
    """From now on a KeyboardInterrupt is what a device raises: Ctrl-C does not reach this process."""
    global _ctrl_c
    _ctrl_c = ()


class DeviceError(Exception):
    """The backend raised. ``reason``: what, in words; ``trace``: its traceback, "" where the words say all."""

    def __init__(self, reason: str, trace: str = "") -> None:
        super().__init__(reason)
        self.reason, self.trace = reason, trace


class Gone(DeviceError):
    """The device's process ended in a call (``crash``), or did not answer in time and was ended (``timeout``).

    ``words``: the last line that it wrote to standard error.
    """

    def __init__(self, status: Literal["crash", "timeout"], reason: str, words: str = "") -> None:
        super().__init__(reason)
        self.status, self.words = status, words


class NotTaken(DeviceError):
    """The backend does not take the call: the case is skipped, for this reason."""


def readable(value: Any) -> str:
    """Return a device's text as text that every file and terminal takes: 4 kB, control characters spelt out."""
    try:
        return bounded(str(value))
    except _ctrl_c:
        raise
    except BaseException:
        return UNREADABLE


def reason_of(error: BaseException) -> str:
    """Return an exception in words, also one whose own text raises."""
    return f"{readable(type(error).__name__)}: {readable(error)}".rstrip(": ")


def trace_of(error: BaseException) -> str:
    """Return an exception's traceback; "" where its text is the whole story."""
    if isinstance(error, (DeviceFault, OracleError)):
        return ""
    try:
        trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    except Exception:  # an exception whose own text raises
        trace = "".join(traceback.format_tb(error.__traceback__)) + reason_of(error)
    return readable(trace[-LONGEST_TRACEBACK:])


@contextmanager
def guarded() -> Iterator[None]:
    """Let a device run in this process. Raises DeviceError for whatever it raises, except Ctrl-C."""
    try:
        yield
    except DeviceError:
        raise
    except _ctrl_c:
        raise
    except BaseException as error:  # SystemExit, pytest's skip and exit, a device's own: all are its case's error
        raise DeviceError(reason_of(error), trace_of(error)) from error
