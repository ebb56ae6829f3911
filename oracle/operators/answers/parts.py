"""Large calls in parts, properties that an operator's checks reveal, and the reference of a call by its parameters.

An operator that works slice by slice along an axis gives the same values for a few slices at a time. So a call that is
too large to compute at once, or whose golden is too large, is processed part by part.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ...model.aclnn import DEFAULT_SOC, platform
from ...model.call import Array, Call
from ...model.dtypes import DTYPES, FLOATS
from ...numerics.orders.reducing import reduces, reducing
from ..definition.operands import constants
from ..definition.operator import Operator
from ..definition.roles import Attributes, Shape
from .api import golden, references
from .reference import Reference
from .registry import OPERATORS, operator
from .validation import as_attribute, bound, validate

LARGE = 1 << 26  # elements; calls with a larger output are processed in parts
MOST = 1 << 21  # elements of a part, unless one slice has more


def slice_axes(op: Operator, inputs: Mapping[str, Shape], outputs: Mapping[str, Shape], a: Attributes) -> list[int]:
    """Return the axes of the first output, and of all further ones, along which the operator works slice by slice.

    ``inputs`` and ``outputs``: the shapes of the given tensors, by name.
    """
    shape = outputs[op.outputs[0]]
    whole = {name: own for name, own in inputs.items() if not op.by_name[name].parts}  # parts give an element each
    if any(math.prod(own) > math.prod(shape) for own in whole.values()) or _sums_rows(op, {**a, **inputs}):
        return []  # an output element sums terms from several places, or divides by such a sum
    further = [op.axes_of(name, shape, own, a) for name, own in outputs.items()]
    return [axis for axis in op.slice_axes(shape, a, inputs) if all(axis in own for own in further)]


def _sums_rows(op: Operator, given: Mapping[str, Any]) -> bool:
    """Return whether the formula sums over all rows in a call; for a choice such as the mean it may, for others not."""
    known = constants(op, given).items()
    return any(
        reducing(page, frozenset((symbol, n) for symbol, n in known if symbol in page.symbols)).value.sums_rows
        for page in (each.computes for each in op.each) if reduces(page)
    )  # fmt: skip


def axis_in(op: Operator, name: str, own: Shape, shape: Shape, axis: int, a: Attributes) -> int | None:
    """Return the axis of a tensor along ``axis`` of the first output, or None. ``shape``: the first output's shape.

    A tensor that no kernel reads is cut like the output if it has the output's shape.
    """
    if own == shape and op.by_name[name].holds("nothing"):
        return axis
    axes = op.axes_of(name, shape, own, a)
    return axes.index(axis) if axis in axes else None


def along(array: Array, axis: int | None, piece: slice) -> Array:
    """Return a piece of an array along an axis; the whole array if the axis is None."""
    return array if axis is None else array[(slice(None),) * axis + (piece,)]


def part_of(call: Call, axis: int, piece: slice) -> Call:
    """Return the call restricted to the slices ``piece`` along an axis of the first output; its tensors are views."""
    op = OPERATORS[call.op]
    shape = call.outputs[op.outputs[0]].shape

    def cut(name: str, array: Array | None) -> Array | None:
        return None if array is None else along(array, axis_in(op, name, array.shape, shape, axis, call.attrs), piece)

    inputs = {name: cut(name, array) for name, array in call.inputs.items()}
    outputs = {name: cut(name, array) for name, array in call.outputs.items()}
    return replace(call, inputs=inputs, outputs=outputs, specs={})


def parts(call: Call, *, large: int = LARGE, most: int = MOST) -> Iterator[Call]:
    """Yield a call with data in parts of about ``most`` elements if its output has more than ``large``. Yield a smaller
    call, or one without an axis to cut, unchanged."""
    op = OPERATORS[call.op]
    out: Array | None = call.outputs[op.outputs[0]]
    if out is None or out.size <= large:
        yield call
        return
    shapes = [{n: v.shape for n, v in t.items() if isinstance(v, np.ndarray)} for t in (call.inputs, call.outputs)]
    axes = slice_axes(op, shapes[0], shapes[1], call.attrs)
    if not axes:
        yield call
        return
    axis = max(axes, key=lambda k: out.shape[k])
    step = max(1, most * out.shape[axis] // out.size)
    for start in range(0, out.shape[axis], step):
        yield part_of(call, axis, slice(start, start + step))


# The calls that an operator accepts, found by running its checks.

_SHAPES = ((2, 4), (2, 4, 2, 2), (4,))  # every operator accepts a main operand of one of these ranks


def accepted_dtypes(op: Operator, soc: str) -> tuple[str, ...]:
    """Return the dtypes that all operands and outputs can have together on a SoC."""
    return tuple(dtype for dtype in DTYPES if any(_accepted(op, soc, dtype)))


def served_dtypes(op: Operator, soc: str) -> tuple[str, ...]:
    """Return the accepted dtypes that have a golden and that the SoC has. Some checks do not look at the SoC."""
    absent = () if platform(soc).bfloat16 else ("bfloat16",)
    return tuple(dtype for dtype in accepted_dtypes(op, soc) if dtype in FLOATS and dtype not in absent)


def checks_of(op: Operator, soc: str) -> tuple[str, ...]:
    """Return the names of the checks that a plain valid call passes on a SoC, in their order."""
    given = next((call for dtype in served_dtypes(op, soc) for call in _accepted(op, soc, dtype)), None)
    return () if given is None else tuple(check.name for check in op.checks(bound(op, given), platform(soc)))


def _accepted(op: Operator, soc: str, dtype: str) -> Iterator[dict[str, Any]]:
    """Yield usual calls of a dtype, without optional inputs, that pass the checks on a SoC."""
    optional = {p.name for p in op.inputs() if p.optional}
    for shape in _SHAPES:
        given = op.usual_call(shape, dtype, absent=optional)
        if validate(op.name, soc=soc, **given).ok:
            yield given


# The values that a verdict compares a device's outputs with: ``oracle.reference``.


def reference(op: str, /, *, soc: str = DEFAULT_SOC, cann: str | None = None, **params: Any) -> dict[str, Reference]:
    """Return golden, strict bound and unspecified elements of every output of a call, by their aclnn names.

    The parameters are those of ``oracle.golden``. Each result has arrays in the output's shape. ``golden``: in the
    output's dtype. ``value``: float64, before the last rounding. ``bound``: float64, the |actual - value| that the
    strict layer allows, including the host's roundings. ``unspecified``: bool, elements on which right kernels disagree
    and that no layer judges. Raises OracleError in the same cases as ``oracle.golden``.
    """
    outputs, result = golden(op, soc=soc, cann=cann, **params), operator(op)
    given = {name: params.get(name) for name in result.by_name}
    inputs = {n: None if given[n] is None else np.asarray(given[n]) for n in result.names("input")}
    target = platform(soc, cann)
    attrs = {parameter.name: as_attribute(parameter, given[parameter.name])[0] for parameter in result.attributes}
    call = Call(op, target.soc, inputs, attrs, outputs, cann=target.cann)
    return {name: _whole(one, outputs[name].copy()) for name, one in references(call).items()}


def _whole(reference: Reference, golden: np.ndarray) -> Reference:
    """Return the same reference with all arrays in the output's shape, also for an output that is not written."""
    if not reference.written:
        nothing = np.zeros(golden.shape)
        return replace(reference, golden=golden, value=nothing, bound=nothing.copy(), unspecified=nothing.astype(bool))
    if reference.unspecified is not None:
        return reference
    return replace(reference, unspecified=np.zeros(golden.shape, bool))
