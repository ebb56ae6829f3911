"""Between which magnitudes of operands the rules of errors hold for a formula that is evaluated in float32.

The rules know nothing of underflow and overflow. For operands of 16 bits between two powers of two, or 0, the exponents
that every step can have follow from the graph: where all are those of normal numbers, the value's error is what the
rules say. Of the bound itself a little may underflow, as long as it is nothing beside the value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ...model.dtypes import FORMATS
from ..exact.enclosures import constant_value
from ..formula.expressions import Expression
from ..formula.traversal import walk
from .ranges import Ranges, largest, stays_inside
from .signs_and_digits import Facts

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
