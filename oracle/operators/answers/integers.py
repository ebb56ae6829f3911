"""Integer operands: the type that a kernel computes in, and its exact result if that is an integer type."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...model.aclnn import Platform
from ...model.call import Array
from ...model.dtypes import DTYPES, dtype_of
from ...model.errors import Unserved
from ...numerics.expressions import Expression
from ...numerics.floats.rounding import round_to
from ...numerics.golden import integers
from ...numerics.orders.formula import is_elementwise
from ..definition.operands import constants, formula_operands
from ..definition.operator import Arguments, Operator
from ..definition.parameters import MEAN

INTEGERS = frozenset(d.numpy for d in DTYPES.values() if d.is_whole and d.numpy.kind in "iub")


def computes_integers(op: Operator, args: Arguments, target: Platform) -> bool:
    """Return whether the kernel's type is an integer. Then no value is rounded."""
    return dtype_of(op.host_type(args, target)).numpy in INTEGERS


def graph_of(op: Operator, args: Arguments) -> Expression | None:
    """Return the graph that a kernel of an integer type computes; None if the formula leaves the integers."""
    means = op.reduction is not None and args[op.reduction.name] == MEAN
    if means or not is_elementwise(op.computes):
        return None
    return integers.graph_of(op.computes, constants(op, args))


def require_fit(op: Operator, args: Arguments, kind: np.dtype[Any]) -> None:
    """Refuse numbers that the kernel's integer type cannot represent. Raises Unserved."""
    limits = np.iinfo(kind)
    for parameter in op.attributes:
        value = args.get(parameter.name)
        if parameter.role != "number" or value is None:
            continue
        exact = value if isinstance(value, int) else float(value)
        if not (math.isfinite(exact) and limits.min <= math.trunc(exact) <= limits.max):
            text = f"{parameter.name} is {value}; its value as an {kind} is not specified"
            raise Unserved(f"{op.name}: {text}")


def result_of(op: Operator, args: Arguments, target: Platform) -> tuple[Array, Array | None]:
    """Return the result of a kernel of an integer type as int64 in the output's shape, and a mask of the elements whose
    result is unspecified."""
    graph, kind = graph_of(op, args), op.host_type(args, target)
    if graph is None:
        text = f"{op.output} is computed as {kind}; only a formula of whole numbers has a golden there"
        raise Unserved(f"{op.name}: {text}, one without sums over axes and without a mean")
    assert is_elementwise(op.computes)
    operands, terms, shape = formula_operands(op, args), op.terms_shape(args), op.output_shape(args)
    values = integers.evaluate(graph, operands, terms, op.kept_shape(args) if terms != shape else terms)
    unknown = None if terms != shape else integers.unspecified(op.computes, operands, terms, target.form, kind)
    return values.reshape(shape), unknown


def rounded(whole: Array, dtype: np.dtype[Any]) -> Array:
    """Round integers once to a float type.

    The way to 16 bits is through float64. An int64 beyond 2^53 first gets 0x400 as its low 11 bits, unless they are 0:
    float64 represents this number exactly, and it lies on the same side of every midpoint of a 16-bit type.
    """
    if dtype.itemsize > 2:
        return whole.astype(dtype)
    if whole.dtype.itemsize == 8:
        low = whole & 0x7FF
        whole = np.where((whole > 2**53) | (whole < -(2**53)), whole - low + 0x400 * (low != 0), whole)
    return round_to(whole.astype(np.float64), dtype)
