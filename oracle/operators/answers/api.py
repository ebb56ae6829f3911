"""The public functions on a call: golden, reference, compute, written, writes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from ...model.aclnn import DEFAULT_SOC, PLATFORMS, Platform, Status, platform, with_subnormals
from ...model.call import Array, Call, TensorSpec, spec_of
from ...model.dtypes import DTYPES, FLOATS, FORMATS, dtype_of, find
from ...model.errors import OracleError, Unserved
from ...numerics.floats.blocks import convert, empty_with_margin, own_scratch
from ...numerics.floats.codes import any_true
from ...numerics.floats.environment import ieee_arithmetic
from ...numerics.golden import elementwise, places, reductions, sums, totals
from ...numerics.orders import strict
from ...numerics.orders.formula import Formula, is_elementwise, is_zero_except_at_place, sums_place_values
from ...numerics.orders.reducing import coarsest, reduces
from ...numerics.sink import Sink
from ..definition.operands import formula_operands
from ..definition.operator import Arguments, Operator
from ..definition.roles import Shape, class_axis
from . import integers
from .integers import INTEGERS, computes_integers
from .reference import Reference, require_known_classes
from .registry import operator
from .validation import as_attribute, bind, takes_no_more, validate

Numerics = Literal["exact", "kernel", "native"]
NUMERICS = ("exact", "kernel", "native")
_FLOATS = frozenset(DTYPES[name].numpy for name in FLOATS)  # the types of nearly all operands
COMPUTABLE = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")  # output dtypes with a golden


@ieee_arithmetic
def golden(op: str | Call, /, *, soc: str = DEFAULT_SOC, cann: str | None = None, **params: Any) -> dict[str, Array]:
    """Return the correctly rounded outputs of one call, by their aclnn names.

    Inputs are arrays (any NumPy view), attributes are numbers. An output can be a dtype, a TensorSpec or an array,
    which is not written to. Without an output, or with None, it has the documented dtype. ``golden(call)`` takes a
    whole Call, with the formats and null pointers that validate(call) sees. ``cann``: the release that gives the rules;
    default: the newest. Raises OracleError if validate() rejects the call, if its result is unspecified or not served,
    or if it succeeds without writing its output.
    """
    if isinstance(op, Call):
        takes_no_more(op, soc, cann, params)
        _accepted(op.op, op.soc, validate(op))
        return golden(op.op, soc=op.soc, cann=op.cann, **op.inputs, **op.attrs, **op.outputs)
    result = operator(op)
    target = platform(soc, cann)
    bind(result, params)
    args = {p.name: params.get(p.name) for p in result.parameters}
    for name in result.names("input"):
        if isinstance(args[name], TensorSpec):
            raise OracleError(f"{op}: {name} is a TensorSpec; a golden needs its values")
        if isinstance(args[name], (np.generic, np.ndarray)) and not isinstance(args[name], np.ma.MaskedArray):
            args[name] = np.asarray(args[name])  # validate refuses a masked array
    for parameter in result.attributes:
        args[parameter.name], problem = as_attribute(parameter, args[parameter.name])
        if problem is not None:
            _accepted(op, soc, problem)
    specs = {each.output: _output(each, args) for each in result.each}
    args |= specs
    _accepted(op, soc, validate(op, soc=soc, cann=cann, **args))
    served(result, args)
    whole = {each.output: computes_integers(each, args, target) for each in result.each if not each.skips(args)}
    outputs = {name: _empty(result.of(name), specs[name], whole=is_whole) for name, is_whole in whole.items()}
    if result.ends_early(args):
        fills = {each.output: each.fill_of(args, target) for each in result.each if each.output in outputs}
        if any(value is not None for value in fills.values()):
            defined(result, args)
        for name, value in fills.items():
            if value is not None:
                outputs[name].fill(value)
        unwritten = next((name for name, out in outputs.items() if out.size and fills[name] is None), None)
        if unwritten is None:
            return outputs
        shape = outputs[unwritten].shape
        raise OracleError(f"{op}: an empty input leaves {unwritten} of shape {shape} unwritten; no golden")
    defined(result, args)
    for each in result.each:
        if each.output in outputs and outputs[each.output].size:
            fill = _in_integers if whole[each.output] else _evaluate
            fill(each, args, target, outputs[each.output])
    return outputs


def _accepted(op: str, soc: str, status: Status) -> None:
    if not status.ok:
        raise OracleError(f"{op} on {soc}: {status.reason} ({status.name})")


def served(op: Operator, args: Arguments) -> None:
    """Refuse inputs that the operator accepts and that have no golden. Raises Unserved."""
    for parameter in op.attributes:
        if isinstance(args.get(parameter.name), (complex, np.complexfloating)):
            raise Unserved(f"{op.name}: {parameter.name} is complex; its value in the call is not specified")
    computed = op.host_type(args, platform(DEFAULT_SOC))
    whole = dtype_of(computed).numpy in INTEGERS
    for parameter in op.operands:
        value = args.get(parameter.name)
        if value is None or (value.dtype in _FLOATS and not whole):
            continue
        kind = dtype_of(value.dtype)
        if kind.name in FLOATS and whole:
            text = f"{parameter.name} has dtype {kind.name} and the kernel's type is {computed}"
            raise Unserved(f"{op.name}: {text}; a golden of whole numbers needs whole operands")
        of_integers = kind.numpy in INTEGERS and (not whole or integers.graph_of(op, args) is not None)
        if kind.name not in FLOATS and not of_integers:
            raise Unserved(
                f"{op.name}: {parameter.name} has dtype {kind.name}, which the operator accepts and the golden does "
                f"not serve; served floats: {', '.join(FLOATS)}"
            )
    if whole:
        integers.require_fit(op, args, dtype_of(computed).numpy)


def defined(op: Operator, args: Arguments) -> None:
    """Refuse a call that passes the checks but has an unspecified result. Raises OracleError."""
    problem = op.undefined(args) if op.undefined is not None else None
    if problem is not None:
        raise OracleError(f"{op.name}: {problem}; the host does not refuse it, and its result is not specified")


def _output(op: Operator, args: Mapping[str, Any]) -> TensorSpec:
    """Return the output's spec, completed from the given dtype, TensorSpec or array."""
    given, like = args[op.output], args[op.main]
    if isinstance(given, (np.ndarray, TensorSpec)):
        return spec_of(given)
    if not isinstance(like, np.ndarray):
        raise OracleError(f"{op.name}: {op.main} {_short(like)}; it must be an array")
    for parameter in op.inputs():
        value = args[parameter.name]
        if not isinstance(value, np.ndarray) and not (value is None and parameter.optional):
            raise OracleError(f"{op.name}: {parameter.name} {_short(value)}; it must be an array")
    shape = op.output_shape(args)
    if given is None and find(like.dtype) is None:
        return TensorSpec.of(np.broadcast_to(np.empty((), like.dtype), shape))  # validate() reports the problem
    try:
        return TensorSpec(shape, _usual_dtype(op, args) if given is None else given)
    except OracleError as error:
        raise OracleError(f"{op.name}: {op.output}: {error}") from None


