"""Preparing a record that another run goes on writing."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

from .reader import Record


def spent(record: Record) -> float:
    """Return the seconds that a record's run took: as its last line says, else until its file was last written."""
    if record.duration_s is not None:
        return float(record.duration_s)
    try:
        started = datetime.fromisoformat(record.header.started).timestamp()
    except ValueError:
        return 0.0
    return max(0.0, record.path.stat().st_mtime - started)


AFTER = (b'{"type":"group"', b'{"type":"end"')  # how the lines after the last case begin


def cut(path: Path) -> None:
    """Cut off what a record has after its last case: groups, the end line, or a line that is half-written."""
    with path.open("r+b") as file:
        keep, unended = 0, False
        for line in file:
            unended = not line.endswith(b"\n")
            if line.replace(b" ", b"").startswith(AFTER) or (unended and not _is_whole(line)):
                unended = False
                break
            keep += len(line)
        file.truncate(keep)
        if unended:  # all but the line's end was written
            file.seek(keep)
            file.write(b"\n")


def _is_whole(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True
