"""Other tools' files: ATK JSON and TTK CSV as cases and back, a team's ``golden.py`` as a backend under test.

Names are imported on first use: the pytest plug-in asks :func:`is_foreign_catalogue` of files in other people's runs.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..model.errors import OracleError
from .recognise import kind_of

if TYPE_CHECKING:
    from .foreign import Loaded

__all__ = ["SUFFIXES", "Loaded", "is_foreign_catalogue", "load"]
SUFFIXES = (".json", ".csv")
PathLike = str | os.PathLike[str]


def load(path: PathLike, *, limit: int | None = None) -> Loaded:
    """Return the cases of an ATK JSON, TTK kernel CSV or TTK aclnn CSV, told apart by content.

    ``limit``: cases with a tensor of more elements are skipped and counted (default 2^24). Raises OracleError for a
    file that is none of the three, and with file, line and case for one that is malformed.
    """
    from ..catalogue.written.reading import display
    from . import atk, foreign, ttk

    file = Path(path)
    if not file.is_file():
        raise OracleError(f"{display(file)}: no such file")
    reader = {"atk": atk.load, "ttk": ttk.load}.get(kind_of(file) or "")
    if reader is None:
        raise OracleError(
            f"{display(file)}: neither ATK JSON (a list of objects with aclnn_name) nor TTK CSV (a header with op_name "
            "and input_shapes, or with api_name and tensor_view_shapes)"
        )
    return reader(file, limit=foreign.LIMIT if limit is None else limit)


def is_foreign_catalogue(path: PathLike) -> bool:
    """Tell by its content whether a file is an ATK or TTK catalogue; False for one that cannot be read."""
    return kind_of(Path(path)) is not None


def __getattr__(name: str) -> Any:
    if name == "Loaded":
        from .foreign import Loaded

        return Loaded
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
