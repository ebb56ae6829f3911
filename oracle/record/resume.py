"""Preparing a record that another run goes on writing."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import Any

from .reader import Record
from .types import RunHeader


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


# Whether two records are of one run: of the same cases, made and judged alike.


# What may differ between the parts of one run; whatever else a first line says must be the same.
OWN = frozenset({"versions", "command", "started", "planned", "changed"})
# Versions that may differ: results are the same bits under all of these.
FREE = frozenset({"python", "platform", "numpy", "ml_dtypes", "gmpy2", "pytest"})


def differences(old: RunHeader, new: RunHeader, *, except_for: Collection[str] = ()) -> list[str]:
    """Return in words what tells the first lines of two records apart; none where they are of one run."""
    return [f"{name}: {_short(a)} there, {_short(b)} here" for name, a, b in _differing(old, new, except_for)]


def _differing(old: RunHeader, new: RunHeader, except_for: Collection[str]) -> Iterator[tuple[str, Any, Any]]:
    for name in (each.name for each in fields(RunHeader) if each.name not in OWN.union(except_for)):
        a, b = getattr(old, name), getattr(new, name)
        if a != b:
            yield name, a, b
    for name in sorted({*old.versions, *new.versions} - FREE):
        a, b = old.versions.get(name, "none"), new.versions.get(name, "none")
        if a != b:
            yield f"version of {name}", a, b


def _short(value: Any) -> str:
    if isinstance(value, tuple):
        value = " ".join(value)
    elif isinstance(value, dict):
        value = ", ".join(f"{k} {v}" for k, v in value.items())
    text = str(value) or "none"
    return text if len(text) <= 60 else text[:57] + "..."