def _usual_dtype(op: Operator, args: Arguments) -> str:
    """Return the documented dtype, or the kernel's dtype if the documented one is an integer type."""
    result = op.output_dtype(args)
    whole = dtype_of(result).numpy in INTEGERS
    return op.host_type({**args, op.output: TensorSpec((), result)}, platform(DEFAULT_SOC)) if whole else result


def _short(value: Any) -> str:
    return "was not given" if value is None else f"is a {type(value).__name__}"


def is_computable(dtype: str, *, whole: bool) -> bool:
    """Return whether an output dtype has a golden. ``whole``: the kernel's type is an integer, so integers have one."""
    return dtype in COMPUTABLE or (whole and dtype_of(dtype).numpy in INTEGERS)


def _empty(op: Operator, spec: TensorSpec, *, whole: bool = False) -> Array:
    """Allocate the output. Raises OracleError for a dtype whose cast the sources do not show. ``whole``: the kernel's
    type is an integer."""
    if spec.dtype is not None and is_computable(spec.dtype.name, whole=whole):
        return np.empty(spec.shape, spec.dtype.numpy)
    raise OracleError(
        f"{op.name}: the host accepts {op.output} of dtype {spec.dtype_name}, but its cast is not specified; "
        f"a golden can be: {', '.join(COMPUTABLE)}"
    )


