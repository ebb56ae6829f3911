"""Bounds for fast loops: the magnitudes of operands at which float32 is safe, and slacks with few steps.

The rules of :mod:`.losses` ignore underflow and overflow. Take 16-bit operands that are 0 or between two powers of two.
Then the possible exponents of every step follow from the graph. If all are exponents of normal numbers, the value's
error is the error of the rules. A small part of the bound itself may underflow, if it is negligible next to the value.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Container, Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ...model.dtypes import FORMATS
from ..exact.enclosures import constant_value
from ..expressions import ONE, Expression, constant, operation, where
from ..traversal import names_of, walk
from .building import over
from .exact_steps import Facts
from .ranges import Ranges, largest, stays_inside

LOWEST, HIGHEST, DIGITS = -125, 126, 24  # allowed exponents of steps, one away from float32's ends; its digits
FAINT = -148  # the lowest exponent of a bound's steps: none becomes 0
EXPONENT = 80.0  # the largest argument of e^x for which the value and its inverse stay between LOWEST and HIGHEST
ROUNDED = 2.0**-10  # margin of an exponent: far more than roundings change it
LOST = -34  # the loss of a bound must be below 2^LOST of the value, far below the value's rounding
ARGUMENT = 700.0  # the same for e^x in float64
INFINITE = 2.0**1000  # a number in a slack that means "no bound": any result of it is in doubt
TOPS = (64.0, 32.0, 16.0, 12.0, 8.0, 6.0, 4.0)  # windows to try: ordinary data
BOTTOMS = tuple(2.0**-k for k in (40, 32, 24, 20, 16, 12))
WINDOWS = [(least, most) for most in TOPS for least in BOTTOMS]  # from large to small


class Span(NamedTuple):
    """Common properties of the values of a step, unless they are 0: magnitudes from 2^least to 2^most. ``zero``:
    whether they can be 0; ``unit``: they are multiples of 2^unit; ``lost``: their possible loss by underflow."""

    least: float
    most: float
    zero: bool
    unit: float
    lost: float = 0.0


@lru_cache(maxsize=1024)
def largest_safe_magnitude(
    roots: tuple[Expression, ...], names: tuple[str, ...], numbers: tuple[tuple[str, float], ...] = ()
) -> float | None:
    """Return the largest magnitude of the named operands with safe steps; None if no such magnitude is known. Safe:
    every step is finite and far from float32's end, and the argument of e^x is at most ARGUMENT."""
    arguments = [abs(node.args[0]) for node in walk(*roots) if node.op == "exp"]
    for top in TOPS:
        ranges = within(top, names, numbers)
        if stays_inside(roots, ranges) and all(largest(argument, ranges) <= ARGUMENT for argument in arguments):
            return top
    return None


def within(top: float, names: tuple[str, ...], numbers: tuple[tuple[str, float], ...] = ()) -> Ranges:
    """Return the ranges of operands up to a magnitude, and of given numbers."""
    return (*((name, (-top, top)) for name in names), *((name, (number, number)) for name, number in numbers))


@lru_cache(maxsize=1024)
def window(
    value: Expression,
    slack: Expression,
    formats: tuple[tuple[str, str], ...],
    numbers: tuple[tuple[str, float], ...] = (),
) -> tuple[float, float] | None:
    """Return (least, most), or None if no such window is known. Float32 can then evaluate a value and a bound of its
    error (at least 2^-23 of the value). It can do so if each operand with a format is 0 or has a magnitude from
    ``least`` to ``most``. ``numbers``: operands with known values."""
    known = {name: number(each) for name, each in numbers}
    for least, most in WINDOWS:
        if is_safe_in_float32(value, slack, known | {name: operand(fmt, least, most) for name, fmt in formats}):
            return least, most
    return None


def is_safe_in_float32(value: Expression, slack: Expression, symbols: Mapping[str, Span]) -> bool:
    """Return whether float32 can evaluate a value, and a bound of its error (at least 2^-23 of the value), for operands
    with these spans."""
    spans: dict[int, Span] = {}
    facts, own = Facts(), {id(node) for node in walk(value)}
    for node in walk(value, slack):
        if node.is_condition:
            continue
        span: Span | None
        if node.op == "symbol":
            span = symbols[str(node.value)]
        elif node.is_constant:
            known = constant_value(node)
            span = Span(0.0, 0.0, False, 0.0) if known >= INFINITE else number(known)
        else:
            span = _step(node, [spans[id(a)] for a in node.args if not a.is_condition], facts)
        if span is None or span.most > HIGHEST or span.least < (LOWEST if id(node) in own else FAINT):
            return False
        underflows = span.least < LOWEST and node.op in ("*", "/", "exp")
        spans[id(node)] = span._replace(lost=span.lost + 2.0**-149) if underflows else span
    return spans[id(slack)].lost <= math.ldexp(1.0, math.floor(spans[id(value)].least) + LOST)


def operand(name: str, least: float, most: float) -> Span:
    """Return the span of an operand of a format between two magnitudes."""
    fmt = FORMATS[name]
    return Span(math.log2(least), math.log2(most), True, max(math.log2(least), fmt.emin) - fmt.mant)


def spanned(least: float, most: float, *, zero: bool) -> Span:
    """Return the span of float32 numbers from 2^least to 2^most."""
    return Span(least, most, zero, _unit(least))


