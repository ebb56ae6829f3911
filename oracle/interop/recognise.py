"""Which files are other tools' catalogues: told by their first bytes, with the standard library only.

The pytest plug-in asks this of every JSON and CSV file that is named on the command line, also in other people's runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

HEAD = 1 << 16  # bytes: the whole first case of an ATK file, the whole header of a TTK one
HEADERS = (("op_name", "input_shapes"), ("api_name", "tensor_view_shapes"))  # TTK kernel CSV, TTK aclnn CSV
_BOM = b"\xef\xbb\xbf"


def kind_of(path: Path) -> Literal["atk", "ttk"] | None:
    """Return what a file is by its content; None for anything else, also for one that cannot be read."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD).removeprefix(_BOM)
    except OSError:
        return None
    return "atk" if _is_atk(head) else "ttk" if _is_ttk(head) else None


def _is_atk(head: bytes) -> bool:
    """A JSON list of objects with an aclnn name."""
    text = head.lstrip()
    return text.startswith(b"[") and text[1:].lstrip().startswith(b"{") and b'"aclnn_name"' in text


def _is_ttk(head: bytes) -> bool:
    """A CSV whose header has the columns of either form."""
    line = head.partition(b"\n")[0].decode("utf-8", "replace")
    names = {name.strip().strip('"') for name in line.split(",")}
    return any(names.issuperset(header) for header in HEADERS)
