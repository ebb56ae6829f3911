"""A call cut along an axis of its output: parts that compute on their own what the whole call computes there.

An operator that works slice by slice along an axis gives the same values for a few slices at a time. So a call that is
too large to be computed at once, or whose golden would be, is taken part by part.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from ...model.call import Array, Call
from ..definition.operator import Operator
from ..definition.parameters import Attributes, Shape
from .registry import OPERATORS

LARGE = 1 << 26  # elements; the largest output of a call that is computed at once
MOST = 1 << 21  # elements of a part, unless one slice has more


def slice_axes(op: Operator, inputs: Mapping[str, Shape], outputs: Mapping[str, Shape], a: Attributes) -> list[int]:
    """Return the axes of the first output, and of every further one, along which the operator works slice by slice.

    ``inputs`` and ``outputs``: the shapes of the tensors that are given, by name.
    """
    shape = outputs[op.outputs[0]]
    if any(math.prod(own) > math.prod(shape) for own in inputs.values()):
        return []  # terms of other places are summed
    further = [op.axes_of(name, shape, own, a) for name, own in outputs.items()]
    return [axis for axis in op.slice_axes(shape, a, inputs) if all(axis in own for own in further)]


def axis_in(op: Operator, name: str, own: Shape, shape: Shape, axis: int, a: Attributes) -> int | None:
    """Return which axis of a tensor runs along an axis of the first output, whose shape is ``shape``; None if none.

    A tensor that nobody reads is cut like the output where it has its shape.
    """
    if own == shape and op.by_name[name].holds("nothing"):
        return axis
    axes = op.axes_of(name, shape, own, a)
    return axes.index(axis) if axis in axes else None


def part_of(call: Call, axis: int, piece: slice) -> Call:
    """Return a call of the slices ``piece`` along an axis of the first output; its tensors are views."""
    op = OPERATORS[call.op]
    shape = call.outputs[op.outputs[0]].shape

    def cut(name: str, array: Array | None) -> Array | None:
        if array is None:
            return None
        own = axis_in(op, name, array.shape, shape, axis, call.attrs)
        return array if own is None else array[(slice(None),) * own + (piece,)]

    inputs = {name: cut(name, array) for name, array in call.inputs.items()}
    outputs = {name: cut(name, array) for name, array in call.outputs.items()}
    return replace(call, inputs=inputs, outputs=outputs, specs={})


def parts(call: Call, *, large: int = LARGE, most: int = MOST) -> Iterator[Call]:
    """Yield a call with data in parts of about ``most`` elements where its output has more than ``large``; one that is
    smaller, or that no axis allows to be cut, as it is."""
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
