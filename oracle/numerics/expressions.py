"""Formulas as graphs: a formula is written once as a plain function, and all other forms are derived from it.

A formula is a function of its operands that uses arithmetic, comparisons and the functions of this module::

    def formula(g, x):
        return g / (exp(x) + 1)

:func:`trace` calls it once with symbols and keeps the graph of its computation. The graph is then evaluated on blocks
of float64 (:mod:`.programs`), enclosed by MPFR or computed as a rational (:mod:`.exact`), or compiled
(:mod:`.compiled`). It is also run in float32 as a device would, and its rounding errors are bounded
(:mod:`.bounds.losses`).

Nodes are shared: the same operation on the same operands is one node, in one formula and between several. Constants are
real numbers: ``ratio(1, 3)`` is one third and ``PI`` is pi, independent of any format.
"""

from __future__ import annotations

import inspect
import math
import operator
import reprlib
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from numbers import Rational
from pathlib import Path
from typing import Any, NoReturn, Union

import numpy as np

from ..model.errors import OracleError

# Replacements in a formula for NumPy's functions, which accept numbers only and no symbols.

# Functions of oracle.page, by NumPy's name.
OF_NUMPY = {
    **{n: n for n in ("exp", "expm1", "log", "log1p", "minimum", "maximum", "sign", "sqrt", "tanh", "where", "equal")},
    **{n: n for n in ("erf", "erfc")},  # of SciPy, which builds its functions as NumPy does
    "isnan": "is_nan",
    "isfinite": "is_finite",
}
# Expressions that replace a function, by NumPy's name.
WRITTEN = {
    "add": "a + b",
    "subtract": "a - b",
    "multiply": "a * b",
    "divide": "a / b",
    "negative": "-a",
    "positive": "a",
    **dict.fromkeys(("absolute", "fabs"), "abs(a)"),
    "reciprocal": "1 / a",
    "square": "a * a",
    **dict.fromkeys(("power", "float_power"), "a * a for a square, exp(b * log(a)) for a real power"),
    "less": "a < b",
    "less_equal": "a <= b",
    "greater": "a > b",
    "greater_equal": "a >= b",
    "not_equal": "~equal(a, b)",
    **dict.fromkeys(("logical_and", "bitwise_and"), "a & b"),
    **dict.fromkeys(("logical_or", "bitwise_or"), "a | b"),
    **dict.fromkeys(("logical_not", "invert"), "~a"),
    "clip": "minimum(maximum(a, low), high)",
    "exp2": "exp(a * log(2))",
    "log2": "log(a) / log(2)",
    "log10": "log(a) / log(10)",
}

KNOWN = (
    f"oracle.page has {', '.join(dict.fromkeys(OF_NUMPY.values()))}; a formula is made of "
    "them, arithmetic, comparisons and abs"
)


def instead_of(name: str) -> str:
    """Return the message that a function of NumPy's, by its name, is not for formulas, with its replacement."""
    text = f"NumPy's {name} does not take the symbols of a formula; "
    if name in OF_NUMPY:
        return f"{text}use {OF_NUMPY[name]} of oracle.page"
    return text + (f"write {WRITTEN[name]}" if name in WRITTEN else f"there is none like it: {KNOWN}")


Operand = Union["Expression", int, float, Fraction]
Function = Callable[..., "Expression"]

ARITHMETIC = ("+", "-", "*", "/")
CHOOSING = ("min", "max")
COMPARISONS = ("<", "<=", "==", "!=")
IRRATIONAL = ("sqrt", "exp", "log", "log1p", "expm1", "tanh", "erf", "erfc")
LOGIC = ("and", "or", "not")
TOTAL = "total"  # the sum over all rows of a value of each row
REDUCING = ("sum", "most", "least", TOTAL)  # along the formula's axis: the sum, the largest, the smallest
ROUNDINGS = ("float16", "bfloat16")  # a kernel's rounding to a type between steps; real numbers ignore it
LENGTH = "length"  # the symbol of the number of elements along that axis
PLACE = "place"  # the symbol of an element's own index along that axis


