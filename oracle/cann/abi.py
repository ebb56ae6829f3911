"""CANN's C functions and constants, declared for ctypes, and its error messages.

Source: the signatures of the public headers (acl/acl_rt.h of the ACL API 1.17, aclnn/acl_meta.h), written by hand.
Handles are opaque pointers, enums 32-bit ints.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from ctypes import (
    POINTER,
    c_bool,
    c_char_p,
    c_double,
    c_float,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint32,
    c_uint64,
    c_void_p,
)
from pathlib import Path
from typing import Any

from ..model.call import POINTERS
from ..model.errors import unknown
from ..operators.definition.parameters import Parameter

# The new part of aclGetRecentErrMsg. The runtime puts new messages before a thread's old ones and the events of a
# device's fault behind them. It clears no message.

LIMIT = 2000  # characters of a message that a record keeps


class Messages:
    """The message text seen before, per thread."""

    def __init__(self) -> None:
        self._seen = threading.local()

    def latest(self, text: str) -> str:
        """Return the new part of a thread's message text since the last call, on one line."""
        before: str = getattr(self._seen, "text", "")
        self._seen.text = text
        return "; ".join(line.strip() for line in new_part(text, before).splitlines() if line.strip())[:LIMIT]


def new_part(text: str, before: str) -> str:
    """Return the text without the old text, which can be cut off if it is the last part."""
    if not before:
        return text
    if (start := text.rfind(before)) >= 0:
        return text[:start] + text[start + len(before) :]
    start = text.find("\n") + 1
    while start:
        if before.startswith(text[start:]):
            return text[:start]
        start = text.find("\n", start) + 1
    return text


# The remedy for a failure of CANN's runtime: one sentence per code, for the message and for ``doctor``.

DEVICES = Path("/dev")
_MEMORY = (
    "the device has no free memory: `npu-smi info` lists who holds it; end them, or take another device (--devices)"
)
_FAULT = "the kernel broke the device's context: the next call gets a new process, unless --no-isolate"
REMEDIES: dict[int, str] = {
    107001: "there is no such device here: `npu-smi info` lists them, ASCEND_RT_VISIBLE_DEVICES and the container's "
    "/dev/davinci* decide which of them this process sees",
    207001: _MEMORY,
    207018: _MEMORY,
    207004: "this process sees no device: is the driver loaded (`npu-smi info`), are /dev/davinci* in the container?",
    207005: "the device has no room for another process: `npu-smi info` lists who is on it; wait, or take another one",
    207008: "the device has no stream left: `npu-smi info` lists who is on it; wait, or take another one (--devices)",
    207006: "this user may not use the device: join the group that owns /dev/davinci* (often HwHiAiUser), log in anew",
    507008: "CANN's packages are for another product: install the kernels of the device's own",
    507014: _FAULT,
    507015: _FAULT,
    507033: "the device could not be set up: it is being reset, or its driver is older than this CANN needs; "
    "`npu-smi info` shows both",
    507034: _FAULT,
    507035: _FAULT,
    507899: "the driver refused: it is older than this CANN needs (compare `npu-smi info` with CANN's release notes), "
    "or the device is busy in another container or virtual machine",
    507901: "the connection to the device was lost: `npu-smi set -t reset -i N` resets it",
    561003: "CANN has no kernel of this operator for the device: install the kernels package of the product",
    561107: "ASCEND_OPP_PATH is not set: `source <CANN>/set_env.sh`",
    561112: "CANN has no kernel package: install the kernels package of the product",
}


def remedy(code: int) -> str:
    """Return the remedy for a code of the runtime, or "". A device file without permission is reported first."""
    if code in _OPENING and (closed := next(closed_devices(), None)):
        return f"this user may not open {closed}: join the group that owns it (often HwHiAiUser) and log in anew"
    return REMEDIES.get(code, "")


_OPENING = frozenset({107001, 207004, 207006, 507033, 507899})  # codes for a device that cannot be opened


def closed_devices() -> Iterator[Path]:
    """Yield the device files that this user has no permission to read and write."""
    for path in device_files():
        if not os.access(path, os.R_OK | os.W_OK):
            yield path


def device_files() -> list[Path]:
    """Return the device files that the driver provides to this machine or container, by number."""
    result = [path for path in DEVICES.glob("davinci*") if path.name.removeprefix("davinci").isdigit()]
    return sorted(result, key=lambda path: int(path.name.removeprefix("davinci")))


# CANN's C functions and constants, declared for ctypes.

Declaration = tuple[Any, tuple[Any, ...]]  # restype, argtypes

_INT64S = POINTER(c_int64)

