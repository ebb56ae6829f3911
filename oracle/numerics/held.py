"""Where float64 holds every step of a formula: its value is then exact, and what looks like a tie is one.

An operand of a narrow type is an integer of few digits times a power of two. What a step needs follows from how many
digits its operands have, and where those begin and end; where a sum needs too many, operands of some sizes alone are
known to do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from ..model.dtypes import FORMATS
from .errorbounds import FLOAT64
from .expressions import Expression, operands, walk
from .facts import constant_bits

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
    added = {name for node in walk(value) if node.op in ("+", "-") for name in operands(node)}
    for least in range(-FLOAT64.digits, LARGEST):
        window = dict.fromkeys(sorted(added), least)
        if known.keys() >= set(operands(value)) and _is_held(value, known, window):
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
