"""Binding a call's parameters, and the public functions on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from ..model.call import POINTERS, Array, Call, TensorSpec, spec_of
from ..model.dtypes import DTYPES, dtype_of
from ..model.errors import OracleError, unknown
from ..model.platforms import DEFAULT_SOC, Platform, platform
from ..model.status import Status, invalid, nullptr
from ..numerics.blocks import convert
from ..numerics.environment import ieee_arithmetic
from ..numerics.sink import Sink
from .base import Operator, Reference, first_failure
from .registry import OPERATORS

Numerics = Literal["exact", "kernel", "native"]
NUMERICS = ("exact", "kernel", "native")
COMPUTABLE = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")  # output dtypes with a golden


def operators() -> tuple[str, ...]:
    """Return the aclnn names of the operators."""
    return tuple(OPERATORS)


def operator(name: str) -> Operator:
    """Return an operator by its aclnn name; OracleError names the known ones."""
    found = OPERATORS.get(name) if isinstance(name, str) else None
    if found is None:
        raise unknown("operator", name, OPERATORS)
    return found


def bind(op: Operator, params: Mapping[str, Any], extra: tuple[str, ...] = ()) -> None:
    """Refuse parameters the operator does not have."""
    known = [p.name for p in op.parameters]
    for name in params:
        if name not in known and name not in extra:
            raise OracleError(f"{op.name} has no parameter {name!r}; it has: {', '.join(known)}")


def validate(op: str | Call, /, *, soc: str = DEFAULT_SOC, **params: Any) -> Status:
    """Answer what GetWorkspaceSize answers, check by check in the source's order.

    Tensors, outputs included, are arrays or TensorSpec; None, or a tensor left out, is a null pointer.
    ``workspaceSize=None`` and ``executor=None`` are null pointers too. A ``Call`` is answered for as a whole. Raises
    OracleError only for an unknown operator, parameter or SoC.
    """
    if isinstance(op, Call):
        call = op
        params = {**call.attrs, **{name: call.spec(name) for name in (*call.inputs, *call.outputs)}}
        params.update(dict.fromkeys(call.null))
        return validate(call.op, soc=call.soc, **params)
    found = operator(op)
    target = platform(soc)
    bind(found, params, POINTERS)
    for name in POINTERS:
        if name in params and params[name] is None:
            return nullptr(f"{name} is a null pointer")
    args: dict[str, Any] = {}
    wrong = None
    for parameter in found.parameters:
        value = params.get(parameter.name)
        if parameter.kind == "attr":
            args[parameter.name], problem = _int64(parameter.name, value)
        else:
            args[parameter.name], problem = _described(parameter.name, value)
        wrong = wrong or problem
    if wrong is not None:
        return wrong
    return first_failure(found.checks(args, target))


def _int64(name: str, value: Any) -> tuple[int, Status | None]:
    """An attribute as C sees it: an int64."""
    if isinstance(value, (int, np.integer)) and -(2**63) <= int(value) < 2**63:
        return int(value), None
    said = "was not given" if value is None else f"is {value!r}"
    return 0, invalid(f"{name} {said}; it must be an int64")


def _described(name: str, value: Any) -> tuple[TensorSpec | None, Status | None]:
    if value is None:
        return None, None
    if isinstance(value, np.generic):
        value = np.asarray(value)
    if isinstance(value, (np.ndarray, TensorSpec)):
        return spec_of(value), None
    return None, invalid(f"{name} is a {type(value).__name__}; it must be an array or a TensorSpec")


@ieee_arithmetic
def golden(op: str, /, *, soc: str = DEFAULT_SOC, **params: Any) -> dict[str, Array]:
    """Return the correctly rounded output of one call, by its aclnn name.

    Inputs are arrays (any NumPy view), attributes ints. The output may be given as a dtype, a TensorSpec or an array;
    otherwise it has the documented dtype. Raises OracleError for a call that validate() rejects, for one whose result
    is unspecified, and for one that succeeds without writing its output.
    """
    found = operator(op)
    target = platform(soc)
    bind(found, params)
    args = {p.name: params.get(p.name) for p in found.parameters}
    for name in found.names("input"):
        if isinstance(args[name], TensorSpec):
            raise OracleError(f"{op}: {name} is a TensorSpec; a golden needs its values")
        if isinstance(args[name], np.generic):
            args[name] = np.asarray(args[name])
    spec = args[found.output] = _output(found, args)
    status = validate(op, soc=soc, **args)
    if not status.ok:
        raise OracleError(f"{op} on {soc}: {status.reason} ({status.name})")
    out = _empty(found, spec)
    if not _written(found, args):
        if out.size == 0:
            return {found.output: out}
        raise OracleError(f"{op}: an empty input leaves {found.output} of shape {out.shape} unwritten; no golden")
    _evaluate(found, args, target, out)
    return {found.output: out}


def _output(op: Operator, args: Mapping[str, Any]) -> TensorSpec:
    """Complete the output from what the caller said of it."""
    given, like = args[op.output], args[op.out_like]
    if isinstance(given, (np.ndarray, TensorSpec)):
        return spec_of(given)
    if not isinstance(like, np.ndarray):
        raise OracleError(f"{op.name}: {op.out_like} is {_short(like)}; it must be an array")
    if given is None:
        return TensorSpec.of(np.broadcast_to(like, like.shape))
    try:
        return TensorSpec(like.shape, given)
    except OracleError as error:
        raise OracleError(f"{op.name}: {op.output}: {error}") from None


def _short(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def _empty(op: Operator, spec: TensorSpec) -> Array:
    """Allocate the output; OracleError for a dtype whose cast the sources do not show."""
    if spec.dtype is not None and spec.dtype.name in COMPUTABLE:
        return np.empty(spec.shape, spec.dtype.numpy)
    raise OracleError(
        f"{op.name}: the host accepts {op.output} of dtype {spec.dtype_name}, but what its cast does is not specified; "
        f"a golden can be: {', '.join(COMPUTABLE)}"
    )


def _written(op: Operator, args: Mapping[str, Any]) -> bool:
    """An empty tensor among those that decide makes the host return before the kernel."""
    return not any(args[name].size == 0 for name in {op.out_like, "gradOutput", "output"} & args.keys())


def writes(call: Call) -> bool:
    """Whether a call that succeeds touches its output: on an empty input the host returns before the kernel."""
    return _written(operator(call.op), call.inputs)


def _evaluate(op: Operator, args: Mapping[str, Any], target: Platform, out: Array, *, judged: bool = False) -> Sink:
    """Fill ``out`` with the golden and return the sink, with everything a verdict needs when ``judged``."""
    ready = _ready(op, args)
    sink = Sink(out, op.kernel_type(ready, target), judged=judged)
    part = sink.at((None,)) if out.ndim == 0 else sink
    op.evaluate(ready, target, part)
    return sink


def _ready(op: Operator, args: Mapping[str, Any]) -> dict[str, Any]:
    """Foreign byte orders become native ones; with a scalar output, scalars travel as one-element vectors."""
    ready = dict(args)
    scalar = ready[op.out_like].ndim == 0
    for name in op.names("input"):
        array = ready[name]
        if array is not None and not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        ready[name] = array.reshape(1) if scalar and array is not None and array.ndim == 0 else array
    return ready


@ieee_arithmetic
def reference(call: Call) -> Reference:
    """Return golden, unrounded value and strict bound of a call that must succeed."""
    op, target = operator(call.op), platform(call.soc)
    args = {**call.inputs, **call.attrs}
    spec = call.spec(op.output)
    if spec is None or spec.dtype is None:
        raise OracleError(f"{call.op}: {op.output} is a null pointer or has no aclDataType; there is no golden")
    if not _written(op, args):
        none = np.empty(0, spec.dtype.numpy)
        return Reference(none, np.empty(0), np.empty(0), written=False)
    out = _empty(op, spec)
    sink = _evaluate(op, args, target, out, judged=True)
    exact = sink.exact if sink.exact.any() else None
    return Reference(out, sink.value, sink.bound, sink.unspecified, sink.zeros, exact, coarser=sink.coarser)


@ieee_arithmetic
def compute(call: Call, *, numerics: Numerics = "kernel") -> Array:
    """Return what a device of the call's SoC would write, in the output's dtype.

    ``exact``: the golden. ``kernel``: the SoC's public kernel in float32. ``native``: the same with every intermediate
    rounded to the kernel type. Then the host's rounding, the cast to the output, and the SoC's overflow mode.
    """
    op, target = operator(call.op), platform(call.soc)
    args = {**call.inputs, **call.attrs}
    spec = call.spec(op.output)
    if spec is None or spec.dtype is None:
        raise OracleError(f"{call.op}: {op.output} is a null pointer or has no aclDataType; nothing can be computed")
    out = _empty(op, spec)
    if numerics == "exact":
        _evaluate(op, args, target, out)
        return out
    args = _ready(op, args)
    kernel_type = op.kernel_type(args, target)
    narrow = DTYPES[kernel_type].numpy
    result = op.kernel(args, target.kernel, narrow if numerics == "native" else np.float32)
    result = result.reshape(spec.shape)
    rounded = np.empty(spec.shape, narrow)
    convert(_saturated(result, target, kernel_type), rounded)
    convert(_saturated(rounded, target, dtype_of(out.dtype).name), out)
    return out


def _saturated(values: Array, target: Platform, dtype: str) -> Array:
    """On products that saturate, a store to float16 clips to the largest finite value."""
    if not target.saturates or dtype != "float16":
        return values
    return np.clip(values, -65504, 65504)
