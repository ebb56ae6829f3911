"""Known properties of a formula's steps: signs, digits, and the cases in which a format represents all results exactly.

For float64 this is known for operands of narrow types without their values (:func:`exact_magnitude_window`). Each
operand is an integer of few digits times a power of two. The digits that a step needs follow from the number and the
positions of its operands' digits. For the type of a device, the steps are checked on some elements
(:func:`is_exact_in`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import cache, lru_cache, reduce
from operator import and_
from typing import Any, NamedTuple

import numpy as np

from ...model.call import Array
from ...model.dtypes import FORMATS, FloatFormat
from ..exact.enclosures import constant_value
from ..expressions import ROUNDINGS, ZERO, Expression
from ..floats.rounding import FLOAT64, quantize
from ..programs import UFUNCS
from ..traversal import is_irrational_step, names_of, walk

INPUT_BITS = 24  # significant bits of any operand: float32 has most


class Facts:
    """Properties of nodes for all finite operands: signs, and the digits of exact products."""

    def __init__(self, positive: Iterable[str] = (), digits: Mapping[str, int] | None = None) -> None:
        self.positive = frozenset(positive)  # operands known to be at least 0
        self.digits = digits or {}  # of operands that are known to have fewer significant bits than float32's numbers
        self.sign, self.bits = cache(self._sign), cache(self._bits)  # of a node

    def _sign(self, node: Expression) -> int:
        """Return 1: never negative, -1: never positive, 0: unknown."""
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

    def _bits(self, node: Expression) -> float:
        """Return an upper bound of a value's significant bits; infinity if it is not an exact product of operands."""
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
    """Return the number of significant bits of a constant; infinity if no binary format represents it."""
    if not isinstance(value, Fraction) or value.denominator & (value.denominator - 1):
        return math.inf
    numerator = abs(value.numerator)
    return max(1, numerator.bit_length() - ((numerator & -numerator).bit_length() - 1)) if numerator else 1


def is_power_of_two(node: Expression) -> bool:
    """Return whether a node is a constant +-2^k: a product with it is exact."""
    value = node.value if node.op == "constant" else None
    return isinstance(value, Fraction) and value != 0 and constant_bits(value) == 1


def rest_of_sum(a: Expression, total: Expression) -> Expression | None:
    """Return c of a total a + c; None for another node."""
    if total.op != "+":
        return None
    one, other = total.args
    return other if one is a else one if other is a else None


def are_indices(condition: Expression) -> bool:
    """Return whether an operand is compared with a whole number for equality, like a class index: an exact integer."""
    a, b = condition.args
    known = next((side.value for side in (a, b) if side.op == "constant" and isinstance(side.value, Fraction)), None)
    whole = known is not None and known.denominator == 1
    return condition.op in ("==", "!=") and whole and "symbol" in (a.op, b.op)


def is_clamped(node: Expression) -> bool:
    """Return whether a node is 0 for half of its operands, like min(x, 0) and products with it."""
    if node.op in ("neg", "*"):
        return any(map(is_clamped, node.args))
    return node.op in ("min", "max") and any(a is ZERO for a in node.args)


@lru_cache(maxsize=4096)
def grid(node: Expression) -> float:
    """Return k if a graph's values, for float32 operands, are multiples of 2^k; -inf if no k is known."""
    if node.op == "symbol":
        return -149
    if node.is_constant:
        return math.frexp(constant_value(node))[1] - 53
    parts = [grid(a) for a in node.args if not a.is_condition]
    if node.op == "*":
        return sum(parts)
    return min(parts) if node.op in ("+", "-", "neg", "abs", "min", "max", "where") else -math.inf


# Cases in which a format represents the results of all steps of a formula: no step is rounded, the value is exact.

LARGEST = 2  # a sum's operands are checked up to 2^2: probabilities, slopes, and their differences
LOWEST, HIGHEST = -1074, 1023  # the exponents of float64's last and first digit


class Span(NamedTuple):
    """Common properties of numbers: at most ``digits`` digits, multiples of 2^unit, magnitudes of at most 2^top."""

    digits: int
    unit: int
    top: int

    @property
    def is_representable(self) -> bool:
        """Return whether float64 represents all such numbers."""
        few = min(self.digits, self.top - self.unit) <= FLOAT64.digits
        return few and self.unit >= LOWEST and self.top <= HIGHEST


@lru_cache(maxsize=1024)
def exact_magnitude_window(value: Expression, formats: tuple[tuple[str, str], ...]) -> dict[str, int] | None:
    """Return the magnitudes of operands for which no step of a value is rounded. For the symbols of the result they go
    from 2^(the result's number) to 2^LARGEST; other symbols can have any magnitude. None if no such range is known.

    ``formats``: the formats of the operands that have one, by symbol.
    """
    known = dict(formats)
    added = {name for node in walk(value) if node.op in ("+", "-") for name in names_of(node)}
    for least in range(-FLOAT64.digits, LARGEST):
        window = dict.fromkeys(sorted(added), least)
        if known.keys() >= set(names_of(value)) and _is_exact(value, known, window):
            return window
    return None


def _is_exact(value: Expression, formats: Mapping[str, str], window: Mapping[str, int]) -> bool:
    spans: dict[int, Span] = {}
    for node in walk(value):
        if node.is_condition:
            continue
        span = _span(node, [spans[id(a)] for a in node.args if not a.is_condition], formats, window)
        if span is None or not span.is_representable:
            return False
        spans[id(node)] = span
    return True


def _span(node: Expression, args: list[Span], formats: Mapping[str, str], window: Mapping[str, int]) -> Span | None:
    """Return the span of a node's values, from the spans of its operands; None if it is unknown."""
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
    """Return for each element whether every step of some graphs is exact in a format, far from the ends of float32's
    exponents. Only steps on the branches that the conditions choose matter, and the conditions must compare exact
    numbers. Irrational steps are never exact.

    ``given``: the operands, float64 vectors of one length or numbers. The format must represent the operands of a step.
    The step is exact if the format represents float64's result and that result is exact. For a product it always is:
    float64 has enough digits. For a sum, the result minus either operand must give the other. For a quotient, the
    result times the divisor must give the dividend.
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
    held = iter(_are_representable(results, fmt))
    for node in nodes:
        args = [exact[id(a)] for a in node.args]
        if node.op == "where":
            args = [args[0], np.where(values[id(node.args[0])], args[1], args[2])]
        if not node.is_condition:
            args += [exact[id(node)], next(held)]
        exact[id(node)] = reduce(and_, args, np.True_)
    return np.asarray(reduce(and_, (exact[id(root)] for root in every), np.True_))


def _step(node: Expression, args: list[Any], given: Mapping[str, Any], row: Array) -> Any:
    """Compute a step in float64. Return where the result is exact, if a format of 24 digits represents it."""
    if node.op == "symbol":
        row[...] = given[str(node.value)]
    elif node.op == "constant":
        assert isinstance(node.value, Fraction)  # the other constants are irrational
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


def _are_representable(values: Array, fmt: FloatFormat) -> Array:
    """Return whether a format represents numbers that are zero or far from the ends of float32's exponents."""
    far = 2.0**26 if fmt is FORMATS["float32"] else 1.0
    size = np.abs(values)
    inside = (size >= fmt.tiny * far) & (size <= fmt.max / far)
    inside |= size == 0
    inside &= quantize(values, fmt) == values
    return np.asarray(inside)
