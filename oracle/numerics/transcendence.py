"""Where a formula in e^x, or a sum of such, is rational all the same: s(x) + s(-x) is 1, which no enclosure shows.

e^q is transcendental for every rational q but 0 (Lindemann). So a fraction of polynomials in e^q, with rational
coefficients, is rational only where it is the same for every number in the place of e^q: its difference from that value
would else have a numerator with more zeros than its degree allows. One number more than that degree is put in the place
of e^q, and the fraction computed exactly.

A sum has many different q. There c + c1 e^q1 + c2 e^q2 + ... with different q is rational only where all of c1, c2 ...
are 0 (Lindemann and Weierstrass), so that terms of one q are put together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
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


def rational_sum(root: Expression, terms: Iterable[Mapping[str, float]]) -> Any | None:
    """Return the sum of a formula's values at many operands as an mpq where it is rational whatever e^x is. None: it is
    irrational, or the formula divides by e^x or has other functions."""
    total: Counter[Any] = Counter()
    try:
        for given in terms:
            total.update(_exponentials(root, numbers(given)))
    except (_Otherwise, Undefined):
        return None
    return None if any(number for q, number in total.items() if q) else mpq(total[mpq(0)])


def _exponentials(node: Expression, known: Mapping[str, Any]) -> dict[Any, Any]:
    """A formula's value as numbers by the q of their e^q; what is rational has q = 0."""
    zero = mpq(0)
    if is_rational(node):
        value = rational(node, known)
        if not isinstance(value, _Rational):  # infinite, NaN
            raise _Otherwise
        return {zero: value}
    if node.op == "where" and is_rational(node.args[0]):
        return _exponentials(node.args[1 if rational(node.args[0], known) else 2], known)
    parts = [_exponentials(part, known) for part in node.args]
    if node.op in ("exp", "expm1") and parts[0].keys() == {zero}:
        return _sum({parts[0][zero]: mpq(1)}, {zero: mpq(-1 if node.op == "expm1" else 0)})
    if node.op == "neg":
        return {q: -number for q, number in parts[0].items()}
    if node.op in ("+", "-"):
        sign = 1 if node.op == "+" else -1
        return _sum(parts[0], {q: sign * number for q, number in parts[1].items()})
    if node.op == "/" and parts[1].keys() == {zero} and parts[1][zero]:
        return {q: number / parts[1][zero] for q, number in parts[0].items()}
    if node.op == "*":
        products = [{p + q: a * b for q, b in parts[1].items()} for p, a in parts[0].items()]
        return _sum(*products)
    raise _Otherwise


def _sum(*parts: Mapping[Any, Any]) -> dict[Any, Any]:
    total: Counter[Any] = Counter()
    for part in parts:
        total.update(part)
    return dict(total)