def _method(op: str, *, swapped: bool = False) -> Callable[[Expression, Operand], Expression]:
    """Return the method of an operator; ``swapped``: the other operand comes first."""

    def method(self: Expression, other: Operand) -> Expression:
        operands = self, _operand(other)
        return checked_operation(op, *(reversed(operands) if swapped else operands))

    return method


class Expression:
    """A node of a formula's graph: an operation and its operands.

    ``op``: ``symbol``, ``constant``, an operator of ``ARITHMETIC``, ``COMPARISONS`` or ``LOGIC``, a function, ``min``,
    ``max``, ``where`` (condition, then, else), a reduction of ``REDUCING`` along the formula's axis, a rounding of
    ``ROUNDINGS``, or ``stored`` (a value, the operand whose type it takes; ``stored float16``: if that is float16).
    ``value``: the name of a symbol; a constant's Fraction, or ``"pi"``.
    """

    __slots__ = ("args", "is_constant", "op", "value")
    op: str
    args: tuple[Expression, ...]
    value: Fraction | str | None
    is_constant: bool  # a number made of constants alone

    def __repr__(self) -> str:
        return text(self)

    __add__, __radd__ = _method("+"), _method("+", swapped=True)
    __sub__, __rsub__ = _method("-"), _method("-", swapped=True)
    __mul__, __rmul__ = _method("*"), _method("*", swapped=True)
    __truediv__, __rtruediv__ = _method("/"), _method("/", swapped=True)
    __lt__, __gt__ = _method("<"), _method("<", swapped=True)
    __le__, __ge__ = _method("<="), _method("<=", swapped=True)
    __and__, __or__ = _method("and"), _method("or")

    def __neg__(self) -> Expression:
        return checked_operation("neg", self)

    def __abs__(self) -> Expression:
        return checked_operation("abs", self)

    def __invert__(self) -> Expression:
        return checked_operation("not", self)

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        """Return whether this is the same node: nodes are shared. To compare values, a formula uses :func:`equal`."""
        if isinstance(other, (int, float, Fraction, np.generic)):
            raise OracleError(f"{self!r} is no number yet: instead of a == b write equal(a, b), of a != b ~equal(a, b)")
        return self is other

    def __bool__(self) -> bool:
        raise TypeError(f"a formula cannot branch on {self!r} with `if`, `and` or `or`; use where(), & and |")

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: Operand, **options: object) -> Expression:
        """Read a NumPy number in front of an operator as a constant, like Python's; no NumPy function accepts
        symbols."""
        written = _OPERATORS.get(function.__name__) if method == "__call__" else None
        if written is None or not isinstance(inputs[0], (np.generic, np.ndarray)):
            raise OracleError(instead_of(function.__name__))
        result: Expression = written(*map(_operand, inputs))
        return result

    def __float__(self) -> NoReturn:
        raise OracleError(f"float() and Python's math take numbers, and {self!r} is none in a formula; {KNOWN}")

    def __array_function__(self, function: Callable[..., object], *_: object) -> NoReturn:
        raise OracleError(instead_of(function.__name__))

    @property
    def is_condition(self) -> bool:
        return self.op in COMPARISONS or self.op in LOGIC


# The ufunc that NumPy calls if one of its numbers stands in front of an operator.
_OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}

_NODES: dict[tuple[object, ...], Expression] = {}


def _make(op: str, args: tuple[Expression, ...], value: Fraction | str | None = None) -> Expression:
    key = (op, value, *map(id, args))
    result = _NODES.get(key)
    if result is None:
        result = Expression.__new__(Expression)
        result.op, result.args, result.value = op, args, value
        result.is_constant = op == "constant" or (
            bool(args) and not result.is_condition and op not in REDUCING and all(a.is_constant for a in args)
        )
        return _NODES.setdefault(key, result)  # if two threads make it together, one gives the node
    return result


def symbol(name: str) -> Expression:
    """Return the operand with a name."""
    return _make("symbol", (), name)


