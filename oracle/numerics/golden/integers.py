"""A formula in integer arithmetic: if the host's kernel computes in an integer type, every step is exact.

int64 represents each of these types; it wraps as the device's type does.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from ...model.call import Array
from ..expressions import Expression, symbols_of, trace
from ..orders.formula import Formula, condition_of
from ..programs import Operands, map_arrays, program, simulate
from ..traversal import walk

Shape = tuple[int, ...]
STAYING = frozenset(["+", "-", "*", "neg", "abs", "min", "max", "where", "sign", "symbol"])  # integers stay integers


def graph_of(scheme: Formula, constants: Mapping[str, int]) -> Expression | None:
    """Return the graph of a kernel with an integer type; None if the formula leaves the integers. ``constants``:
    constant operands, by symbol."""
    formula = scheme.integers or scheme.formula
    graph = trace(formula, {name: value for name, value in constants.items() if name in symbols_of(formula)})
    return graph if all(map(_stays, walk(graph))) else None


def _stays(node: Expression) -> bool:
    if node.op == "constant":
        return isinstance(node.value, Fraction) and node.value.denominator == 1
    return node.is_condition or node.op in STAYING


def evaluate(graph: Expression, operands: Operands, terms: Shape, kept: Shape) -> Array:
    """Return a graph's values as int64. ``operands``: integers, or numbers, which lose their fraction in the host's
    cast. ``terms``: the values' shape; ``kept``: the output's shape in the same axes, with 1 along summed axes."""
    result = np.broadcast_to(simulate(graph, map_arrays(operands, lambda v: v.astype(np.int64)), np.int64), terms)
    summed = tuple(k for k, n in enumerate(terms) if kept[k] != n)
    return result.sum(axis=summed, keepdims=True) if summed else result


def unspecified(scheme: Formula, operands: Operands, shape: Shape, form: str, kind: str) -> Array | None:
    """Return the elements with an unknown answer of a SoC's kernel of an integer type. They satisfy a condition that
    the page states for this type."""
    stated = {name: condition for name, condition in scheme.unspecified.items() if name.endswith(f" {kind}")}
    condition = condition_of(Formula(scheme.formula, unspecified=stated), form, kind)
    if condition is None:
        return None
    (result,) = program(trace(condition))(map_arrays(operands, lambda v: v.astype(np.float64)), shape)
    return np.broadcast_to(result, shape)