def written(call: Call) -> tuple[str, ...]:
    """Return the outputs that a successful call writes: requested ones that the host does not leave unchanged. On an
    empty input the host returns before the kernel, and fills some outputs or none."""
    op, given, target = operator(call.op), call.arguments, platform(call.soc, call.cann)
    asked = [each for each in op.each if call.outputs.get(each.output) is not None and not each.skips(given)]
    ends = op.ends_early(given)
    return tuple(each.output for each in asked if not ends or each.fill_of(given, target) is not None)


def writes(call: Call) -> bool:
    """Return whether a successful call writes any output."""
    return bool(written(call))


def _evaluate(op: Operator, args: Arguments, target: Platform, out: Array, *, judged: bool = False) -> Sink:
    """Fill ``out`` with the golden and return the sink; with ``judged`` the sink has the data that a verdict needs."""
    ready = _ready(op, args, target, out.shape)
    require_known_classes(op, ready, target)
    term_by_term = is_elementwise(op.computes) and op.terms_shape(ready) == op.output_shape(ready)
    sink = Sink(
        out, op.host_type(ready, target), judged=judged, filled=term_by_term, soc=target.form, flushes=target.flushes
    )
    part = sink.at((None,)) if out.ndim == 0 else sink
    with own_scratch():
        if is_zero_except_at_place(op.computes):
            operands, (axis,) = formula_operands(op, ready, spread=False), op.reduced_axes(ready)
            places.evaluate(op.computes, operands, axis, part)
        elif sums_place_values(op.computes):
            operands, axes = formula_operands(op, ready, spread=False), op.reduced_axes(ready)
            shape, axis = op.terms_shape(ready), class_axis(op.terms_shape(ready))
            per_row = len(shape) > 1 and axes == (axis,)
            places.evaluate_sums(op.computes, operands, shape, axis, part, per_row=per_row)
        elif reduces(op.computes):
            operands, axes, shape = formula_operands(op, ready), op.reduced_axes(ready), op.terms_shape(ready)
            if not op.gives_rows(ready) and part.out.shape != shape and part.out.flags.c_contiguous:
                part = part.viewed(lambda array: array.reshape(shape))
            totals.evaluate(op.computes, operands, axes, part)
            if judged:
                kind, way = dtype_of(out.dtype).name, coarsest(op.computes, operands, target.form)
                sink.on_the_way = way if way and FORMATS[way].mant < FORMATS[kind].mant else ""
        elif not isinstance(op.computes, Formula):
            op.computes.evaluate(ready, part)
            sink.given = True
        elif term_by_term:
            elementwise.evaluate(op.computes, formula_operands(op, ready), part, rank=out.ndim)
        else:
            shapes, added = (op.terms_shape(ready), op.kept_shape(ready)), op.added_type(ready, target)
            sums.evaluate(op.computes, formula_operands(op, ready), shapes, sink, added=added)
    return sink


def _in_integers(op: Operator, args: Arguments, target: Platform, out: Array) -> Reference:
    """Fill ``out`` with the result of a kernel of an integer type, which is exact, and return the reference."""
    values, unknown = integers.result_of(op, _ready(op, args, target, out.shape), target)
    whole = out.dtype in INTEGERS
    out[...] = values if whole else integers.rounded(values, out.dtype)
    return Reference(out, out if whole else values.astype(np.float64), np.zeros(out.shape), unknown)


