"""What aclGetRecentErrMsg adds: the runtime puts new messages before a thread's old ones, the events of a device's
fault behind them, and clears none."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

LIMIT = 2000  # characters of a message that a record keeps


class Messages:
    """Remembers, per thread, what was seen before."""

    def __init__(self) -> None:
        self._seen = threading.local()

    def latest(self, text: str) -> str:
        """Return the part of a thread's message text that was not there the last time, on one line."""
        before: str = getattr(self._seen, "text", "")
        self._seen.text = text
        return "; ".join(line.strip() for line in new_part(text, before).splitlines() if line.strip())[:LIMIT]


def new_part(text: str, before: str) -> str:
    """Return what stands around the old text; where nothing follows it, it may have lost its end."""
    if not before:
        return text
    if (start := text.rfind(before)) >= 0:
        return text[:start] + text[start + len(before) :]
    start = text.find("\n") + 1
    while start:
        if before.startswith(text[start:]):
            return text[:start]
        start = text.find("\n", start) + 1
    return text


# What to do about a failure of CANN's runtime: one sentence per code, for the message and for ``doctor``.

DEVICES = Path("/dev")
_MEMORY = (
    "the device has no free memory: `npu-smi info` lists who holds it; end them, or take another device (--devices)"
)
_FAULT = "the kernel broke the device's context: the next call gets a new process, unless --no-isolate"
REMEDIES: dict[int, str] = {
    107001: "there is no such device here: `npu-smi info` lists them, ASCEND_RT_VISIBLE_DEVICES and the container's "
    "/dev/davinci* decide which of them this process sees",
    207001: _MEMORY,
    207018: _MEMORY,
    207004: "this process sees no device: is the driver loaded (`npu-smi info`), are /dev/davinci* in the container?",
    207005: "the device has no room for another process: `npu-smi info` lists who is on it; wait, or take another one",
    207008: "the device has no stream left: `npu-smi info` lists who is on it; wait, or take another one (--devices)",
    207006: "this user may not use the device: join the group that owns /dev/davinci* (often HwHiAiUser), log in anew",
    507008: "CANN's packages are for another product: install the kernels of the device's own",
    507014: _FAULT,
    507015: _FAULT,
    507033: "the device could not be set up: it is being reset, or its driver is older than this CANN needs; "
    "`npu-smi info` shows both",
    507034: _FAULT,
    507035: _FAULT,
    507899: "the driver refused: it is older than this CANN needs (compare `npu-smi info` with CANN's release notes), "
    "or the device is busy in another container or virtual machine",
    507901: "the connection to the device was lost: `npu-smi set -t reset -i N` resets it",
    561003: "CANN has no kernel of this operator for the device: install the kernels package of the product",
    561107: "ASCEND_OPP_PATH is not set: `source <CANN>/set_env.sh`",
    561112: "CANN has no kernel package: install the kernels package of the product",
}


def remedy(code: int) -> str:
    """Return what to do about a runtime's code, or "". A device that this user may not open comes before all."""
    if code in _OPENING and (closed := next(closed_devices(), None)):
        return f"this user may not open {closed}: join the group that owns it (often HwHiAiUser) and log in anew"
    return REMEDIES.get(code, "")


_OPENING = frozenset({107001, 207004, 207006, 507033, 507899})  # what a device that cannot be opened answers


def closed_devices() -> Iterator[Path]:
    """Yield the device files that this user may not read and write."""
    for path in device_files():
        if not os.access(path, os.R_OK | os.W_OK):
            yield path


def device_files() -> list[Path]:
    """Return the devices that the driver shows to this machine or container, by number."""
    found = [path for path in DEVICES.glob("davinci*") if path.name.removeprefix("davinci").isdigit()]
    return sorted(found, key=lambda path: int(path.name.removeprefix("davinci")))
