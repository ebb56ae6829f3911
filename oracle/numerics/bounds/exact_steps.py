"""What is known of the steps of a formula: their signs and digits, and where a format holds all results exactly.

For float64 that is known of operands of narrow types before any is looked at (:func:`held_from`): each is an integer of
few digits times a power of two, so that the digits a step needs follow from how many its operands have, and where they
begin and end. For what a device computes in, the steps are looked at on some elements (:func:`is_exact_in`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache, reduce
from operator import and_
from typing import Any, NamedTuple

import numpy as np

from ...model.call import Array
from ...model.dtypes import FORMATS, FloatFormat
from ..exact.enclosures import constant_value
from ..expressions import ROUNDINGS, Expression
from ..floats.rounding import FLOAT64, quantize
from ..programs import UFUNCS
from ..traversal import is_irrational_step, names_of, walk

# What is known of a node of a formula's graph whatever its operands are: its sign, its significant bits.

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


# Where a format holds the results of all steps of a formula: no step is then rounded, and the value is exact.

LARGEST = 2  # a sum's operands are looked at up to 2^2: probabilities, slopes, differences of such
LOWEST, HIGHEST = -1074, 1023  # the exponents of float64's last and first digit


class Span(NamedTuple):
    """What numbers have in common: at most so many digits, all of them multiples of 2^unit, none above 2^top."""

    digits: int
    unit: int
    top: int

    @property
    def is_held(self) -> bool:
        """Whether float64 holds all such numbers."""
        few = min(self.digits, self.top - self.unit) <= FLOAT64.digits
        return few and self.unit >= LOWEST and self.top <= HIGHEST


@lru_cache(maxsize=1024)
def held_from(value: Expression, formats: tuple[tuple[str, str], ...]) -> dict[str, int] | None:
    """Return for which magnitudes of operands no step of a value is rounded: from 2^(what this gives by symbol) to
    2^LARGEST, and for others all. None where it gives no such.

    ``formats``: of the operands that have one, by symbol.
    """
    known = dict(formats)
    added = {name for node in walk(value) if node.op in ("+", "-") for name in names_of(node)}
    for least in range(-FLOAT64.digits, LARGEST):
        window = dict.fromkeys(sorted(added), least)
        if known.keys() >= set(names_of(value)) and _is_held(value, known, window):
            return window
    return None


def _is_held(value: Expression, formats: Mapping[str, str], window: Mapping[str, int]) -> bool:
    spans: dict[int, Span] = {}
    for node in walk(value):
        if node.is_condition:
            continue
        span = _span(node, [spans[id(a)] for a in node.args if not a.is_condition], formats, window)
        if span is None or not span.is_held:
            return False
        spans[id(node)] = span
    return True


def _span(node: Expression, args: list[Span], formats: Mapping[str, str], window: Mapping[str, int]) -> Span | None:
    """The span of a node's values, from those of its operands; None where it is not known."""
    if node.op == "symbol":
        name = str(node.value)
        fmt = FORMATS[formats[name]]
        if name in window:
            return Span(fmt.mant + 1, max(window[name], fmt.emin) - fmt.mant, LARGEST)
        return Span(fmt.mant + 1, fmt.emin - fmt.mant, math.frexp(fmt.max)[1])
    if node.op == "constant" and isinstance(node.value, Fraction) and constant_bits(node.value) < math.inf:
        size, down = abs(node.value.numerator), node.value.denominator.bit_length() - 1
        digits = int(constant_bits(node.value))
        return Span(digits, size.bit_length() - down - digits, size.bit_length() - down)
    if node.op in ("neg", "abs", "where", "min", "max"):
        return Span(max(a.digits for a in args), min(a.unit for a in args), max(a.top for a in args))
    if node.op == "*":
        one, other = args
        return Span(one.digits + other.digits, one.unit + other.unit, one.top + other.top)
    if node.op in ("+", "-"):
        unit, top = min(a.unit for a in args), max(a.top for a in args) + 1
        return Span(top - unit, unit, top)
    return None


def is_exact_in(roots: Iterable[Expression], given: Mapping[str, Any], fmt: FloatFormat) -> Array:
    """Whether every step of some graphs is exact in a format, far from the ends of float32's exponents: every step on
    the way that the conditions take, which themselves compare exact numbers. What is irrational is never exact.

    ``given``: the operands, float64 vectors of one length or numbers. A step whose operands the format holds is exact
    where it holds the result that float64 gives, and float64 gives the exact one: of a product always (of two such
    numbers it has the digits), of a sum where taking either operand away leaves the other, of a quotient where the
    product with the divisor is what was divided.
    """
    every = list(roots)
    nodes = [node for node in walk(*every) if not is_irrational_step(node)]
    shape = np.broadcast_shapes(*map(np.shape, given.values()))
    results = np.empty((sum(not node.is_condition for node in nodes), *shape))
    values: dict[int, Any] = {}
    exact: dict[int, Any] = {id(node): np.False_ for node in walk(*every) if is_irrational_step(node)}
    values.update(dict.fromkeys(exact, 0.0))
    rows = iter(results)
    for node in nodes:
        args = [values[id(a)] for a in node.args]
        if node.is_condition:
            values[id(node)] = UFUNCS[node.op](*args)
        else:
            row = values[id(node)] = next(rows)
            exact[id(node)] = _step(node, args, given, row)
    held = iter(_are_held(results, fmt))
    for node in nodes:
        args = [exact[id(a)] for a in node.args]
        if node.op == "where":
            args = [args[0], np.where(values[id(node.args[0])], args[1], args[2])]
        if not node.is_condition:
            args += [exact[id(node)], next(held)]
        exact[id(node)] = reduce(and_, args, np.True_)
    return np.asarray(reduce(and_, (exact[id(root)] for root in every), np.True_))


def _step(node: Expression, args: list[Any], given: Mapping[str, Any], row: Array) -> Any:
    """Compute a step in float64; return where that is exact if a format of 24 digits holds what it gives."""
    if node.op == "symbol":
        row[...] = given[str(node.value)]
    elif node.op == "constant":
        assert isinstance(node.value, Fraction)  # the others are irrational
        row[...] = float(node.value)
        return np.bool_(Fraction(float(node.value)) == node.value)
    elif node.op == "where":
        np.copyto(row, np.where(*args))
    else:
        UFUNCS[node.op](*args, out=row)
    if node.op == "+":
        return (row - args[0] == args[1]) & (row - args[1] == args[0])
    if node.op == "-":
        return (args[0] - row == args[1]) & (row + args[1] == args[0])
    if node.op == "/":
        return row * args[1] == args[0]
    return np.True_


def _are_held(values: Array, fmt: FloatFormat) -> Array:
    """Whether a format holds numbers, which are zero or far from the ends of float32's exponents."""
    far = 2.0**26 if fmt is FORMATS["float32"] else 1.0
    size = np.abs(values)
    inside = (size >= fmt.tiny * far) & (size <= fmt.max / far)
    inside |= size == 0
    inside &= quantize(values, fmt) == values
    return np.asarray(inside)
