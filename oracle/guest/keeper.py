"""The keeper: a process between a run and a device's process. It ends everything that the device started.

On Linux it is the reaper of orphans below it (PR_SET_CHILD_SUBREAPER). So a process whose parent has ended becomes its
child, in any session and with any environment. If the device's process or the run ends (the run's end of a pipe closes
then), the keeper ends all its children. Elsewhere it ends the device's process group, but not processes that the device
started in their own session.

It imports only the standard library, so that this process stays as small as possible.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_PATIENCE = 5.0  # seconds to end processes that start others as fast as they are ended
STATUS = struct.Struct("!i")  # how the device's process ended, as os.waitpid gives it


def keep(line: int) -> None:
    """Fork: return in the device's process. The other process is the keeper; it sends the exit status to ``line``."""
    if sys.platform.startswith("linux"):
        libc: Any = ctypes.CDLL(None)
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the run handles Ctrl-C; it ends us by closing ``line``
    keeper, device = os.getpid(), os.fork()
    if device:
        _stand_by(device, line)
    os.close(line)
    os.setpgid(0, 0)
    if sys.platform.startswith("linux"):
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != keeper:
            os._exit(1)


def _stand_by(device: int, line: int) -> NoReturn:
    """Wait for the end of the device's process or of the run, and end all remaining processes."""
    _close_others(line)
    wakes, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    status = None
    while status is None:
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == device:
                    status = ended[1]
        if status is None and line in select.select([line, wakes], [], [])[0]:
            break  # the run is gone, or does not need the device's process any more
        if status is None:
            os.read(wakes, 4096)
    _end_all(device)
    with suppress(OSError), socket.socket(fileno=line) as end:
        end.sendall(STATUS.pack(0 if status is None else status))
    os._exit(0)


def _close_others(line: int) -> None:
    """Close the device's pipe in this process: the run must see its end when the device's process ends."""
    os.closerange(3, line)
    os.closerange(line + 1, 1 << 16)


def _end_all(device: int) -> None:
    """End every child, and every process that becomes our child when its parent ends."""
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(device, signal.SIGKILL)
        for child in _children():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(child, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.002)


def _children() -> Iterator[int]:
    """Yield this process's children; without /proc, yield no process."""
    me = str(os.getpid())
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # the process has ended
            if (folder / "stat").read_text().rpartition(")")[2].split()[1] == me:
                yield int(folder.name)


def how_ended(code: int) -> str:
    """Describe how a process ended."""
    if code >= 0:
        return f"exit status {code}"
    try:
        return f"signal {-code} ({signal.Signals(-code).name})"
    except ValueError:
        return f"signal {-code}"
