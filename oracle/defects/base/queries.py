"""Queries of an operator's checks: the accepted ranks, dtypes, shapes of operands, and values of attributes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from ...model.aclnn import DEFAULT_SOC, PLATFORMS, platform
from ...model.call import Call, TensorSpec
from ...model.dtypes import FLOATS, INDEX_TYPES
from ...model.errors import OracleError
from ...numerics.orders.reducing import reduces
from ...operators import operator, validate
from ...operators.definition.checks import Check, PageArguments
from ...operators.definition.operator import Operator
from ...operators.definition.parameters import REDUCTIONS, SUM, Parameter
from ...operators.definition.roles import (
    BROADCAST,
    CLASS_INDEX,
    MUTUAL,
    ONE_VALUE,
    PER_CHANNEL,
    PER_CLASS,
    PER_SAMPLE,
    SAME,
    UNREAD,
    Shape,
)

USUAL: tuple[Shape, ...] = ((4, 5), (5,), (2, 4, 5), (2, 5, 3, 4), (2, 5, 3, 4, 2), ())
LARGEST_RANK = 9  # in catalogues
NEWEST = "ascend950"


def call_of(
    op: Operator,
    shape: Shape,
    soc: str = NEWEST,
    dtype: str = "float32",
    *,
    attrs: Mapping[str, Any] | None = None,
    dtypes: Mapping[str, str] | None = None,
    shapes: Mapping[str, Shape] | None = None,
) -> Call:
    """Return a call without data. ``attrs``, ``dtypes``, ``shapes``: values by name that differ from the usual ones."""
    own, kinds, outer = {**op.usual(shape), **(attrs or {})}, dtypes or {}, shapes or {}
    specs = {}
    for p in op.inputs():
        kind = "int64" if p.role is CLASS_INDEX else p.dtype if p.is_whole else dtype
        specs[p.name] = TensorSpec(outer.get(p.name, op.shape_of(p.name, shape, own)), kinds.get(p.name, kind))
    follows = {n: op.of(n).shape is None for n in op.outputs}
    own_shapes = {n: shape if follows[n] else op.of(n).output_shape({**own, **specs}) for n in op.outputs}
    outputs = {n: TensorSpec(outer.get(n, own_shapes[n]), kinds.get(n, op.of(n).dtype or dtype)) for n in op.outputs}
    return Call(op.name, soc, specs, own, outputs)


def checks_of(call: Call) -> Iterator[Check]:
    """Yield every check of a call's validator, in order."""
    result = operator(call.op)
    specs = {name: call.spec(name) for name in (*call.inputs, *call.outputs)}
    yield from result.checks(PageArguments(call.op, {**call.attrs, **specs}), platform(call.soc))


@cache
def usual_shape(op: Operator) -> Shape:
    """Return a shape of the main operand that the operator accepts with operands of their usual shapes."""
    answers = [validate(call_of(op, shape)) for shape in USUAL]
    result = next((shape for shape, answer in zip(USUAL, answers, strict=True) if answer.ok), None)
    if result is None:
        raise OracleError(
            f"{op.name}: its checks refuse every usual call, so nothing can be asked of them; of shape {USUAL[0]} they "
            f"say: {answers[0].reason}. A number's usual value is 1 unless the page says plain=, as in number('eps', "
            "'eps', plain=0.1)"
        )
    return result


def usual(op: Operator, soc: str = NEWEST, dtype: str = "float32", **more: Any) -> Call:
    """Return a usual call without data."""
    return call_of(op, usual_shape(op), soc, dtype, **more)


def accepts(op: Operator, soc: str = NEWEST, dtype: str = "float32", **more: Any) -> bool:
    """Return whether the operator accepts a usual call with the changes ``more``."""
    return validate(usual(op, soc, dtype, **more)).ok


def computes(op: Operator, soc: str = NEWEST, dtype: str = "float32", **more: Any) -> bool:
    """Return whether the operator accepts such a call, and sources define its result."""
    return _is_computed(op, usual(op, soc, dtype, **more))


