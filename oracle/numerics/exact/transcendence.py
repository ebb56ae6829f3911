"""What enclosures do not show of a formula in e^x: that its value is a rational, or on which side of one it lies.

The value of + - * / of rationals and of e^q, q rational, is a fraction of sums c e^q. Powers of e with different
rational exponents are linearly independent over the rationals (Lindemann and Weierstrass): such a sum is zero only
where the terms of every q cancel. So a fraction N / D is the rational r only where every term of N is r times D's, as
in s(x) + s(-x) = 1. And where the largest q of D is far above the others, as with e^100000, N / D is next to the
quotient of the two terms of that q, on the side that what is left of N says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from gmpy2 import mpq

from ..formula.expressions import ARITHMETIC, Expression
from ..formula.traversal import is_rational
from .rationals import Number, Undefined, numbers, rational

_Rational = type(mpq())
_ONE = {mpq(0): mpq(1)}
BITS = 1250  # of numerators and denominators before powers of e that are compared by their exponents alone
FAR = 5000  # an exponent so far above another that e to it is larger, whatever numbers of BITS stand before them
Sum = dict[mpq, mpq]  # numbers, none of them 0, by the q of their e^q


class _Otherwise(Exception):
    """The formula is made otherwise."""


class _Fraction(NamedTuple):
    above: Sum
    below: Sum


def nearest(root: Expression, given: Mapping[str, float]) -> tuple[mpq, int] | None:
    """Return the rational that the value of a formula is, and 0; or that it lies next to, closer than any format tells,
    and on which side: 1 above, -1 below. None: there is no such, or the formula is made otherwise than by + - * / of
    rationals and of e^x, expm1 or tanh of rationals."""
    try:
        above, below = _fraction(root, numbers(given), {})
    except (_Otherwise, Undefined):
        return None
    q = max(below)
    value = above.get(q, mpq(0)) / below[q]
    rest = _added(above, below, -value)
    if not rest:
        return value, 0
    near = max(rest)
    if near > q - FAR or not (_is_ruled(below) and _is_ruled(rest)):
        return None
    return value, 1 if (rest[near] > 0) is (below[q] > 0) else -1


def rational_sum(root: Expression, terms: Iterable[Mapping[str, float]]) -> mpq | None:
    """Return the sum of a formula's values at many operands where it is rational. None: it is irrational, or
    its terms are made otherwise or with a denominator that is a sum."""
    total: Counter[mpq] = Counter()
    try:
        for given in terms:
            above, below = _fraction(root, numbers(given), {})
            if below != _ONE:
                return None
            total.update(above)
    except (_Otherwise, Undefined):
        return None
    return None if any(number for q, number in total.items() if q) else mpq(total[mpq(0)])


def _is_ruled(total: Sum) -> bool:
    """Whether the term of the largest q says the sign and the size of a sum."""
    q, *others = sorted(total, reverse=True)
    sizes = [max(abs(number).numerator.bit_length(), number.denominator.bit_length()) for number in total.values()]
    return max(sizes) < BITS and all(q - other > FAR for other in others)


def _fraction(node: Expression, known: Mapping[str, Number], made: dict[Expression, _Fraction]) -> _Fraction:
    """The value of a node, on the way that its conditions take."""
    if node not in made:
        made[node] = _of(node, known, made)
    return made[node]


def _of(node: Expression, known: Mapping[str, Number], made: dict[Expression, _Fraction]) -> _Fraction:
    if is_rational(node):
        return _Fraction(_added({}, {mpq(0): _number(node, known)}), _ONE)
    if node.op == "where" and is_rational(node.args[0]):
        return _fraction(node.args[1 if rational(node.args[0], known) else 2], known, made)
    if node.op in ("exp", "expm1", "tanh"):
        return _power(node, known)
    if node.op not in (*ARITHMETIC, "neg"):
        raise _Otherwise
    (a, b), *others = [_fraction(part, known, made) for part in node.args]
    if node.op == "neg":
        return _Fraction(_added({}, a, mpq(-1)), b)
    ((c, d),) = others
    if node.op == "*":
        return _reduced(_multiplied(a, c), _multiplied(b, d))
    if node.op == "/":
        return _reduced(_multiplied(a, d), _multiplied(b, c))
    factor = mpq(1 if node.op == "+" else -1)
    return _reduced(_added(_multiplied(a, d), _multiplied(c, b), factor), _multiplied(b, d))


def _number(node: Expression, known: Mapping[str, Number]) -> mpq:
    value = rational(node, known)
    if not isinstance(value, _Rational):  # infinite, NaN
        raise _Otherwise
    return value


def _power(node: Expression, known: Mapping[str, Number]) -> _Fraction:
    """e^q, e^q - 1, or (e^2q - 1) / (e^2q + 1)."""
    if not is_rational(node.args[0]):
        raise _Otherwise
    q = _number(node.args[0], known)
    if node.op == "exp":
        return _Fraction({q: mpq(1)}, _ONE)
    power = {(2 * q if node.op == "tanh" else q): mpq(1)}
    less = _added(power, _ONE, mpq(-1))
    return _Fraction(less, _ONE) if node.op == "expm1" else _reduced(less, _added(power, _ONE))


def _reduced(above: Sum, below: Sum) -> _Fraction:
    """A fraction whose denominator is 1 where it can be."""
    if not below:
        raise Undefined("a division by zero")
    if len(below) > 1:
        return _Fraction(above, below)
    ((q, number),) = below.items()
    return _Fraction(_multiplied(above, {-q: 1 / number}), _ONE)


def _added(a: Sum, b: Sum, factor: mpq | int = 1) -> Sum:
    """a + factor b."""
    total = Counter(a)
    for q, number in b.items():
        total[q] += factor * number
    return {q: number for q, number in total.items() if number}


def _multiplied(a: Sum, b: Sum) -> Sum:
    total: Counter[mpq] = Counter()
    for p, one in a.items():
        for q, other in b.items():
            total[p + q] += one * other
    return {q: number for q, number in total.items() if number}
