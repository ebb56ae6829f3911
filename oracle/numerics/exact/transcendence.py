"""Values that no enclosure can decide: formulas with functions that are rational, or close to a rational number.

The value is a fraction of sums. A term of a sum is a rational number times e^q (q rational) times powers of other
numbers, for example log 3 or log(1 + e^2). Terms with the same numbers are added up. If all other terms cancel, the
value is the remaining rational, for any values of the other numbers. Examples: log 2 + log(1/2), or log(1 + e^x) with
weights 1 and -1.

Powers of e with different rational exponents are linearly independent over the rationals (Lindemann and Weierstrass).
So a sum of terms with e^q alone is zero only if the terms of every q cancel. The largest q of the denominator D can be
far above the others, as with e^100000. Then N / D is close to the quotient of the two terms of that q. The rest of N
decides the side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import NamedTuple, TypeAlias

from gmpy2 import bit_scan1, mpq

from ..expressions import ARITHMETIC, COMPARISONS, Expression
from ..traversal import is_rational
from .rationals import Undefined, numbers, rational

Decide: TypeAlias = Callable[[Expression, Mapping[str, float]], bool]  # decides a comparison of numbers
Atom: TypeAlias = tuple[str, object]  # a function and its argument: a number without further known properties
Key: TypeAlias = tuple[mpq, frozenset[tuple[Atom, int]]]  # the exponent q of e^q, and powers of atoms
Sum: TypeAlias = dict[Key, mpq]  # nonzero coefficients by their key

_RATIONAL = type(mpq())
_NOTHING: frozenset[tuple[Atom, int]] = frozenset()
_PLAIN: Key = (mpq(0), _NOTHING)
_ONE: Sum = {_PLAIN: mpq(1)}
BITS = 1250  # limit of numerators and denominators, so that powers of e can be compared by exponents alone
FAR = 5000  # an exponent this far above another wins, with any coefficients of BITS


class _Otherwise(Exception):
    """The formula has no known form."""


class _Fraction(NamedTuple):
    above: Sum
    below: Sum

    @property
    def number(self) -> mpq | None:
        """The value if it is known to be a rational number; else None."""
        if self.below != _ONE or self.above.keys() - {_PLAIN}:
            return None
        return self.above.get(_PLAIN, mpq(0))


def nearest(root: Expression, operands: Mapping[str, float], decide: Decide | None = None) -> tuple[mpq, int] | None:
    """Return a rational and a side. Side 0: the value is the rational. Side 1 or -1: the value is above or below the
    rational, closer than any format can show. Return None if there is no such rational, or if the form is unknown.
    ``decide``: decides comparisons of irrational numbers; without it, a formula with such a comparison gives None."""
    try:
        above, below = _Values(operands, decide).of(root)
    except (_Otherwise, Undefined):
        return None
    first = max(below, key=lambda key: key[0])
    value = above.get(first, mpq(0)) / below[first]
    rest = _added(above, below, -value)
    if not rest:
        return value, 0
    if any(atoms for _, atoms in (*above, *below)):
        return None
    near = max(rest)
    if near[0] > first[0] - FAR or not (_is_ruled(below) and _is_ruled(rest)):
        return None
    return value, 1 if (rest[near] > 0) is (below[first] > 0) else -1


def rational_sum(root: Expression, terms: Iterable[Mapping[str, float]], decide: Decide | None = None) -> mpq | None:
    """Return the sum of a formula's values at many operands if it is rational; None if its form is unknown. ``decide``:
    as in :func:`nearest`."""
    total: Counter[Key] = Counter()
    try:
        for operands in terms:
            above, below = _Values(operands, decide).of(root)
            if below != _ONE:
                return None
            total.update(above)
    except (_Otherwise, Undefined):
        return None
    return None if any(number for key, number in total.items() if key != _PLAIN) else mpq(total[_PLAIN])


def _is_ruled(total: Sum) -> bool:
    """Return whether the term of the largest q decides the sign and the size of a sum of powers of e."""
    (q, _), *others = sorted(total, reverse=True)
    sizes = [max(abs(number).numerator.bit_length(), number.denominator.bit_length()) for number in total.values()]
    return max(sizes) < BITS and all(q - other > FAR for other, _ in others)


class _Values:
    """The values of a formula's nodes at some operands, along the branches that its conditions choose."""

    def __init__(self, operands: Mapping[str, float], decide: Decide | None) -> None:
        self.operands, self.decide, self.numbers = operands, decide, numbers(operands)
        self.of = cache(self._of)  # of a node

    def _of(self, node: Expression) -> _Fraction:
        if is_rational(node):
            value = rational(node, self.numbers)
            if not isinstance(value, _RATIONAL):  # infinite, NaN
                raise _Otherwise
            return _plain(value)
        if node.op == "where":
            return self.of(node.args[1 if self._holds(node.args[0]) else 2])
        if node.op in ("min", "max"):
            one, other = node.args
            return self.of(one if self._holds(one < other) is (node.op == "min") else other)
        if node.op == "abs":
            return self.of(-node.args[0] if self._holds(node.args[0] < 0) else node.args[0])
        if node.op not in (*ARITHMETIC, "neg"):
            return _function(node.op, self.of(node.args[0])) if node.args else _atom("pi", _plain(mpq(1)))
        (a, b), *others = [self.of(part) for part in node.args]
        if node.op == "neg":
            return _Fraction(_added({}, a, mpq(-1)), b)
        ((c, d),) = others
        if node.op == "*":
            return _reduced(_multiplied(a, c), _multiplied(b, d))
        if node.op == "/":
            return _reduced(_multiplied(a, d), _multiplied(b, c))
        factor = mpq(1 if node.op == "+" else -1)
        return _reduced(_added(_multiplied(a, d), _multiplied(c, b), factor), _multiplied(b, d))

    def _holds(self, condition: Expression) -> bool:
        if is_rational(condition):
            return bool(rational(condition, self.numbers))
        if condition.op == "not":
            return not self._holds(condition.args[0])
        if condition.op in ("and", "or"):
            return (all if condition.op == "and" else any)(self._holds(part) for part in condition.args)
        if self.decide is None or condition.op not in COMPARISONS:
            raise _Otherwise
        return self.decide(condition, self.operands)