def _ready(op: Operator, args: Arguments, target: Platform, shape: Shape) -> dict[str, Any]:
    """Return arguments ready for computing: in native byte order; with a scalar output, scalars as one-element vectors.
    Integers are cast to the kernel's type unless it is an integer type; to float32 if the page does not give it.
    ``shape``: the output's. Raises OracleError if the page makes an output of another size."""
    wanted = tuple(op.output_shape(args))
    if math.prod(shape) != math.prod(wanted):
        text = f"its checks take an {op.output} of shape {shape}, and its page makes one of shape {wanted}"
        raise OracleError(f"{op.name}: {text}; add a check of {op.output}'s shape, or say it in undefined")
    ready, scalar = dict(args), not wanted
    computed = dtype_of(op.host_type(args, target)).numpy
    common = np.dtype(np.float32) if op.kernel_type is None else computed
    integral = {p.name for p in op.operands if computed not in INTEGERS}
    for name in op.names("input"):
        array = ready[name]
        if array is not None and not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        if array is not None and name in integral and array.dtype in INTEGERS:
            array = integers.rounded(array, common)
        ready[name] = array.reshape(1) if scalar and array is not None and array.ndim == 0 else array
    return ready


def references(call: Call) -> dict[str, Reference]:
    """Return golden, unrounded value and strict bound of every output of a successful call, by output name."""
    return {name: reference(call, name) for name in operator(call.op).outputs if call.outputs.get(name) is not None}


@ieee_arithmetic
def reference(call: Call, output: str = "") -> Reference:
    """Return golden, unrounded value and strict bound of one output of a successful call. The default output is the
    first."""
    op, target = operator(call.op).of(output), with_subnormals(platform(call.soc, call.cann), call.subnormals)
    args = call.arguments
    spec, whole = _written_to(op, call), computes_integers(op, args, target)
    if op.ends_early(args) or op.skips(args):
        assert spec.dtype is not None
        value = None if op.skips(args) else op.fill_of(args, target)
        if value is None:
            none = np.empty(0, spec.dtype.numpy)
            return Reference(none, np.empty(0), np.empty(0), written=False)
        defined(op, {**args, op.output: spec})
        return Reference(
            np.full(spec.shape, value, _empty(op, spec, whole=whole).dtype),
            np.full(spec.shape, value),
            np.zeros(spec.shape),
        )
    served(op, args)
    defined(op, {**args, op.output: spec})
    out = empty_with_margin(spec.shape, _empty(op, spec, whole=whole).dtype)
    if not out.size:
        return Reference(out, np.empty(out.shape), np.zeros(out.shape))
    if whole:
        return _in_integers(op, args, target, out)
    sink = _evaluate(op, args, target, out, judged=True)
    exact = sink.exact if any_true(sink.exact) else None
    undecided = sink.undecided if sink.undecided is not None and any_true(sink.undecided) else None
    masks = sink.unspecified, sink.zeros, exact
    return Reference(
        out,
        sink.value,
        sink.bound,
        *masks,
        lost=sink.lost,
        coarser=sink.coarser,
        undecided=undecided,
        on_the_way=sink.on_the_way,
        given=sink.given,
    )


def _written_to(op: Operator, call: Call) -> TensorSpec:
    spec = call.spec(op.output)
    if spec is None or spec.dtype is None:
        raise OracleError(f"{call.op}: {op.output} is a null pointer or has no aclDataType; nothing can be computed")
    return spec


@ieee_arithmetic
def compute(call: Call, *, numerics: Numerics = "kernel", output: str = "") -> Array:
    """Return the output, in its dtype, that a device of the call's SoC would write. The default is the first output.

    ``exact``: the golden. ``kernel``: the SoC's public kernel, in float32 if its page names no other type.
    ``native``: the same kernel with every intermediate rounded to the kernel type. Kernels flush subnormal numbers if
    the SoC's instructions do. Then follow the host's rounding, the cast to the output, and the SoC's overflow mode.
    """
    op, target = operator(call.op).of(output), platform(call.soc, call.cann)
    flushing = with_subnormals(target, "" if call.subnormals == "either" else call.subnormals).flushes
    args = call.arguments
    spec = _written_to(op, call)
    served(op, args)
    defined(op, {**args, op.output: spec})
    whole = computes_integers(op, args, target)
    out = _empty(op, spec, whole=whole)
    if not out.size:
        return out
    if op.ends_early(args) and (value := op.fill_of(args, target)) is not None:
        out.fill(value)
        return out
    if numerics == "exact" or whole:
        fill = _in_integers if whole else _evaluate
        fill(op, args, target, out)
        return out
    args = _ready(op, args, target, spec.shape)
    require_known_classes(op, args, target)
    kernel_type = op.host_type(args, target)
    narrow = DTYPES[kernel_type].numpy
    # A kernel with sums of a formula over rows adds in float32, also where it multiplies in 16 bits.
    own = op.computes.own(target.form) if is_elementwise(op.computes) else None
    is_narrow = numerics == "native" or (own is not None and kernel_type in own.native)
    result = device_kernel(op, args, target.form, narrow if is_narrow else np.float32, flushing)
    rounded = np.empty(spec.shape, narrow)
    convert(_saturated(result.reshape(spec.shape), target, kernel_type), rounded)
    convert(_saturated(rounded, target, dtype_of(out.dtype).name), out)
    return out


