"""Files of other tools: ATK JSON and TTK CSV as cases and back, a team's ``golden.py`` as a device under test.

Names are imported on first use, because the pytest plug-in calls :func:`is_foreign_catalogue` in other projects' runs.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ..model.errors import OracleError

if TYPE_CHECKING:
    from .foreign import Loaded

__all__ = ["SUFFIXES", "is_foreign_catalogue", "load"]


# An ATK file is a JSON list of objects with an aclnn name. A TTK file is a CSV whose header has the columns of a form.
HEAD = 1 << 16  # bytes: the whole first case of an ATK file, the whole header of a TTK one
HEADERS = (("op_name", "input_shapes"), ("api_name", "tensor_view_shapes"))  # TTK kernel CSV, TTK aclnn CSV
_BOM = b"\xef\xbb\xbf"


def kind_of(path: Path) -> Literal["atk", "ttk"] | None:
    """Return the kind of a file from its content; None for any other file, and for an unreadable one."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD).removeprefix(_BOM)
    except OSError:
        return None
    text = head.lstrip()
    if text.startswith(b"[") and text[1:].lstrip().startswith(b"{") and b'"aclnn_name"' in text:
        return "atk"
    line = head.partition(b"\n")[0].decode("utf-8", "replace")
    names = {name.strip().strip('"') for name in line.split(",")}
    return "ttk" if any(names.issuperset(header) for header in HEADERS) else None


SUFFIXES = (".json", ".csv")
PathLike = str | os.PathLike[str]


def load(path: PathLike, *, limit: int | None = None) -> Loaded:
    """Return the cases of an ATK JSON, TTK kernel CSV or TTK aclnn CSV, distinguished by content.

    ``limit``: cases with a tensor of more elements are skipped and counted (default 2^24). Raises OracleError for a
    file of another kind; for a malformed file, the error has file, line and case.
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
    """Return whether a file is an ATK or TTK catalogue by its content; False for an unreadable file."""
    return kind_of(Path(path)) is not None