def number(value: float) -> Span:
    """Return the span of a finite number."""
    size = math.log2(abs(value)) if value else 0.0
    return Span(size, size, value == 0, _unit(size))


def are_single(numbers: Iterable[float]) -> bool:
    """Return whether all numbers are finite and representable in float32."""
    with np.errstate(over="ignore"):
        return all(math.isfinite(each) and float(np.float32(each)) == each for each in numbers)


def _unit(least: float) -> float:
    """Return k if float32 numbers of at least 2^least are multiples of 2^k."""
    return math.floor(least) - (DIGITS - 1)


def _step(node: Expression, args: list[Span], facts: Facts) -> Span | None:
    op, first = node.op, args[0]
    if op in ("neg", "abs"):
        return first
    if op == "sign":
        return Span(0.0, 0.0, True, 0.0)
    if op in ("+", "-"):
        return _sum(node, first, args[1], facts)
    if op == "*":
        return _product(first, args[1])
    if op == "/":
        other = args[1]
        known = not (other.zero or other.lost)
        return _product(first, other._replace(least=-other.most, most=-other.least)) if known else None
    if op == "exp":
        reach = 2.0**first.most * math.log2(math.e) + ROUNDED
        known = 2.0**first.most <= EXPONENT and not first.lost
        return Span(-reach, reach, False, _unit(-reach)) if known else None
    if op in ("where", "min", "max"):
        return _choice(node, args)
    return None


def _product(a: Span, b: Span) -> Span:
    least = a.least + b.least - ROUNDED
    lost = a.lost * 2.0**b.most + b.lost * 2.0**a.most
    return Span(least, a.most + b.most + ROUNDED, a.zero or b.zero, _unit(least), lost)


def _choice(node: Expression, args: list[Span]) -> Span:
    least, zero = min(a.least for a in args), any(a.zero for a in args)
    floors = [constant_value(a) for a in node.args if a.is_constant and constant_value(a) > 0]
    if node.op == "max" and floors:  # it is never less
        least, zero = math.log2(floors[0]), False
    return Span(least, max(a.most for a in args), zero, min(a.unit for a in args), max(a.lost for a in args))


def _sum(node: Expression, a: Span, b: Span, facts: Facts) -> Span:
    """Return the span of a sum. Terms of two signs cancel only if they are within a factor of 2: the rest is then a
    multiple of the last place of either. The rest can be smaller if a product is not rounded before the addition. The
    rounding, which the bound includes, is far above that."""
    one, other = (facts.sign(arg) for arg in node.args)
    unit, larger, lost = min(a.unit, b.unit), max(a.least, b.least), a.lost + b.lost
    alone = [left.least for gone, left in ((a, b), (b, a)) if gone.zero]
    most = math.log2(2.0**a.most + 2.0**b.most) + ROUNDED
    if one * other * (1 if node.op == "+" else -1) > 0:
        return Span(min([larger, *alone]) - ROUNDED, most, a.zero and b.zero, unit, lost)
    least = max(unit, min([_unit(larger - 1), *alone]))
    return Span(least, most, True, max(unit, _unit(least)), lost)


# Slacks of loops: a bound that is at least another bound and needs fewer steps.

SMALL = 2.0**-40  # a relative error that can replace every smaller one of a range


@functools.cache
def cheap(slack: Expression, value: Expression, ranges: Ranges = ()) -> Expression:
    """Return an upper bound of a slack with fewer steps. e^x - 1 of an error x needs the C library. It becomes x + x^2
    up to x = 1, or one number if that is small in all ``ranges`` of operands. The smaller of two bounds becomes the
    first. A bound divided by 1 + a becomes the bound, if a is never negative. Several numbers in a term become one.
    Only parts that the slack grows with are replaced."""
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


GROWING = ("+", "*", "/", "min", "max", "where", "expm1")  # with every term of a bound, a quotient only with its first


def gathered(node: Expression, kept: Container[int], factor: Fraction = Fraction(1)) -> Expression:
    """Return ``factor`` times a graph. The factor is multiplied into existing numbers. Terms that differ only in their
    number become one: 3 (2 x + 5 (7 y)) + x is 7 x + 105 y. ``kept``: the nodes, by id, that are computed anyway."""
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
    """Return the sum of graphs; multiples of the same graph become one term."""
    numbers: dict[Expression, Fraction] = {}
    while graphs:
        node = graphs.pop(0)
        if node.op == "+":
            graphs[:0] = node.args
        else:
            number, rest = _numbered(node)
            numbers[rest] = numbers.get(rest, Fraction(0)) + number
    terms = [constant(number) if rest is ONE else constant(number) * rest for rest, number in numbers.items()]
    return functools.reduce(operator.add, terms)


def _numbered(node: Expression) -> tuple[Fraction, Expression]:
    """Return a term as a number times a graph."""
    if node.is_constant:
        return Fraction(constant_value(node)), ONE
    if node.op == "*" and node.args[0].is_constant:
        return Fraction(constant_value(node.args[0])), node.args[1]
    return Fraction(1), node


def _has_number(node: Expression) -> bool:
    """Return whether every term of a graph has a number that can absorb a factor."""
    if node.op in ("+", "*"):
        return (all if node.op == "+" else any)(map(_has_number, node.args))
    return node.is_constant