def constant(value: int | float | Fraction) -> Expression:
    """Return a constant with its exact value."""
    number = value.item() if isinstance(value, (np.generic, np.ndarray)) and not value.ndim else value
    if isinstance(number, bool) or not isinstance(number, (Rational, float)):
        hint = "; instead of a == b write equal(a, b)" if isinstance(number, bool) else ""
        raise OracleError(f"a formula is made of symbols and numbers, and {reprlib.repr(value)} is neither{hint}")
    if isinstance(number, float) and not math.isfinite(number):
        raise OracleError(f"a constant of a formula is a real number, and {number} is none")
    return _make("constant", (), Fraction(number))


def ratio(numerator: int, denominator: int) -> Expression:
    """Return the rational number numerator / denominator, which need not be representable in any format."""
    return _make("constant", (), Fraction(numerator, denominator))


PI = _make("constant", (), "pi")
ZERO, ONE = constant(0), constant(1)


def _operand(value: Operand) -> Expression:
    return value if isinstance(value, Expression) else constant(value)


def checked_operation(op: str, *args: Expression) -> Expression:
    """Return the node of an operation, as a formula writes it. Raises OracleError if a condition is used as a number,
    or a number as a condition."""
    for k, node in enumerate(args):
        wanted = op in LOGIC or (op == "where" and k == 0)
        if node.is_condition and not wanted:
            raise OracleError(f"{node!r} is a condition and no number: write where({node!r}, 1, 0)")
        if wanted and not node.is_condition:
            raise OracleError(f"{node!r} is a number and no condition: write ~equal({node!r}, 0)")
    return operation(op, *args)


def operation(op: str, *args: Expression) -> Expression:
    """Return the node of an operation by its name. A multiplication or division by exactly one is omitted: it has no
    effect in any arithmetic."""
    if op in ("*", "/") and args[1] is ONE:
        return args[0]
    if op == "*" and args[0] is ONE:
        return args[1]
    numbers = [a.value for a in args if isinstance(a.value, Fraction)]
    if op in _FOLDED and len(numbers) == len(args) and not (op == "/" and numbers[1] == 0):
        return constant(_FOLDED[op](*numbers))
    return _make(op, args)


# The operations of which two constants are one constant.
_FOLDED: dict[str, Callable[..., Fraction]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "neg": operator.neg,
}  # fmt: skip


# ---- functions -------------------------------------------------------------------------------------------------------


def exp(x: Operand) -> Expression:
    """e^x."""
    return checked_operation("exp", _operand(x))


def log(x: Operand) -> Expression:
    """Natural logarithm."""
    return checked_operation("log", _operand(x))


def log1p(x: Operand) -> Expression:
    """log(1 + x)."""
    return checked_operation("log1p", _operand(x))


def expm1(x: Operand) -> Expression:
    """e^x - 1."""
    return checked_operation("expm1", _operand(x))


def tanh(x: Operand) -> Expression:
    """Hyperbolic tangent."""
    return checked_operation("tanh", _operand(x))


def erf(x: Operand) -> Expression:
    """Error function."""
    return checked_operation("erf", _operand(x))


def erfc(x: Operand) -> Expression:
    """Complementary error function, 1 - erf(x)."""
    return checked_operation("erfc", _operand(x))


def sqrt(x: Operand) -> Expression:
    """Square root."""
    return checked_operation("sqrt", _operand(x))


def sign(x: Operand) -> Expression:
    """-1, 0 or 1; NaN of NaN."""
    return checked_operation("sign", _operand(x))


def minimum(a: Operand, b: Operand) -> Expression:
    """The smaller one; NaN if either is."""
    return checked_operation("min", _operand(a), _operand(b))


def maximum(a: Operand, b: Operand) -> Expression:
    """The larger one; NaN if either is."""
    return checked_operation("max", _operand(a), _operand(b))


def where(condition: Expression, then: Operand, otherwise: Operand) -> Expression:
    """Return ``then`` where the condition is true, else ``otherwise``. A comparison with NaN is false.

    A value as a condition is true unless it is 0. A constant condition decides at once, so that a formula can depend on
    a flag.
    """
    if not isinstance(condition, Expression):
        raise OracleError(f"where takes a condition on symbols, not {condition!r}; instead of a == b write equal(a, b)")
    if condition.op == "constant":
        return _operand(otherwise if condition.value == 0 else then)
    if condition.op == "==" and all(isinstance(side.value, Fraction) for side in condition.args):
        return _operand(then if condition.args[0].value == condition.args[1].value else otherwise)
    chosen = condition if condition.is_condition else checked_operation("!=", condition, ZERO)
    return checked_operation("where", chosen, _operand(then), _operand(otherwise))


