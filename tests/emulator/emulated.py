"""Helpers of the emulator's tests: the toolkit tree, programs compiled against it, calls through the ctypes driver."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import processes

from oracle.cann.abi import c_type
from oracle.cann.calls import scalar
from oracle.emulator import environment
from oracle.emulator.toolkit import find_compiler
from oracle.model.call import FORMAT_ENUM, TensorSpec, owner_of
from oracle.model.dtypes import dtype_of
from oracle.operators import OPERATORS

HERE = Path(__file__).parent
NEW_AND_SPLIT = ("ascendcl", "nnopbase", "opapi_nn")
WITH_MATH = (*NEW_AND_SPLIT, "opapi_math")
RENAMED_AND_WHOLE = ("acl_rt", "nnopbase", "opapi")  # the runtime's newer name, and the operators of CANN 8.x


def compile_program(tree: Path, source: Path, out: Path, *flags: str, libraries: Iterable[str] = NEW_AND_SPLIT) -> Path:
    """Compile one C++ file as the documents describe: -I include, -L lib64, three libraries."""
    linked = [f"-L{tree}/lib64", *(f"-l{name}" for name in libraries), "-pthread"]
    command = [find_compiler(), "-std=c++17", *flags, f"-I{tree}/include", source, "-o", out, *linked]
    subprocess.run(command, check=True)
    return out


def run_program(
    tree: Path, program: Path, *arguments: str, soc: str = "ascend910b", timeout: float = 60, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a program with LD_LIBRARY_PATH=lib64 and the given ACLNN_EMULATOR_* settings (by their last word)."""
    env = environment(tree, soc=soc)
    env |= {k if k.startswith("ASCEND") else f"ACLNN_EMULATOR_{k}": v for k, v in variables.items()}
    return processes.run(program, *arguments, timeout=timeout, **env)


@dataclass
class Job:
    """One call for the driver. Tensors are arrays (the driver gets their storage), TensorSpec or None.

    ``parameters``: (name, C type or "tensor") in order, for an operator that is not in the suite.
    """

    op: str
    params: Mapping[str, Any]
    null: tuple[str, ...] = ()
    run: bool = True
    timeout: int = 20000  # ms, of the synchronisation
    parameters: tuple[tuple[str, str], ...] = ()

    def json(self) -> str:
        arguments = []
        for name, kind in self.parameters or parameters_of(self.op):
            value = self.params.get(name)
            if kind == "tensor":
                value = None if value is None else _spec(value)
            elif kind == "aclScalar" and value is not None:
                stored, enum = scalar(name, value)
                value = [enum, base64.b64encode(stored.tobytes()).decode()]
            arguments.append([kind, name, value])
        return json.dumps(
            {"op": self.op, "args": arguments, "null": self.null, "run": self.run, "timeout": self.timeout}
        )


def parameters_of(op: str) -> tuple[tuple[str, str], ...]:
    """Return the parameters of an operator of the suite, each with its C type."""
    return tuple((p.name, c_type(p) if p.kind == "attr" else "tensor") for p in OPERATORS[op].parameters)


def _spec(value: np.ndarray | TensorSpec) -> dict[str, Any]:
    if isinstance(value, np.ndarray):
        storage = owner_of(value)
        offset = (value.ctypes.data - storage.ctypes.data) // value.itemsize if value.size else 0
        strides = [s // value.itemsize for s in value.strides]
        made = {"shape": value.shape, "dtype": dtype_of(value.dtype).enum, "format": FORMAT_ENUM["ND"]}
        data = base64.b64encode(storage.tobytes()).decode()
        return made | {"strides": strides, "offset": offset, "storage": [storage.size], "data": data}
    assert value.dtype is not None
    return {
        "shape": value.shape, "dtype": value.dtype.enum, "format": FORMAT_ENUM[value.format],
        "strides": value.strides, "offset": value.offset, "storage": value.storage_shape, "data": None,
    }  # fmt: skip


@dataclass
class Answer:
    """The driver's results: the statuses of both phases and of the synchronisation, and every storage afterwards."""

    status: int
    message: str
    workspace: int
    launch: int = 0
    sync: int = 0
    data: Mapping[str, str] = field(default_factory=dict)

    def after(self, name: str, before: np.ndarray) -> np.ndarray:
        """Return the tensor's view of the storage after the call."""
        storage = np.frombuffer(base64.b64decode(self.data[name]), before.dtype)
        offset = (before.ctypes.data - owner_of(before).ctypes.data) // before.itemsize
        return np.lib.stride_tricks.as_strided(storage[offset:], before.shape, before.strides)

    def storage(self, name: str, dtype: Any) -> np.ndarray:
        return np.frombuffer(base64.b64decode(self.data[name]), dtype)


def drive(
    tree: Path, jobs: Iterable[Job], soc: str = "ascend910b", **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run the jobs one after the other in a fresh process."""
    env = environment(tree, soc=soc) | {f"ACLNN_EMULATOR_{k}": v for k, v in variables.items()}
    lines = "".join(job.json() + "\n" for job in jobs)
    return processes.run(sys.executable, HERE / "emulator_driver.py", tree / "lib64", said=lines, timeout=120, **env)


def call(tree: Path, jobs: Iterable[Job], soc: str = "ascend910b", **variables: str) -> list[Answer]:
    """Run the jobs in a fresh process and return the driver's results."""
    done = drive(tree, jobs, soc, **variables)
    assert done.returncode == 0, done.stderr
    return [Answer(**json.loads(line)) for line in done.stdout.splitlines()]
