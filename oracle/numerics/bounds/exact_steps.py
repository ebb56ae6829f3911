"""Where a format holds the results of all steps of a formula: no step is then rounded, and the value is exact.

For float64 that is known of operands of narrow types before any is looked at (:func:`held_from`): each is an integer of
few digits times a power of two, so that the digits a step needs follow from how many its operands have, and where they
begin and end. For what a device computes in, the steps are looked at on some elements (:func:`is_exact_in`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ...model.call import Array
from ...model.dtypes import FORMATS, FloatFormat
from ..evaluate.programs import UFUNCS
from ..floats.arithmetic import FLOAT64
from ..floats.rounding import quantize
from ..formula.expressions import Expression
from ..formula.traversal import is_irrational_step, names_of, walk
from .signs_and_digits import constant_bits

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
        exact[id(node)] = _all(args)
    return np.asarray(_all([exact[id(root)] for root in every]))


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


def _all(conditions: list[Any]) -> Any:
    found = np.True_
    for condition in conditions:
        found = found & condition
    return found