def equal(a: Operand, b: Operand) -> Expression:
    """Return whether two values are equal (``==`` compares the expressions themselves)."""
    return checked_operation("==", _operand(a), _operand(b))


def is_nan(a: Operand) -> Expression:
    """Return whether a value is NaN."""
    return checked_operation("!=", _operand(a), _operand(a))


def is_finite(a: Operand) -> Expression:
    """Return whether a value is neither NaN nor infinite."""
    return abs(checked_operation("-", _operand(a), _operand(a))) <= 0


def stored(x: Operand, like: Expression, only: str = "") -> Expression:
    """Return x as a kernel stores it, rounded to the type of an operand: a step of a kernel's order. ``only``: the one
    type that the kernel computes in, if it widens the other."""
    if only not in ("", *ROUNDINGS):
        raise OracleError(f"stored: only={only!r}; it must be {' or '.join(ROUNDINGS)}")
    return checked_operation(f"stored {only}".strip(), _operand(x), like)


# ---- along an axis: Formula(..., over=...) says which ----------------------------------------------------------------


def sum_over(x: Operand) -> Expression:
    """The sum along the formula's axis."""
    return checked_operation("sum", _operand(x))


def max_over(x: Operand) -> Expression:
    """The largest value along the formula's axis; NaN if any is."""
    return checked_operation("most", _operand(x))


def min_over(x: Operand) -> Expression:
    """The smallest value along the formula's axis; NaN if any is."""
    return checked_operation("least", _operand(x))


def sum_of_rows(x: Operand) -> Expression:
    """The sum over all rows of a value of each row, which is made of reductions along the formula's axis."""
    return checked_operation(TOTAL, _operand(x))


def length() -> Expression:
    """The number of elements along the formula's axis."""
    return symbol(LENGTH)


def place() -> Expression:
    """An element's own index along the formula's axis; for a loss over class indices, its class."""
    return symbol(PLACE)


def mean_over(x: Operand) -> Expression:
    """The mean along the formula's axis: the sum over the length."""
    return sum_over(x) / length()


# ---- graphs ----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def symbols_of(formula: Function) -> tuple[str, ...]:
    """Return the names of a formula's operands."""
    return tuple(inspect.signature(formula).parameters)


def trace(formula: Function, known: Mapping[str, Operand] | None = None) -> Expression:
    """Return a formula's graph. ``known``: operands that are numbers or graphs already, by name. Raises OracleError,
    with the formula's place, if it calls a function that accepts no symbols."""
    given = known or {}
    try:
        return _operand(formula(*(_operand(given[n]) if n in given else symbol(n) for n in symbols_of(formula))))
    except OracleError as error:
        raise OracleError(f"{place_of(formula)}: {error}") from None


def place_of(formula: Function) -> str:
    """Return the place of a formula's source, and its name."""
    name, code = getattr(formula, "__name__", "a formula"), getattr(formula, "__code__", None)
    return name if code is None else f"{Path(code.co_filename).name}:{code.co_firstlineno} ({name})"


def text(node: Expression) -> str:
    """Return a graph in the notation of a formula."""
    if node.op == "symbol":
        return str(node.value)
    if node.op == "constant":
        return str(node.value) if isinstance(node.value, str) else _number(node.value)
    args = [text(a) for a in node.args]
    if node.op == "neg":
        return f"(-{args[0]})"
    if len(args) == 2 and node.op not in ("min", "max"):
        word = {"and": "&", "or": "|"}.get(node.op, node.op)
        return f"({args[0]} {word} {args[1]})"
    return f"{node.op}({', '.join(args)})"


def _number(value: Fraction | None) -> str:
    assert value is not None
    return str(value.numerator) if value.denominator == 1 else repr(float(value))
