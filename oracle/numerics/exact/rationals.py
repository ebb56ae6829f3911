"""Rational graphs at rational operands: their exact values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, TypeAlias

from gmpy2 import mpfr, mpq

from ..formula.expressions import Expression

Number: TypeAlias = mpq | mpfr  # mpfr: infinite or NaN


class Undefined(ArithmeticError):
    """The formula has no real value: a division by zero, a logarithm of a negative number."""


def numbers(operands: Mapping[str, float]) -> dict[str, Number]:
    """Return operands as rationals, infinite and NaN ones as what compares like them."""
    return {name: mpq(value) if math.isfinite(value) else mpfr(value) for name, value in operands.items()}


_RATIONAL: dict[str, Callable[..., Number | bool]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "neg": lambda a: -a,
    "abs": abs,
    "sign": lambda a: mpq((a > 0) - (a < 0)),
    "min": min,
    "max": max,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "not": lambda a: not a,
}


def rational(root: Expression, operands: Mapping[str, Number]) -> Any:
    """Return the exact value of a rational graph: a Number, or of a condition whether it holds. Raises Undefined for a
    division by zero."""
    values: dict[int, Number | bool] = {}

    def value(node: Expression) -> Any:
        """Only the branch that is chosen is looked at: the other one may divide by zero."""
        if id(node) not in values:
            values[id(node)] = _value(node)
        return values[id(node)]

    def _value(node: Expression) -> Any:
        if node.op == "constant":
            assert isinstance(node.value, Fraction)
            return mpq(node.value.numerator, node.value.denominator)
        if node.op == "symbol":
            return operands[str(node.value)]
        if node.op == "where":
            return value(node.args[1] if value(node.args[0]) else node.args[2])
        args = [value(a) for a in node.args]
        if node.op == "/":
            if not args[1]:
                raise Undefined(f"{node} divides by zero")
            return args[0] / args[1]
        return _RATIONAL[node.op](*args)

    return value(root)
