"""What belongs to the process and not to a device: noted before a device runs, put back when it returns.

A backend is code in our process. It may close standard output, replace NumPy's functions, set an alarm. What was there
is put back; what is new stays, for it may be the device's own (a variable of its runtime, a module it loads late).
"""

from __future__ import annotations

import builtins
import math
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

_MODULES = {module.__name__: vars(module) for module in (builtins, os, np, math, time)}
_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGALRM", "SIGCHLD") if hasattr(signal, name))
_STREAMS = ("stdout", "stderr", "__stdout__", "__stderr__")
_MISSING = object()


class Lent:
    """A stream as a device sees it: it may write, but not close what is the process's."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    @property
    def buffer(self) -> Any:
        return Lent(self._stream.buffer)

    def close(self) -> None:
        self._stream.flush()

    detach = close

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._stream)


@dataclass(frozen=True)
class Belongings:
    """What the process had before a device ran. Handlers and alarms are the main thread's to set."""

    modules: dict[str, dict[str, Any]]
    folder: str | None
    variables: dict[Any, Any]
    handlers: dict[signal.Signals, Any]
    alarm: tuple[float, float]
    recursion: int
    search_path: list[str]
    filters: list[Any]
    streams: dict[str, Any]
    descriptors: dict[int, int | None]

    @classmethod
    def lend(cls) -> Belongings:
        """Note what there is, and give a device streams that it cannot close."""
        handlers = {number: signal.getsignal(number) for number in _SIGNALS} if is_main() else {}
        found = cls(
            {name: dict(space) for name, space in _MODULES.items()},
            _folder(),
            dict(_variables()),
            handlers,
            _alarm(),
            sys.getrecursionlimit(),
            list(sys.path),
            list(warnings.filters),
            {name: getattr(sys, name) for name in _STREAMS},
            {number: _unless_closed(os.dup, number) for number in (1, 2)},
        )
        for name, stream in found.streams.items():
            if stream is not None and not isinstance(stream, Lent):
                setattr(sys, name, Lent(stream))
        return found

    def restore(self, *, variables: bool = True) -> list[str]:
        """Put back what was there. Return what had changed, in words. ``variables``: those of the environment too."""
        changed = list(self._restore_modules())  # first: the rest calls them
        changed += self._restore_streams()
        changed += self._restore_signals()
        if self.folder is not None and _folder() != self.folder:
            changed.append("the working directory")
            with suppress(OSError):  # the device has removed it
                os.chdir(self.folder)
        if variables:
            changed += self._restore_variables()
        if sys.getrecursionlimit() != self.recursion:
            changed.append("the recursion limit")
            sys.setrecursionlimit(self.recursion)
        if any(entry not in sys.path for entry in self.search_path):
            changed.append("sys.path")
            sys.path[:] = self.search_path
        if warnings.filters[: len(self.filters)] != self.filters:
            changed.append("the filters of warnings")
            warnings.filters[:] = self.filters  # type: ignore[index]
        return changed

    def _restore_variables(self) -> Iterator[str]:
        now = _variables()
        if now == self.variables:
            return
        for name in sorted(name for name, value in self.variables.items() if now.get(name) != value):
            yield f"the environment variable {os.fsdecode(name)}"
            os.environ[os.fsdecode(name)] = os.fsdecode(self.variables[name])

    def _restore_modules(self) -> Iterator[str]:
        for module, before in self.modules.items():
            space = _MODULES[module]
            if space == before:  # one by one would take a hundred times as long; equal is nearly always the same
                continue
            for name, value in before.items():
                if space.get(name, _MISSING) is not value:
                    space[name] = value
                    yield f"{module}.{name}"

    def _restore_streams(self) -> Iterator[str]:
        for name, stream in self.streams.items():
            lent = getattr(sys, name, None)
            if lent is not stream and not (isinstance(lent, Lent) and lent._stream is stream):
                yield f"sys.{name}"
            setattr(sys, name, stream)
        for number, kept in self.descriptors.items():
            if kept is None:
                continue
            if not _is_same(number, kept) and _unless_closed(os.fstat, kept) is not None:
                yield f"descriptor {number}"
                os.dup2(kept, number)
            _unless_closed(os.close, kept)

    def _restore_signals(self) -> Iterator[str]:
        if not is_main():
            return
        if _alarm() != (0.0, 0.0) == self.alarm:
            yield "the alarm of the process"
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self.handlers.items():
            if handler is not None and signal.getsignal(number) is not handler:
                yield f"the handler of {number.name}"
                signal.signal(number, handler)


def is_main() -> bool:
    return threading.current_thread() is threading.main_thread()


def _variables() -> dict[Any, Any]:
    """The environment as os holds it, encoded: decoding it would take longer than all the rest in here."""
    found: dict[Any, Any] = vars(os.environ)["_data"]
    return found


def _folder() -> str | None:
    try:
        return os.getcwd()  # noqa: PTH109  asked twice per call: a Path takes ten times as long
    except OSError:  # it was removed
        return None


def _alarm() -> tuple[float, float]:
    return signal.getitimer(signal.ITIMER_REAL) if hasattr(signal, "getitimer") else (0.0, 0.0)


def _unless_closed(do: Callable[[int], Any], descriptor: int) -> Any:
    """Return what a call on a descriptor gives; None where it is closed."""
    try:
        return do(descriptor)
    except OSError:
        return None


def _is_same(one: int, other: int) -> bool:
    """Whether two descriptors are of one open file."""
    first, second = _unless_closed(os.fstat, one), _unless_closed(os.fstat, other)
    return first is not None and second is not None and os.path.samestat(first, second)