@ieee_arithmetic
def sketch(call: Call) -> dict[str, Array]:
    """Return every output that a successful call writes, by name, in float64 and without a proof. The values are those
    of the SoC's public kernel when no intermediate is narrower than float64. Unwritten outputs are omitted."""
    target = platform(call.soc, call.cann)
    result: dict[str, Array] = {}
    for name in written(call):
        op, args = operator(call.op).of(name), call.arguments
        shape = _written_to(op, call).shape
        if op.ends_early(args):
            result[name] = np.full(shape, op.fill_of(args, target), np.float64)
        elif computes_integers(op, args, target):
            result[name] = integers.result_of(op, _ready(op, args, target, shape), target)[0].astype(np.float64)
        else:
            ready = _ready(op, args, target, shape)
            result[name] = device_kernel(op, ready, target.form, np.float64).reshape(shape)
    return result


def device_kernel(
    op: Operator, args: Arguments, form: str, compute: Any, flushing: frozenset[str] = frozenset()
) -> Array:
    """Return the result of a SoC's public kernel on arrays, before any store. Every intermediate has the type
    ``compute``. ``flushing``: operations whose subnormal float32 results become 0."""
    device, stored = strict.Device(form, compute, flushing), op.host_type(args, _platform_of(form))
    if is_elementwise(op.computes):
        operands, shape, out = formula_operands(op, args), op.terms_shape(args), op.output_shape(args)
        if shape != out:
            shapes, added = (shape, op.kept_shape(args)), op.added_type(args, _platform_of(form))
            return sums.kernel(op.computes, operands, shapes, device, stored, added).reshape(out)
        return strict.kernel(op.computes, operands, device, stored)
    if is_zero_except_at_place(op.computes):
        operands, (axis,) = formula_operands(op, args, spread=False), op.reduced_axes(args)
        return places.kernel(op.computes, operands, op.output_shape(args), axis, device, stored)
    if sums_place_values(op.computes):
        operands, axes = formula_operands(op, args, spread=False), op.reduced_axes(args)
        shape, axis = op.terms_shape(args), class_axis(op.terms_shape(args))
        per_row = len(shape) > 1 and axes == (axis,)
        result = places.kernel_sums(op.computes, operands, shape, axis, device, per_row=per_row)
        return result.reshape(op.output_shape(args))
    if isinstance(op.computes, Formula):
        operands, axes = formula_operands(op, args), op.reduced_axes(args)
        result = reductions.kernel(op.computes, operands, axes, device, per_row=op.gives_rows(args))
        # A sum over all rows has the same value for each row.
        return result.reshape(-1)[:1] if math.prod(op.output_shape(args)) == 1 else result
    shape = op.output_shape(args) or (1,)
    return op.computes.value(args, shape).astype(compute)


def _platform_of(form: str) -> Platform:
    """Return a platform whose kernels have the given form."""
    kernel, _, cann = form.partition("@")
    return platform(next((p.soc for p in PLATFORMS.values() if p.kernel == kernel), DEFAULT_SOC), cann)


def _saturated(values: Array, target: Platform, dtype: str) -> Array:
    """Clip to the largest finite value before a store to float16, on products that saturate."""
    if not target.saturates or dtype != "float16":
        return values
    largest = FORMATS["float16"].max
    return np.clip(values, -largest, largest)
