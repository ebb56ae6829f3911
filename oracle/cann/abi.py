"""CANN's C functions and constants, declared for ctypes.

Source: the public headers' signatures (acl/acl_rt.h of the ACL API 1.17, aclnn/acl_meta.h), written down anew.
Handles are opaque pointers, enums 32-bit ints.
"""

from __future__ import annotations

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
from typing import Any

from ..model.call import POINTERS
from ..model.errors import unknown
from ..operators.definition.parameters import Parameter

Declaration = tuple[Any, tuple[Any, ...]]  # restype, argtypes

_INT64S = POINTER(c_int64)

# libascendcl.so, or libacl_rt.so where that is what there is
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
    "aclCreateTensor": (
        c_void_p,
        (_INT64S, c_uint64, c_int, _INT64S, c_int64, c_int, _INT64S, c_uint64, c_void_p),
    ),
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
# The C type of an attribute in a first phase -> how it is passed. Handles are void*, as a tensor is.
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
MEMORY = (1, 0)  # aclrtMemAttr: HBM, and DDR for the products that have none

# The codes of the runtime that a run can meet, in words.
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
# Failures that leave the context as it was: nothing has to be reset before the next case.
HARMLESS = frozenset({200000, 207001, 207018})


def first_phase(parameters: tuple[Parameter, ...]) -> Declaration:
    """Return the declaration of an operator's GetWorkspaceSize: its parameters, then the two out-parameters."""
    arguments = [ATTRIBUTES[c_type(p)] if p.kind == "attr" else c_void_p for p in parameters]
    return c_int, (*arguments, *(_OUT_PARAMETERS[name] for name in POINTERS))


def c_type(parameter: Parameter) -> str:
    """Return an attribute's C type. Raises OracleError for one that no first phase of this suite has."""
    if parameter.c not in ATTRIBUTES:
        raise unknown(f"C type of the attribute {parameter.name}", parameter.c, ATTRIBUTES)
    return parameter.c
