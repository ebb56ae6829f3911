"""Where a verdict can depend on an operand at all: which elements of a call tell, and whether some gradient makes one.

At the ends of a dtype right kernels disagree (one order overflows on the way, another does not), or the result is
infinite whatever the gradient. No case can close such a hole, so none is counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..catalogue.generators import GENERATORS
from ..catalogue.streams import Stream
from ..defects import elementwise
from ..model.call import Array, Call, TensorSpec
from ..model.dtypes import DTYPES
from ..model.platforms import DEFAULT_SOC
from ..operators import reference
from ..operators.operator import Operator
from .distances import Binade, parts

_FAR = 2.0**-10  # of the gradient: a bound below it tells a result of almost nothing from a lost one
_COUNT = 254  # elements per probe: at least one of each binade
_OTHERS = (0.0, 0.5, 1.0, -0.75)  # what the other operands are


def judged(call: Call) -> tuple[Array, Array]:
    """Return the value of every element of a call's output, and its bound: NaN where it is not specified and finite."""
    found = reference(call)
    shape = found.golden.shape
    value, bound = np.broadcast_to(found.value, shape), np.broadcast_to(found.bound, shape)
    wrong = ~np.isfinite(found.golden.astype(np.float64))
    if found.unspecified is not None:
        wrong |= np.broadcast_to(found.unspecified, shape)
    return value, np.where(wrong, np.nan, bound)


def telling(op: Operator, value: Array, bound: Array, given: Mapping[str, Any]) -> Array:
    """Return where a wrong value is noticed, in the shape of the formula's values: the output's, or a larger one
    whose values are summed. ``given``: the formula's operands by symbol."""
    gradient = op.by_name[op.gradient].symbol if op.gradient is not None and op.class_index is None else ""
    shapes = (v.shape for v in given.values() if isinstance(v, np.ndarray))
    shape = np.broadcast_shapes(value.shape, *shapes)
    found = bound < np.abs(value)
    if gradient in given:
        found = found | (bound < _FAR * np.abs(given[gradient]))
    return np.broadcast_to(found, shape)


def judgeable(op: Operator, operand: str, dtype: str, binades: Sequence[Binade]) -> set[Binade]:
    """Return those binades of an elementwise operator's operand (its symbol) at which some gradient, or beside a
    gradient some main operand, makes a verdict depend on it; all of them for other operators: nothing is tried."""
    names = {p.symbol: p.name for p in op.operands}
    if not elementwise.fits(op) or operand not in names or op.gradient is None or not binades:
        return set(binades)
    second = op.main if op.gradient == names[operand] else op.gradient
    left = list(binades)
    for other in _OTHERS:
        if left:
            tells = _tells(op, names[operand], second, dtype, left, other)
            left = [binade for binade, told in zip(left, tells, strict=True) if not told]
    return set(binades) - set(left)


def _tells(op: Operator, swept: str, beside: str, dtype: str, binades: Sequence[Binade], other: float) -> list[bool]:
    """Say of each binade of an operand whether, with another one of any size, an element of a call tells."""
    shape = (len(binades), _COUNT)
    sizes = GENERATORS["binades"].make(Stream(0, op.slug, beside), shape, dtype, falling=True)
    own = {
        beside: sizes.reshape(shape),
        swept: np.array([(-1.2 if sign == "-" else 1.2) * 2.0**k for sign, k in binades])[:, None],
    }
    inputs = {
        p.name: np.broadcast_to(own.get(p.name, 1.0 if p.optional else other), shape).astype(DTYPES[dtype].numpy)
        for p in op.inputs()
    }
    attrs = {p.name: p.plain for p in op.parameters if p.kind == "attr"}
    value, bound = judged(Call(op.name, DEFAULT_SOC, inputs, attrs, {op.output: TensorSpec(shape, dtype)}))
    ((_, _, given),) = parts(op, {**inputs, **attrs})
    told: list[bool] = np.any(telling(op, value, bound, given), axis=-1).tolist()
    return told
