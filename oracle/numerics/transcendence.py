"""Where a formula in e^x is rational all the same: s(x) + s(-x) is 1, which no enclosure of e^x shows.

e^q is transcendental for every rational q but 0 (Lindemann). So a fraction of polynomials in e^q, with rational
coefficients, is rational only where it is the same for every number in the place of e^q: its difference from that value
would else have a numerator with more zeros than its degree allows. One number more than that degree is put in the place
of e^q, and the fraction computed exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gmpy2 import mpq

from .expressions import ARITHMETIC, Expression, constant, is_rational, operation, substitute, symbol, walk
from .rationals import Undefined, numbers, rational

_E = symbol("e^q")
_Rational = type(mpq())
_MOST = 16  # as a power of e^q


class _Otherwise(Exception):
    """The formula is made otherwise."""


def rational_value(root: Expression, given: Mapping[str, float]) -> Any | None:
    """Return the value of a formula at operands as an mpq where it is rational whatever e^x is. None: it is irrational,
    or made otherwise than by + - * / of rationals and of e^x, expm1 or tanh of rationals."""
    known = numbers(given)
    try:
        fraction = _in_powers(root, known)
    except (_Otherwise, Undefined):
        return None
    degree, found = max(_degrees(fraction)), []
    for number in range(2, 2 * degree + 4):  # of which so many may be poles
        try:
            found.append(rational(fraction, {**known, str(_E.value): mpq(number)}))
        except Undefined:
            continue
        if found[-1] != found[0] or not isinstance(found[0], _Rational):  # an infinite operand makes a float of it
            return None
        if len(found) > degree:
            return found[0]
    return None


def _in_powers(root: Expression, known: Mapping[str, Any]) -> Expression:
    """The formula, on the way that its conditions take, with powers of e^q in the places of its functions."""
    arguments: list[Any] = []  # each by the symbol of its place: a formula has few graphs, whatever the operands are
    made: dict[Expression, Expression] = {}

    def plain(node: Expression) -> Expression:
        if node not in made:
            made[node] = _plain(node)
        return made[node]

    def _plain(node: Expression) -> Expression:
        if is_rational(node):
            return node
        if node.op == "where" and is_rational(node.args[0]):
            return plain(node.args[1 if rational(node.args[0], known) else 2])
        if node.op in (*ARITHMETIC, "neg"):
            return operation(node.op, *map(plain, node.args))
        if node.op not in ("exp", "expm1", "tanh") or not is_rational(node.args[0]):
            raise _Otherwise
        argument = rational(node.args[0], known) * (2 if node.op == "tanh" else 1)
        if not isinstance(argument, _Rational):  # infinite, NaN
            raise _Otherwise
        if argument not in arguments:
            arguments.append(argument)
        power = _place(arguments.index(argument))
        return {"exp": power, "expm1": power - 1, "tanh": (power - 1) / (power + 1)}[node.op]

    fraction = plain(root)
    unit = min((abs(argument) for argument in arguments if argument), default=mpq(1))
    return substitute(fraction, {_place(k): _power(argument / unit) for k, argument in enumerate(arguments)})


def _place(number: int) -> Expression:
    return symbol(f"e^argument {number}")


def _power(times: Any) -> Expression:
    """e^q to a power."""
    if times.denominator != 1 or abs(times) > _MOST:
        raise _Otherwise
    power = constant(1)
    for _ in range(abs(int(times))):
        power = power * _E
    return 1 / power if times < 0 else power


def _degrees(fraction: Expression) -> tuple[int, int]:
    """Bounds of the degrees in e^q of numerator and denominator."""
    found: dict[Expression, tuple[int, int]] = {}
    for node in walk(fraction):
        parts = [found[part] for part in node.args]
        if node.op in ("+", "-"):
            (above, below), (other, under) = parts
            found[node] = max(above + under, other + below), below + under
        elif node.op in ("*", "/"):
            (above, below), (other, under) = parts[0], parts[1] if node.op == "*" else parts[1][::-1]
            found[node] = above + other, below + under
        else:  # -e^q is e^q's; what else there is does not depend on it
            found[node] = parts[0] if node.op == "neg" else (int(node is _E), 0)
    return found[fraction]
