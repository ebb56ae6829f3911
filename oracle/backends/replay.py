"""The replay backend judges outputs that ``--record-outputs DIR`` recorded elsewhere: ``--backend-option path=DIR``."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..model import errors
from ..model.aclnn import SUCCESS, Status
from ..model.call import Array, Call
from ..model.dtypes import dtype_of
from ..model.errors import OracleError, writing
from ..system import npy, strictjson


class Backend:
    """A recording. A case that its run skipped is skipped; a missing call, or one of another SoC or other inputs, is an
    error.

    It has status, error, values, dtypes and shapes. Damage to memory around the tensors was checked in that run.
    """

    name = "replay"
    answers_status = True
    recorded = True  # a second run would give the same results: it adds no information

    def __init__(self, *, path: str) -> None:
        self.folder = Path(path)
        self.index = read_index(self.folder)

    def unsupported(self, call: Call) -> str | None:
        return str(self.index.get(call.case_id, {}).get("skipped", "")) or None

    def run(self, call: Call) -> Status | None:
        """Return the recorded status and write the recorded outputs."""
        entry = self.index.get(call.case_id)
        if entry is None:
            raise OracleError(
                f"{self.folder}: not in the recording: its run did not select this case, or did not come to it; "
                "record it, or select cases as that run did"
            )
        if entry["soc"] != call.soc:
            raise OracleError(f"{self.folder}: recorded for --soc {entry['soc']}, judged for {call.soc}")
        if entry["inputs"] != inputs_digest(call):
            raise OracleError(f"{self.folder}: recorded with other inputs: another --seed, catalogue or version")
        if entry["error"]:
            raise RuntimeError(f"recorded: {entry['error']}")
        for name, description in entry["outputs"].items():
            recorded, given = load_output(self.folder, description), call.outputs.get(name)
            if isinstance(given, np.ndarray) and (given.shape, given.dtype) == (recorded.shape, recorded.dtype):
                given[...] = recorded
            else:
                call.outputs[name] = recorded
        return Status(entry["status"], entry["reason"])


# The recording: written by one run, read by another.


class RecordedOutputs:
    """A context around one run of a device: appends the outputs, or the raised error, to the recording in a folder.

    The digest of the inputs is computed before the device can change them. Raises OracleError if writing fails.
    """

    def __init__(self, folder: Path, call: Call, worker: str) -> None:
        self.folder, self.call, self.worker = folder, call, worker
        self.inputs = inputs_digest(call)
        self.status = SUCCESS

    def __enter__(self) -> RecordedOutputs:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None and not isinstance(error, Exception):
            return  # Ctrl-C: the device gave no result
        line = {
            "id": self.call.case_id,
            "soc": self.call.soc,
            "inputs": self.inputs,
            "status": self.status.code,
            "reason": self.status.reason,
            "error": "" if error is None else getattr(error, "reason", f"{type(error).__name__}: {error}"),
        }
        with writing(f"--record-outputs {self.folder}"):
            self.folder.mkdir(parents=True, exist_ok=True)
            line["outputs"] = self._outputs() if self.status.ok and error is None else {}
            _append(self.folder, line, self.worker)

    def _outputs(self) -> dict[str, Any]:
        outputs: dict[str, Any] = {}
        for name, value in self.call.outputs.items():
            if isinstance(value, np.ndarray):
                file = f"{_stem(self.call.case_id)}.{name}.{value.dtype.name}.npy"
                np.save(self.folder / file, _storable(value), allow_pickle=False)
                outputs[name] = {"file": file, "dtype": value.dtype.name, "shape": list(value.shape)}
        return outputs


def record_skip(folder: Path, case_id: str, reason: str, worker: str) -> None:
    """Append to a recording that its run skipped a case. Raises OracleError if writing fails."""
    with writing(f"--record-outputs {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
        _append(folder, {"id": case_id, "skipped": reason}, worker)


def _append(folder: Path, line: Mapping[str, Any], worker: str) -> None:
    with (folder / f"index-{worker}.jsonl").open("a", encoding="utf-8") as index:
        index.write(json.dumps(line, ensure_ascii=False) + "\n")


def inputs_digest(call: Call) -> str:
    """Return the sha256 of a call's attributes and input values: an output is judged only against its own inputs."""
    digest = hashlib.sha256(json.dumps(call.attrs, sort_keys=True, default=int).encode())
    for name, value in sorted(call.inputs.items()):
        if isinstance(value, np.ndarray):
            digest.update(f"{name} {value.dtype.name} {value.shape}\n".encode())
            digest.update(np.ascontiguousarray(value).tobytes())
    return digest.hexdigest()


