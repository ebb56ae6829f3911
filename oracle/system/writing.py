"""Files that are written anew: whoever reads one sees the old content or the whole of the new."""

from __future__ import annotations

import os
from pathlib import Path


def replace(path: Path, text: str) -> None:
    """Write a text file in one step, with its folders; its mode stays, a link stays one, and nothing is left beside it.
    OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    target = path.resolve()
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        beside.write_text(text, encoding="utf-8", errors="backslashreplace", newline="")
        if target.exists():
            beside.chmod(target.stat().st_mode)
        beside.replace(target)
    finally:  # an interrupt, or a full disk
        beside.unlink(missing_ok=True)
