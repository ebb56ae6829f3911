"""Writing a report file."""

from __future__ import annotations

from pathlib import Path

from ..model.errors import OracleError


def save(path: Path, text: str) -> None:
    """Write a text file, with its folders; OracleError where that is not possible."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise OracleError(f"{path}: cannot write the report: {error.strerror or error}") from None
