"""The operands of a formula, and the arguments of a framework's function, from the arguments of a call."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...model.call import Array
from ...numerics.expressions import PLACE
from ...numerics.orders.formula import PART, Formula
from ...numerics.orders.reducing import reduces
from .operator import Arguments, Operator
from .parameters import MEAN, Parameter
from .roles import HALF, PER_GROUP, ROWS, SAME, Shape, class_axis


def constants(op: Operator, a: Arguments) -> dict[str, int]:
    """Return a formula's constant operands by symbol: flags, choices and absent operands."""
    result: dict[str, int] = {}
    for parameter in (p for p in op.parameters if p.symbol):
        value = a.get(parameter.name)
        constant = _constant(parameter, value) if parameter.kind == "attr" else parameter.absent
        if (parameter.kind == "attr" or value is None) and isinstance(constant, int):
            result[parameter.symbol] = constant
    return result


def formula_operands(op: Operator, a: Arguments, *, spread: bool = True) -> dict[str, Any]:
    """Return a formula's operands by symbol: arrays in the shape of its values, numbers, and the mean's divisor.
    Without ``spread`` an array's shape only broadcasts to that shape."""
    assert isinstance(op.computes, Formula)
    shape = op.terms_shape(a)
    result: dict[str, Any] = {}
    for parameter in op.parameters:
        value = a.get(parameter.name)
        if not parameter.enters(op.computes.symbols):
            continue
        if parameter.kind == "attr":
            result[parameter.symbol] = _constant(parameter, value)
        elif value is None:
            if parameter.absent != 1:
                result[parameter.symbol] = parameter.absent
        elif parameter.parts:
            result |= _parts(op, parameter, value, shape, a)
        else:
            result[parameter.symbol] = _operand(op, parameter, value, shape, a, spread=spread)
    if op.reduction is not None and a[op.reduction.name] == MEAN:
        result["n"] = a[op.main].size if op.mean is None else op.mean(a)
    if PART in op.computes.symbols:
        result[PART] = _part_of_each(op, shape, a)
    if op.scalars is not None:
        result.update(op.scalars(a))
    if reduces(op.computes) and op.computes.knows_places:
        axes = op.reduced_axes(a) if op.class_index is None else (class_axis(shape),)
        result[PLACE] = _places(shape, axes)
    return result


def _operand(op: Operator, parameter: Parameter, value: Array, shape: Shape, a: Arguments, *, spread: bool) -> Array:
    """Return an operand in the shape of the formula's values, or in a shape that broadcasts to it."""
    main = tuple(a[op.main].shape) if op.reduces_groups else shape
    along = value if value.shape == main else _along(op, parameter, value, main, a)
    along = np.broadcast_to(along, main) if spread and along.shape != main else along
    return along.reshape(shape) if op.reduces_groups else along


def _split(op: Operator, a: Arguments) -> tuple[int, int]:
    """Return the axis along which an input has parts, and the number of parts."""
    axis = op.attribute("axis")
    assert axis is not None
    count = next(len(p.parts) for p in op.inputs() if p.parts)
    return int(a[axis.name]) % max(1, len(a[op.main].shape)), count


def _parts(op: Operator, parameter: Parameter, value: Array, shape: Shape, a: Arguments) -> dict[str, Array]:
    """Return the parts of an operand by symbol, each repeated to the shape of the formula's values."""
    axis, count = _split(op, a)
    pieces = np.split(value, count, axis) if value.shape[axis] % count == 0 else [value] * count
    return {name: _again(piece, shape, axis) for name, piece in zip(parameter.parts, pieces, strict=True)}


def _part_of_each(op: Operator, shape: Shape, a: Arguments) -> Array:
    """Return the part number of each of the formula's values: 0, 1 ..."""
    axis, count = _split(op, a)
    number = np.repeat(np.arange(count), shape[axis] // count).astype(a[op.main].dtype)
    return np.broadcast_to(number.reshape([-1 if k == axis else 1 for k in range(len(shape))]), shape)


def _places(shape: Shape, axes: tuple[int, ...]) -> Array:
    """Return each element's index along some axes, as an array of a shape."""
    own = tuple(n if k in axes else 1 for k, n in enumerate(shape))
    return np.broadcast_to(np.arange(math.prod(own), dtype=np.float64).reshape(own), shape)


def _along(op: Operator, parameter: Parameter, value: Array, shape: Shape, a: Arguments) -> Array:
    """Return an operand with as many axes as the formula's values. Its own axes run along the axes that its role gives.
    Along an axis that its role does not map, only the first element is used. For the roles SAME, ROWS and PER_GROUP an
    operand of the right size can have any shape."""
    if parameter.role is HALF:
        return _again(value, shape, _split(op, a)[0])
    if parameter.role in (SAME, ROWS, PER_GROUP):
        usual = op.shape_of(parameter.name, shape, a)
        value = value.reshape(usual) if value.size == math.prod(usual) else value
    if parameter.role is PER_GROUP and len(shape) > 1:
        value = np.repeat(value, shape[1] // value.shape[1], 1)
    return spaced(value, op.axes_of(parameter.name, shape, value.shape, a), len(shape))


def spaced(value: Array, axes: tuple[int | None, ...], rank: int) -> Array:
    """Return a tensor with as many axes as ``rank``, whose own axes run along the given ones. Along an axis that is
    None, only the first element is used."""
    own = [1] * rank
    for axis, n in zip(axes, value.shape, strict=True):
        if axis is not None:
            own[axis] *= n  # several axes can run along one: a weight of (2, 2) for four channels
    return value[tuple(slice(1) if axis is None else slice(None) for axis in axes)].reshape(own)


def _again(value: Array, shape: Shape, axis: int) -> Array:
    """Return a part, repeated along an axis as often as the shape has room for it."""
    if value.shape == shape or not value.shape[axis]:
        return value
    return np.concatenate([value] * (shape[axis] // value.shape[axis]), axis)


def _constant(parameter: Parameter, value: Any) -> float:
    """Return an attribute for a formula: a number as a float32; a flag, a choice or a class as an integer."""
    if parameter.role in ("flag", "ignore index"):
        return int(value)
    if parameter.role == "choice":
        value = parameter.plain if value is None else value
        return parameter.choices.index(value) if parameter.c == "char*" or value in parameter.choices else 0
    return float32(parameter.plain if value is None else value)


def float32(value: Any) -> float:
    """Return the float32 that the host makes of a scalar; a value that is too large becomes infinite."""
    with np.errstate(over="ignore"):
        return float(np.float32(value.real))


class FrameworkArguments(dict[str, Any]):
    """A framework's tensors, and a call's attributes, by aclnn name, for a page's function; a null attribute has its
    usual value. ``place``: the function's place in the page, as ``aten=``."""

    def __init__(self, op: Operator, place: str, tensors: Mapping[str, Any], attributes: Mapping[str, Any]) -> None:
        usual = {p.name: p.plain for p in op.attributes}
        super().__init__({**tensors, **{n: usual[n] if attributes[n] is None else attributes[n] for n in usual}})
        self._place = place

    def __missing__(self, name: str) -> Any:
        raise LookupError(f"the function in {self._place} asks for {name!r}; it can have {', '.join(self)}")