def _is_computed(op: Operator, call: Call) -> bool:
    known = {name: call.spec(name) for name in (*call.inputs, *call.outputs)}
    return validate(call).ok and (op.undefined is None or op.undefined({**call.attrs, **known}) is None)


@cache
def ranks(op: Operator) -> tuple[int, ...]:
    """Return the ranks of the main operand that are accepted and have a defined result, up to the largest rank in
    catalogues."""
    calls = {rank: [call_of(op, (2,) * rank)] for rank in range(LARGEST_RANK + 1)}
    if op.inputs(CLASS_INDEX):  # the class of a single sample may be a scalar
        calls[1].append(call_of(op, (2,), shapes={p.name: () for p in op.inputs(CLASS_INDEX)}))
    return tuple(rank for rank, some in calls.items() if any(_is_computed(op, call) for call in some))


@cache
def kinds(op: Operator) -> tuple[str, ...]:
    """Return the float types of the main operand that some SoC accepts."""
    return tuple(kind for kind in FLOATS if any(accepts(op, soc, kind) for soc in PLATFORMS))


def socs_of(kind: str) -> tuple[str, ...]:
    """Return the SoCs that support operands of a type."""
    return tuple(n for n, p in PLATFORMS.items() if kind != "bfloat16" or p.bfloat16)


@cache
def mixes(op: Operator, name: str) -> bool:
    """Return whether a tensor can have another float type than all other tensors."""
    if op.dtype and name == op.output:
        return False
    return computes(op, dtypes={name: "float16"}) or computes(op, dtype="float16", dtypes={name: "float32"})


def host_type(op: Operator, call: Call) -> str:
    """Return the type to which the host rounds in a call without data."""
    arrays = {
        n: np.empty(t.shape, t.dtype.numpy) for n in (*call.inputs, *call.outputs) if (t := call.spec(n)) and t.dtype
    }
    return op.host_type({**arrays, **call.attrs}, platform(call.soc))


def _accepted_types(op: Operator) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Yield every accepted combination of float types: those of the operands, the host's, the output's."""
    names = [p.name for p in op.operands if not p.is_whole]
    for types in product(FLOATS, repeat=len(names) + 1):
        call = usual(op, dtypes=dict(zip((*names, op.output), types, strict=True)))
        if _is_computed(op, call):
            yield types[:-1], host_type(op, call), types[-1]


@cache
def narrows(op: Operator) -> bool:
    """Return whether the output can have a type that cannot represent all numbers of some operand's type."""
    return any(out != FLOATS[-1] and {out} != {*given} for given, _, out in _accepted_types(op))


@cache
def rounds_to_another(op: Operator) -> bool:
    """Return whether the host can round to another type than the output's."""
    return any(host != out for _, host, out in _accepted_types(op))


