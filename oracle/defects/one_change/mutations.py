"""Every single change of a formula's graph.

Each operation and comparison is replaced by each of its kind, each function by its neighbours, each operand dropped,
negated or exchanged for another one, each constant changed, each clamp, absolute value and branch removed: one change
per mutant. A change that gives the same graph, or one that differs only where two branches meet in one value, is none.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from ...numerics.exact.enclosures import constant_value
from ...numerics.exact.rationals import Undefined
from ...numerics.expressions import (
    ARITHMETIC,
    COMPARISONS,
    ZERO,
    Expression,
    constant,
    exp,
    expm1,
    log,
    log1p,
    operation,
    ratio,
    symbol,
    tanh,
    text,
)
from ...numerics.traversal import names_of, substitute, walk

NEIGHBOURS = {"max": ("min",), "min": ("max",), "tanh": ("erf",), "erf": ("tanh",), "sign": ("abs",), "sqrt": ("abs",)}
EPSILONS = tuple(Fraction(v) for v in (1e-7, 1e-8, 1e-15, 2.0**-24))  # what others clamp at


class Change(NamedTuple):
    """A changed graph. ``node``: the one that was changed."""

    name: str
    graph: Expression
    node: Expression


def changes(root: Expression) -> Iterator[Change]:
    """Yield every single change of a graph, operands before what uses them."""
    symbols = names_of(root)
    result: dict[int, str] = {id(root): ""}
    names: set[str] = set()
    for node in walk(root):
        for name, new in _alternatives(node, symbols, node is root):
            graph = substitute(root, {node: new})
            if id(graph) in result or _meets(node, new, root, graph) or not _is_defined(graph):
                continue
            result[id(graph)] = name
            while name in names:  # the same words at another place
                name += " (again)"
            names.add(name)
            yield Change(name, graph, node)


def _alternatives(node: Expression, symbols: tuple[str, ...], is_root: bool) -> Iterator[tuple[str, Expression]]:
    own = text(node)
    if is_root and node.op in ("symbol", "constant"):
        yield from ((f"{own} -> {text(new)}", new) for new in _leaves(node, symbols))
    for new in _operations(node):
        yield f"{own} -> {text(new)}", new
    for k, arg in enumerate(node.args):
        for leaf in _leaves(arg, symbols):
            args = (*node.args[:k], leaf, *node.args[k + 1 :])
            if len(set(map(id, args))) == 1 and node.op == "-":
                continue  # x - x: nothing of the formula is left
            yield f"{text(arg)} -> {text(leaf)} in {own}", operation(node.op, *args)
    if is_root:
        yield f"{own} -> (-{own})", -node


def _operations(node: Expression) -> Iterator[Expression]:
    """Another operation on the same operands, or less of it."""
    op, args = node.op, node.args
    if op in ARITHMETIC:
        left, right = args
        by_one = right.op == "constant" and right.value in (1, -1)  # * and / are then one and the same
        for other in ARITHMETIC:
            if other != op and not (by_one and {op, other} == {"*", "/"}):
                yield operation(other, left, right)
        yield left
        yield right
        if op in ("-", "/"):
            yield operation(op, right, left)
        if op in ("+", "-"):
            yield operation(op, -left, right)
    elif op in COMPARISONS:
        left, right = args
        for other in ("<", "<=", "==", "!="):
            if other != op:
                yield operation(other, left, right)
        for other in ("<", "<="):
            yield operation(other, right, left)
    elif op in ("and", "or"):
        yield operation("or" if op == "and" else "and", *args)
        yield from args
    elif op == "not":
        yield from args
    elif op == "where":
        test, yes, no = args
        yield operation("where", test, no, yes)
        yield yes
        yield no
    elif args:
        yield from args
        yield from _functions(node)


def _functions(node: Expression) -> Iterator[Expression]:
    op, arg = node.op, node.args[0]
    for other in NEIGHBOURS.get(op, ()):
        yield operation(other, *(node.args if other in ("min", "max") else node.args[:1]))
    if op == "exp":
        yield exp(arg * log(constant(2)))  # exp2
        yield expm1(arg)
    if op == "expm1":
        yield exp(arg)
    if op == "log":
        yield log1p(arg)
        yield log(arg) / log(constant(2))  # log2
    if op == "log1p":
        yield log(arg)
    if op == "tanh":
        yield 1 / (1 + exp(-arg))
    if op == "erf":
        yield tanh(arg)
    if op not in ("neg", "abs", "min", "max"):
        yield operation(op, -arg)
        yield -node
    if op == "abs":
        yield -arg


def _leaves(node: Expression, symbols: tuple[str, ...]) -> Iterator[Expression]:
    """What an operand that is a symbol or a constant may be mistaken for."""
    if node.op == "symbol":
        yield from (symbol(name) for name in symbols if name != node.value)
    elif isinstance(node.value, Fraction):
        for other in _numbers(node.value):
            yield constant(other)
    elif node.op == "constant":  # pi
        yield constant(Fraction(3))
        yield ratio(22, 7)


def _numbers(value: Fraction) -> Iterator[Fraction]:
    if value == 0:
        yield from (Fraction(-1), Fraction(1))
    elif value == 1:
        yield from (Fraction(0), Fraction(2), Fraction(-1), 1 + Fraction(1, 2**10))
    else:
        yield from (Fraction(0), value * 10, value / 10, value * 2, -value, value * (1 + Fraction(1, 2**12)))
        yield from EPSILONS if abs(value) < Fraction(1, 10**5) else (value - 1, value + 1)


def _is_defined(graph: Expression) -> bool:
    """Whether all constants are numbers: the root of -2 is none."""
    try:
        return all(_is_number(node) for node in walk(graph) if node.is_constant and not node.is_condition)
    except Undefined:
        return False


@lru_cache(maxsize=4096)
def _is_number(node: Expression) -> bool:
    return math.isfinite(constant_value(node))


# ---- branches that meet ----------------------------------------------------------------------------------------------


def _meets(old: Expression, new: Expression, root: Expression, graph: Expression) -> bool:
    """Whether ``<`` became ``<=``, or the other way round, between an operand and a number, where the formula's value
    is one and the same whichever branch is taken: the mutant is no mutant."""
    if {old.op, new.op} != {"<", "<="} or old.args != new.args:
        return False
    left, right = old.args
    name, number = (left, right) if left.op == "symbol" else (right, left)
    if name.op != "symbol" or not number.is_constant:
        return False
    return _settled(root, name, number) is _settled(graph, name, number)


def _settled(root: Expression, name: Expression, number: Expression) -> Expression:
    """A graph at one value of an operand: constants are computed, conditions on them decided."""
    made: dict[int, Expression] = {}
    for node in walk(root):
        args = tuple(made[id(a)] for a in node.args)
        new = number if node is name else operation(node.op, *args) if args else node
        if node.op == "where" and args[0].op == "constant":
            new = args[1] if args[0].value else args[2]
        elif args and all(a.op == "constant" for a in args):
            new = constant(_decided(new) if node.is_condition else Fraction(constant_value(new)))
        made[id(node)] = new
    return made[id(root)]


def _decided(condition: Expression) -> Fraction:
    left, *others = (constant_value(a) for a in condition.args)
    right = others[0] if others else 0.0
    held = {"<": left < right, "<=": left <= right, "==": left == right, "!=": left != right,
            "and": bool(left and right), "or": bool(left or right), "not": not left}[condition.op]  # fmt: skip
    return Fraction(int(held))


# ---- factors ---------------------------------------------------------------------------------------------------------


def factors(root: Expression) -> tuple[Expression, ...]:
    """Return what a graph's value is zero with: the factors of a product, common to all terms of a sum."""
    if root.op == "*":
        return tuple(dict.fromkeys((*factors(root.args[0]), *factors(root.args[1]))))
    if root.op == "/":
        return factors(root.args[0])
    if root.op == "neg":
        return factors(root.args[0])
    if root.op in ("+", "-") and ZERO not in root.args:
        common = [f for f in _terms(root.args[0]) if f in _terms(root.args[1])]
        return tuple(common) or (root,)
    return () if root.is_constant else (root,)


def _terms(node: Expression) -> tuple[Expression, ...]:
    return factors(node) if node.op in ("*", "/", "neg") else (node,)


def is_mere_factor(root: Expression, name: str) -> bool:
    """Whether a formula is an operand times something that does not hold it."""
    own = symbol(name)
    if own not in factors(root):
        return False
    return sum(arg is own for node in walk(root) for arg in node.args) == 1
