"""A process in which the C library keeps freed memory: otherwise the page faults of new allocations are measured."""

from __future__ import annotations

import os
import sys

SETTINGS = {
    **dict.fromkeys(("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"), "4000000000"),
    "ACLNN_ORACLE_THREADS": "1",
}


def restarted() -> None:
    """Restart this script in such a process, with one thread, unless it runs in one."""
    if os.environ.get("MALLOC_MMAP_THRESHOLD_") is None:
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **SETTINGS})