def where_accepted(op: Operator, calls: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the SoCs that accept one of some calls; all SoCs if the default SoC is among them."""
    result = tuple(soc for soc in PLATFORMS if any(accepts(op, soc, **call) for call in calls))
    return tuple(PLATFORMS) if DEFAULT_SOC in result else result


@cache
def mixing(op: Operator) -> tuple[str, ...]:
    """Return the SoCs that accept inputs of two float types."""
    outputs = ("float32", "float16")
    return where_accepted(op, [{"dtypes": {p.name: "float16", op.output: o}} for p in op.operands for o in outputs])


@cache
def index_types(op: Operator) -> tuple[str, ...]:
    """Return the integer types that class indices can have."""
    names = [p.name for p in op.inputs(CLASS_INDEX)]
    return tuple(k for k in INDEX_TYPES if names and accepts(op, dtypes=dict.fromkeys(names, k)))


@cache
def any_shape(op: Operator, name: str) -> bool:
    """Return whether an unread tensor can have another shape than usual."""
    return op.by_name[name].role is UNREAD and accepts(op, shapes={name: (0,)})


@cache
def accepted_values(op: Operator, name: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the accepted values of an attribute, out of ``values``."""
    return tuple(v for v in values if accepts(op, attrs={name: v}))


def takes_complex(op: Operator) -> bool:
    """Return whether the checks test the cast to the output, and accept a cast from real to complex numbers."""
    asked = any(check.name.endswith(f"casts to {op.output}") for check in checks_of(usual(op)))
    return asked and accepts(op, dtypes={op.output: "complex64"})


def broadcasting(op: Operator) -> tuple[Parameter, ...]:
    """Return the operands, except the main one, that can broadcast."""
    return op.inputs(BROADCAST, MUTUAL)


def is_vector(op: Operator, parameter: Parameter) -> bool:
    """Return whether an operand has rank 0 or 1 in a call with a main operand of several axes."""
    known = parameter.role in (PER_CLASS, PER_CHANNEL, ONE_VALUE, PER_SAMPLE, CLASS_INDEX)
    return known and len(usual(op).inputs[parameter.name].shape) < 2


def main_shaped_operands(op: Operator) -> tuple[Parameter, ...]:
    """Return the operands, except the main one, that have or can have its shape."""
    return tuple(p for p in op.inputs(SAME, BROADCAST, MUTUAL) if p.read)


def has_rows(op: Operator) -> bool:
    """Return whether the output of a usual call has two axes or more."""
    return len(usual(op).outputs[op.output].shape) > 1


@cache
def has_one_element(op: Operator) -> bool:
    """Return whether an output has one element in every call."""
    shape = usual_shape(op)
    larger = tuple(2 * n for n in shape)
    calls = (call_of(op, main, attrs=each) for main, each in product((shape, larger), _worded(op)))
    return all(math.prod(op.output_shape(call.arguments)) == 1 for call in calls)


def _worded(op: Operator) -> list[dict[str, Any]]:
    """Return every combination of an operator's words, flags and reductions."""
    values = {p.name: p.choices or (False, True) for p in op.attributes if p.role in ("choice", "flag")}
    if op.reduction is not None:
        values[op.reduction.name] = op.reduction.choices or tuple(range(len(REDUCTIONS)))
    return [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]


def reduces_last_axis(op: Operator) -> bool:
    """Return whether an output's last axis has length 1 while the main operand's is longer."""
    return bool(usual(op).outputs[op.output].shape[-1:] == (1,) != usual_shape(op)[-1:])


@cache
def unwritten_words(op: Operator) -> tuple[str, ...]:
    """Return the words of the reductions for which the host does not write an output."""
    if op.reduction is None or op.skipped is None:
        return ()
    calls = {word: usual(op, attrs={op.reduction.name: n}) for n, word in enumerate(REDUCTIONS)}
    return tuple(word for word, call in calls.items() if op.skips(call.arguments))


@cache
def is_written(op: Operator) -> bool:
    """Return whether the host writes an output in some usual call, for any choice of words, flags and reduction."""
    if op.skipped is None:
        return True
    calls = (usual(op, attrs=each) for each in _worded(op))
    return any(not op.skips(call.arguments) for call in calls)


def reductions(op: Operator) -> tuple[str, ...]:
    """Return the words of an operator's reductions in order of their numbers; without the attribute, only the first."""
    return REDUCTIONS if op.attribute("reduction") is not None else REDUCTIONS[:1]


@cache
def summed_to(op: Operator) -> Shape | None:
    """Return the shape of the sums of a usual call with reduction sum; None if nothing is summed."""
    if op.reduction is None:
        return None
    call = usual(op, attrs={op.reduction.name: SUM})
    shape = op.output_shape(call.arguments)
    return None if shape == terms_shape(call) else shape


@cache
def may_be_odd(op: Operator) -> bool:
    """Return whether a main operand can have an odd number of elements."""
    return any(validate(call_of(op, shape)).ok for shape in ((), (3,), (3, 5), (1, 3), (3, 3, 5, 7)))


def output_shape(call: Call) -> Shape:
    """Return the shape of a call's (first) output."""
    return tuple(call.outputs[operator(call.op).output].shape)


def terms_shape(call: Call) -> Shape:
    """Return the shape of the values of a call's (first) formula before a sum. If the formula reduces, it is the main
    operand's shape, with channels not yet grouped."""
    op, arguments = operator(call.op), call.arguments
    main = arguments[op.main]
    return tuple(main.shape) if reduces(op.computes) and main is not None else op.terms_shape(arguments)
