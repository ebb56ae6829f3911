"""What a device changed in its process: after such a change the process is not used for another call.

Noted once, when the backend is loaded, and compared after every call. A change that a fresh process shows again after
its first call is the device's habit (a thread of its runtime, a setting of its library): it is left then.
"""

from __future__ import annotations

import builtins
import gc
import json
import locale
import math
import os
import pathlib
import pickle
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

_SPACES: dict[str, Any] = {
    **{module.__name__: module for module in (builtins, os, np, math, time, json, pickle, pathlib, signal, threading)},
    **{f"{kind.__module__}.{kind.__qualname__}": kind for kind in (
        pathlib.Path, pathlib.PurePath, json.JSONEncoder, json.JSONDecoder
    )},
}  # fmt: skip
_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGALRM", "SIGCHLD") if hasattr(signal, name))
_TIMERS = tuple(getattr(signal, name) for name in ("ITIMER_REAL", "ITIMER_VIRTUAL", "ITIMER_PROF")
                if hasattr(signal, name))  # fmt: skip
_MISSING = object()
try:
    import resource
except ImportError:  # no such limits on this platform
    resource = None  # type: ignore[assignment]
_LIMITS = {f"the limit {name}": getattr(resource, name) for name in ("RLIMIT_NOFILE", "RLIMIT_AS", "RLIMIT_DATA",
           "RLIMIT_STACK", "RLIMIT_CPU", "RLIMIT_FSIZE", "RLIMIT_NPROC") if hasattr(resource, name)}  # fmt: skip


def _limits() -> dict[str, Any]:
    return {name: resource.getrlimit(number) for name, number in _LIMITS.items()} if resource else {}


def _descriptor(number: int) -> tuple[int, int] | None:
    try:
        found = os.fstat(number)
    except OSError:  # it is closed
        return None
    return found.st_dev, found.st_ino


def _folder() -> str | None:
    try:
        return os.getcwd()  # noqa: PTH109  asked after every call: a Path takes ten times as long
    except OSError:  # it was removed
        return None


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _variables() -> dict[Any, Any]:
    """The environment as os holds it, encoded: decoding it takes longer than all the rest here."""
    found: dict[Any, Any] = vars(os.environ)["_data"]
    return found


class Noted:
    """A process as it was when its backend was loaded."""

    def __init__(self) -> None:
        self._spaces = {name: dict(vars(space)) for name, space in _SPACES.items()}
        self._variables = dict(_variables())
        self._modules = len(sys.modules)
        self._search_path = list(sys.path)
        self._filters = list(warnings.filters)
        self._values = self._now()

    def _now(self) -> dict[str, Any]:
        """Values that are the same after a call as before it."""
        return {
            "the working directory": _folder(),
            "the file mode mask": _umask(),
            "the recursion limit": sys.getrecursionlimit(),
            "sys.meta_path": list(sys.meta_path),
            "sys.path_hooks": list(sys.path_hooks),
            "the tracing of Python": (sys.gettrace(), sys.getprofile()),
            "the garbage collector": gc.isenabled(),
            "the threads of Python": threading.active_count(),
            "the locale": locale.setlocale(locale.LC_ALL),
            **{f"sys.{name}": getattr(sys, name, None) for name in ("stdout", "stderr", "__stdout__", "__stderr__")},
            **{f"descriptor {number}": _descriptor(number) for number in (0, 1, 2)},
            **{f"the handler of {number.name}": signal.getsignal(number) for number in _SIGNALS},
            "the alarm of the process": tuple(t for n in _TIMERS if (t := signal.getitimer(n)) != (0.0, 0.0)),
            **_limits(),
        }

    def changes(self) -> list[str]:
        """Return in words what is not as it was. What is new beside what was there may be the device's own."""
        return [*self._of_spaces(), *_differing(self._values, self._now()), *self._of_the_rest()]

    def _of_spaces(self) -> Iterator[str]:
        for name, before in self._spaces.items():
            now: Mapping[str, Any] = vars(_SPACES[name])
            if now != before:  # one by one would take a hundred times as long; equal is nearly always the same
                yield from (f"{name}.{key}" for key, value in before.items() if now.get(key, _MISSING) is not value)

    def _of_the_rest(self) -> Iterator[str]:
        now = _variables()
        if now != self._variables:
            lost = (name for name, value in self._variables.items() if now.get(name) != value)
            yield from (f"the environment variable {os.fsdecode(name)}" for name in lost)
        if any(entry not in sys.path for entry in self._search_path):
            yield "sys.path"
        if len(sys.modules) < self._modules:
            yield "sys.modules"
        if any(entry not in warnings.filters for entry in self._filters) or _turned_to_errors(self._filters):
            yield "the filters of warnings"


def _turned_to_errors(before: list[Any]) -> bool:
    """Whether the first filter is a new one that makes errors of all warnings."""
    first = next(iter(warnings.filters), None)
    return first is not None and first not in before and first[0] == "error" and first[1] is None


def _differing(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    yield from (name for name, value in before.items() if now.get(name, _MISSING) != value)
