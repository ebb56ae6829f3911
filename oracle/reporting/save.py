"""Writing a report file: whole or not at all, and never over a record it is made of."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from ..model.errors import OracleError


def save(path: Path, text: str, made_of: Iterable[Path] = ()) -> None:
    """Write a text file, with its folders; OracleError where that is not possible, or it is one of ``made_of``.

    A file that is there stays as it is until the new one is whole.
    """
    require_other(path, made_of)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file():  # /dev/stdout, a pipe
            path.write_text(text, encoding="utf-8", newline="")
            return
        target = path.resolve()  # a link stays one
        beside = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            beside.write_text(text, encoding="utf-8", newline="")
            if target.exists():
                beside.chmod(target.stat().st_mode)
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise OracleError(f"{path}: cannot write the report: {error.strerror or error}") from None


def require_other(path: Path, made_of: Iterable[Path]) -> None:
    """Raise OracleError where a report would be written over a record."""
    for record in made_of:
        if path.resolve() == record.resolve():
            raise OracleError(f"{path}: is the run record itself; give the report another name")
