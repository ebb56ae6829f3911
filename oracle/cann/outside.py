"""The checks of operators from outside, answered to the emulated CANN: their kernels are C++, their checks Python."""

from __future__ import annotations

import ctypes
import json
from ctypes import CFUNCTYPE, POINTER, c_char, c_char_p, c_int32, c_size_t
from typing import Any

import numpy as np

from ..model.call import FORMAT_ENUM, Call, TensorSpec
from ..model.dtypes import DTYPES
from ..model.status import Status
from ..operators import operator, validate, writes

_ANSWER = CFUNCTYPE(c_int32, c_char_p, POINTER(c_char), c_size_t, POINTER(c_int32))
_INNER = 561000  # the checks themselves went wrong
_DTYPES = {dtype.enum: dtype for dtype in DTYPES.values()}
_FORMATS = {enum: name for name, enum in FORMAT_ENUM.items()}
_PYTHON: dict[str, type] = {"bool": bool, "int64": int, "float64": float, "complex128": complex}


def offer_checks(objects: ctypes.CDLL) -> None:
    """Let the emulated CANN's libnnopbase.so ask `oracle.validate`; a process does this once."""
    objects.aclemuSetChecks.argtypes, objects.aclemuSetChecks.restype = [_ANSWER], None
    objects.aclemuSetChecks(_ANSWERS)


def _answer(call: bytes, message: Any, room: int, runs: Any) -> int:
    try:
        asked = called(json.loads(call))
        status = validate(asked)
        runs[0] = int(status.ok and writes(asked))
    except BaseException as error:  # nothing may leave a function that C calls: it would pass for success
        status = Status(_INNER, f"the operator's own checks failed: {type(error).__name__}: {error}")
    words = status.reason.encode(errors="replace")[: room - 1] + b"\0"
    ctypes.memmove(message, words, len(words))
    return status.code


_ANSWERS = _ANSWER(_answer)  # lives as long as the process: the emulator keeps its address


def called(told: dict[str, Any]) -> Call:
    """Return the call that the emulator describes, its tensors without data."""
    op = operator(told["op"])
    values: dict[str, Any] = {}
    for parameter in op.parameters:
        value = told["arguments"][parameter.name]
        if parameter.kind != "attr":
            value = None if value is None else _spec(value)
        elif isinstance(value, dict):
            value = _scalar(value)
        values[parameter.name] = value
    kinds = (op.names("input"), op.names("attr"), op.outputs)
    inputs, attributes, outputs = ({name: values[name] for name in names} for names in kinds)
    return Call(told["op"], told["soc"], inputs, attributes, outputs)


def _spec(told: dict[str, Any]) -> TensorSpec:
    keys = ("strides", "offset", "storage_shape")
    return TensorSpec(
        told["shape"], _DTYPES[told["dtype"]], format=_FORMATS[told["format"]], **{key: told[key] for key in keys}
    )


def _scalar(told: dict[str, Any]) -> Any:
    """Return the number an aclScalar was made of: Python's own types come back as themselves."""
    dtype = _DTYPES[told["dtype"]]
    value = complex(*told["value"]) if dtype.kind == "complex" else told["value"][0]
    return _PYTHON[dtype.name](value) if dtype.name in _PYTHON else np.array(value).astype(dtype.numpy)[()]
