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

from ..model.call import Array, Call
from ..model.dtypes import dtype_of, find
from ..model.errors import OracleError
from ..model.status import SUCCESS


class RecordedOutputs:
    """Around one run of a device: appends what it answered, or the error it raised, to the recording in a folder.

    The digest of the inputs is taken before the device can change them. Raises OracleError if nothing can be written.
    """

    def __init__(self, folder: Path, call: Call, worker: str) -> None:
        self.folder, self.call, self.worker = folder, call, worker
        self.inputs = inputs_digest(call)
        self.status = SUCCESS

    def __enter__(self) -> RecordedOutputs:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None and not isinstance(error, Exception):
            return  # Ctrl-C: the device did not answer
        cause = None if error is None else error.__cause__ or error
        line = {
            "id": self.call.case_id,
            "soc": self.call.soc,
            "inputs": self.inputs,
            "status": self.status.code,
            "reason": self.status.reason,
            "error": "" if cause is None else f"{type(cause).__name__}: {cause}",
        }
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            line["outputs"] = self._outputs() if self.status.ok and cause is None else {}
            with (self.folder / f"index-{self.worker}.jsonl").open("a", encoding="utf-8") as index:
                index.write(json.dumps(line, ensure_ascii=False) + "\n")
        except OSError as problem:
            why = problem.strerror or problem
            raise OracleError(f"--record-outputs {self.folder}: cannot be written: {why}") from None

    def _outputs(self) -> dict[str, Any]:
        outputs: dict[str, Any] = {}
        for name, value in self.call.outputs.items():
            if isinstance(value, np.ndarray):
                file = f"{_stem(self.call.case_id)}.{name}.{value.dtype.name}.npy"
                np.save(self.folder / file, _storable(value), allow_pickle=False)
                outputs[name] = {"file": file, "dtype": value.dtype.name, "shape": list(value.shape)}
        return outputs


def inputs_digest(call: Call) -> str:
    """Return the sha256 of a call's attributes and input values: an output is judged only against its own inputs."""
    digest = hashlib.sha256(json.dumps(call.attrs, sort_keys=True, default=int).encode())
    for name, value in sorted(call.inputs.items()):
        if isinstance(value, np.ndarray):
            digest.update(f"{name} {value.dtype.name} {value.shape}\n".encode())
            digest.update(np.ascontiguousarray(value).tobytes())
    return digest.hexdigest()


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
