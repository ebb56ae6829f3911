"""Ending a process with everything it started, wherever that has gone, and how one has ended.

A process group ends at one call, and a device's helpers are in it unless they asked for a session of their own. On
Linux these too are found: by a variable of the environment that a child is started with and its children inherit.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

COOKIE = "ACLNN_ORACLE_PROCESS"  # holds a word that no other process has
_PR_SET_PDEATHSIG = 1
_ROUNDS = 5  # a process may start another while it is looked for


def new_cookie() -> str:
    return secrets.token_hex(8)


def kill_tree(group: int, cookie: str) -> None:
    """End a process group, and every process that has the cookie."""
    with suppress(ProcessLookupError, PermissionError):  # all of them are gone
        os.killpg(group, signal.SIGKILL)
    for _ in range(_ROUNDS):
        found = list(_with_cookie(cookie))
        if not found:
            return
        for number in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(number, signal.SIGKILL)


def _with_cookie(cookie: str) -> Iterator[int]:
    """Yield the processes that were started with a cookie and have not ended; none where there is no /proc."""
    wanted = f"{COOKIE}={cookie}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is somebody else's
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                yield int(folder.name)


def end_with_parent() -> None:
    """Let Linux end this process when the thread that started it ends, whatever a device does here by then."""
    if sys.platform.startswith("linux"):
        libc: Any = ctypes.CDLL(None)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def how_ended(code: int) -> str:
    """Say how a process ended."""
    if code >= 0:
        return f"exit status {code}"
    try:
        return f"signal {-code} ({signal.Signals(-code).name})"
    except ValueError:
        return f"signal {-code}"
