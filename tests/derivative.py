"""The derivative of a forward operator's formula, taken from its graph, and its values in MPFR."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from gmpy2 import mpq

from oracle.numerics.exact import enclosures
from oracle.numerics.exact.rationals import numbers, rational
from oracle.numerics.expressions import ONE, PI, ZERO, Expression, exp, sign, sqrt, tanh, where
from oracle.numerics.orders.formula import is_elementwise
from oracle.numerics.orders.kernel_orders import graphs_with
from oracle.numerics.traversal import is_rational, walk
from oracle.operators.answers.registry import operator_named
from oracle.operators.definition.operands import formula_operands

BITS = 600  # the terms of a derivative may cancel


@cache
def derivative(root: Expression, name: str) -> Expression:
    """Return the derivative of a graph by an operand. At a branch point it follows the branch that is taken. The
    derivative of an absolute value at 0 is 0."""
    made: dict[Expression, Expression] = {}
    for node in walk(root):
        if not node.is_condition:
            made[node] = _of(node, name, made)
    return made[root]


def _of(node: Expression, name: str, made: dict[Expression, Expression]) -> Expression:
    if not node.args:
        return ONE if node.op == "symbol" and node.value == name else ZERO
    inner = [made.get(a, ZERO) for a in node.args]
    if all(each is ZERO for each in inner):
        return ZERO
    a, b = node.args[0], node.args[-1]
    da, db = inner[0], inner[-1]
    if node.op == "where":
        return where(a, inner[1], inner[2])
    if node.op == "max":
        return where(b < a, da, db)
    if node.op == "min":
        return where(a < b, da, db)
    if node.op in ("+", "-"):
        return da + db if node.op == "+" else da - db
    if node.op == "*":
        return _times(da, b) + _times(db, a)
    if node.op == "/":
        return _times(da, 1 / b) - _times(db, a / (b * b))
    return _times(da, _SLOPES[node.op](a, node))


def _times(slope: Expression, factor: Expression) -> Expression:
    """Return slope * factor, zero where the slope is the constant 0: 0 * inf is no part of a derivative."""
    return ZERO if slope is ZERO else slope * factor


# By function: its slope as a function of its operand and its value.
_SLOPES: dict[str, Any] = {
    "neg": lambda a, y: -ONE,
    "abs": lambda a, y: sign(a),
    "sign": lambda a, y: ZERO,
    "sqrt": lambda a, y: 1 / (2 * y),
    "exp": lambda a, y: y,
    "expm1": lambda a, y: exp(a),
    "log": lambda a, y: 1 / a,
    "log1p": lambda a, y: 1 / (1 + a),
    "tanh": lambda a, y: (1 - tanh(a)) * (1 + tanh(a)),
    "erf": lambda a, y: 2 / sqrt(PI) * exp(-a * a),
    "erfc": lambda a, y: -2 / sqrt(PI) * exp(-a * a),
}


def slopes(slug: str, by: str, *, part: str = "", **given: Any) -> list[mpq]:
    """Return the derivatives of an elementwise forward operator by one of its inputs, element by element, without
    reduction. The relative error is below 2^-500. ``given``: arrays of one shape, and attributes, by aclnn name.
    ``part``: the symbol of the part of the input by which it differentiates."""
    op = operator_named(slug)
    assert is_elementwise(op.computes)
    operands = formula_operands(op, given)
    graph = graphs_with(op.computes, frozenset((n, v) for n, v in operands.items() if isinstance(v, int))).value
    root = derivative(graph, part or op.by_name[by].symbol)
    columns = {n: np.asarray(v, np.float64).ravel().tolist() for n, v in operands.items() if isinstance(v, np.ndarray)}
    fixed = {n: float(v) for n, v in operands.items() if n not in columns}
    rows = (dict(zip(columns, row, strict=True)) | fixed for row in zip(*columns.values(), strict=True))
    return [_value(root, row) for row in rows]


def _value(root: Expression, operands: dict[str, float]) -> mpq:
    if is_rational(root):
        return mpq(rational(root, numbers(operands)))
    result = enclosures.enclose(root, operands, BITS)
    low, high = mpq(result.low), mpq(result.high)
    assert high - low <= abs(low) * mpq(1, 2**500), (root, operands)
    return low
