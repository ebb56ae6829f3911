"""A process whose C library keeps the memory it is given back: else page faults are measured, of whoever allocates."""

from __future__ import annotations

import os
import sys

SETTINGS = {
    **dict.fromkeys(("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"), "4000000000"),
    "ACLNN_ORACLE_THREADS": "1",
}


def restarted() -> None:
    """Start this script anew in such a process, with one thread, unless it is in one."""
    if os.environ.get("MALLOC_MMAP_THRESHOLD_") is None:
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **SETTINGS})