def indexes(folder: Path) -> list[Path]:
    """Return the files of a recording that list its cases, one per worker."""
    return list(folder.glob("index-*.jsonl"))


def read_index(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the recording's lines by case id. Raises OracleError for a folder that is no recording."""
    files = sorted(indexes(folder), key=lambda path: path.lstat().st_mtime)
    if not files:
        raise OracleError(f"{folder}: no recording here (no index-*.jsonl); make one with --record-outputs {folder}")
    entries: dict[str, dict[str, Any]] = {}
    for file in files:
        content = errors.read_bytes(file, errors.MANIFEST_BYTES)
        lines = content.splitlines()
        for number, text in enumerate(lines, 1):
            try:
                line = _checked(strictjson.loads(text, f"{file}:{number}"), f"{file}:{number}")
            except OracleError:
                if number == len(lines) and not content.endswith(b"\n"):
                    break  # half-written: the run died
                raise
            entries[line["id"]] = line
    return entries


_FIELDS = {"id": str, "soc": str, "inputs": str, "status": int, "reason": str, "error": str, "outputs": dict}
_SKIP_FIELDS = {"id": str, "skipped": str}
_OUTPUT_FIELDS = {"file": str, "dtype": str, "shape": list}


def _checked(line: Any, where: str) -> dict[str, Any]:
    """Return an index line. Raises OracleError for a line with a missing field or a field of another type."""
    skipped = isinstance(line, dict) and "skipped" in line
    parts: list[tuple[Any, Mapping[str, type]]] = [(line, _SKIP_FIELDS if skipped else _FIELDS)]
    if isinstance(line, dict) and isinstance(line.get("outputs"), dict):
        parts += [(output, _OUTPUT_FIELDS) for output in line["outputs"].values()]
    for result, fields in parts:
        if not isinstance(result, dict) or not all(isinstance(result.get(k), kind) for k, kind in fields.items()):
            raise OracleError(f"{where}: not a line of a recording: it needs {', '.join(fields)}")
    return dict(line)


def load_output(folder: Path, entry: dict[str, Any]) -> Array:
    """Return one recorded output in its own dtype and shape. No file outside the folder is opened."""
    name = f"{folder / entry['file']}"
    path = errors.inside(folder, entry["file"])
    if path is None:
        raise OracleError(f"{name}: leads out of the recording's folder; it is not opened")
    dtype = dtype_of(entry["dtype"]).numpy
    shape = entry["shape"]
    if len(shape) > errors.RANK or not all(type(n) is int and 0 <= n < 2**63 for n in shape):
        raise OracleError(f"{name}: the index gives the shape {str(shape)[:80]}")
    array = npy.loads(errors.read_bytes(path, math.prod(shape) * dtype.itemsize + npy.HEADER_BYTES, name), name)
    if list(array.shape) != shape or array.dtype.itemsize != dtype.itemsize:
        raise OracleError(f"{name}: {array.dtype}{list(array.shape)}, the index says otherwise")
    return np.asarray(array.view(dtype))


def _storable(array: Array) -> Array:
    array = np.ascontiguousarray(array).reshape(array.shape)
    return array if array.dtype.isbuiltin == 1 else array.view(f"u{array.itemsize}")


def _stem(case_id: str) -> str:
    """Return a readable file name, made unique by a hash of the id."""
    readable = re.sub(r"[^A-Za-z0-9=.-]+", "_", case_id)[:80].strip("_")
    return f"{readable}-{hashlib.sha256(case_id.encode()).hexdigest()[:12]}"
