"""What is known of a node of a formula's graph whatever its operands are: its sign, its significant bits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache

from ..exact.enclosures import constant_value
from ..formula.expressions import ROUNDINGS, Expression

INPUT_BITS = 24  # significant bits of any operand: float32 has most


class Facts:
    """What holds for the nodes of graphs for all finite operands: signs, and the digits of exact products."""

    def __init__(self, positive: Iterable[str] = (), digits: Mapping[str, int] | None = None) -> None:
        self.positive = frozenset(positive)  # operands known to be at least 0
        self.digits = digits or {}  # of operands known to have fewer significant bits than float32's numbers
        self._signs: dict[int, int] = {}
        self._bits: dict[int, float] = {}

    def sign(self, node: Expression) -> int:
        """1: never negative, -1: never positive, 0: not known."""
        if id(node) not in self._signs:
            self._signs[id(node)] = self._sign(node)
        return self._signs[id(node)]

    def _sign(self, node: Expression) -> int:
        op, args = node.op, node.args
        if op == "constant":
            return 1 if node.value == "pi" or (isinstance(node.value, Fraction) and node.value >= 0) else -1
        if op == "symbol":
            return 1 if node.value in self.positive else 0
        if op in ("exp", "abs", "sqrt", "erfc"):
            return 1
        signs = [self.sign(a) for a in args if not a.is_condition]
        if op in ("log1p", "expm1", "tanh", "erf", "sign", *ROUNDINGS):
            return signs[0]
        if op == "neg":
            return -signs[0]
        if op in ("*", "/"):
            return 1 if op == "*" and args[0] is args[1] else signs[0] * signs[1]
        if op == "-":
            signs[1] = -signs[1]
        if op in ("max", "min"):
            wanted = 1 if op == "max" else -1
            if wanted in signs:
                return wanted
        return signs[0] if len(signs) == 2 and signs[0] == signs[1] else 0

    def bits(self, node: Expression) -> float:
        """How many significant bits a value has at most; infinity where it is not an exact product of operands."""
        if id(node) not in self._bits:
            self._bits[id(node)] = self._count(node)
        return self._bits[id(node)]

    def _count(self, node: Expression) -> float:
        if node.op == "symbol":
            return self.digits.get(str(node.value), INPUT_BITS)
        if node.op == "constant":
            return constant_bits(node.value)
        if node.op in ("neg", "abs", "min", "max", "where"):
            return max(self.bits(a) for a in node.args if not a.is_condition)
        if node.op == "*":
            return sum(map(self.bits, node.args))
        return math.inf


def constant_bits(value: Fraction | str | None) -> float:
    """Return how many significant bits a constant has; infinity if no binary format holds it."""
    if not isinstance(value, Fraction) or value.denominator & (value.denominator - 1):
        return math.inf
    numerator = abs(value.numerator)
    return max(1, numerator.bit_length() - ((numerator & -numerator).bit_length() - 1)) if numerator else 1


def is_power_of_two(node: Expression) -> bool:
    """Whether a node is a constant +-2^k: a product with it is exact."""
    value = node.value if node.op == "constant" else None
    return isinstance(value, Fraction) and value != 0 and constant_bits(value) == 1


@lru_cache(maxsize=4096)
def grid(node: Expression) -> float:
    """Return k if a graph's values, of operands that float32 holds, are multiples of 2^k; -inf if none is known."""
    if node.op == "symbol":
        return -149
    if node.is_constant:
        return math.frexp(constant_value(node))[1] - 53
    parts = [grid(a) for a in node.args if not a.is_condition]
    if node.op == "*":
        return sum(parts)
    return min(parts) if node.op in ("+", "-", "neg", "abs", "min", "max", "where") else -math.inf
