"""Which results overflow every format, told for whole arrays: float64 intervals whose ends are rounded outwards.

An operand that makes e^x overflow float64 makes the value unknown there, and most such results are infinite in every
format. An end at infinity stands for any number beyond float64's largest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from ...model.call import Array
from ..evaluate.operands import pick
from ..exact.enclosures import constant_value
from ..formula.expressions import Expression
from ..formula.traversal import walk

Ends = tuple[Array, Array]
Found = tuple[Array, Array, Array]  # values, lower and upper ends
BEYOND = 2.0**200  # of every format's range
_EXP = 2.0**-50  # relative; e^x may lose half of that, or a last bit where it is subnormal


def overflowed(root: Expression, operands: Mapping[str, Any], found: Found) -> Found:
    """Return values and intervals of a graph with those replaced that are not finite: by an infinity where the value is
    beyond every format's range, else by nothing known."""
    beyond = ~np.isfinite(found[0])
    if not beyond.any():
        return found
    value, low, high = (np.where(beyond, e, f) for e, f in zip((0.0, -np.inf, np.inf), found, strict=True))
    if _supports(root):
        least, most = _evaluated(root, pick(operands, beyond))
        value[beyond] = np.where(least > BEYOND, np.inf, np.where(most < -BEYOND, -np.inf, 0.0))
    return value, low, high


@lru_cache(maxsize=256)
def _supports(root: Expression) -> bool:
    return all(node.is_constant or node.op in _OPERATIONS or node.op == "symbol" for node in walk(root))


def _evaluated(root: Expression, operands: Mapping[str, Any]) -> Ends:
    found: dict[int, Ends] = {}
    for node in walk(root):
        if node.is_constant:
            value = np.asarray(constant_value(node))
            found[id(node)] = _outwards(value, value, value)
        elif node.op == "symbol":
            given = np.asarray(operands[str(node.value)], np.float64)
            found[id(node)] = given, given
        else:
            found[id(node)] = _OPERATIONS[node.op](*(found[id(a)] for a in node.args))
    return found[id(root)]


def _outwards(low: Array, high: Array, exact: Any = False) -> Ends:
    """Ends that rounding to nearest, and the underflow of what is not exact, cannot have moved inwards."""
    return np.where(exact, low, np.nextafter(low, -np.inf)), np.where(exact, high, np.nextafter(high, np.inf))


def _product(a: Ends, b: Ends) -> Ends:
    corners = [np.where((x == 0) | (y == 0), 0.0, x * y) for x in a for y in b]
    nothing = ((a[0] == 0) & (a[1] == 0)) | ((b[0] == 0) & (b[1] == 0))
    return _outwards(np.minimum.reduce(corners), np.maximum.reduce(corners), nothing)


def _inverse(b: Ends) -> Ends:
    low, high = _outwards(1 / b[1], 1 / b[0])
    through_zero = (b[0] <= 0) & (b[1] >= 0)
    return np.where(through_zero, -np.inf, low), np.where(through_zero, np.inf, high)


def _exp(a: Ends) -> Ends:
    low, high = _outwards(*_outwards(np.exp(a[0]) * (1 - _EXP), np.exp(a[1]) * (1 + _EXP)))
    return np.maximum(low, 0.0), high


_OPERATIONS: dict[str, Callable[..., Ends]] = {
    "*": _product,
    "/": lambda a, b: _product(a, _inverse(b)),
    "neg": lambda a: (-a[1], -a[0]),
    "exp": _exp,
}