def _function(op: str, a: _Fraction) -> _Fraction:
    """Return a function's value: powers of e for rational numbers, logarithms of products, else a new atom."""
    q = a.number
    if op == "exp" and q is not None:
        return _Fraction({(q, _NOTHING): mpq(1)}, _ONE)
    if op == "expm1":
        return _plus(_function("exp", a), -1)
    if op == "tanh" and q is not None:
        power = _function("exp", _plain(2 * q))
        return _reduced(_added(power.above, _ONE, -1), _added(power.above, _ONE))
    if op == "log1p":
        return _function("log", _plus(a, 1))
    if op == "log" and a.below == _ONE and len(a.above) == 1:
        (((power, atoms), number),) = a.above.items()
        if not atoms:
            return _logarithm(number, power)
    return _atom(op, a)


def _logarithm(number: mpq, power: mpq) -> _Fraction:
    """Return log(number e^power) as logarithms of odd integers and of 2."""
    if number <= 0:
        raise Undefined(f"the logarithm of {number}")
    result: Sum = {_PLAIN: power} if power else {}
    for integer, sign in ((number.numerator, 1), (number.denominator, -1)):
        twos = bit_scan1(integer) or 0
        for base, times in ((integer >> twos, sign), (2, sign * twos)):
            if base != 1 and times:
                result = _added(result, _atom("log", _plain(mpq(base))).above, times)
    return _Fraction(result, _ONE)


def _atom(op: str, a: _Fraction) -> _Fraction:
    argument = frozenset(a.above.items()), frozenset(a.below.items())
    return _Fraction({(mpq(0), frozenset([((op, argument), 1)])): mpq(1)}, _ONE)


def _plain(number: mpq) -> _Fraction:
    return _Fraction({_PLAIN: number} if number else {}, _ONE)


def _plus(a: _Fraction, number: int) -> _Fraction:
    return _Fraction(_added(a.above, a.below, number), a.below)


def _reduced(above: Sum, below: Sum) -> _Fraction:
    """Return a fraction with the denominator 1 if possible."""
    if not below:
        raise Undefined("a division by zero")
    if len(below) > 1:
        return _Fraction(above, below)
    (((q, atoms), number),) = below.items()
    inverse = (-q, frozenset((atom, -power) for atom, power in atoms))
    return _Fraction(_multiplied(above, {inverse: 1 / number}), _ONE)


def _added(a: Sum, b: Sum, factor: mpq | int = 1) -> Sum:
    """a + factor b."""
    total = Counter(a)
    for key, number in b.items():
        total[key] += factor * number
    return {key: number for key, number in total.items() if number}


def _multiplied(a: Sum, b: Sum) -> Sum:
    total: Counter[Key] = Counter()
    for (p, atoms), one in a.items():
        for (q, others), other in b.items():
            total[p + q, _joined(atoms, others)] += one * other
    return {key: number for key, number in total.items() if number}


def _joined(atoms: frozenset[tuple[Atom, int]], others: frozenset[tuple[Atom, int]]) -> frozenset[tuple[Atom, int]]:
    if not (atoms and others):
        return atoms or others
    powers = Counter(dict(atoms))
    powers.update(dict(others))
    return frozenset((atom, power) for atom, power in powers.items() if power)