# libascendcl.so, or libacl_rt.so if only that exists
RUNTIME: dict[str, Declaration] = {
    "aclInit": (c_int, (c_char_p,)),
    "aclFinalize": (c_int, ()),
    "aclGetRecentErrMsg": (c_char_p, ()),
    "aclrtGetSocName": (c_char_p, ()),
    "aclrtGetVersion": (c_int, (POINTER(c_int32),) * 3),
    "aclrtGetDeviceCount": (c_int, (POINTER(c_uint32),)),
    "aclrtQueryDeviceStatus": (c_int, (c_int32, POINTER(c_int32))),
    "aclrtGetMemInfo": (c_int, (c_int, POINTER(c_size_t), POINTER(c_size_t))),
    "aclrtSetDevice": (c_int, (c_int32,)),
    "aclrtResetDevice": (c_int, (c_int32,)),
    "aclrtResetDeviceForce": (c_int, (c_int32,)),
    "aclrtSetSysParamOpt": (c_int, (c_int, c_int64)),
    "aclrtCreateStream": (c_int, (POINTER(c_void_p),)),
    "aclrtDestroyStream": (c_int, (c_void_p,)),
    "aclrtDestroyStreamForce": (c_int, (c_void_p,)),
    "aclrtSynchronizeStreamWithTimeout": (c_int, (c_void_p, c_int32)),
    "aclrtMalloc": (c_int, (POINTER(c_void_p), c_size_t, c_int)),
    "aclrtFree": (c_int, (c_void_p,)),
    "aclrtMemcpy": (c_int, (c_void_p, c_size_t, c_void_p, c_size_t, c_int)),
    "aclrtMemset": (c_int, (c_void_p, c_size_t, c_int32, c_size_t)),
}
# libnnopbase.so
OBJECTS: dict[str, Declaration] = {
    "aclCreateTensor": (c_void_p, (_INT64S, c_uint64, c_int, _INT64S, c_int64, c_int, _INT64S, c_uint64, c_void_p)),
    "aclDestroyTensor": (c_int, (c_void_p,)),
    "aclCreateScalar": (c_void_p, (c_void_p, c_int)),
    "aclDestroyScalar": (c_int, (c_void_p,)),
    "aclCreateIntArray": (c_void_p, (_INT64S, c_uint64)),
    "aclDestroyIntArray": (c_int, (c_void_p,)),
    "aclCreateBoolArray": (c_void_p, (POINTER(c_bool), c_uint64)),
    "aclDestroyBoolArray": (c_int, (c_void_p,)),
    "aclDestroyAclOpExecutor": (c_int, (c_void_p,)),
    "aclSetAclOpExecutorRepeatable": (c_int, (c_void_p,)),
}
SECOND_PHASE: Declaration = (c_int, (c_void_p, c_uint64, c_void_p, c_void_p))
# The C type of an attribute in a first phase -> its ctypes type. Handles are void*, like a tensor.
ATTRIBUTES: dict[str, Any] = {
    "int64": c_int64,
    "float": c_float,
    "double": c_double,
    "bool": c_bool,
    "char*": c_char_p,
    "aclScalar": c_void_p,
    "aclIntArray": c_void_p,
    "aclBoolArray": c_void_p,
}
_OUT_PARAMETERS = {"workspaceSize": POINTER(c_uint64), "executor": POINTER(c_void_p)}

SUCCESS = 0
REPEAT_INITIALIZE = 100002
MALLOC_HUGE_FIRST = 0
HOST_TO_DEVICE, DEVICE_TO_HOST = 1, 2
OPT_DETERMINISTIC = 0
MEMORY = (1, 0)  # aclrtMemAttr: HBM, and DDR for products without HBM

# The codes of the runtime that can occur in a run, in words.
ERRORS: dict[int, str] = {
    100000: "invalid parameter",
    100001: "not initialised",
    100037: "finalised before",
    107000: "invalid parameter",
    107001: "invalid device",
    107002: "no context on this thread",
    107003: "stream of another context",
    107017: "invalid handle",
    107022: "device task aborted",
    200000: "out of host memory",
    207000: "feature not supported",
    207001: "out of device memory",
    207004: "no device",
    207005: "resource allocation failed",
    207006: "no permission",
    207008: "no stream left",
    207018: "out of device memory",
    361001: "runtime error",
    507008: "wrong SoC version",
    507014: "AI Core timeout",
    507015: "AI Core exception",
    507018: "AI CPU exception",
    507033: "device set-up error",
    507034: "vector core timeout",
    507035: "vector core exception",
    507046: "the stream did not finish in time",
    507899: "driver error",
    507901: "connection to the device lost",
}
# Failures that leave the context intact: no reset is needed before the next case.
HARMLESS = frozenset({200000, 207001, 207018})


def first_phase(parameters: tuple[Parameter, ...]) -> Declaration:
    """Return the declaration of an operator's GetWorkspaceSize: its parameters, then the two out-parameters."""
    arguments = [ATTRIBUTES[c_type(p)] if p.kind == "attr" else c_void_p for p in parameters]
    return c_int, (*arguments, *(_OUT_PARAMETERS[name] for name in POINTERS))


def c_type(parameter: Parameter) -> str:
    """Return an attribute's C type. Raises OracleError for a type that no first phase of this suite has."""
    if parameter.c not in ATTRIBUTES:
        raise unknown(f"C type of the attribute {parameter.name}", parameter.c, ATTRIBUTES)
    return parameter.c
