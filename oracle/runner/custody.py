"""While a device runs, and after: what it does to the process costs its own case and nothing else.

A backend is code in our process. It may change the arithmetic (numerics/environment.py), the working directory, the
handlers of signals, environment variables, NumPy's functions; it may leave by ``os._exit``, raise what is no Exception,
or fork and come back twice. What was there before is put back when the device returns, and told as a note of the case.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from ..numerics.environment import IeeeArithmetic

UNREADABLE = "(a text that cannot be read)"


class DeviceError(Exception):
    """The backend raised; ``__cause__`` is what it raised."""


class Left(Exception):
    """The device called ``os._exit``."""


def readable(value: Any) -> str:
    """Return a device's text as text that every file and terminal holds: lone surrogates as escapes."""
    try:
        return str(value).encode("utf-8", "backslashreplace").decode("utf-8")
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return UNREADABLE


def reason_of(error: BaseException) -> str:
    """Return an exception in words, also one whose own text raises."""
    return f"{type(error).__name__}: {readable(error)}".rstrip(": ")


@contextmanager
def guarded() -> Iterator[None]:
    """Let a device run that is trusted with the process: only what it raises is told apart from our own faults."""
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit, pytest's skip and exit, a device's own: all are its case's error
        raise DeviceError from error


class Custody:
    """A case's hold on the process. Inside ``with``, arithmetic is IEEE 754's; inside ``device()`` it is the device's.

    ``notes``: what the device changed, each once.
    """

    def __init__(self) -> None:
        self._arithmetic = IeeeArithmetic()
        self.notes: list[str] = []

    def __enter__(self) -> Custody:
        self._arithmetic.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._arithmetic.__exit__()

    @contextmanager
    def device(self) -> Iterator[None]:
        """Let the device run. Raises DeviceError for whatever it raises but KeyboardInterrupt."""
        before = _Process.now()
        leave, os._exit = os._exit, _refuse_to_leave(before.number)
        try:
            with self._arithmetic.device(), guarded():
                yield
        finally:
            os._exit = leave
            if os.getpid() != before.number:
                leave(1)  # a copy of this process that the device made and let return: the original goes on
            self._note([*before.restore(), *self._arithmetic.changed])

    def _note(self, changes: list[str]) -> None:
        self.notes += [told for told in map(readable, changes) if told not in self.notes]


def _refuse_to_leave(owner: int) -> Any:
    leave = os._exit

    def refuse(status: int) -> NoReturn:
        if os.getpid() != owner:
            leave(status)  # a child of the device's own
        if not _is_main():
            leave(status or 1)  # no exception would reach the run; but never as if all were well
        raise Left(f"os._exit({status!r}) in the process of the run")

    return refuse


@dataclass(frozen=True)
class _Process:
    """What belongs to the process and a device may change."""

    number: int
    folder: str | None
    variables: dict[str, str]
    handlers: dict[signal.Signals, Any]
    numpy: dict[str, Any]

    @classmethod
    def now(cls) -> _Process:
        handlers = {number: signal.getsignal(number) for number in _SIGNALS} if _is_main() else {}
        return cls(os.getpid(), _folder(), dict(os.environ), handlers, dict(vars(np)))

    def restore(self) -> list[str]:
        """Put back what was there; what is new stays. Return what had changed, in words."""
        changed = []
        if self.folder is not None and _folder() != self.folder:
            changed.append("the working directory")
            os.chdir(self.folder)
        lost = {name for name, value in self.variables.items() if os.environ.get(name) != value}
        changed += [f"the environment variable {name}" for name in sorted(lost)]
        os.environ.update({name: self.variables[name] for name in lost})
        for number, handler in self.handlers.items():
            if signal.getsignal(number) is not handler and handler is not None:
                changed.append(f"the handler of {number.name}")
                signal.signal(number, handler)
        space = vars(np)
        for name in [name for name, value in self.numpy.items() if space.get(name) is not value]:
            changed.append(f"numpy.{name}")
            space[name] = self.numpy[name]
        return changed


_SIGNALS = tuple(s for s in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGCHLD", None)) if s is not None)


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()


def _folder() -> str | None:
    try:
        return str(Path.cwd())
    except OSError:  # it was removed
        return None
