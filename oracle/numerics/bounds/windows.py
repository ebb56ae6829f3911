"""Bounds for fast loops: the magnitudes of operands at which float32 is safe, and slacks of few steps.

The rules know nothing of underflow and overflow. For operands of 16 bits between two powers of two, or 0, the exponents
that every step can have follow from the graph: where all are those of normal numbers, the value's error is what the
rules say. Of the bound itself a little may underflow, as long as it is nothing beside the value.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Container, Iterable, Iterator, Mapping
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

LOWEST, HIGHEST, DIGITS = -125, 126, 24  # exponents that steps keep to, one away from float32's ends; its digits
FAINT = -148  # the lowest exponent of a bound's steps: none becomes 0
EXPONENT = 80.0  # the largest argument of e^x whose value, and its inverse, keep to LOWEST and HIGHEST
ROUNDED = 2.0**-10  # of an exponent: far more than roundings move one
LOST = -34  # what a bound may lose is below 2^LOST of the value, which is far below its rounding
ARGUMENT = 700.0  # the same of float64's e^x
INFINITE = 2.0**1000  # a slack's number that stands for no bound: whatever it enters is in doubt
TOPS = (64.0, 32.0, 16.0, 12.0, 8.0, 6.0, 4.0)  # windows that are tried: of ordinary data
BOTTOMS = tuple(2.0**-k for k in (40, 32, 24, 20, 16, 12))


class Span(NamedTuple):
    """What the values of a step have in common unless they are 0: magnitudes from 2^least to 2^most. ``zero``: whether
    they may be 0; ``unit``: they are multiples of 2^unit; ``lost``: what underflow may have taken from them."""

    least: float
    most: float
    zero: bool
    unit: float
    lost: float = 0.0


@lru_cache(maxsize=1024)
def reaching(
    roots: tuple[Expression, ...], names: tuple[str, ...], numbers: tuple[tuple[str, float], ...] = ()
) -> float | None:
    """Return up to which magnitude of operands of some names every step of graphs is finite, and far from float32's
    end, and the argument of e^x is at most ARGUMENT; None where no such is known."""
    arguments = [abs(node.args[0]) for node in walk(*roots) if node.op == "exp"]
    for top in TOPS:
        ranges = within(top, names, numbers)
        if stays_inside(roots, ranges) and all(largest(argument, ranges) <= ARGUMENT for argument in arguments):
            return top
    return None


def within(top: float, names: tuple[str, ...], numbers: tuple[tuple[str, float], ...] = ()) -> Ranges:
    """Return the ranges of operands up to a magnitude, and of numbers."""
    return (*((name, (-top, top)) for name in names), *((name, (number, number)) for name, number in numbers))


@lru_cache(maxsize=1024)
def window(
    value: Expression,
    slack: Expression,
    formats: tuple[tuple[str, str], ...],
    numbers: tuple[tuple[str, float], ...] = (),
) -> tuple[float, float] | None:
    """Return (least, most): a value, and a bound of its error that is at least 2^-23 of it, can be evaluated in float32
    where every operand with a format is 0 or of a magnitude from ``least`` to ``most``. None where no such window is
    known. ``numbers``: operands whose value is known."""
    known = {name: number(each) for name, each in numbers}
    for least, most in tried():
        if sound(value, slack, known | {name: operand(fmt, least, most) for name, fmt in formats}):
            return least, most
    return None


def tried() -> Iterator[tuple[float, float]]:
    """Yield windows, (least, most), from large ones to small."""
    for most in TOPS:
        for least in BOTTOMS:
            yield least, most


def sound(value: Expression, slack: Expression, symbols: Mapping[str, Span]) -> bool:
    """Whether a value, and a bound of its error that is at least 2^-23 of it, can be evaluated in float32 for operands
    of some spans."""
    spans: dict[int, Span] = {}
    own = {id(node) for node in walk(value)}
    for node, span in _spans((value, slack), symbols, spans):
        if span is None or span.most > HIGHEST or span.least < (LOWEST if id(node) in own else FAINT):
            return False
        underflows = span.least < LOWEST and node.op in ("*", "/", "exp")
        spans[id(node)] = span._replace(lost=span.lost + 2.0**-149) if underflows else span
    return spans[id(slack)].lost <= math.ldexp(1.0, math.floor(spans[id(value)].least) + LOST)


def _spans(
    roots: tuple[Expression, ...], symbols: Mapping[str, Span], found: Mapping[int, Span]
) -> Iterator[tuple[Expression, Span | None]]:
    """The span of every step that is no condition, from those ``found`` before; None where it is not known."""
    facts = Facts()
    for node in walk(*roots):
        if node.is_condition:
            continue
        if node.op == "symbol":
            yield node, symbols[str(node.value)]
        elif node.is_constant:
            value = constant_value(node)
            yield node, Span(0.0, 0.0, False, 0.0) if value >= INFINITE else number(value)
        else:
            yield node, _step(node, [found[id(a)] for a in node.args if not a.is_condition], facts)


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
    """Whether float32 holds numbers, all of them finite."""
    with np.errstate(over="ignore"):
        return all(math.isfinite(each) and float(np.float32(each)) == each for each in numbers)


def _unit(least: float) -> float:
    """Of what float32 numbers of at least a size are multiples."""
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
    """Terms of two signs cancel only if they are within a factor of 2: the rest is then a multiple of the last place of
    either. Where a product is not rounded before it is added, the rest may be smaller; the rounding, which is counted,
    is far above that."""
    one, other = (facts.sign(arg) for arg in node.args)
    unit, larger, lost = min(a.unit, b.unit), max(a.least, b.least), a.lost + b.lost
    alone = [left.least for gone, left in ((a, b), (b, a)) if gone.zero]
    most = math.log2(2.0**a.most + 2.0**b.most) + ROUNDED
    if one * other * (1 if node.op == "+" else -1) > 0:
        return Span(min([larger, *alone]) - ROUNDED, most, a.zero and b.zero, unit, lost)
    least = max(unit, min([_unit(larger - 1), *alone]))
    return Span(least, most, True, max(unit, _unit(least)), lost)


# Slacks of loops: a bound that is at least another and takes fewer steps to evaluate.

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
