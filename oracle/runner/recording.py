"""Outputs saved by ``--record-outputs`` and read back by ``--backend replay``: NumPy files and an index of JSON lines.

One ``index-<worker>.jsonl`` per process; where an id occurs twice the later line counts. An output of a type NumPy's
format does not know (bfloat16) is stored as its bits in uint16, its dtype in the index and in the file's name.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from ..dtypes import dtype_of, find
from ..errors import OracleError
from ..signature import Array, Call
from ..status import Status
from .settings import Settings


def save(folder: Path, call: Call, status: Status, settings: Settings) -> None:
    """Append what a device answered to a recording."""
    folder.mkdir(parents=True, exist_ok=True)
    outputs: dict[str, Any] = {}
    for name, value in call.outputs.items():
        if isinstance(value, np.ndarray) and status.ok:
            file = f"{_stem(call.case_id)}.{name}.{value.dtype.name}.npy"
            np.save(folder / file, _storable(value), allow_pickle=False)
            outputs[name] = {"file": file, "dtype": value.dtype.name, "shape": list(value.shape)}
    line = {"id": call.case_id, "soc": call.soc, "seed": settings.seed, "status": status.code, "reason": status.reason,
            "outputs": outputs}  # fmt: skip
    with (folder / f"index-{settings.worker}.jsonl").open("a", encoding="utf-8") as index:
        index.write(json.dumps(line, ensure_ascii=False) + "\n")


def read_index(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the recording's lines by case id. Raises OracleError for a folder that is no recording."""
    files = sorted(folder.glob("index-*.jsonl"), key=lambda path: path.stat().st_mtime)
    if not files:
        raise OracleError(f"{folder}: no recording here (no index-*.jsonl); make one with --record-outputs {folder}")
    entries: dict[str, dict[str, Any]] = {}
    for file in files:
        for number, text in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            try:
                line = json.loads(text)
                entries[line["id"]] = line
            except (ValueError, KeyError, TypeError) as error:
                raise OracleError(f"{file}:{number}: not a line of a recording: {error}") from None
    return entries


def load_output(folder: Path, entry: dict[str, Any]) -> Array:
    """Return one recorded output in its own dtype and shape."""
    try:
        array = np.load(folder / entry["file"], allow_pickle=False)
    except (OSError, ValueError) as error:
        raise OracleError(f"{folder / entry['file']}: not a recorded output: {error}") from None
    dtype = dtype_of(entry["dtype"]).numpy if find(entry["dtype"]) is None else np.dtype(entry["dtype"])
    if list(array.shape) != entry["shape"] or array.dtype.itemsize != dtype.itemsize:
        raise OracleError(f"{folder / entry['file']}: {array.dtype}{list(array.shape)}, the index says otherwise")
    return np.asarray(array.view(dtype))


def _storable(array: Array) -> Array:
    array = np.ascontiguousarray(array).reshape(array.shape)
    return array if array.dtype.isbuiltin == 1 else array.view(f"u{array.itemsize}")


def _stem(case_id: str) -> str:
    """A file name people can read, made unique by a hash of the id."""
    readable = re.sub(r"[^A-Za-z0-9=.-]+", "_", case_id)[:80].strip("_")
    return f"{readable}-{hashlib.sha256(case_id.encode()).hexdigest()[:12]}"
