"""Slacks of loops: a bound that is at least another and takes fewer steps to evaluate."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Container
from fractions import Fraction

from ..exact.enclosures import constant_value
from ..formula.expressions import ONE, Expression, constant, operation, where
from ..formula.traversal import names_of, walk
from .losses import over
from .ranges import Ranges, largest
from .signs_and_digits import Facts

SMALL = 2.0**-40  # a relative error that may stand for every smaller one of a range


@functools.cache
def cheap(slack: Expression, value: Expression, ranges: Ranges = ()) -> Expression:
    """What is at least a slack and takes fewer steps: e^x - 1 of an error x, which only the C library has, as x + x^2
    up to x = 1, or as one number where that is small in all ``ranges`` of operands; of the smaller of two bounds the
    first; instead of a bound divided by 1 + a the bound, where a is never negative; and one number in a term instead of
    several. Only what the slack grows with is replaced."""
    known, facts = {id(node) for node in walk(value)}, Facts()

    def larger(node: Expression) -> Expression:
        op, args = node.op, node.args
        if id(node) in known or op not in GROWING:
            return node
        if op == "expm1":
            x = larger(args[0])
            most = largest(x, ranges) if set(names_of(x)) <= dict(ranges).keys() else math.inf
            if most <= SMALL:
                return constant(most * (1 + 2 * most))
            return where(x <= ONE, x * (ONE + x), constant(2.0**1023))
        if op == "min":
            return larger(args[0])
        if op == "/":
            below = args[1]
            skipped = below.op == "+" and below.args[0] is ONE and facts.sign(below.args[1]) > 0
            return larger(args[0]) if skipped else over(larger(args[0]), below)
        if op == "where":
            return where(args[0], larger(args[1]), larger(args[2]))
        return operation(op, *map(larger, args))

    return gathered(larger(slack), known)


GROWING = ("+", "*", "/", "min", "max", "where", "expm1")  # with every term of a bound, a quotient with its first


def gathered(node: Expression, kept: Container[int], factor: Fraction = Fraction(1)) -> Expression:
    """A number times a graph, multiplied into the numbers that are there, and terms that differ in their number alone
    made one: 3 (2 x + 5 (7 y)) + x is 7 x + 105 y. ``kept``: the nodes, by id, that are computed anyway."""
    if node.is_constant:
        return constant(Fraction(constant_value(node)) * factor)
    if id(node) in kept:
        return constant(factor) * node
    if node.op == "*":
        a, b = node.args
        if a.is_constant or b.is_constant:
            number, rest = (a, b) if a.is_constant else (b, a)
            return gathered(rest, kept, Fraction(constant_value(number)) * factor)
        first, second = (factor, Fraction(1)) if _has_number(a) else (Fraction(1), factor)
        return gathered(a, kept, first) * gathered(b, kept, second)
    if node.op == "+" and (factor == 1 or _has_number(node)):
        return _added([gathered(each, kept, factor) for each in node.args])
    return constant(factor) * node


def _added(graphs: list[Expression]) -> Expression:
    """The sum of graphs, each number times the same graph once."""
    numbers: dict[Expression, Fraction] = {}
    while graphs:
        node = graphs.pop(0)
        if node.op == "+":
            graphs[:0] = node.args
        else:
            number, rest = _numbered(node)
            numbers[rest] = numbers.get(rest, Fraction(0)) + number
    terms = [constant(number) if rest is ONE else _times(number, rest) for rest, number in numbers.items()]
    return functools.reduce(operator.add, terms)


def _numbered(node: Expression) -> tuple[Fraction, Expression]:
    """A term as a number times a graph."""
    if node.is_constant:
        return Fraction(constant_value(node)), ONE
    if node.op == "*" and node.args[0].is_constant:
        return Fraction(constant_value(node.args[0])), node.args[1]
    return Fraction(1), node


def _times(number: Fraction, node: Expression) -> Expression:
    return node if number == 1 else constant(number) * node


def _has_number(node: Expression) -> bool:
    """Whether every term of a graph has a number that another is multiplied into."""
    if node.op in ("+", "*"):
        return (all if node.op == "+" else any)(map(_has_number, node.args))
    return node.is_constant
