"""Writing a report or another file of text: whole or not at all, and never over a record it is made of."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ..model.errors import OracleError
from ..model.writing import replace


def save(path: Path, text: str, made_of: Iterable[Path] = ()) -> None:
    """Write a text file, with its folders; OracleError where that is not possible, or it is one of ``made_of``.

    A file that is there stays as it is until the new one is whole.
    """
    require_other(path, made_of)
    try:
        if path.exists() and not path.is_file():  # /dev/stdout, a pipe
            path.write_text(text, encoding="utf-8", errors="backslashreplace", newline="")
        else:
            replace(path, text)
    except OSError as error:
        raise OracleError(f"{path}: cannot be written: {error.strerror or error}") from None


def require_other(path: Path, made_of: Iterable[Path]) -> None:
    """Raise OracleError where a report would be written over a record."""
    for record in made_of:
        if path.resolve() == record.resolve():
            raise OracleError(f"{path}: is the run record itself; give the report another name")
