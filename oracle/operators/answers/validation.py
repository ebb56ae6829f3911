"""The status of GetWorkspaceSize: parameters are bound and described, then the operator's checks decide."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

from ...model.aclnn import DEFAULT_SOC, SUCCESS, Platform, Status, invalid, nullptr, platform
from ...model.call import IS_MASKED, POINTERS, Call, TensorSpec, spec_of
from ...model.errors import OracleError, suggestion
from ..definition.checks import NOT_NULL, Check, PageArguments
from ..definition.operator import Operator
from ..definition.parameters import Parameter
from .registry import operator


def bind(op: Operator, params: Mapping[str, Any], extra: tuple[str, ...] = ()) -> None:
    """Refuse parameters that the operator does not have."""
    for name in params:
        if name not in op.by_name and name not in extra:
            raise OracleError(
                f"{op.name} has no parameter {name!r}{suggestion(name, op.by_name)}; it has: {', '.join(op.by_name)}"
            )


def validate(op: str | Call, /, *, soc: str = DEFAULT_SOC, cann: str | None = None, **params: Any) -> Status:
    """Return the status of GetWorkspaceSize, decided check by check in the source's order.

    Tensors, including outputs, are arrays or TensorSpec. None, or an omitted tensor, is a null pointer.
    ``workspaceSize=None`` and ``executor=None`` are null pointers too. ``validate(call)`` takes a whole Call. ``cann``:
    the release that gives the rules; the default is the newest. Raises OracleError only for an unknown operator,
    parameter, SoC or version of CANN.
    """
    if isinstance(op, Call):
        takes_no_more(op, soc, cann, params)
        params = {**op.attrs, **{name: op.spec(name) for name in (*op.inputs, *op.outputs)}, **dict.fromkeys(op.null)}
        soc, cann, op = op.soc, op.cann, op.op
    deciding = decision(op, soc, cann, params)
    return SUCCESS if deciding is None or deciding.status is None else deciding.status


def takes_no_more(call: Call, soc: str, cann: str | None, params: Mapping[str, Any]) -> None:
    """Refuse parameters given in addition to a whole call. Raises OracleError."""
    more = [*params, *(["cann"] if cann not in (None, call.cann) else [])]
    more += ["soc"] if soc not in (DEFAULT_SOC, call.soc) else []
    if more:
        raise OracleError(
            f"{call.op}: {', '.join(more)} was given with a Call, which has all of its own; change the Call"
        )


def decision(op: str, soc: str, cann: str | None, params: Mapping[str, Any]) -> Check | None:
    """Return the check that decides the status of GetWorkspaceSize; None if every check passes."""
    return decisions(op, (platform(soc, cann),), params)[0]


def decisions(op: str, targets: Sequence[Platform], params: Mapping[str, Any]) -> list[Check | None]:
    """Return the deciding check for each of the platforms."""
    result = operator(op)
    bind(result, params, POINTERS)
    for name in POINTERS:
        if name in params and params[name] is None:
            return [Check(NOT_NULL, nullptr(f"{name} is a null pointer"))] * len(targets)
    args, wrong = _described_all(result, params)
    if wrong is not None:
        return [Check("parameters", wrong)] * len(targets)
    answers = (result.checks(args, target) for target in targets)
    return [next((check for check in checks if check.status is not None), None) for checks in answers]


def bound(op: Operator, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call's arguments as checks receive them: tensors described, attributes as C sees them."""
    return _described_all(op, params)[0]


def _described_all(op: Operator, params: Mapping[str, Any]) -> tuple[dict[str, Any], Status | None]:
    """Return the described arguments, and the status of the first invalid one."""
    args = PageArguments(op.name, {})
    wrong = None
    for parameter in op.parameters:
        value = params.get(parameter.name)
        if parameter.kind != "attr" and (value is None or isinstance(value, TensorSpec)):
            args[parameter.name] = value
            continue
        describe = as_attribute if parameter.kind == "attr" else _described
        args[parameter.name], problem = describe(parameter, value)
        wrong = wrong or problem
    return args, wrong


def as_attribute(parameter: Parameter, value: Any) -> tuple[Any, Status | None]:
    """Return an attribute as C sees it, and the status of an invalid one."""
    if parameter.c == "int64":
        if isinstance(value, (int, np.integer)) and -(2**63) <= int(value) < 2**63:
            return int(value), None
        wanted = "an int64" + (f": {parameter.words_text}" if parameter.words else "")
    elif parameter.c in ("aclIntArray", "aclBoolArray"):
        if value is None:
            return None, None
        kinds, words = ((int, np.integer), "int64") if parameter.c == "aclIntArray" else ((bool, np.bool_), "bools")
        if isinstance(value, (tuple, list)) and all(isinstance(n, kinds) for n in value):
            return tuple(map(kinds[0], value)), None
        wanted = f"a tuple of {words}, or None for a null pointer"
    elif parameter.c == "char*":
        if value is None or isinstance(value, str):
            return value, None
        wanted = "a string, or None for a null pointer"
    elif parameter.c == "bool":
        if isinstance(value, (bool, np.bool_, int)):
            return bool(value), None
        wanted = "a bool"
    else:
        fits = isinstance(value, (bool, int, float, complex, np.number, np.bool_))
        fits &= not isinstance(value, int) or -(2**63) <= value < 2**64  # C has no larger integer
        if fits and (parameter.c == "aclScalar" or not np.iscomplexobj(value)):
            return value, None
        if isinstance(value, bfloat16):  # not a NumPy number
            return (value if parameter.c == "aclScalar" else float(value)), None
        if value is None and parameter.c == "aclScalar":
            return None, None
        wanted = "a number" + (", or None for a null pointer" if parameter.c == "aclScalar" else "")
    said = "was not given" if value is None else f"is {reprlib.repr(value)}"  # the value can be a large array
    return 0, invalid(f"{parameter.name} {said}; it must be {wanted}")


def _described(parameter: Parameter, value: Any) -> tuple[TensorSpec | None, Status | None]:
    """Return the description of a given tensor, and the status of an invalid value."""
    if isinstance(value, np.ma.MaskedArray):
        return None, invalid(f"{parameter.name} {IS_MASKED}")
    if isinstance(value, (np.ndarray, np.generic)):
        return spec_of(np.asarray(value)), None
    return None, invalid(f"{parameter.name} is a {type(value).__name__}; it must be an array or a TensorSpec")
