"""``--golden-cache DIR``: inputs, golden and bounds of cases, kept from one run to the next.

An entry is named by everything that decides it: the case with its id, the seed and the scheme of seeds, the SoC, the
version of CANN, the versions of the libraries that compute, and the code of this package. Whatever changes gives
another name, so an entry is never out of date; it is only not asked for any more, and goes when the folder is full (the
entry goes first that was read longest ago). An entry is written beside its place and moved there, so that many
processes may share a folder; its checksum is verified when it is read, and a damaged one is computed again.

Operators from outside are not kept: what their pages import is not known here.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ..catalogue.data.case import Case
from ..catalogue.data.generators.streams import SCHEME
from ..catalogue.data.inputs import spec_of_plan
from ..catalogue.data.layout import allocate
from ..catalogue.portable import case_to_json
from ..model.call import Array, TensorSpec, memory_of
from ..model.dtypes import DTYPES
from ..operators import OPERATORS, Reference
from ..settings.settings import Settings
from ..system.cache import code_digest, code_is_as_loaded, opened, recalled, sealed, shrink, store
from .memory import Memory

FORM = b"aclnn-oracle golden 1\n"
LIMIT = 8 << 30  # bytes of a folder
LARGEST = 16  # an entry takes at most this part of the folder
LOOK = 64  # entries written between two looks at the folder's size
_INPUT, _FIELD = "input ", "reference "  # before a name, in an entry


@dataclass
class GoldenCache:
    """A folder of entries. ``code``: the digest of what computes them."""

    folder: Path
    limit: int = LIMIT
    code: str = ""
    written: int = 0

    def __post_init__(self) -> None:
        self.code = self.code or code_digest()

    def path(self, case: Case, settings: Settings) -> Path:
        """Return where the entry of a case lies, if there is one."""
        decides = [case.id, case_to_json(case), settings.seed, SCHEME, settings.soc, settings.under, self.code, tools()]
        name = hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()
        return self.folder / name[:2] / f"{name[2:]}.golden"

    def load(self, case: Case, settings: Settings) -> tuple[Memory, dict[str, Reference]] | None:
        """Return a case's memory and references, None where they are not kept, or not as they were written."""
        path = self.path(case, settings)
        content = recalled(path)
        if content is None:
            return None
        arrays = unpacked(content)
        if arrays is None:
            path.unlink(missing_ok=True)
            return None
        inputs: dict[str, Any] = {}
        for name, plan in case.inputs.items():
            buffer = None if plan is None else allocate(plan.shape, plan.dtype, plan.view)
            inputs[name] = buffer and buffer.view
            if buffer is not None:
                memory_of(buffer.view)[...] = arrays[_INPUT + name]
        memory = Memory(case, settings.soc, inputs, _specs(case), under=settings.under)
        found: dict[str, dict[str, Any]] = {output: {} for output in case.outputs}
        for name, value in arrays.items():
            if name.startswith(_FIELD):
                output, _, field = name.removeprefix(_FIELD).partition(" ")
                found[output][field] = value
        return memory, {output: Reference(**given) for output, given in found.items()}

    def store(self, case: Case, settings: Settings, memory: Memory, references: Mapping[str, Reference]) -> None:
        """Keep a case's inputs, which no device has had yet, and its references; nothing where the code that made them
        is not what its digest says any more."""
        parts: dict[str, Any] = {_INPUT + name: memory_of(v) for name, v in memory.inputs.items() if v is not None}
        for output, reference in references.items():
            parts |= {f"{_FIELD}{output} {field.name}": getattr(reference, field.name) for field in fields(reference)}
        content = packed(parts)
        if len(content) * LARGEST > self.limit or not code_is_as_loaded():
            return
        path = self.path(case, settings)
        try:
            store(path, content)
        except OSError as error:
            warnings.warn(f"--golden-cache {self.folder}: cannot be written: {error.strerror or error}", stacklevel=2)
            return
        self.written += 1
        if self.written % LOOK == 1:
            self.shrink()

    def shrink(self) -> None:
        """Delete what was read longest ago where the folder holds more than its limit."""
        shrink(self.folder.glob("??/*"), self.limit, cost=lambda status: status.st_size)


def _specs(case: Case) -> dict[str, TensorSpec]:
    plans = {**case.inputs, **case.outputs}
    return {name: spec_of_plan(plan) for name, plan in plans.items() if plan is not None}


def packed(values: Mapping[str, Any]) -> bytes:
    """Return arrays and plain values as an entry: a line that describes them, their bytes, a checksum of both."""
    head, data = [], []
    for name, value in values.items():
        if isinstance(value, np.ndarray):
            known = next((row.name for row in DTYPES.values() if row.numpy == value.dtype), value.dtype.str)
            head.append([name, known, list(value.shape)])
            data.append(np.ascontiguousarray(value).tobytes())
        else:
            head.append([name, "", value])
    return sealed(b"".join([FORM, json.dumps(head).encode(), b"\n", *data]))


def unpacked(content: bytes) -> dict[str, Any] | None:
    """Return what :func:`packed` packed; None where the checksum says that it is something else."""
    body = opened(content)
    if body is None or not body.startswith(FORM):
        return None
    end = body.index(b"\n", len(FORM))
    values: dict[str, Any] = {}
    at = end + 1
    for name, dtype, value in json.loads(body[len(FORM) : end]):
        if not dtype:
            values[name] = value
            continue
        array: Array = np.zeros(value, DTYPES[dtype].numpy if dtype in DTYPES else dtype)
        if array.size:
            array.reshape(-1).view(np.uint8)[...] = np.frombuffer(body, np.uint8, array.nbytes, at)
        values[name], at = array, at + array.nbytes
    return values


@cache
def tools() -> dict[str, str]:
    """The libraries that compute: they change no bit, and are named all the same."""
    return {name: version(name) for name in ("numpy", "ml_dtypes", "gmpy2")}


@cache
def cache_in(folder: str) -> GoldenCache:
    """Return this process's view of a folder."""
    return GoldenCache(Path(folder))


def cache_of(case: Case, settings: Settings) -> GoldenCache | None:
    """Return where a case is kept: nowhere without --golden-cache, after a forward, whose results are the device's, or
    if what computes it is not known."""
    if settings.golden_cache is None or case.before is not None or not case.computes(settings.soc, settings.cann):
        return None
    return cache_in(settings.golden_cache) if OPERATORS[case.op].is_built_in else None
