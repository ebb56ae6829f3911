"""Calls aclnn operators through ctypes, as described on stdin: one JSON object a line in, one out.

It does not import the project, so that it tests only the C interface. argv[1] is lib64.
A job: {"op", "args": [["tensor", name, spec or null], [C type, name, value]], "null": [names], "run": bool}; an
aclScalar's value is [aclDataType, base64 of its bytes] or null; a tensor's spec:
{"shape", "dtype", "format", "strides", "offset", "storage", "data": base64 of the storage or null}.
"""

from __future__ import annotations

import base64
import ctypes
import json
import sys
from ctypes import POINTER, byref, c_bool, c_char_p, c_double, c_float, c_int, c_int64, c_size_t, c_uint64, c_void_p
from pathlib import Path

LIB64 = Path(sys.argv[1])
acl, base = (ctypes.CDLL(str(LIB64 / name)) for name in ("libascendcl.so", "libnnopbase.so"))
OPS = [ctypes.CDLL(str(LIB64 / name)) for name in ("libopapi_nn.so", "libopapi_math.so")]
BY_VALUE = {"int64": c_int64, "float": c_float, "double": c_double, "bool": c_bool}
I64 = POINTER(c_int64)
for function, arguments in (
    (acl.aclInit, [c_char_p]),
    (acl.aclrtSetDevice, [c_int]),
    (acl.aclrtResetDeviceForce, [c_int]),
    (acl.aclrtMalloc, [POINTER(c_void_p), c_size_t, c_int]),
    (acl.aclrtFree, [c_void_p]),
    (acl.aclrtMemcpy, [c_void_p, c_size_t, c_void_p, c_size_t, c_int]),
    (acl.aclrtSynchronizeStreamWithTimeout, [c_void_p, c_int]),
    (base.aclCreateTensor, [I64, c_uint64, c_int, I64, c_int64, c_int, I64, c_uint64, c_void_p]),
    (base.aclDestroyTensor, [c_void_p]),
    (base.aclCreateScalar, [c_char_p, c_int]),
    (base.aclDestroyScalar, [c_void_p]),
    (base.aclDestroyAclOpExecutor, [c_void_p]),
):
    function.argtypes = arguments
base.aclCreateTensor.restype = base.aclCreateScalar.restype = c_void_p
acl.aclGetRecentErrMsg.restype = c_char_p
DTOH, HTOD = 2, 1


def must(code: int, what: str) -> None:
    if code != 0:
        raise SystemExit(f"{what} failed with {code}: {message()}")


def message() -> str:
    return (acl.aclGetRecentErrMsg() or b"").decode().partition("\n")[0]


def dims(values: list[int]) -> ctypes.Array[c_int64]:
    return (c_int64 * max(len(values), 1))(*values)


class Tensor:
    def __init__(self, spec: dict) -> None:
        self.data = base64.b64decode(spec["data"] or "")
        self.memory = c_void_p()
        if self.data:
            must(acl.aclrtMalloc(byref(self.memory), len(self.data), 0), "aclrtMalloc")
            must(acl.aclrtMemcpy(self.memory, len(self.data), self.data, len(self.data), HTOD), "aclrtMemcpy")
        shape, storage, strides = spec["shape"], spec["storage"], spec["strides"]
        self.handle = base.aclCreateTensor(
            dims(shape), len(shape), spec["dtype"], dims(strides) if strides is not None else None, spec["offset"],
            spec["format"], dims(storage), len(storage), self.memory,
        )  # fmt: skip

    def download(self) -> str:
        host = ctypes.create_string_buffer(len(self.data))
        must(acl.aclrtMemcpy(host, len(self.data), self.memory, len(self.data), DTOH), "aclrtMemcpy")
        return base64.b64encode(host.raw).decode()

    def destroy(self) -> None:
        must(base.aclDestroyTensor(self.handle), "aclDestroyTensor")
        if self.memory:
            acl.aclrtFree(self.memory)


def operator(name: str):
    return next(getattr(library, name) for library in OPS if hasattr(library, name))


def attribute(kind: str, value):
    """Return the value in its C type and, for an aclScalar, the handle to destroy."""
    if kind == "char*":
        return c_char_p(None if value is None else value.encode()), None
    if kind != "aclScalar":
        return BY_VALUE[kind](value), None
    handle = None if value is None else base.aclCreateScalar(base64.b64decode(value[1]), value[0])
    return c_void_p(handle), handle


def first_phase(job: dict, tensors: dict[str, Tensor | None]) -> tuple[int, c_uint64, c_void_p]:
    function = operator(job["op"] + "GetWorkspaceSize")
    values, scalars = [], []
    for kind, name, value in job["args"]:
        if kind == "tensor":
            tensor = tensors[name]
            values.append(c_void_p(tensor.handle if tensor is not None else None))
        else:
            passed, scalar = attribute(kind, value)
            values.append(passed)
            scalars.append(scalar)
    size, executor = c_uint64(), c_void_p()
    pointers = [
        None if name in job["null"] else byref(v) for name, v in (("workspaceSize", size), ("executor", executor))
    ]
    status = function(*values, *pointers)
    for scalar in filter(None, scalars):
        must(base.aclDestroyScalar(scalar), "aclDestroyScalar")
    return status, size, executor


def second_phase(job: dict, size: c_uint64, executor: c_void_p) -> tuple[int, int]:
    """Run the second phase; return the status of the call and of the synchronisation."""
    workspace = c_void_p()
    if size.value > 0:
        must(acl.aclrtMalloc(byref(workspace), size.value, 0), "aclrtMalloc")
    status = operator(job["op"])(workspace, size, executor, None)
    sync = acl.aclrtSynchronizeStreamWithTimeout(None, job["timeout"])
    if workspace:
        acl.aclrtFree(workspace)
    return status, sync


def perform(job: dict) -> dict:
    tensors = {name: None if spec is None else Tensor(spec) for kind, name, spec in job["args"] if kind == "tensor"}
    status, size, executor = first_phase(job, tensors)
    answer: dict = {"status": status, "message": message() if status != 0 else "", "workspace": size.value}
    if status == 0 and not job["run"]:
        must(base.aclDestroyAclOpExecutor(executor), "aclDestroyAclOpExecutor")
    elif status == 0:
        answer["launch"], answer["sync"] = second_phase(job, size, executor)
        if answer["sync"] == 0:
            answer["data"] = {n: t.download() for n, t in tensors.items() if t is not None and t.data}
        else:
            answer["message"] = message()
    for tensor in tensors.values():
        if tensor is not None:
            tensor.destroy()
    if answer.get("sync"):
        must(acl.aclrtResetDeviceForce(0), "aclrtResetDeviceForce")  # a fault has broken the context
        must(acl.aclrtSetDevice(0), "aclrtSetDevice")
    return answer


must(acl.aclInit(None), "aclInit")
must(acl.aclrtSetDevice(0), "aclrtSetDevice")
for line in sys.stdin:
    print(json.dumps(perform(json.loads(line))), flush=True)
