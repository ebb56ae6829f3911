"""Exact values for the special cases of IEEE arithmetic: operands that are not finite, and the sign of a zero.

If an infinite operand, or the logarithm of 0, only decides a comparison (a threshold), or vanishes (x / inf, e^-inf,
max(log 0, -100)), the value is the value of a smaller formula of finite operands. This module finds that formula; it
has an exact value like any other. float64 must not decide the value: it rounds, and it confuses a number next to a tie
with the tie.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import gmpy2
from gmpy2 import mpfr

from ..expressions import COMPARISONS, IRRATIONAL, ONE, ZERO, Expression, constant, operation
from ..traversal import names_of, walk
from .enclosures import Intervals, constant_interval, exact, holds
from .rationals import OPERATIONS, Undefined

Special = float  # inf, -inf or NaN
# The limits of a function at minus and at plus infinity.
_LIMITS: dict[str, tuple[Expression | Special, Expression | Special]] = {
    "exp": (ZERO, math.inf),
    "expm1": (constant(-1), math.inf),
    "tanh": (constant(-1), ONE),
    "erf": (constant(-1), ONE),
    "erfc": (constant(2), ZERO),
    "sign": (constant(-1), ONE),
    "sqrt": (math.nan, math.inf),
    "log": (math.nan, math.inf),
    "log1p": (math.nan, math.inf),
    "neg": (math.inf, -math.inf),
    "abs": (math.inf, math.inf),
}
_POLES = {"log": 0, "log1p": -1}  # where a logarithm is minus infinity


def exact_value(root: Expression, operands: Mapping[str, float]) -> Any:
    """Return the exact value of a graph, as :func:`exact` does, or None if only IEEE arithmetic gives a value."""
    try:
        if all(map(math.isfinite, operands.values())):
            return exact(root, operands)
    except Undefined:  # a logarithm of 0 may vanish
        pass
    try:
        graph = finite_part(root, operands)
        return None if isinstance(graph, float) else exact(graph, operands)
    except Undefined:
        return None


def finite_part(root: Expression, operands: Mapping[str, float], more: Intervals | None = None) -> Expression | Special:
    """Return the graph of finite operands with the value of ``root``, or the special value if there is no such graph.
    ``more``: finite operands that are known as enclosures.

    Raises Undefined if a finite part has no value (a division by zero), OracleError if its sign is undecided.
    """

    @functools.cache
    def value(node: Expression) -> Expression | Special:
        if node.is_constant:
            return node
        if node.op == "symbol":
            given = operands.get(str(node.value), 0.0)  # enclosed operands are finite
            return node if math.isfinite(given) else given
        if node.op == "where":
            return value(node.args[1] if decided(node.args[0]) else node.args[2])
        args = [value(a) for a in node.args]
        finite = [a for a in args if isinstance(a, Expression)]
        if len(finite) < len(args):
            return _special(node.op, args)
        if node.op in _POLES and not enclosed(finite[0]) and exact(finite[0], operands) == _POLES[node.op]:
            return -math.inf
        return operation(node.op, *finite)

    def _special(op: str, args: list[Expression | Special]) -> Expression | Special:
        if any(isinstance(a, float) and math.isnan(a) for a in args):
            return math.nan
        if op in _LIMITS:
            return _LIMITS[op][args[0] == math.inf]
        one, other = args
        if op == "/" and isinstance(one, Expression):
            return ZERO
        if op in ("min", "max") and not (isinstance(one, float) and isinstance(other, float)):
            number, rest = (one, other) if isinstance(one, float) else (other, one)
            return number if (number == -math.inf) is (op == "min") else rest
        a, b = (x if isinstance(x, float) else sign(x) if op in "*/" else 0.0 for x in args)
        if op == "/":
            return math.nan if math.isinf(b) or b == 0 else a * b  # the sign of a zero divisor decides; it is unknown
        return float(OPERATIONS[op](a, b))

    def sign(node: Expression) -> float:
        answer = exact(node, operands, more if enclosed(node) else None)
        if isinstance(answer, gmpy2.mpq):
            return float((answer > 0) - (answer < 0))
        return next(1.0 if ends.low >= 0 else -1.0 for ends in answer if ends.low >= 0 or ends.high <= 0)

    def enclosed(node: Expression) -> bool:
        return any(name not in operands for name in names_of(node))

    def decided(condition: Expression) -> bool:
        if condition.op not in COMPARISONS:
            one, *rest = condition.args
            if condition.op == "not":
                return not decided(one)
            return decided(one) and decided(*rest) if condition.op == "and" else decided(one) or decided(*rest)
        sides = [value(a) for a in condition.args]
        if all(isinstance(a, Expression) for a in sides):
            finite = operation(condition.op, *(a for a in sides if isinstance(a, Expression)))
            return holds(finite, operands, more if enclosed(finite) else None)
        return bool(OPERATIONS[condition.op](*(a if isinstance(a, float) else 0.0 for a in sides)))

    return value(root)


# ---- the sign of a zero ----------------------------------------------------------------------------------------------

_BITS = 256


def zero(root: Expression, operands: Mapping[str, float]) -> float:
    """Return the exact value of a graph that is zero, with its sign in IEEE arithmetic with unlimited exponents.
    Without underflow and overflow, the sign of a zero follows from the signs of its factors."""
    made: dict[int, Any] = {}
    with gmpy2.context(precision=_BITS, emax=gmpy2.get_emax_max(), emin=gmpy2.get_emin_min()):
        for node in walk(root):
            args = [made[id(a)] for a in node.args]
            if node.is_constant:
                made[id(node)] = mpfr(constant_interval(node)[0])
            elif node.op == "symbol":
                made[id(node)] = mpfr(operands[str(node.value)])
            else:
                made[id(node)] = _OF_MPFR[node.op](*args)
    result = made[id(root)]
    return -0.0 if gmpy2.is_zero(result) and gmpy2.is_signed(result) else 0.0


def _least(a: mpfr, b: mpfr) -> mpfr:
    return a if gmpy2.is_nan(a) or a < b else b


_OF_MPFR: dict[str, Callable[..., Any]] = {
    **OPERATIONS,
    "/": gmpy2.div,
    "sign": lambda a: a if gmpy2.is_nan(a) or not a else mpfr((a > 0) - (a < 0)),
    "where": lambda condition, a, b: a if condition else b,
    "min": _least,
    "max": lambda a, b: -_least(-a, -b),
    **{name: getattr(gmpy2, name) for name in IRRATIONAL},
}
