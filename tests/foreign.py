"""Small files of ATK and TTK, written and read."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

from oracle.interop import load
from oracle.interop.foreign import Loaded

DATA = Path(__file__).parent / "data"
SMALL = ("atk_small.json", "ttk_kernel_small.csv", "ttk_aclnn_small.csv")


def tensor(name: str | None, values: Any, dtype: str = "fp32", shape: tuple[int, ...] = (300,)) -> dict[str, Any]:
    return {"name": name, "type": "tensor", "dtype": dtype, "shape": list(shape), "range_values": values}


def atk(folder: Path, operator: str, *inputs: dict[str, Any]) -> Loaded:
    """Return the cases read from an ATK file of one case."""
    path = folder / "atk.json"
    path.write_text(json.dumps([{"id": 0, "aclnn_name": operator, "inputs": inputs}]))
    return load(path)


def ttk(folder: Path, *rows: dict[str, str], **cells: str) -> Loaded:
    """Return the cases read from a TTK file of the rows, with ``cells`` in each row; without rows, of one row."""
    path = folder / "ttk.csv"
    written = [{"testcase_name": "row"} | cells | row for row in rows or ({},)]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(written[0]))
        writer.writeheader()
        writer.writerows(written)
    return load(path)
