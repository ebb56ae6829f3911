"""Other tools' files: ATK JSON and TTK CSV as cases and back, a team's ``golden.py`` as a backend under test.

Names are imported on first use: the pytest plug-in asks :func:`is_foreign_catalogue` of every file it is named.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import OracleError

if TYPE_CHECKING:
    from .foreign import Loaded

__all__ = ["SUFFIXES", "Loaded", "is_foreign_catalogue", "load"]
SUFFIXES = (".json", ".csv")
_HEAD = 1 << 16  # bytes; the first case of an ATK file may lie behind long comments of its own


def load(path: str | os.PathLike[str], *, limit: int | None = None) -> Loaded:
    """Return the cases of an ATK JSON, TTK kernel CSV or TTK aclnn CSV, told apart by content.

    ``limit``: tensors of more elements are skipped and counted (default 2^24). Raises OracleError for a file that is
    none of the three, and with file, line and case for one that is malformed.
    """
    from ..catalogue.reading import display
    from . import atk, foreign, ttk

    reader = {"atk": atk.load, "ttk": ttk.load}.get(_kind(Path(path)))
    if reader is None:
        raise OracleError(f"{display(path)}: neither ATK JSON nor TTK CSV (a list with aclnn_name, or a header with "
                          "op_name and input_shapes, or api_name and tensor_view_shapes)")  # fmt: skip
    return reader(Path(path), limit=foreign.LIMIT if limit is None else limit)


def is_foreign_catalogue(path: str | os.PathLike[str]) -> bool:
    """Tell by its content whether a file is an ATK or TTK catalogue; False for one that cannot be read."""
    return bool(_kind(Path(path)))


def _kind(path: Path) -> str:
    from . import atk, ttk

    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return ""
    return "atk" if atk.recognises(head) else "ttk" if ttk.recognises(head) else ""


def __getattr__(name: str) -> Any:
    if name == "Loaded":
        from .foreign import Loaded

        return Loaded
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
